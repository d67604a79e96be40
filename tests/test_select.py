"""Distinct keys and places of keys, against NumPy."""

from __future__ import annotations

import bisect
from dataclasses import replace
from itertools import product

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import block_of
from select_checks import GROUPS, N, check, hard_floats

import opencl_lab as ol
from opencl_lab.core import kernels
from opencl_lab.ops.select.by_sort import HEADS
from opencl_lab.ops.select.problem import SearchProblem, UniqueProblem
from opencl_lab.ops.select.search import SEARCH
from opencl_lab.ops.sort.trials import awkward_keys
from opencl_lab.runtime import results as pools
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

# -------------------------------------------------------------------- unique


FLAGS = ("return_index", "return_inverse", "return_counts")
ASKED = [dict.fromkeys(names, True) for names in (FLAGS, FLAGS[2:], ())]


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.few(4)
@pytest.mark.parametrize("distinct", [1, 5, 10**5])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "M8[D]"])
def test_unique_as_numpy(side, dtype, distinct, serial, rng):
    """NaN and NaT are one key, or with `equal_nan=False` each another one."""
    few = awkward_keys(rng, dtype, distinct)
    if dtype == "M8[D]":
        few[::2] = "NaT"
    for shape in ((), (0, 3), (5, 7), (N,)):
        keys = np.asarray(rng.choice(few, shape))
        for place, how in enumerate(({"queue": side.queue}, {"device": serial})):
            given_keys = keys if place else side.put(keys)
            for number, options in enumerate(ASKED):
                # For values alone NumPy 2.3 takes each NaT for the same.
                options = {**options, "equal_nan": not options or (place + number) % 2 == 0}
                for _ in range(2):  # the second one replayed
                    results = as_tuple(ol.unique(given_keys, **options, **how))
                for got, right in zip(results, as_tuple(np.unique(keys, **options)), strict=True):
                    got = got if place else side.get(got)
                    assert got.flags.c_contiguous and got.dtype == right.dtype
                    # NumPy 1 has inverses of one dimension.
                    np.testing.assert_array_equal(got.reshape(-1), right.reshape(-1))
            if keys.size:
                values, inverse = ol.unique(given_keys, return_inverse=True, **how)
                found = values[inverse] if place else side.get(values)[side.get(inverse)]
                np.testing.assert_array_equal(found, keys)


def test_unique_takes_the_first_zero_and_one_nan(queue):
    keys = np.array([1, -0.0, np.nan, 0.0, -np.nan, -0.0], np.float32)
    values, counts = ol.unique(keys, True, queue=queue)
    np.testing.assert_array_equal(values, [-0.0, 1, np.nan])
    assert np.signbit(values[0]) and not np.signbit(values[2])
    assert counts.tolist() == [3, 1, 2]
    _, index, inverse = ol.unique(keys, return_index=True, return_inverse=True, queue=queue)
    assert index.tolist() == [1, 0, 2] and inverse.tolist() == [1, 0, 2, 0, 2, 0]


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "M8[s]"])
def test_unique_slices_along_an_axis(dtype, side, rng):
    flags = ASKED[0]
    for shape in ((60, 3), (7, 11, 2), (1, 4), (0, 3), (3, 0)):
        keys = rng.integers(-1 if dtype in ("i8", "f4") else 0, 2, shape).astype(dtype)
        if dtype in ("f4", "M8[s]"):
            keys[rng.random(shape) < 0.1] = np.nan if dtype == "f4" else "NaT"
        for axis in range(-1, keys.ndim):
            expected = np.unique(keys, axis=axis, **flags)
            results = ol.unique(side.put(keys), axis=axis, **flags, queue=side.queue)
            for got, right in zip(results, expected, strict=True):
                right = right.reshape(side.get(got).shape)  # inverses of NumPy 2.0 have more axes
                np.testing.assert_array_equal(side.get(got), right, strict=True)
    values = ol.unique(side.put(keys), axis=0, queue=side.queue)
    np.testing.assert_array_equal(side.get(values), np.unique(keys, axis=0))
    with pytest.raises(ol.InvalidProblem, match="axis 2 is out of bounds"):
        ol.unique(keys, axis=2)


