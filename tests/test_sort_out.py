"""Results of sorting into arrays of the caller's, and values that travel with keys."""

from __future__ import annotations

import numpy as np
import pytest
from sort_checks import SMALL, stable_order

import opencl_lab as ol

# ---------------------------------------------------------------------- out=


def test_out_may_overlap_the_input(rng, queue):
    memory = rng.integers(0, 500, 1_500, np.int32)
    expected = np.sort(memory[:1_000])
    ol.sort(memory[:1_000], out=memory[500:], queue=queue, **SMALL)
    np.testing.assert_array_equal(memory[500:], expected)


# --------------------------------------------------------------- sort_by_key


@pytest.mark.few(2)
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


@pytest.mark.few(1)
@pytest.mark.parametrize("axis", [0, -1, None])
def test_values_by_index(axis, side, rng):
    """Of a size that no kernel moves along: with strides, axes, and given outs."""
    dtype = np.dtype([("a", "u4"), ("b", "f8")])
    keys = rng.integers(0, 9, (20, 33), np.int16)
    values = np.zeros((20, 66), dtype)
    values["a"] = np.arange(values.size).reshape(values.shape)
    order = np.argsort(keys, axis=axis, kind="stable")
    strided = values[:, ::2]
    expected = strided.ravel()[order] if axis is None else np.take_along_axis(strided, order, axis)
    given = side.put(keys), side.put(values)[:, ::2]
    results = ol.sort_by_key(*given, axis=axis, queue=side.queue)
    out = [side.put(np.zeros(expected.shape, kind)) for kind in (keys.dtype, dtype)]
    assert ol.sort_by_key(*given, axis=axis, out=tuple(out), queue=side.queue)[1] is out[1]
    for sorted_keys, moved in (results, out):
        np.testing.assert_array_equal(side.get(sorted_keys), np.sort(keys, axis=axis))
        moved = side.get(moved)
        assert moved.dtype == dtype and moved.tobytes() == expected.tobytes()


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
