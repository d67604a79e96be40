"""The public sorting functions: NumPy's results for every kind of array; and the operation."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from sort_checks import SHAPE, SMALL, VIEWS, bits, stable_order

import opencl_lab as ol
from opencl_lab.ops.sort.problem import KEY_TYPES
from opencl_lab.ops.sort.trials import awkward_keys

# ------------------------------------------------------------------ host arrays


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "descending"),
    [
        *((dtype, False) for dtype in (*KEY_TYPES, "M8[s]")),
        *((dtype, True) for dtype in ("uint8", "int32", "int64", "float32", "float64", "M8[s]")),
    ],
)
def test_every_type_sorts_bit_for_bit(dtype, descending, rng, queue):
    """And equal keys keep their order."""
    keys = awkward_keys(rng, dtype, 4_500)
    before = keys.tobytes()
    order = stable_order(keys, descending=descending)
    result = ol.sort(keys, descending=descending, queue=queue)
    assert type(result) is np.ndarray
    assert result.dtype == keys.dtype
    assert result.shape == keys.shape
    np.testing.assert_array_equal(bits(result), bits(keys[order]))
    places = ol.argsort(keys, descending=descending, queue=queue)
    np.testing.assert_array_equal(places, order.astype(np.int64), strict=True)
    assert keys.tobytes() == before


@pytest.mark.parametrize("function", [ol.sort, ol.argsort])
def test_kinds_of_numpy_are_all_stable(function, rng, queue):
    keys = rng.choice([0.0, -0.0, 1.0], 300)
    right = bits(function(keys, queue=queue))
    for how in (
        {"kind": "quicksort"},
        {"kind": "heapsort"},
        {"kind": "mergesort"},
        {"stable": False},
    ):
        np.testing.assert_array_equal(bits(function(keys, **how, queue=queue)), right)
    given = cl.array.to_device(queue, keys)
    np.testing.assert_array_equal(bits(function(given, kind="stable").get()), right)
    for wrong in ({"kind": "bogo"}, {"kind": 1}, {"kind": "stable", "stable": True}):
        with pytest.raises(ol.InvalidProblem, match="kind"):
            function(keys, **wrong, queue=queue)


@pytest.mark.few
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[ns]", "M8"])
def test_times_are_keys_of_every_function(dtype, descending, side, rng):
    """NaT is last in both orders, beside the least and the greatest time that there are."""
    few = np.array([-(2**63), 1 - 2**63, -1, 0, 2**63 - 1]).view(dtype)
    for shape in ((3, 50), (2, 700)):
        keys = rng.choice(few, shape)
        order = stable_order(keys, descending)
        right = np.take_along_axis(keys, order, -1)
        given, how = side.put(keys), {"descending": descending, "queue": side.queue}
        for algorithm in ("auto", "radix", "odd-even-merge"):
            places = side.get(ol.argsort(given, algorithm=algorithm, **how))
            np.testing.assert_array_equal(places, order)
            found = side.get(ol.sort(given, algorithm=algorithm, **how))
            np.testing.assert_array_equal(found, right, strict=True)
        for found in ol.sort_by_key(given, given, **how):
            np.testing.assert_array_equal(side.get(found), right, strict=True)
        values, places = ol.topk(given, 7, largest=descending, queue=side.queue)
        order = stable_order(keys, descending, nan_first=True)[:, :7]
        np.testing.assert_array_equal(side.get(places), order)
        np.testing.assert_array_equal(side.get(values), np.take_along_axis(keys, order, -1))


def test_more_rows_than_a_grid_has_beyond_its_first_dimension(rng, queue):
    keys = rng.integers(0, 50, (200_000, 3), np.int32)
    np.testing.assert_array_equal(ol.sort(keys, queue=queue), np.sort(keys))


@pytest.mark.few(2)
@pytest.mark.parametrize("axis", [0, 1, -1, -3, None])
@pytest.mark.parametrize("view", VIEWS)
def test_views_and_axes(view, axis, side, rng):
    whole = rng.integers(0, 50, SHAPE, np.int32)
    numbers = rng.standard_normal((2, *SHAPE))
    keys, values = VIEWS[view](whole), VIEWS[view](numbers[0] + 1j * numbers[1])
    axis = axis if axis is None or keys.ndim == 3 else -1
    there = side.put(whole)
    given = VIEWS[view](there), VIEWS[view](side.put(numbers[0] + 1j * numbers[1]))
    how = {"axis": axis, "queue": side.queue, **SMALL}
    order = np.argsort(keys, axis=axis, kind="stable")
    result = ol.sort(given[0], **how)
    assert result.dtype == keys.dtype
    np.testing.assert_array_equal(side.get(result), np.sort(keys, axis=axis))
    found = side.get(ol.argsort(given[0], **how))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, order)
    if axis in (0, -1, None):
        both = ol.sort_by_key(*given, **how)
        moved = values.ravel()[order] if axis is None else np.take_along_axis(values, order, axis)
        np.testing.assert_array_equal(side.get(both[0]), np.sort(keys, axis=axis))
        np.testing.assert_array_equal(side.get(both[1]), moved)
    np.testing.assert_array_equal(side.get(there), whole)


def test_read_only_and_broadcast_input(queue):
    keys = np.broadcast_to(np.array([3, 1, 2], np.int32), (4, 3))
    result = ol.sort(keys, queue=queue)
    assert result.tolist() == [[1, 2, 3]] * 4 and result.flags.writeable


def test_other_byte_order(queue):
    keys = np.array([3, 1, 2], np.dtype(np.int32).newbyteorder())
    assert ol.sort(keys, queue=queue).dtype == keys.dtype
    assert ol.argsort(keys, queue=queue).tolist() == [1, 2, 0]
    assert keys.tolist() == [3, 1, 2]
    assert ol.sort(keys, queue=queue, out=keys) is keys
    assert keys.tolist() == [1, 2, 3]
    assert ol.sort_by_key(keys, keys, queue=queue)[0].dtype == keys.dtype


@pytest.mark.parametrize("dtype", [">u4", ">f8", [("a", ">i4"), ("b", ">f4")]], ids=str)
def test_values_of_other_byte_order_are_not_swapped(dtype, rng, queue):
    keys = rng.integers(0, 9, 20, np.int32)
    values = np.arange(20 * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    expected = values[np.argsort(keys, kind="stable")]
    for how in ({}, {"out": (np.empty_like(keys), np.empty_like(values))}, {}):
        moved = ol.sort_by_key(keys, values, queue=queue, **how)[1]
        assert moved.dtype == values.dtype and moved.tobytes() == expected.tobytes()


@pytest.mark.parametrize("given", [[3, 1, 2], (3, 1, 2), range(3, 0, -1), memoryview(b"\3\1\2")])
def test_anything_numpy_takes(given, queue):
    result = ol.sort(given, queue=queue)
    np.testing.assert_array_equal(result, [1, 2, 3])
    assert result.dtype == np.asarray(given).dtype


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3), (1,), (1, 1), (7, 1)])
def test_sizes_that_leave_nothing_to_do(shape, side):
    whole = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    for keys, given in ((whole, side.put(whole)), (whole.T, side.put(whole).T)):
        for axis in (0, -1, None):
            expected = np.sort(keys, axis=axis)
            how = {"axis": axis, "queue": side.queue}
            for result in (
                ol.sort(given, **how),
                ol.sort(given, **how, out=side.put(np.full_like(expected, -1))),
                ol.sort_by_key(given, given, **how)[1],
            ):
                np.testing.assert_array_equal(side.get(result), expected, strict=True)
            order = np.argsort(keys, axis=axis, kind="stable")
            np.testing.assert_array_equal(side.get(ol.argsort(given, **how)), order, strict=True)


def test_unaligned_arrays(rng, queue):
    for dtype, offset in (("int64", 1), ("complex128", 8)):
        raw = np.zeros(16 * 1_000 + 32, np.uint8)
        begin = (offset - raw.ctypes.data) % 16
        keys = rng.integers(0, 500, 1_000)
        values = raw[begin:][: 1_000 * np.dtype(dtype).itemsize].view(dtype)
        values[:] = keys
        right = np.sort(keys)
        for given in (values, values.copy()):
            np.testing.assert_array_equal(ol.sort_by_key(keys, given, queue=queue)[1], right)
        if dtype == "int64":
            assert not values.flags.aligned
            np.testing.assert_array_equal(ol.sort(values, queue=queue, **SMALL), right)


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ([3, 1, 2], {"axis": 1.5}, "axis"),
        ([3, 1, 2], {"axis": "0"}, "axis"),
        ([3, 1, 2], {"queue": 5}, "queue"),
        (5, {}, "axis -1 is out of bounds for 0 dimensions"),
        (np.zeros((2, 2)), {"axis": 2}, "axis 2 is out of bounds"),
        (np.zeros((2, 2)), {"axis": -3}, "axis -3 is out of bounds"),
        ([1j], {}, "cannot sort keys of dtype complex128"),
        (["a"], {}, "cannot sort keys of dtype <U1"),
        (np.zeros(1, "V4"), {}, "cannot sort keys of dtype"),
        (np.zeros(1, np.longdouble), {}, "cannot sort keys of dtype"),
    ],
    ids=str,
)
def test_what_is_refused(keys, options, message):
    for call in (ol.sort, ol.argsort, lambda keys, **how: ol.sort_by_key(keys, keys, **how)):
        with pytest.raises(ol.InvalidProblem, match=message):
            call(keys, **options)


def test_a_scalar_can_be_flattened(side):
    scalar = side.put(np.array(5, np.int32))
    assert side.get(ol.sort(scalar, axis=None, queue=side.queue)).tolist() == [5]
    assert side.get(ol.argsort(scalar, axis=None, queue=side.queue)).tolist() == [0]