@pytest.mark.parametrize("most", [300, 40_000], ids=["few", "many"])
def test_unique_holds_no_more_memory_than_twice_its_results(side, most, rng, monkeypatch):
    """They are copied only where much would be held for few of them; and never anew each time."""
    monkeypatch.setattr(pools, "SPARED", 1 << 40)  # no memory may be unused
    keys = rng.integers(0, most, N, np.int32)
    expected = np.unique(keys, return_counts=True)
    given_keys = side.put(keys)
    blocks = []  # keeps their addresses from the driver
    for _ in range(5):
        results = ol.unique(given_keys, return_counts=True, queue=side.queue)
        check(results, expected)
        for part in results:
            if side.name == "device":
                blocks.append(block_of(part))
                assert block_of(part).size <= 2 * part.nbytes
            else:
                owner = part
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                assert owner.nbytes <= 2 * part.nbytes
        del results, part
    # Of the first call, and in turns.
    assert len({block.int_ptr for block in blocks}) <= 6
    monkeypatch.setattr(pools, "SPARED", 0)
    if side.name == "device":
        kept = ol.unique(given_keys, queue=side.queue)
        assert block_of(kept).size == keys.nbytes
        np.testing.assert_array_equal(kept.get(), expected[0])


def test_unique_of_any_shape(rng, queue):
    keys = rng.integers(0, 9, (30, 40), np.int32)
    on_device = cl.array.to_device(queue, keys)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[3:, ::2]):
        np.testing.assert_array_equal(ol.unique(view(keys), queue=queue), np.unique(view(keys)))
        np.testing.assert_array_equal(ol.unique(view(on_device)).get(), np.unique(view(keys)))
    assert ol.unique(5, queue=queue).tolist() == [5]
    assert ol.unique([2, 1, 2], queue=queue).tolist() == [1, 2]
    foreign = ol.unique(np.array([2, 1, 2], ">i4"), queue=queue)
    assert foreign.tolist() == [1, 2] and foreign.dtype == np.dtype(">i4")
    for wrong in ([1j], np.array([1j])[:0]):
        with pytest.raises(ol.InvalidProblem, match="cannot"):
            ol.unique(wrong, queue=queue)


@pytest.mark.full
def test_unique_of_host_arrays_on_a_device_with_memory_of_its_own(rng, fresh):
    """They go there once, and only results come back."""
    session = session_of(fresh)
    session.device = replace(session.device, unified_memory=False)
    keys = rng.integers(0, 300, (30, 40), np.int32)
    results = ol.unique(keys[:, ::-1], True, return_inverse=True, queue=fresh)
    right = np.unique(keys[:, ::-1], return_inverse=True, return_counts=True)
    for got, wanted in zip(results, right, strict=True):
        assert type(got) is np.ndarray and got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted.reshape(got.shape))


@pytest.mark.full
def test_unique_by_groups_and_with_wide_counts(rng, queue, monkeypatch):
    """The form for GPUs, and counts of 64 bits."""
    given_keys = rng.integers(0, 3000, N, np.int32)
    order = np.argsort(given_keys, kind="stable")
    keys = given_keys[order]
    device = session_of(queue).device
    expected = np.unique(given_keys, True, True, True)
    for limit in (1 << 31, 1000):
        monkeypatch.setattr(kernels, "INDEX_LIMIT", limit)
        problem = UniqueProblem(N, keys.dtype, True, True, True)
        heads = HEADS
        plan = heads.plan(problem, heads.configure(problem, device, GROUPS), device)
        assert plan.launches[0].params["WIDE"] == (limit == 1000)
        assert len(plan.launches) == 3
        executable = session_of(queue).executable(("unique", limit), lambda plan=plan: plan)
        outputs = execute(executable, {"keys": keys, "order": order}, queue).outputs
        assert outputs["found"][0] == expected[0].size
        names = ("values", "first_places", "inverse", "counts")
        for name, right in zip(names, expected, strict=True):
            np.testing.assert_array_equal(outputs[name][: right.size], right)


# -------------------------------------------------------------- searchsorted


@pytest.mark.few
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
@pytest.mark.parametrize("end", ["left", "right"])
def test_searchsorted(end, dtype, side, rng):
    for n, m in ((0, 5), (1, 5), (2, 3), (1000, 1), (1000, 2000), (4099, 777)):
        pool = hard_floats(rng, n + m) if dtype == "float32" else rng.integers(0, 200, n + m)
        pool = pool.astype(dtype)
        keys, values = np.sort(pool[:n]), pool[n:]
        given_arrays = side.put(keys), side.put(values)
        for _ in range(2):
            result = side.get(ol.searchsorted(*given_arrays, end, queue=side.queue))
            np.testing.assert_array_equal(result, np.searchsorted(keys, values, end), strict=True)


