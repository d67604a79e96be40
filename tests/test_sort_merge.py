"""The merge sort by merge paths: both forms, skewed keys, what travels, planted faults, plans."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from radix_checks import GPU, SKEWS, skewed, specials, stable_order

import opencl_lab as ol
from opencl_lab.core import template
from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import check_plan
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort import merge_cpu, merge_gpu
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

MERGE = SORT.algorithm("merge-path")
# Small tiles: many of them, of which the last is not full, and passes of both parities.
FORMS = {
    "cpu": {"FORM": "cpu", "TILE": 256, "STRETCH": 128},
    "long": {"FORM": "cpu", "TILE": 64, "STRETCH": 128},
    "gpu": {"FORM": "gpu", "WG_SIZE": 32, "ITEM_KEYS": 5, "TILE": 1, "STRETCH": 1},
}
N = 5_003
INT32 = np.dtype(np.int32)


def need(form, queue):
    if FORMS[form]["FORM"] == "cpu" and session_of(queue).device.kind != "cpu":
        pytest.skip("a form for CPUs")


@pytest.mark.parametrize(("form", "descending"), [("cpu", False), ("long", True), ("gpu", False)])
def test_skewed_keys(form, descending, rng, queue):
    """Stably, by which position each key had; all skews by one program, and twice the same."""
    need(form, queue)
    options = {"algorithm": "merge-path", "config": FORMS[form], "queue": queue}
    keys = np.stack([skewed(name, rng, N) for name in SKEWS])
    for length in (N, 1000, 130, 33, 9, 8, 2, 1):
        part = keys[:, :length]
        order = ol.argsort(part, descending=descending, **options)
        np.testing.assert_array_equal(order, stable_order(part, descending), err_msg=str(length))
    again = ol.argsort(part, descending=descending, **options)
    assert again.tobytes() == order.tobytes()


@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_runs_that_need_no_merging(form, queue):
    """One run before the other, both ways; runs that take turns; a run of one key."""
    need(form, queue)
    options = {"algorithm": "merge-path", "config": FORMS[form], "queue": queue}
    up = np.arange(N, dtype=np.int32)
    turns = np.concatenate([up[::2], up[1::2]])
    for keys in (up, up[::-1], turns, np.roll(up, N // 2), np.roll(up, 1), np.roll(up, -1)):
        np.testing.assert_array_equal(ol.sort(keys, **options), up)


@pytest.mark.parametrize(("form", "tile"), [("cpu", 256), ("gpu", 160)])
def test_equal_keys_that_straddle_diagonals(form, tile, queue):
    """Ties and crossings that begin and end at the borders of tiles, and beside them."""
    need(form, queue)
    options = {"algorithm": "merge-path", "config": FORMS[form], "queue": queue}
    place = np.arange(N)
    borders = [m * tile // 2 + step for m in (1, 2, 3, 4, 8, 16) for step in (-1, 0, 1)]
    rows = [place < border for border in borders]  # the path goes along two sides of the square
    rows += [(place - border) % (2 * tile) < tile for border in borders]  # of each pair of runs
    rows += [place % (2 * tile) // max(border % tile, 1) for border in borders]
    keys = np.stack(rows).astype(np.int32)
    order = ol.argsort(keys, **options)
    np.testing.assert_array_equal(order, stable_order(keys))


@pytest.mark.parametrize(
    ("dtype", "form", "descending"),
    [
        ("uint8", "cpu", True),
        ("float32", "cpu", True),
        ("float64", "long", False),
        ("float16", "gpu", False),
        ("float32", "gpu", True),
        ("uint64", "gpu", True),
    ],
)
def test_every_kind_of_key(dtype, form, descending, rng, queue):
    """Bit for bit: NaN of all payloads last, and zeros of both signs in their order."""
    need(form, queue)
    dtype = np.dtype(dtype)
    keys = rng.integers(0, 256, N * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "f":
        special = np.concatenate([specials(dtype), np.array([1e-7, -1.0], dtype)])
        places = rng.random(N) < 0.7
        keys[places] = rng.choice(special, np.count_nonzero(places))
    right = keys[stable_order(keys, descending)]
    options = {"algorithm": "merge-path", "config": FORMS[form], "queue": queue}
    assert ol.sort(keys, descending=descending, **options).tobytes() == right.tobytes()


@pytest.mark.parametrize(
    ("form", "dtype", "value_bytes"),
    [
        ("cpu", "float32", 1),
        ("long", "int8", 16),
        ("gpu", "float32", 8),
        ("gpu", "int8", 2),
    ],
)
def test_values_travel(form, dtype, value_bytes, rng, queue):
    need(form, queue)
    keys = rng.integers(-50, 50, (2, N)).astype(dtype)
    values = rng.integers(0, 256, (2, N * value_bytes), np.uint8).view(f"V{value_bytes}")
    order = stable_order(keys)
    config = FORMS[form]
    moved = ol.sort_by_key(keys, values, algorithm="merge-path", config=config, queue=queue)
    np.testing.assert_array_equal(moved[0], np.take_along_axis(keys, order, -1))
    assert moved[1].tobytes() == np.take_along_axis(values, order, -1).tobytes()


@pytest.mark.parametrize("rows", [1, 31, 1000])
def test_rows_that_share_groups(rows, rng, queue):
    """Several rows a group, of which the last may have fewer; none reaches into the next."""
    config = FORMS["gpu"]
    for n in (1, 3, 5, 7, 39):
        keys = rng.integers(0, 9, (rows, n)).astype(np.float32)
        order = ol.argsort(keys, algorithm="merge-path", config=config, queue=queue)
        np.testing.assert_array_equal(order, stable_order(keys))


@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_in_place(form, rng, queue):
    """Rows of which an item or a group writes some while others read theirs; floats twice."""
    need(form, queue)
    options = {"algorithm": "merge-path", "config": FORMS[form]}
    for shape in ((300, 39), (N,)):
        keys = rng.integers(-9, 9, shape).astype(np.float32)
        given = cl.array.to_device(queue, keys)
        assert ol.sort(given, out=given, **options) is given
        np.testing.assert_array_equal(given.get(), np.sort(keys))


def planned(form, problem, queue, device=None):
    """Return the plan of a form."""
    device = device or session_of(queue).device
    return MERGE.plan(problem, MERGE.configure(problem, device, FORMS[form]), device)


def sorted_by(plan, keys, queue, label):
    """Return what a plan makes of rows of keys."""
    executable = session_of(queue).executable(("test merge", label), lambda: plan)
    return execute(executable, {"keys": keys}, queue).outputs["sorted"]


@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^31 keys need, in short rows."""
    need(form, queue)
    keys = skewed("zipf", rng, N).reshape(1, -1)
    for module in (merge_cpu, merge_gpu):
        monkeypatch.setattr(module, "index_type", lambda count: np.uint64)
    plan = planned(form, SortProblem(N, keys.dtype), queue)
    assert plan.launches[-1].params["INDEX_T"] == "ulong"
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, f"wide {form}"), np.sort(keys))


