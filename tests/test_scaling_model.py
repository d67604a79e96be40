"""The model of distributed calls on paper: its limits, and its counts beside those of the code."""

import importlib
import json
import math
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from opencl_lab.distributed.layout import Split, common, slab
from opencl_lab.lab.reference.mpi import no_mpi

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

machines = importlib.import_module("scaling_machine")
model = importlib.import_module("scaling_model")
operations = importlib.import_module("scaling_operations")
OPERATIONS = tuple(operations.STEPS)
SIZES = {"gemm": 4096, "sort": 1 << 24, "fft": 1 << 24, "fft2": 4096, "conv2d": 8192}


@pytest.fixture(scope="module")
def machine():
    """Return nodes of 4 ranks; a transform is as much work by row as by columns and rows."""
    rates = {"gemm": 1e11, "sort": 1e8, "conv2d": 1e9, "fft row": 1e9, "fft square": 1e9}
    rates |= {"fft columns": 2e9, "fft rows": 2e9, "twiddle": 1e9, "transpose": 1e9}
    rates |= {"count": 1e8, "merge": 1e8}
    node = machines.Node(
        4, {64: machines.rate(3e9), 4096: machines.rate(1e10)}, machines.rate(5e9),
        5e-6, 2e-5, 3e-5, 1e-4, machines.rate(2e9, 1e-5), 64e9,
    )  # fmt: skip
    network = machines.Network(2e-6, 5e-7, 1.25e10, 0.5, 5e9)
    calls = {name: {"allgather": 3, "allreduce": 6} for name in OPERATIONS}
    return machines.Machine(
        "made", node, network, {name: machines.rate(one) for name, one in rates.items()},
        dict.fromkeys(rates, 0.05), calls, unpickle=1e-6,
    )  # fmt: skip


def seconds(operation, ranks, machine, n=None, **changes):
    how = replace(operations.NOW, **changes)
    return operations.predicted(operation, n or SIZES[operation], ranks, machine, how).seconds


def test_tables_go_through_their_points():
    table = machines.Table(((10.0, 1.0), (1000.0, 10.0)))
    assert table(10) == pytest.approx(1.0) and table(100) == pytest.approx(math.sqrt(10))
    assert table(1) == pytest.approx(1.0)  # a call takes its time
    assert table(4000) == pytest.approx(40)  # and then it has a rate
    assert replace(table, grows=True)(100_000) == pytest.approx(100)
    assert table(0) == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_rank_is_the_plain_call(machine, operation):
    alike = replace(machine, spread={})
    n, rate = SIZES[operation], {"fft": "fft row", "fft2": "fft square"}.get(operation, operation)
    work = {"gemm": 2 * n**3, "fft2": n * n, "conv2d": n * n}.get(operation, n)
    assert seconds(operation, 1, alike) == pytest.approx(machine.rates[rate](work))


@pytest.mark.parametrize("ranks", [4, 64])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_scaling_is_perfect_where_nothing_is_exchanged(machine, operation, ranks):
    """What the distributed call does beyond the plain one is left out, too."""
    nothing = machines.Table(((1e-9, 0.0),))
    beyond = ("twiddle", "transpose", "count", "merge")
    free = machines.ideal(
        replace(machine, rates={**machine.rates, **dict.fromkeys(beyond, nothing)})
    )
    alone, together = (seconds(operation, one, free) for one in (1, ranks))
    # The edges of a filter are computed with the rows that they need.
    least = 1.0 if operation != "conv2d" else 1 / (1 + 8 * ranks / SIZES[operation])
    if operation == "sort" and ranks > operations.MOST_RUNS:
        least = 0.5  # what comes is sorted, too
    assert least - 1e-3 <= alone / ranks / together <= 1 + 1e-3


@pytest.mark.parametrize("ranks", [4, 64, 1024])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_more_bytes_or_a_slower_network_take_more_time(machine, operation, ranks):
    alike = replace(machine, spread={})
    now = seconds(operation, ranks, alike)
    assert seconds(operation, ranks, alike, 2 * SIZES[operation]) > now
    slower = replace(alike.network, bandwidth=alike.network.bandwidth / 4)
    assert seconds(operation, ranks, replace(alike, network=slower)) >= now
    if ranks > alike.node.ranks:
        assert seconds(operation, ranks, replace(alike, network=slower)) > now
        later = replace(alike.network, latency=1e-3)
        assert seconds(operation, ranks, replace(alike, network=later)) > now


