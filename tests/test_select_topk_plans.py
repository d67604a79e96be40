"""Plans of topk: of devices that are not there, of parts, and by sorting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from radix_checks import GPU, stable_order
from select_checks import GROUPS, SELECT, N, check, hard_floats, right_topk, run_select

import opencl_lab as ol
from opencl_lab.core.plan import check_plan
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.solver import TOPK_SOLVER
from opencl_lab.runtime.session import session_of


@pytest.mark.parametrize("n", [1, 1000, 10**6, 2**31 + 5, 2**33])
@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])
def test_topk_plans_fit(dtype, n):
    for kind in ("cpu", "gpu"):
        device = replace(GPU, kind=kind)
        for rows in (1, 7):
            problem = TopkProblem(n, min(n, 100), np.dtype(dtype), rows)
            plan = SELECT.plan(problem, SELECT.default_config(problem, device), device)
            if n * rows * 8 < device.max_allocation:
                check_plan(plan, device)
            item = plan.launches[0]
            wide = n >= 2**31
            assert item.params["WIDE"] == wide
            assert item.arguments["n"].dtype == (np.uint64 if wide else np.uint32)
            assert int(item.arguments["n"]) == n
            if n > topk.WHOLE:
                bits = item.params["DIGIT_BITS"]
                assert len(plan.launches) == -(-8 * np.dtype(dtype).itemsize // bits) + 1
                cut = int(item.arguments["parts"])
                assert item.global_size[0] == rows * cut * item.local_size[0]
                assert n / cut < 2**32  # what a part counts
            else:
                assert [launch.kernel for launch in plan.launches] == ["select_parts"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"WG_SIZE": 48}, "WG_SIZE must be a power of two"),
        ({"WG_SIZE": 16}, "WG_SIZE must be a multiple of 32 on this device"),
        ({"ITEM_KEYS": 1}, "ITEM_KEYS must be at least 2"),
        ({"ITEM_KEYS": 512}, "fewer than 65,536 keys"),
        ({"DIGIT_BITS": 12}, "DIGIT_BITS must be 1 to 11"),
    ],
)
def test_topk_configurations_that_cannot_run(config, message):
    device = replace(GPU, capabilities=replace(GPU.capabilities, inline_ptx=True))
    problem = TopkProblem(10**6, 10, np.dtype(np.int32))
    with pytest.raises(ol.InvalidConfig, match=message):
        SELECT.plan(problem, SELECT.configure(problem, device, config), device)


@pytest.mark.parametrize(
    ("dtype", "rows", "n", "k", "largest"),
    [
        ("float32", 3, N, 100, True),
        ("uint8", 1, 30_011, 1, False),
    ],
)
def test_topk_of_parts(dtype, rows, n, k, largest, rng, queue):
    """What GPUs do for rows a little too long for one group, with groups of several items."""
    keys = hard_floats(rng, (rows, n)) if dtype == "float32" else rng.integers(0, 200, (rows, n))
    keys = keys.astype(dtype)
    device = replace(session_of(queue).device, kind="gpu")
    problem = TopkProblem(n, k, keys.dtype, rows, largest)
    config = SELECT.configure(problem, device, {**GROUPS, "DIGIT_BITS": 8})
    plan = SELECT.plan(problem, config, device)
    assert [launch.kernel for launch in plan.launches] == ["select_parts", "select_few"]
    places = run_select(problem, keys, queue, problem, device, **config)[2]
    expected = np.sort(stable_order(keys, largest)[:, :k], -1)
    np.testing.assert_array_equal(places, expected)


def test_topk_of_parts_plans():
    """Each part has k keys or more, and one group reads what they find."""
    for n in (topk.WHOLE + 1, 50_000, topk.PARTED):
        for k in (1, 100, topk.MOST_OF_PARTS // -(-n // topk.PART)):
            for rows in (1, 5):
                problem = TopkProblem(n, k, np.dtype(np.int32), rows)
                plan = SELECT.plan(problem, SELECT.default_config(problem, GPU), GPU)
                check_plan(plan, GPU)
                first, last = plan.launches
                parts = int(first.arguments["parts"])
                assert n // parts >= k and int(last.arguments["n"]) == parts * k <= topk.WHOLE
                assert first.global_size[0] == rows * parts * first.local_size[0]
                assert last.global_size[0] == rows * last.local_size[0]


@pytest.mark.parametrize("dtype", ["bool", "float32"])
@pytest.mark.parametrize(("rows", "n", "k"), [(1, 1, 1), (3, 40, 7), (1, 5000, 4000), (2, 9, 0)])
def test_topk_by_sort(dtype, rows, n, k, rng, queue):
    with np.errstate(invalid="ignore"):  # some NaN signal
        keys = hard_floats(rng, (rows, n)).astype(dtype)
    on_device = cl.array.to_device(queue, keys)
    for largest in (True, False):
        expected = right_topk(keys, k, largest)
        how = {"largest": largest, "algorithm": "sort"}
        check(ol.topk(keys, k, queue=queue, **how), expected)
        for _ in range(2):
            check(ol.topk(on_device, k, **how), expected)


def test_topk_sorts_where_that_takes_less_time():
    def chosen(kind, n, k, rows=1):
        device = replace(GPU, kind=kind)
        return TOPK_SOLVER.choose(TopkProblem(n, k, np.dtype(np.int32), rows), device).name

    assert chosen("cpu", 20, 2, 1000) == "sort"
    assert chosen("cpu", 10_000, 1000, 100) == "radix-select"
    assert chosen("cpu", 10_000, 5000, 100) == "sort"
    assert chosen("gpu", 50_000, 100) == "radix-select"  # in parts
    assert chosen("gpu", 50_000, 2000) == "sort"
    assert chosen("gpu", 50_000, 2000, 1000) == "radix-select"
    assert chosen("gpu", 10**7, 2000) == "radix-select"
    assert chosen("gpu", 10**7, 6 * 10**6) == "sort"


def test_topk_waits_for_nothing(queue, rng, held_back, own_queue, device):
    mine = own_queue(device.handle)
    keys = rng.integers(0, 10**6, N, np.int32)
    given_keys = cl.array.to_device(mine, keys)
    ol.topk(given_keys, 5)
    with held_back(mine):
        results = ol.topk(given_keys, 5)
    check(results, right_topk(keys, 5))


def test_prepared_topk(rng, queue):
    prepared = ol.prepare("topk", shape=(300,), dtype=np.int32, k=5, queue=queue)
    for _ in range(3):
        keys = rng.integers(0, 50, 300, np.int32)
        check(prepared(cl.array.to_device(queue, keys)), right_topk(keys, 5))
