"""The public sorting functions: NumPy's results for every kind of array; and the operation."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opencl_lab as ol
from opencl_lab.operations.sort.operation import ORDERS, SORT
from opencl_lab.operations.sort.problem import KEY_TYPES, SortProblem

# Small tiles, so that small arrays take merge passes too; one kernel for many sizes.
SMALL = {
    "algorithm": "odd-even-merge",
    "config": {"WG_SIZE": 8, "TILE": 64, "WORK_PER_ITEM": 16, "BLOCKED": False, "NARROW": True},
}
SHAPE = (5, 6, 170)
VIEWS = {
    "whole": lambda a: a,
    "offset": lambda a: a[2:],
    "strided": lambda a: a[:, :, ::2],
    "reversed": lambda a: a[::-1],
    "all-reversed": lambda a: a[::-1, ::-1, ::-1],
    "transposed": lambda a: a.T,
    "inner": lambda a: a[:, 1:3, 5:90],
    "column": lambda a: a[1, :, 3],
}


def stable_order(keys, axis=-1, descending=False):
    """Return the stable order of keys, NaN last, or first when descending."""
    if not descending:
        return np.argsort(keys, axis=axis, kind="stable")
    # Reversing before and after a stable sort keeps equal keys in their order.
    flipped = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
    return keys.shape[axis] - 1 - np.flip(flipped, axis)


def bits(array):
    """Return the bytes of every element, to tell -0.0 from 0.0 and NaN from NaN."""
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}")


def any_bits(rng, dtype, n):
    """Return keys with every bit pattern possible, about a quarter of them repeated."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.3
    keys = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    keys[rng.integers(0, n, n // 4)] = keys[rng.integers(0, n, n // 4)]
    if dtype.kind == "f":
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
        tiny = np.finfo(dtype).smallest_subnormal
        special = np.concatenate([special, [tiny, -tiny, 3 * tiny]]).astype(dtype)
        places = rng.integers(0, n, n // 3)
        keys[places] = rng.choice(special, places.size)
    return keys


# ------------------------------------------------------------------ host arrays


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KEY_TYPES)
def test_every_type_sorts_bit_for_bit(dtype, descending, rng, queue):
    keys = any_bits(rng, dtype, 4_500)
    before = keys.tobytes()
    order = stable_order(keys, descending=descending)
    result = ol.sort(keys, descending=descending, queue=queue)
    assert type(result) is np.ndarray
    assert result.dtype == keys.dtype
    assert result.shape == keys.shape
    np.testing.assert_array_equal(bits(result), bits(keys[order]))
    assert keys.tobytes() == before


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_argsort_is_stable_and_int64(dtype, descending, rng, queue):
    keys = any_bits(rng, dtype, 4_500)
    result = ol.argsort(keys, descending=descending, queue=queue)
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, stable_order(keys, descending=descending))


@pytest.mark.parametrize("descending", [False, True])
def test_argsort_of_equal_keys_is_the_identity(descending, queue):
    keys = np.zeros(1_000, np.int32)
    keys[500:] = 0
    result = ol.argsort(keys, descending=descending, **SMALL, queue=queue)
    np.testing.assert_array_equal(result, np.arange(1_000))


def test_both_zeros_are_equal_keys(queue):
    keys = np.array([0.0, -0.0, -1.0, -0.0, 0.0], np.float32)
    result = ol.sort(keys, queue=queue)
    assert np.signbit(result).tolist() == [True, False, True, True, False]
    assert ol.argsort(keys, descending=True, queue=queue).tolist() == [0, 1, 3, 4, 2]


def test_nan_goes_last_and_descending_first(queue):
    keys = np.array([np.nan, np.inf, 1.0, np.nan, -np.inf])
    assert ol.argsort(keys, queue=queue).tolist() == [4, 2, 1, 0, 3]
    assert ol.argsort(keys, descending=True, queue=queue).tolist() == [0, 3, 1, 2, 4]


@pytest.mark.parametrize("options", [{"axis": 1.5}, {"axis": "0"}, {"queue": 5}])
def test_arguments_of_other_types(options):
    for function in (ol.sort, ol.argsort):
        with pytest.raises(ol.InvalidProblem, match=next(iter(options))):
            function([3, 1, 2], **options)
    with pytest.raises(ol.InvalidProblem, match=next(iter(options))):
        ol.sort_by_key([3, 1, 2], [1, 2, 3], **options)


def test_more_rows_than_a_grid_has_beyond_its_first_dimension(rng, queue):
    keys = rng.integers(0, 50, (200_000, 3), np.int32)
    np.testing.assert_array_equal(ol.sort(keys, queue=queue), np.sort(keys))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3, None])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_axes_and_layouts(axis, layout, rng, queue):
    keys = np.asarray(rng.integers(0, 50, SHAPE, np.int32), order=layout)
    result = ol.sort(keys, axis=axis, queue=queue, **SMALL)
    np.testing.assert_array_equal(result, np.sort(keys, axis=axis))
    order = ol.argsort(keys, axis=axis, queue=queue, **SMALL)
    np.testing.assert_array_equal(order, np.argsort(keys, axis=axis, kind="stable"))


