"""The model of distributed calls on paper: its limits, and its counts beside those of the code."""

import importlib
import math
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from opencl_lab.distributed import grid as grids
from opencl_lab.distributed.layout import Split, common, slab
from opencl_lab.distributed.transform_task import factors_of
from opencl_lab.lab.reference.mpi import no_mpi
from opencl_lab.ops.conv2d.arguments import bind
from opencl_lab.ops.gemm.problem import GemmProblem

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
conv2d = importlib.import_module("opencl_lab.distributed.conv2d")
model = importlib.import_module("scaling")
with_mpi = pytest.mark.skipif(no_mpi() is not None, reason=f"{no_mpi()}")
SIZES = {"gemm": 4096, "sort": 1 << 24, "fft": 1 << 24, "conv2d": 8192}


@pytest.fixture
def machine():
    """Return nodes of 4 ranks, which are all alike."""
    rates = {"gemm": 1e11, "sort": 1e8, "conv2d": 1e9, "fft row": 1e9, "fft columns": 2e9,
             "fft rows": 2e9, "twiddle": 1e9, "transpose": 1e9, "count": 1e8}  # fmt: skip
    rates["merge"] = 1e8
    return model.Machine(
        "made", 4, {name: model.rate(0, one) for name, one in rates.items()},
        copy={64: model.rate(0, 3e9), 4096: model.rate(0, 1e10)}, fresh=model.rate(0, 5e9),
        allreduce=model.rate(1e-5, 2e9), network=model.Network(), memory=64e9, unpickle=1e-6,
        fixed={"barrier": 5e-6, "agreed": 2e-5, "same": 3e-5, "exchange": 1e-4},
        calls={name: {"allgather": 3, "allreduce": 6} for name in SIZES},
    )  # fmt: skip


def seconds(operation, ranks, machine, n=None, **how):
    changes = replace(model.NOW, **how)
    return model.predicted(operation, n or SIZES[operation], ranks, machine, changes).seconds


@pytest.mark.parametrize("ranks", [4, 64])
@pytest.mark.parametrize("operation", SIZES)
def test_scaling_is_perfect_where_nothing_is_exchanged(machine, operation, ranks):
    """What the distributed call does beyond the plain one is left out, too."""
    beyond = dict.fromkeys(("twiddle", "transpose", "count", "merge"), model.NOTHING)
    free = replace(
        machine, rates={**machine.rates, **beyond}, copy={}, fresh=model.NOTHING, calls={},
        allreduce=model.NOTHING, fixed={},
        network=model.Network(0, 0, math.inf, 1.0, math.inf, math.inf),
    )  # fmt: skip
    alone, together = (seconds(operation, one, free) for one in (1, ranks))
    # The edges of a filter are computed with the rows that they need.
    least = 1.0 if operation != "conv2d" else 1 / (1 + 8 * ranks / SIZES[operation])
    if operation == "sort" and ranks > model.MOST_RUNS:
        least = 0.5  # what comes is sorted, too
    assert least - 1e-3 <= alone / ranks / together <= 1 + 1e-3


@pytest.mark.parametrize("ranks", [4, 64, 1024])
@pytest.mark.parametrize("operation", SIZES)
def test_more_bytes_or_a_slower_network_take_more_time(machine, operation, ranks):
    now = seconds(operation, ranks, machine)
    assert seconds(operation, ranks, machine, 2 * SIZES[operation]) > now
    for change in ({"bandwidth": 3e9}, {"latency": 1e-3}):
        slower = replace(machine, network=model.Network(**change))
        assert (seconds(operation, ranks, slower) > now) == (ranks > machine.node)


def test_changes_help_where_the_page_says_so(machine):
    for operation, change in (
        ("sort", {"digit": 2}), ("gemm", {"progress": True}), ("conv2d", {"progress": True}),
        ("conv2d", {"blocks": True}), ("fft", {"digest": True}),
    ):  # fmt: skip
        assert seconds(operation, 1024, machine, **change) < seconds(operation, 1024, machine)


# ------------------------------------------------------------------- beside the code


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_exchanges_are_those_of_the_layouts(machine, ranks):
    rows_columns, rank = factors_of(SIZES["fft"], ranks), ranks // 2
    before, after = (slab(axis).layout(rows_columns, ranks) for axis in (0, 1))
    sizes = [
        math.prod(
            sum(end - begin for begin, end in common(have, need))
            for have, need in zip(before.runs(rank), after.runs(other), strict=True)
        )
        for other in range(ranks)
        if other != rank
    ]
    call = model.CallTime(replace(machine, node=1), ranks)
    assert call.messages() == sum(size > 0 for size in sizes)
    assert call.sent(8 * SIZES["fft"] / ranks) == 8 * sum(sizes)


@pytest.mark.parametrize("ranks", [12, 64])
def test_halos_are_those_of_conv2d(machine, ranks):
    n, asked = 1200, []
    how = {"mode": "same", "boundary": "constant", "cval": 0.0, "flip": False}
    how |= {"channels_last": None, "saturate": True}
    filtered = bind(np.empty((0, n, n), np.float32), np.ones((5, 5), np.float32), **how)[0]
    runs = list(pairwise(Split(n, ranks).bounds))
    part = conv2d._Part(filtered, runs[1], runs[1])
    rates = {**machine.rates, "conv2d": lambda work: asked.append(work) or 0.0}
    copies = {1: lambda nbytes: asked.append(nbytes) or 1e-9}
    beyond = [row for row in part.halo if not runs[1][0] <= row < runs[1][1]]
    seconds("conv2d", ranks, replace(machine, rates=rates, node=ranks, copy=copies), n)
    assert 4 * n * len(beyond) in asked  # both halos, as one node copies them
    assert (part.inside[1] - part.inside[0]) * n in asked


class Silent:
    """A communicator of many ranks, of which there is one."""

    def __init__(self, size, rank):
        self.size, self.rank = size, rank

    def Get_attr(self, key):
        return 0, 1

    def Allreduce(self, *given, **how):
        pass


@with_mpi
@pytest.mark.parametrize("ranks", [4, 36, 64])
def test_grids_are_those_that_gemm_takes(ranks):
    problem, layout = GemmProblem(8192, 8192, 8192), slab(0).layout((8192, 8192), ranks)
    taken = grids.best_grid(Silent(ranks, ranks // 2), problem, layout, layout, layout)
    assert model.best_grid(8192, ranks) == taken