@pytest.mark.few(2)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("sorter", [False, True])
def test_searchsorted_by_guides(right, sorter, queue, rng):
    """With keys in local memory, without and with entries, and fewer groups than values."""
    device = replace(session_of(queue).device, kind="gpu", compute_units=1)
    search = SEARCH.algorithm("binary-search")
    for n, step in product((0, 1, 15, 16, 1000, 4099), (0, 4)):
        keys, values = hard_floats(rng, n), hard_floats(rng, 5003)
        order = np.argsort(keys, kind="stable")
        arrays = {"keys": keys if sorter else keys[order], "values": values, "sorter": order}
        problem = SearchProblem(n, values.size, keys.dtype, right, sorter)
        sizes = {"WG_SIZE": 64, "VALUES": 2, "TOP": 16, "STEP": step}
        plan = search.plan(problem, search.configure(problem, device, sizes), device)
        assert ("block" in plan.launches[-1].arguments) == (n > 0)
        assert len(plan.launches) == 1 + (0 < step <= n)
        executable = session_of(queue).executable((problem, step), lambda plan=plan: plan)
        names = [buffer.name for buffer in plan.with_role("in")]
        given = {name: arrays[name] for name in names}
        found = execute(executable, given, queue).outputs["places"]
        expected = np.searchsorted(keys[order], values, "right" if right else "left")
        np.testing.assert_array_equal(found, expected)


def test_searchsorted_shapes_outs_and_types(rng, queue):
    keys = np.sort(rng.integers(0, 99, 60, np.int32))
    values = rng.integers(-5, 120, (4, 6), np.int32)
    expected = np.searchsorted(keys, values)
    np.testing.assert_array_equal(ol.searchsorted(keys, values.T, queue=queue), expected.T)
    np.testing.assert_array_equal(
        ol.searchsorted(np.repeat(keys, 2)[::2], values[:, ::-2], queue=queue), expected[:, ::-2]
    )
    on_device = [cl.array.to_device(queue, array) for array in (keys, values)]
    np.testing.assert_array_equal(ol.searchsorted(on_device[0], on_device[1].T).get(), expected.T)
    out = np.zeros((4, 12), np.int64)
    assert ol.searchsorted(keys, values, out=out[:, ::2], queue=queue) is not None
    np.testing.assert_array_equal(out[:, ::2], expected)
    assert not out[:, 1::2].any()
    out = cl.array.zeros(queue, (4, 6), np.int64)
    assert ol.searchsorted(*on_device, out=out) is out
    np.testing.assert_array_equal(out.get(), expected)
    wide = np.sort(rng.integers(0, 99, 24))
    assert ol.searchsorted(wide, wide, out=wide, queue=queue) is wide  # in place of both
    one = ol.searchsorted(keys, 50, queue=queue)
    assert one == np.searchsorted(keys, 50) and type(one) is type(np.searchsorted(keys, 50))
    for _ in range(3):
        assert ol.searchsorted(keys, np.array(50, np.int32), queue=queue) == one
    for other in ([10**12, -5, 50], [1.5, 50.0], np.array([50], ">i2"), [True], np.uint64([50])):
        np.testing.assert_array_equal(
            ol.searchsorted(keys, other, queue=queue), np.searchsorted(keys, other)
        )


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_searchsorted_by_a_sorter(dtype, rng, queue):
    pool = hard_floats(rng, 1600) if dtype == "float32" else rng.integers(0, 200, 1600, np.int32)
    keys, values = pool[:900], pool[900:]
    for sorter in (np.argsort(keys, kind="stable"), np.argsort(keys).astype(np.int32)):
        expected = np.searchsorted(keys, values, "right", sorter)
        for _ in range(2):
            found = ol.searchsorted(keys, values, "right", sorter, queue=queue)
            np.testing.assert_array_equal(found, expected)
        given_arrays = [cl.array.to_device(queue, array) for array in (keys, values, sorter)]
        for _ in range(2):
            found = ol.searchsorted(*given_arrays[:2], "right", sorter=given_arrays[2])
            assert isinstance(found, cl.array.Array)
            np.testing.assert_array_equal(found.get(), expected)
    sorter[:] = 1 << 30  # on a device it is not looked at, but nothing else is read
    ol.searchsorted(*given_arrays[:2], sorter=cl.array.to_device(queue, sorter)).get()
    sorter = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(  # its memory is that of the result
        ol.searchsorted(keys, values[:700], sorter=sorter, out=sorter[:700], queue=queue),
        np.searchsorted(keys, values[:700], sorter=np.argsort(keys, kind="stable")),
    )
    assert ol.searchsorted([], [1.0], sorter=np.zeros(0, int), queue=queue).tolist() == [0]