@pytest.mark.parametrize("view", VIEWS)
def test_host_views(view, rng, queue):
    whole = rng.integers(0, 50, SHAPE, np.int32)
    before = whole.copy()
    keys = VIEWS[view](whole)
    np.testing.assert_array_equal(ol.sort(keys, queue=queue, **SMALL), np.sort(keys))
    np.testing.assert_array_equal(whole, before)


def test_read_only_input(rng, queue):
    keys = rng.integers(0, 50, 1_000, np.int32)
    keys.flags.writeable = False
    result = ol.sort(keys, queue=queue, **SMALL)
    np.testing.assert_array_equal(result, np.sort(keys))
    assert result.flags.writeable


def test_broadcast_input(queue):
    keys = np.broadcast_to(np.array([3, 1, 2], np.int32), (4, 3))
    assert ol.sort(keys, queue=queue).tolist() == [[1, 2, 3]] * 4


def test_other_byte_order(rng, queue):
    native = rng.integers(-(2**31), 2**31, 1_000).astype(np.int32)
    keys = native.astype(native.dtype.newbyteorder())
    before = keys.tobytes()
    np.testing.assert_array_equal(ol.sort(keys, queue=queue, **SMALL), np.sort(native))
    order = np.argsort(native, kind="stable")
    np.testing.assert_array_equal(ol.argsort(keys, queue=queue, **SMALL), order)
    assert keys.tobytes() == before


def test_other_byte_order_comes_back(queue):
    keys = np.array([3, 1, 2], np.dtype(np.int32).newbyteorder())
    assert ol.sort(keys, queue=queue).dtype == keys.dtype
    assert ol.sort(keys, queue=queue, out=keys) is keys
    assert keys.tolist() == [1, 2, 3]
    assert ol.sort_by_key(keys, keys, queue=queue)[0].dtype == keys.dtype


UNALIGNED = """
import numpy as np, opencl_lab as ol
raw = np.zeros(16 * 5_000 + 16, np.uint8)
start = (8 - raw.ctypes.data) % 16
values = raw[start : start + 16 * 5_000].view(np.complex128)
values[:] = np.arange(5_000)
keys = np.arange(5_000)[::-1] // 10
for wide in (values, values.copy()):
    assert (ol.sort_by_key(keys, wide)[1] == np.argsort(keys, kind="stable")).all()
print("right")
"""


def test_unaligned_values():
    done = subprocess.run([sys.executable, "-c", UNALIGNED], capture_output=True, text=True)
    assert done.stdout == "right\n"


def test_unaligned_input(rng, queue):
    raw = np.zeros(8 * 1_000 + 1, np.uint8)
    keys = raw[1:].view(np.int64)
    keys[:] = rng.integers(0, 500, 1_000)
    assert not keys.flags.aligned
    np.testing.assert_array_equal(ol.sort(keys, queue=queue, **SMALL), np.sort(keys))