def moved(before, after, ranks, rank, itemsize):
    """Return to how many other ranks this one sends, and how many bytes, by the layouts."""
    sizes = [
        math.prod(
            sum(end - begin for begin, end in common(have, need))
            for have, need in zip(before.runs(rank), after.runs(other), strict=True)
        )
        for other in range(ranks)
        if other != rank
    ]
    return sum(size > 0 for size in sizes), itemsize * sum(sizes)


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_exchanges_are_those_of_the_layouts(machine, ranks):
    apart = replace(machine, node=replace(machine.node, ranks=1))
    n = SIZES["fft"]
    rows, columns = operations.factors(n, ranks)
    assert rows * columns == n and rows % ranks == columns % ranks == 0
    before, after = (slab(axis).layout((rows, columns), ranks) for axis in (0, 1))
    exchanges = [
        step for step in operations.steps_of("fft", n, ranks, apart)
        if isinstance(step, model.Exchange)
    ]  # fmt: skip
    assert len(exchanges) == 3
    for step in exchanges:
        counted = step.messages(apart, ranks), step.sent(apart, ranks)
        assert counted == moved(before, after, ranks, ranks // 2, 8)
    part = after.runs(1)[1][0]
    assert exchanges[0].run == 8 * (part[1] - part[0])


def test_a_node_keeps_what_its_ranks_exchange(machine):
    ranks, step = 16, model.Exchange(1600.0, 100.0)
    assert step.messages(machine, ranks) == 12
    assert step.sent(machine, ranks) == 1200
    by_node = replace(step, two_level=True)
    # Each of 4 ranks has a share of the messages to 3 nodes; the bytes are the same.
    assert by_node.messages(machine, ranks) == 3 / 4
    assert by_node.sent(machine, ranks) == 1200


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (8, 2)])
def test_panels_are_those_of_summa(shape):
    summa = importlib.import_module("opencl_lab.distributed.summa")
    grids = importlib.import_module("opencl_lab.distributed.grid")
    gemm = importlib.import_module("opencl_lab.ops.gemm.problem")
    n = 6000
    problem = gemm.GemmProblem(n, n, n, np.dtype(np.float32), 1.0, 0.0, False, False, "native")
    runs = summa._panels(problem, grids.Grid(*shape), 0)
    widths = operations.panels(n, *shape, summa.PANEL)
    assert len(widths) == len(runs)
    assert np.allclose(widths, [end - begin for begin, end in runs], atol=2)


@pytest.mark.parametrize("ranks", [12, 64])
def test_halos_are_those_of_conv2d(machine, ranks):
    conv2d = importlib.import_module("opencl_lab.distributed.conv2d")
    binding = importlib.import_module("opencl_lab.ops.conv2d.arguments")
    measure = importlib.import_module("scaling_measure")
    n = 1200
    filtered = binding.bind(
        np.empty((0, n, n), np.float32), np.ones((5, 5), np.float32), **measure.FILTER
    )[0]
    runs = list(pairwise(Split(n, ranks).bounds))
    part = conv2d._Part(filtered, runs[1], runs[1])
    (halo,) = (
        step for step in operations.steps_of("conv2d", n, ranks, machine)
        if isinstance(step, model.Halo)
    )  # fmt: skip
    beyond = [row for row in part.halo if not runs[1][0] <= row < runs[1][1]]
    assert 2 * halo.nbytes == 4 * n * len(beyond)
    inside = part.inside
    assert halo.beside.work == (inside[1] - inside[0]) * n


@pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")
@pytest.mark.parametrize("ranks", [4, 36, 64])
def test_grids_are_those_that_gemm_takes(machine, ranks):
    grids = importlib.import_module("opencl_lab.distributed.grid")
    gemm = importlib.import_module("opencl_lab.ops.gemm.problem")
    measure = importlib.import_module("scaling_measure")
    n = 8192
    problem = gemm.GemmProblem(n, n, n, np.dtype(np.float32), 1.0, 0.0, False, False, "native")
    layout = slab(0).layout((n, n), ranks)
    taken = grids.best_grid(measure._Silent(ranks, ranks // 2), problem, layout, layout, layout)
    roomy = replace(machine, node=replace(machine.node, memory=1e15))
    assert operations.best_grid(n, ranks, roomy) == (taken.rows, taken.columns, taken.layers)


@pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")
def test_copies_of_c_have_room_in_the_memory_of_a_node(monkeypatch):
    grids = importlib.import_module("opencl_lab.distributed.grid")
    gemm = importlib.import_module("opencl_lab.ops.gemm.problem")
    measure = importlib.import_module("scaling_measure")
    n, ranks = 8192, 64
    layout = slab(0).layout((n, n), ranks)
    for memory, layers in ((80e6, 4), (8e6, 1)):  # of a node, where there is one rank
        monkeypatch.setattr(grids, "host_memory", lambda memory=memory: memory)
        comm = measure._Silent(ranks, 1)
        taken = grids.best_grid(comm, gemm.GemmProblem(n, n, n), layout, layout, layout)
        assert taken.layers == layers


def test_the_last_rank_counts_and_more_so_with_more_ranks(machine):
    step = model.Compute("sort", 1e6)
    runs = [model.run([step], machine, ranks, seed=3) for ranks in (4, 64, 4096)]
    assert runs[0].seconds < runs[1].seconds < runs[2].seconds < 0.01 * 1.3
    assert runs[2].spent[model.COMPUTE] == pytest.approx(0.01, rel=0.01)
    assert runs[2].spent[model.WAIT] > runs[0].spent[model.WAIT]
    for run in runs:
        assert sum(run.spent.values()) == pytest.approx(run.seconds)
    again = model.run([step], machine, 4096, seed=3)
    assert again == runs[2]


def test_what_travels_beside_computing_is_hidden(machine):
    """SUMMA and the halo wait for what the network does not do by itself only."""
    alike = replace(machine, spread={})
    fast = replace(alike, network=replace(alike.network, progress=1.0))
    slow = replace(alike, network=replace(alike.network, progress=0.0))
    for operation in ("gemm", "conv2d"):
        assert seconds(operation, 64, fast) < seconds(operation, 64, slow)
    step = model.Panels((8, 8, 1), (512, 512), (512.0,) * 8)
    spent = model.run([step], fast, 64).spent
    assert spent[model.EXCHANGE] == pytest.approx(step.seconds(fast, 512.0))  # the first panels


def test_changes_help_where_the_page_says_so(machine):
    ranks, grown = 1024, {"sort": 1 << 30, "fft": 1 << 30}
    assert seconds("sort", ranks, machine, grown["sort"], digit=2) < seconds(
        "sort", ranks, machine, grown["sort"]
    )
    little = replace(machine, network=replace(machine.network, message=1e-5))
    assert seconds("fft", ranks, little, grown["fft"], two_level=True) < seconds(
        "fft", ranks, little, grown["fft"]
    )


@pytest.fixture(scope="module")
def page():
    return importlib.import_module("scaling_page")


def test_the_page_is_made_of_the_data(page):
    path = DOCS / page.PAGE
    text = path.read_text(encoding="utf-8")
    assert page.Page().made(text) == text, "run tools/scaling_page.py"
    for name in page.Page().pictures():
        svg = (DOCS / f"plots/{name}.svg").read_text(encoding="utf-8")
        ElementTree.fromstring(svg)
        assert len(svg) < 150_000 and f"plots/{name}.svg" in text


def test_cpu_nodes_are_those_that_were_measured(page):
    """Once there is a file of such nodes; here, of two ranks."""
    clusters = importlib.import_module("scaling_clusters")
    data = {stem: json.loads((DOCS / f"data/scaling/{stem}.json").read_text(encoding="utf-8"))
            for stem in ("cpu2", "plan")}  # fmt: skip
    nodes = clusters.cpu_cluster({**data["cpu2"], "plan": data["plan"]["plan"]}, 2)
    assert nodes.node.ranks == 2 and nodes.nodes(64) == 32
    for operation in page.OPERATIONS:
        _, few, better = clusters.outcome(nodes, operation, 2, True)
        _, many, worse = clusters.outcome(nodes, operation, 1024, True)
        assert 0 < few.seconds < many.seconds and worse < better


def test_the_files_have_what_the_model_needs():
    for path in (DOCS / "data/scaling").glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        for ranks in document["ranks"]:
            machine = machines.measured(document, int(ranks))
            for operation in ("gemm", "sort", "fft", "conv2d"):
                assert seconds(operation, int(ranks), machine) > 0