@pytest.mark.parametrize(
    ("a", "v", "options", "message"),
    [
        ([[1, 2]], 1, {}, "a must have one dimension, not 2"),
        (5, 1, {}, "a must have one dimension, not 0"),
        ([1, 2], 1, {"side": "up"}, "side must be 'left' or 'right', not 'up'"),
        ([1j], 1, {}, "cannot sort keys of dtype complex128"),
        ([1], "x", {}, "a sequence of numbers"),
        ([1, 2], [1], {"out": np.zeros(2, np.int64)}, "out must have shape"),
        ([1, 2], 1, {"sorter": [0]}, "sorter must have the shape of a"),
        ([1, 2], 1, {"sorter": [0.0, 1.0]}, "sorter must hold integers, not float64"),
        ([1, 2], 1, {"sorter": [0, 2]}, "sorter must hold 0 to 1, the places in a: 2"),
        ([1, 2], 1, {"sorter": np.array([-1, 0])}, "the places in a: -1"),
    ],
)
def test_searchsorted_refuses(a, v, options, message, queue):
    with pytest.raises(ol.InvalidProblem, match=message):
        ol.searchsorted(a, v, queue=queue, **options)


def test_searchsorted_of_two_sides_or_types(queue):
    keys = cl.array.to_device(queue, np.arange(5, dtype=np.int32))
    with pytest.raises(ol.InvalidProblem, match="both be host arrays or both device arrays"):
        ol.searchsorted(keys, 3)
    with pytest.raises(ol.InvalidProblem, match="must have one dtype, not int32 and int64"):
        ol.searchsorted(keys, cl.array.to_device(queue, np.arange(5)))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("a", "v"), [("u8", "i8"), ("i8", "u8"), ("i8", "i2"), ("u1", ">i4")])
def test_searchsorted_compares_all_integers_exactly(a, v, side, queue):
    """NumPy compares int64 and uint64 as float64."""
    numbers = (-(2**63), -5, 0, 7, 255, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
    keys, values = (
        np.array([x for x in numbers if np.iinfo(d).min <= x <= np.iinfo(d).max], d) for d in (a, v)
    )
    insert = bisect.bisect_left if side == "left" else bisect.bisect_right
    expected = [insert(keys.tolist(), value) for value in values.tolist()]
    out = np.empty(len(values), np.int64)
    for options in ({}, {"sorter": np.arange(len(keys))}, {"out": out}):
        found = ol.searchsorted(keys, values, side, **options, queue=queue)
        assert found.tolist() == expected


def test_searchsorted_of_times(side):
    days = np.array(["2020-01-01", "2020-01-03", "NaT"], "M8[D]")
    seconds = np.array(["2020-01-02T00:00:01", "NaT", "2019-01-01", "2020-01-03"], "M8[s]")
    keys = days.astype("M8[s]")
    found = side.get(ol.searchsorted(side.put(keys), side.put(seconds), "right", queue=side.queue))
    assert found.tolist() == [1, 3, 0, 2]
    assert ol.searchsorted(days, seconds, "right").tolist() == [1, 3, 0, 2]
    with pytest.raises(ol.InvalidProblem, match="not all times of datetime64"):
        ol.searchsorted(np.array(["3000-01-01"], "M8[D]"), seconds.astype("M8[ns]"))


@pytest.mark.parametrize(
    "select",
    [
        lambda **how: ol.topk(np.zeros((2, 3)), 0, **how),
        lambda **how: ol.topk(np.zeros((0, 3)), 2, **how),
        lambda **how: ol.unique(np.zeros(0), **how),
        lambda **how: ol.searchsorted(np.zeros(0), [1.0, 2.0], **how),
        lambda **how: ol.searchsorted(np.zeros(2), np.zeros(0), **how),
    ],
)
def test_what_cannot_run_is_refused_for_no_keys_too(select, queue):
    select(queue=queue)
    with pytest.raises(ol.InvalidConfig, match="has no algorithm 'none'"):
        select(queue=queue, algorithm="none")
    with pytest.raises(ol.InvalidConfig, match="unknown parameter NONE"):
        select(queue=queue, config={"NONE": 1})


# --------------------------------------------------------------------- threads


def test_slices_of_device_arrays_are_those_of_their_queue(queue, rng):
    x = rng.integers(0, 2, (6, 8)).astype("f4")
    on_device = cl.array.to_device(queue, x)
    other = cl.CommandQueue(queue.context)
    for part in ((slice(None), slice(None, None, 2)), (slice(None), slice(1, 3))):
        for view, asked, used in (
            (on_device[part], None, queue),
            (on_device[part], other, other),
            (on_device[part].with_queue(None), queue, queue),
        ):
            found = ol.unique(view, axis=0, queue=asked)
            np.testing.assert_array_equal(found.get(), np.unique(x[part], axis=0))
            assert found.queue == used