@pytest.mark.parametrize("given", [[3, 1, 2], (3, 1, 2), range(3, 0, -1), memoryview(b"\3\1\2")])
def test_anything_numpy_takes(given, queue):
    result = ol.sort(given, queue=queue)
    np.testing.assert_array_equal(result, [1, 2, 3])
    assert result.dtype == np.asarray(given).dtype


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3), (1,), (1, 1), (7, 1)])
def test_sizes_that_leave_nothing_to_do(shape, queue):
    keys = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    for axis in (0, -1, None):
        expected = np.sort(keys, axis=axis)
        for result in (
            ol.sort(keys, axis=axis, queue=queue),
            ol.sort(keys, axis=axis, queue=queue, out=np.full_like(expected, -1)),
            ol.sort_by_key(keys, keys, axis=axis, queue=queue)[1],
        ):
            assert result.shape == expected.shape
            np.testing.assert_array_equal(result, expected)
        order = ol.argsort(keys, axis=axis, queue=queue)
        assert order.dtype == np.int64
        np.testing.assert_array_equal(order, np.argsort(keys, axis=axis, kind="stable"))


def test_scalar_has_no_axis_but_can_be_flattened(queue):
    with pytest.raises(ol.InvalidProblem, match="axis -1 is out of bounds for 0 dimensions"):
        ol.sort(5, queue=queue)
    assert ol.sort(5, axis=None, queue=queue).tolist() == [5]
    assert ol.argsort(5, axis=None, queue=queue).tolist() == [0]


@pytest.mark.parametrize("axis", [2, -3])
def test_axis_out_of_bounds(axis, queue):
    with pytest.raises(ol.InvalidProblem, match=f"axis {axis} is out of bounds"):
        ol.sort(np.zeros((2, 2)), axis=axis, queue=queue)


@pytest.mark.parametrize(
    "keys",
    [[1j], ["a"], np.zeros(1, "M8[s]"), np.zeros(1, "V4"), np.zeros(1, np.longdouble)],
    ids=lambda keys: str(np.asarray(keys).dtype),
)
def test_unsupported_keys(keys, queue):
    for function in (
        ol.sort,
        ol.argsort,
        lambda keys, queue: ol.sort_by_key(keys, keys, queue=queue),
    ):
        with pytest.raises(ol.InvalidProblem, match="cannot sort keys of dtype"):
            function(keys, queue=queue)


# ---------------------------------------------------------------------- out=


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "make",
    [
        lambda shape: np.full(shape, -1, np.int32),
        lambda shape: np.full(shape, -1, np.int32, order="F"),
        lambda shape: np.full((*shape[:-1], 2 * shape[-1]), -1, np.int32)[..., ::2],
        lambda shape: np.full(shape, -1, np.int32)[::-1],
    ],
    ids=["fresh", "fortran", "strided", "reversed"],
)
def test_out(make, axis, rng, queue):
    keys = rng.integers(0, 50, SHAPE, np.int32)
    before = keys.copy()
    out = make(SHAPE)
    assert ol.sort(keys, axis=axis, out=out, queue=queue, **SMALL) is out
    np.testing.assert_array_equal(out, np.sort(keys, axis=axis))
    np.testing.assert_array_equal(keys, before)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("view", VIEWS)
def test_out_may_be_the_input(view, axis, rng, queue):
    whole = rng.integers(0, 50, SHAPE, np.int32)
    keys = VIEWS[view](whole)
    expected = np.sort(keys, axis=axis)
    assert ol.sort(keys, axis=axis, out=keys, queue=queue, **SMALL) is keys
    np.testing.assert_array_equal(keys, expected)


def test_out_may_overlap_the_input(rng, queue):
    memory = rng.integers(0, 500, 1_500, np.int32)
    expected = np.sort(memory[:1_000])
    ol.sort(memory[:1_000], out=memory[500:], queue=queue, **SMALL)
    np.testing.assert_array_equal(memory[500:], expected)


def test_argsort_into_the_memory_of_its_keys(rng, queue):
    keys = rng.integers(0, 500, 1_000)
    expected = np.argsort(keys, kind="stable")
    ol.argsort(keys, out=keys, queue=queue, **SMALL)
    np.testing.assert_array_equal(keys, expected)


def test_argsort_out(rng, queue):
    keys = rng.integers(0, 50, SHAPE, np.int32)
    for axis in (0, -1):
        out = np.full(SHAPE, -1, np.int64)
        assert ol.argsort(keys, axis=axis, out=out, queue=queue, **SMALL) is out
        np.testing.assert_array_equal(out, np.argsort(keys, axis=axis, kind="stable"))


