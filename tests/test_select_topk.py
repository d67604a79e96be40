"""The largest or smallest keys and where they were, against NumPy, and plans of that."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from radix_checks import GPU, SKEWS, skewed
from select_checks import GROUPS, SELECT, N, check, hard_floats, right_topk, run_select
from sort_checks import stable_order

import opencl_lab as ol
from opencl_lab.core import kernels
from opencl_lab.core.plan import check_plan
from opencl_lab.ops.select import sampled, topk
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.solver import TOPK_SOLVER
from opencl_lab.ops.sort.trials import awkward_keys
from opencl_lab.runtime.session import session_of

SAMPLING = sampled.SampleSelect()
FORMS = {"alone": {}, "groups": {**GROUPS, "DIGIT_BITS": 8}}


def need(form, queue):
    if form == "alone" and session_of(queue).device.kind != "cpu":
        pytest.skip("a form for CPUs")


# ------------------------------------------------- topk, and all that select


@pytest.mark.parametrize("form", FORMS)
def test_topk_of_skewed_keys(form, rng, queue):
    """All skews by one program: many ties, one bucket, one digit; k over and inside of ties."""
    need(form, queue)
    for name in SKEWS:
        keys = skewed(name, rng)
        for k in (1, 100, N // 2):
            results = ol.topk(keys, k, config=FORMS[form], queue=queue)
            check(results, right_topk(keys, k))
    again = ol.topk(keys, N // 2, config=FORMS[form], queue=queue)
    check(again, results)


@pytest.mark.few(4)
def test_topk_axes_views_and_outs(side, rng):
    whole = rng.integers(0, 50, (7, 40, 6), np.int32)
    view = np.s_[::2, ::-1] if side.name == "host" else np.s_[1:5]
    keys, there = whole[view], side.put(whole)
    for axis in (0, 1, -1, None):
        moved = keys.reshape(-1) if axis is None else np.moveaxis(keys, axis, -1)
        expected = right_topk(moved, 3)
        if axis is not None:
            expected = [np.moveaxis(part, -1, axis) for part in expected]
        results = ol.topk(there[view], 3, axis=axis, queue=side.queue)
        check(results, expected)
        assert all(isinstance(part, side.kind) for part in results)
        shape = expected[0].shape
        out = side.put(np.zeros(shape, np.int32)), side.put(np.zeros(shape, np.int64))
        back = ol.topk(there[view], 3, axis=axis, out=out, queue=side.queue)
        assert back[0] is out[0] and back[1] is out[1]
        check(out, expected)
    np.testing.assert_array_equal(side.get(there), whole)


def test_topk_of_nothing(side):
    for a, k, axis in ((np.zeros((3, 0)), 0, -1), (np.zeros((0, 4)), 2, -1), (np.ones(5), 0, 0)):
        values, indices = ol.topk(side.put(a), k, axis=axis, queue=side.queue)
        assert values.shape == indices.shape == (*a.shape[:-1], k)
        assert values.dtype == a.dtype and indices.dtype == np.int64


@pytest.mark.parametrize(
    ("a", "k", "options", "message"),
    [
        ([1, 2, 3], 4, {}, "k must be 0 to 3, the keys that there are, not 4"),
        ([1, 2, 3], -1, {}, "k must be 0 to 3"),
        ([1, 2, 3], 1.5, {}, "k must be a whole number, not 1.5"),
        (5, 1, {}, "axis -1 is out of bounds for 0 dimensions"),
        ([1], 1, {"axis": 1}, "axis 1 is out of bounds"),
        ([1j], 1, {}, "cannot sort keys of dtype complex128"),
        ([1, 2], 1, {"out": np.zeros(1)}, "out must be a pair"),
        ([1, 2], 1, {"out": (np.zeros(1), np.zeros(1, int))}, "out must have shape"),
    ],
)
def test_topk_refuses(a, k, options, message, queue):
    with pytest.raises(ol.InvalidProblem, match=message):
        ol.topk(a, k, queue=queue, **options)


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
def test_topk_with_wide_counts(form, rng, queue, monkeypatch):
    """Counts of 64 bits, which rows of 2^31 keys need, in short rows; in two runs."""
    need(form, queue)
    monkeypatch.setattr(kernels, "INDEX_LIMIT", 1000)
    keys = skewed("zipf", rng).reshape(1, -1)
    problem = TopkProblem(N, 500, keys.dtype)
    for _ in range(2):
        plan, values, places = run_select(problem, keys, queue, f"wide {form}", **FORMS[form])
        assert plan.launches[0].params["WIDE"]
        chosen = np.sort(right_topk(keys, 500)[1][0])
        np.testing.assert_array_equal(places[0], chosen)
        np.testing.assert_array_equal(values[0], keys[0][chosen])


# ---------------------------------------------------------------------- plans


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
                cut = int(item.arguments["slices"])
                assert item.global_size[0] == rows * cut * item.local_size[0]
                assert n / cut < 2**32  # what a slice counts
            else:
                assert [launch.kernel for launch in plan.launches] == ["select_slices"]


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


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dtype", "rows", "n", "k", "largest"),
    [
        ("float32", 3, N, 100, True),
        ("uint8", 1, 30_011, 1, False),
    ],
)
def test_topk_of_slices(dtype, rows, n, k, largest, rng, queue):
    """What GPUs do for rows a little too long for one group, with groups of several items."""
    keys = hard_floats(rng, (rows, n)) if dtype == "float32" else rng.integers(0, 200, (rows, n))
    keys = keys.astype(dtype)
    device = replace(session_of(queue).device, kind="gpu")
    problem = TopkProblem(n, k, keys.dtype, rows, largest)
    config = SELECT.configure(problem, device, {**GROUPS, "DIGIT_BITS": 8})
    plan = SELECT.plan(problem, config, device)
    assert [launch.kernel for launch in plan.launches] == ["select_slices", "select_few"]
    places = run_select(problem, keys, queue, problem, device, **config)[2]
    expected = np.sort(stable_order(keys, largest, nan_first=True)[:, :k], -1)
    np.testing.assert_array_equal(places, expected)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "rows", "largest"),
    [("float32", 1, True), ("int16", 3, False), ("float64", 2, False), ("uint8", 1, True)],
)
def test_topk_up_to_a_limit_from_samples(dtype, rows, largest, rng, queue, monkeypatch):
    """Keys in any order and with many ties; and rows of too few candidates, or of too many."""
    device = replace(session_of(queue).device, kind="gpu")
    shape = rows, 40_007
    hard = hard_floats(rng, shape, dtype) if "f" in dtype else rng.integers(-99, 99, shape)
    hard = hard.astype(dtype)
    orders = (hard, np.sort(hard), np.sort(hard)[:, ::-1], np.zeros_like(hard))
    for wrong in (None, (0, 50), (60, 900)):
        if wrong:
            monkeypatch.setattr(sampled, "_candidates", lambda *sizes, wrong=wrong: wrong)
        for keys, k in product(orders[:1] if wrong else orders, (50,) if wrong else (1, 50)):
            keys = np.ascontiguousarray(keys)
            problem = TopkProblem(shape[1], k, keys.dtype, rows, largest)
            plan, *found = run_select(
                problem, keys, queue, (problem, wrong), device, SAMPLING, WG_SIZE=64, ITEM_KEYS=4
            )
            check(found, right_topk(keys, k, largest))
    assert [launch.kernel for launch in plan.launches] == ["guess", "take", "rank"]


@pytest.mark.parametrize("n", [sampled.LEAST, 10**6, 2**31 + 5, 2**33])
def test_plans_of_samples_fit(n):
    for dtype, rows, k in (("int8", 7, 1), ("float32", 1, 1000), ("float64", 1, 500)):
        problem = TopkProblem(n, k, np.dtype(dtype), rows)
        assert SAMPLING.supports(problem, GPU) is None
        for config in (SAMPLING.default_config(problem, GPU), {"WG_SIZE": 16, "ITEM_KEYS": 4}):
            plan = SAMPLING.plan(problem, SAMPLING.configure(problem, GPU, config), GPU)
            if n * rows * 8 < GPU.max_allocation:
                check_plan(plan, GPU)
            guess, take, _ = plan.launches
            items, share = guess.global_size[0] // rows, int(guess.arguments["share"])
            assert items * guess.params["SAMPLES"] <= n
            assert share <= guess.params["SORTING"]
            bests = items // share
            assert int(guess.arguments["limit"]) < bests <= guess.params["ROOM"]
            assert k < int(take.arguments["capacity"]) <= n
    few = TopkProblem(n, guess.params["ROOM"], np.dtype(np.float64))
    assert "it is for at most" in SAMPLING.supports(few, GPU)
    assert "rows of at least" in SAMPLING.supports(replace(few, n=9000, k=1), GPU)


def test_topk_sorts_where_that_takes_less_time():
    def chosen(kind, n, k, rows=1, ptx=False):
        device = replace(GPU, kind=kind)
        device = replace(device, capabilities=replace(device.capabilities, inline_ptx=ptx))
        return TOPK_SOLVER.choose(TopkProblem(n, k, np.dtype(np.int32), rows), device).name

    assert chosen("cpu", 20, 2, 1000) == "sort"
    assert chosen("cpu", 10_000, 1000, 100) == "radix-select"
    assert chosen("cpu", 10_000, 5000, 100) == "sort"
    assert chosen("gpu", 50_000, 100) == "radix-select"  # in slices
    assert chosen("gpu", 50_000, 2000) == "sort"
    assert chosen("gpu", 50_000, 2000, 1000) == "radix-select"
    assert chosen("gpu", 10**7, 2000) == "radix-select"
    assert chosen("gpu", 10**7, 6 * 10**6) == "sort"
    assert chosen("gpu", 10**6, 100, ptx=True) == "sample-select"
    assert chosen("gpu", 10**6, 1000, ptx=True) == "radix-select"


# ----------------------------------------------------------------- one thread


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "float64", "uint64"]
)
def test_one_thread_selects_and_ranks_in_one_launch(dtype, serial, rng):
    for shape in ((1, 1), (1, 64), (7, 65), (2, 700)):
        keys = awkward_keys(rng, dtype, shape)
        for k in {0, 1, min(shape[1], topk.MOST_RANKED), shape[1] // 9}:
            largest = bool(rng.integers(2))
            found = ol.topk(keys, k, largest=largest, algorithm="radix-rank", device=serial)
            check(found, right_topk(keys, k, largest))
    same = np.full(500, keys[0, 0])
    check(ol.topk(same, 5, device=serial), right_topk(same, 5))


def test_what_one_thread_takes():
    one = replace(GPU, kind="cpu", compute_units=1)

    def chosen(n, k, rows=1):
        problem = TopkProblem(n, k, np.dtype(np.float32), rows)
        return TOPK_SOLVER.choose(problem, one).name

    assert chosen(1000, 10) == chosen(40, 40) == "radix-rank"
    assert chosen(100_000, 10) == chosen(1000, 10, 50) == "radix-select"
    assert chosen(1000, 500) == "sort"
    assert topk.is_whole(TopkProblem(100_000, 10, np.dtype(np.float32)), one)