def test_a_launch_a_phase(rng, queue):
    """What runs where items do not see what others have written."""
    need("long", queue)
    device = session_of(queue).device
    apart = replace(device, capabilities=replace(device.capabilities, visible_writes=False))
    plan = planned("long", SortProblem(N, INT32), queue, apart)
    assert len(plan.launches) == 1 + 7  # 79 tiles
    for name in ("uniform", "sorted", "uniform"):  # counters must be zero again
        keys = skewed(name, rng, N).reshape(1, -1)
        np.testing.assert_array_equal(sorted_by(plan, keys, queue, "apart"), np.sort(keys))


def test_loops_that_are_unrolled(rng, queue):
    """What devices with inline PTX get, which any compiler takes."""
    device = session_of(queue).device
    unrolled = replace(device, capabilities=replace(device.capabilities, inline_ptx=True))
    problem = SortProblem(N, np.dtype(np.float32))
    plan = planned("gpu", problem, queue, unrolled)
    launch = plan.launches[0]
    assert "#pragma unroll" in template.render(launch.template, launch.params).text
    keys = rng.integers(-9, 9, (1, N)).astype(np.float32)
    np.testing.assert_array_equal(sorted_by(plan, keys, queue, "unrolled"), np.sort(keys))


# ---------------------------------------------------------------------- plans


def plan_of(problem, device, **values):
    """Return a plan that was checked against the limits of the device."""
    plan = MERGE.plan(problem, MERGE.configure(problem, device, values), device)
    check_plan(plan, device)
    return plan