def test_out_of_the_flattened_array(rng, queue):
    keys = rng.integers(0, 50, (30, 40), np.int32)
    out = np.empty(1_200, np.int32)
    assert ol.sort(keys, axis=None, out=out, queue=queue, **SMALL) is out
    np.testing.assert_array_equal(out, np.sort(keys, axis=None))


@pytest.mark.parametrize(
    "out",
    [np.zeros(999, np.int32), np.zeros((1, 1_000), np.int32), np.zeros(1_000, np.int64)],
    ids=["length", "dimensions", "dtype"],
)
def test_wrong_out(out, queue):
    keys = np.arange(1_000, dtype=np.int32)[::-1]
    before = out.copy()
    with pytest.raises(ol.InvalidProblem, match=r"out must have shape \(1000,\) and dtype int32"):
        ol.sort(keys, out=out, queue=queue)
    np.testing.assert_array_equal(out, before)
    with pytest.raises(ol.InvalidProblem, match="and dtype int64"):
        ol.argsort(keys, out=np.zeros(1_000, np.int32), queue=queue)


def test_read_only_out(queue):
    out = np.zeros(3, np.int32)
    out.flags.writeable = False
    for keys in (np.int32([3, 1, 2]), out):
        with pytest.raises(ol.InvalidProblem, match="read-only"):
            ol.sort(keys, out=out, queue=queue)


def test_out_that_is_no_array(queue):
    with pytest.raises(ol.InvalidProblem, match="out must be"):
        ol.sort([3, 1, 2], out=[0, 0, 0], queue=queue)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "float16"])
def test_keys_without_a_type_of_every_device(dtype, descending, rng, queue):
    """Every half there is, NaN of all payloads among them; on host and device, along an axis."""
    keys = rng.permutation(2**16).astype(np.uint16).view(np.float16).reshape(256, 256)
    keys = keys if dtype == "float16" else np.signbit(keys)
    order = stable_order(keys, 0, descending)
    right = np.take_along_axis(keys, order, 0)
    places = np.broadcast_to(np.arange(256)[:, None], keys.shape)
    out = np.empty((256, 256), dtype)
    for array, target in ((keys, out), (cl.array.to_device(queue, keys), None)):
        options = {"axis": 0, "descending": descending, "queue": queue}
        values = places if array is keys else cl.array.to_device(queue, places.copy())
        results = (
            ol.sort(array, out=target, **options),
            *ol.sort_by_key(array, values, **options),
            ol.argsort(array, **options),
        )
        if array is not keys:
            results = tuple(result.get() for result in results)
        assert [result.dtype for result in results] == [keys.dtype, keys.dtype, np.int64, np.int64]
        for result, expected in zip(results, (right, right, order, order), strict=True):
            np.testing.assert_array_equal(bits(result), bits(expected))


# --------------------------------------------------------------- sort_by_key


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "float16",
        "int32",
        "U1",
        "M8[s]",
        ">f8",
        "complex64",
        "complex128",
        "S16",
        np.dtype([("a", "i4"), ("b", "f4")]),
        np.dtype([("a", "u1"), ("b", "i2"), ("c", "u1")]),
        np.dtype([("a", "f8"), ("b", "i4"), ("c", "i4")]),
        "V3",
        "U5",
        np.dtype([("a", "u1"), ("b", "f8"), ("c", "(2,)i2")]),
    ],
    ids=str,
)
def test_values_of_every_size_travel(dtype, rng, queue):
    keys = rng.integers(0, 30, 1_000, np.int32)
    dtype = np.dtype(dtype)
    values = rng.integers(0, 128, 1_000 * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "b":
        values = rng.random(1_000) < 0.5
    if dtype.kind == "U":
        values = rng.choice(["a", "bcd", "efghi"], 1_000).astype(dtype)
    order = stable_order(keys)
    sorted_keys, sorted_values = ol.sort_by_key(keys, values, queue=queue, **SMALL)
    np.testing.assert_array_equal(sorted_keys, keys[order])
    assert sorted_values.dtype == values.dtype
    assert sorted_values.tobytes() == values[order].tobytes()


@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_values_by_index(axis, side, rng, queue):
    """Of a size that no kernel moves along: with strides, axes, and given outs."""
    dtype = np.dtype([("a", "u4"), ("b", "f8")])
    keys = rng.integers(0, 9, (20, 33), np.int16)
    values = np.zeros((20, 66), dtype)
    values["a"] = np.arange(values.size).reshape(values.shape)

    def put(array):
        return cl.array.to_device(queue, array) if side == "device" else array

    order = np.argsort(keys, axis=axis, kind="stable")
    strided = values[:, ::2]
    expected = strided.ravel()[order] if axis is None else np.take_along_axis(strided, order, axis)
    given = put(keys), put(values)[:, ::2]
    results = ol.sort_by_key(*given, axis=axis, queue=queue)
    out = put(np.zeros_like(np.sort(keys, axis=axis))), put(np.zeros(expected.shape, dtype))
    assert ol.sort_by_key(*given, axis=axis, out=out, queue=queue)[1] is out[1]
    for sorted_keys, moved in (results, out):
        if side == "device":
            sorted_keys, moved = sorted_keys.get(), moved.get()
        np.testing.assert_array_equal(sorted_keys, np.sort(keys, axis=axis))
        assert moved.dtype == dtype and moved.tobytes() == expected.tobytes()


@pytest.mark.parametrize("descending", [False, True])
def test_sort_by_key_is_stable(descending, rng, queue):
    keys = rng.integers(0, 4, 4_500, np.int16)
    sorted_keys, places = ol.sort_by_key(keys, np.arange(4_500), descending=descending, queue=queue)
    order = stable_order(keys, descending=descending)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(sorted_keys, keys[order])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sort_by_key_along_axes(axis, rng, queue):
    keys = rng.integers(0, 50, SHAPE, np.int32)
    values = rng.standard_normal(SHAPE).astype(np.float32)[::-1]
    a, b = ol.sort_by_key(keys, values, axis=axis, queue=queue, **SMALL)
    order = np.argsort(keys, axis=axis, kind="stable")
    np.testing.assert_array_equal(a, np.sort(keys, axis=axis))
    if axis is None:
        np.testing.assert_array_equal(b, values.ravel()[order])
    else:
        np.testing.assert_array_equal(b, np.take_along_axis(values, order, axis))


def test_keys_may_be_their_own_values(rng, queue):
    keys = rng.integers(0, 500, 1_000, np.int32)
    a, b = ol.sort_by_key(keys, keys, queue=queue, **SMALL)
    np.testing.assert_array_equal(a, np.sort(keys))
    np.testing.assert_array_equal(b, a)
    assert not np.shares_memory(a, b)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(4), "must have one shape"),
        (np.zeros((3, 1)), "must have one shape"),
        (np.array([None] * 3), "dtype object"),
        (np.zeros(3, [("a", object), ("b", "i8")]), "dtype object"),
        (np.zeros(3, []), "values of 0 bytes"),
    ],
    ids=["shape", "dimensions", "object", "object-field", "0-bytes"],
)
def test_values_that_cannot_travel(values, message, queue):
    with pytest.raises(ol.InvalidProblem, match=message):
        ol.sort_by_key(np.arange(3), values, queue=queue)


# -------------------------------------------------------------- the operation


def test_work_counts_every_byte_once():
    int32 = np.dtype(np.int32)
    assert SortProblem(10, int32).work.bytes == 2 * 10 * 4
    assert SortProblem(10, int32, rows=3).work.bytes == 3 * 2 * 10 * 4
    assert SortProblem(10, int32, indices=True).work.bytes == 10 * (4 + 8)
    assert SortProblem(10, int32, value_bytes=16).work.bytes == 2 * 10 * (4 + 16)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
def test_generated_keys_have_the_order_they_claim(order, dtype):
    problem = SORT.problem(n=1_000, dtype=dtype)
    (keys,) = SORT.generate(problem, 3, order=order)["keys"]
    again = SORT.generate(problem, 3, order=order)["keys"]
    np.testing.assert_array_equal(keys, again[0])
    assert keys.dtype == problem.dtype
    descents = np.count_nonzero(keys[1:] < keys[:-1])
    unique = np.unique(keys).size
    top = int(keys.argmax())
    claims = {
        "random": 400 < descents < 600,
        "sorted": descents == 0 and unique > 100,
        "reversed": not (keys[1:] > keys[:-1]).any() and unique > 100,
        "nearly-sorted": 0 < descents <= 40,
        "few-unique": 2 <= unique <= 16 and descents > 100,
        "equal": unique == 1,
        "organ-pipe": not (keys[1 : top + 1] < keys[:top]).any()
        and not (keys[top + 1 :] > keys[top:-1]).any()
        and 400 < top < 600,
    }
    assert claims[order]


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_generated_keys_of_tiny_sizes(order, n):
    assert SORT.generate(SORT.problem(n=n), 3, order=order)["keys"].shape == (1, n)