@pytest.mark.parametrize("n", [1, 33, 1000, 10_000, 10**6, 2**31 + 5])
@pytest.mark.parametrize("options", [{}, {"indices": True}, {"value_bytes": 16}])
@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])
def test_built_in_configurations_fit(dtype, options, n):
    problem = SortProblem(n, np.dtype(dtype), **options)
    for local, group in ((32, 256), (48, 1024), (16, 64), (2, 64)):
        limits = Capabilities(max_work_group=group, local_memory=local << 10)
        items = (group,) * 3
        device = replace(GPU, max_work_group=group, max_work_items=items, capabilities=limits)
        plan = plan_of(problem, device)
        assert all(launch.local_memory <= 48 << 10 for launch in plan.launches)
        assert plan.launches[0].params["INDEX_T"] == ("ulong" if n > 2**31 else "uint")
        if n <= 33:
            assert [launch.kernel for launch in plan.launches] == ["sort_tiles"]
    for units in (1, 2, 64):
        cpu = replace(GPU, kind="cpu", compute_units=units)
        joined = replace(cpu, capabilities=replace(cpu.capabilities, visible_writes=True))
        assert len(plan_of(problem, joined).launches) == 1


@pytest.mark.parametrize("options", [{}, {"indices": True}, {"value_bytes": 4}])
@pytest.mark.parametrize("tiles", range(1, 10))
def test_the_last_pass_ends_in_the_output(tiles, options):
    """Without a copy: launches hand on to each other, and the last one writes what is wanted."""
    problem = SortProblem(tiles * 160, INT32, **options)
    plan = plan_of(problem, GPU, WG_SIZE=32, ITEM_KEYS=5)
    launches = plan.launches
    assert len(launches) == 1 + (tiles - 1).bit_length()
    assert launches[0].arguments["source"] == "keys"
    for one, following in pairwise(launches):
        assert one.arguments["target"] == following.arguments["source"]
        if "target_values" in one.arguments:
            assert one.arguments["target_values"] == following.arguments["source_values"]
    last = launches[-1].arguments
    assert last.get("target", "sorted") == "sorted"
    assert last.get("target_values", "sorted_values") == "sorted_values"
    for launch in launches:
        assert launch.arguments["source"] != launch.arguments.get("target")
        if problem.indices and launch is not launches[-1]:
            assert launch.arguments["target_values"] != "sorted_values"


def test_rows_share_their_launches():
    for n in (10, 1000, 100_000):
        counts = {
            len(plan_of(SortProblem(n, INT32, rows), GPU, WG_SIZE=256, ITEM_KEYS=15).launches)
            for rows in (1, 5, 300)
        }
        assert len(counts) == 1
    plan = plan_of(SortProblem(10, INT32, 10**6), GPU)
    assert plan.launches[0].global_size[0] < 1.1 * 10**6  # one item a row


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"FORM": "cpu"}, "WG_SIZE must be 1 if FORM is cpu"),
        ({"WG_SIZE": 48}, "power of two"),
        ({"WG_SIZE": 2}, "power of two, and 4 or more"),
        ({"ITEM_KEYS": 1}, "ITEM_KEYS must be 1 if FORM is cpu"),
        ({"ITEM_KEYS": 0}, "ITEM_KEYS must be positive"),
        ({"TILE": 64}, "TILE and STRETCH must be 1 unless FORM is cpu"),
        ({**FORMS["cpu"], "WG_SIZE": 1, "ITEM_KEYS": 1, "TILE": 96}, "powers of two"),
        ({**FORMS["cpu"], "WG_SIZE": 1, "ITEM_KEYS": 1, "TILE": 4}, "at least 8"),
        ({**FORMS["cpu"], "WG_SIZE": 1, "ITEM_KEYS": 1, "STRETCH": 1024}, "two tiles"),
        ({"WG_SIZE": 256, "ITEM_KEYS": 300}, "WG_SIZE \\* ITEM_KEYS must not be above"),
        ({"WG_SIZE": 256, "ITEM_KEYS": 41}, "of local memory"),
    ],
)
def test_configurations_that_cannot_run(config, message):
    with pytest.raises(InvalidConfig, match=message):
        plan_of(SortProblem(10**6, INT32), GPU, **config)