def test_generated_keys_differ_between_seeds():
    problem = SORT.problem(n=100)
    first, second = (SORT.generate(problem, seed)["keys"] for seed in (1, 2))
    assert (first != second).any()


@pytest.mark.parametrize(
    ("expected", "actual", "ok", "worst"),
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True, 0.0),
        ([1.0, 2.0], [1.0, 2.5], False, 0.5),
        ([1.0, np.nan], [1.0, 2.0], False, np.nan),
        ([np.inf, 1.0], [np.inf, 4.0], False, 3.0),
        ([], [], True, 0.0),
    ],
)
def test_compare_has_no_tolerance(expected, actual, ok, worst):
    problem = SORT.problem(n=len(expected), dtype="float64")
    difference = SORT.compare(
        problem, {}, {"sorted": np.array([expected])}, {"sorted": np.array([actual])}
    )
    assert difference.ok is ok
    np.testing.assert_equal(difference.max_abs, worst)


def test_compare_does_not_lose_the_last_bit_of_long_keys():
    right = np.array([[2**63]], np.uint64)
    problem = SORT.problem(n=1, dtype="uint64")
    assert not SORT.compare(problem, {}, {"sorted": right}, {"sorted": right + np.uint64(1)}).ok


@pytest.mark.filterwarnings("error")
def test_misplaced_nan_and_infinity_are_wrong_and_warn_of_nothing():
    problem = SortProblem(4, np.dtype("float32"))
    right = np.array([[1, 2, np.inf, np.nan]], np.float32)
    for wrong in ([1, 2, np.nan, np.inf], [1, 2, 3, np.nan], [np.nan, 2, np.inf, np.nan]):
        given = np.array([wrong], np.float32)
        assert not SORT.compare(problem, {}, {"sorted": right}, {"sorted": given}).ok


# ---------------------------------------------------------------- properties


def arrays(elements, dtype):
    """Return a strategy for arrays of up to 2,000 elements, many of them equal."""

    def make(parts):
        pool, length, seed = parts
        places = np.random.default_rng(seed).integers(0, len(pool), length)
        return np.array(pool, dtype)[places]

    pools = st.lists(elements, min_size=1, max_size=60)
    return st.tuples(pools, st.integers(0, 2_000), st.integers(0, 2**32)).map(make)


KEYS = st.one_of(
    arrays(st.floats(width=32), np.float32), arrays(st.integers(-(2**31), 2**31 - 1), np.int32)
)


@given(keys=KEYS)
def test_sort_equals_numpy(keys, queue):
    result = ol.sort(keys, queue=queue, **SMALL)
    np.testing.assert_array_equal(bits(result), bits(keys[np.argsort(keys, kind="stable")]))


@given(keys=KEYS, descending=st.booleans())
def test_argsort_is_a_stable_permutation(keys, descending, queue):
    order = ol.argsort(keys, descending=descending, queue=queue, **SMALL)
    np.testing.assert_array_equal(np.sort(order), np.arange(keys.size))
    np.testing.assert_array_equal(order, stable_order(keys, descending=descending))


@given(keys=KEYS, seed=st.integers(0, 2**32))
def test_sort_by_key_keeps_pairs_together(keys, seed, queue):
    values = np.random.default_rng(seed).integers(0, 2**63, keys.shape)
    a, b = ol.sort_by_key(keys, values, queue=queue, **SMALL)
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(bits(a), bits(keys[order]))
    np.testing.assert_array_equal(b, values[order])


@given(keys=KEYS)
def test_sorting_twice_changes_nothing(keys, queue):
    once = ol.sort(keys, queue=queue, **SMALL)
    twice = ol.sort(once, queue=queue, **SMALL)
    np.testing.assert_array_equal(bits(once), bits(twice))
    order = ol.argsort(once, queue=queue, **SMALL)
    np.testing.assert_array_equal(order, np.arange(keys.size))
