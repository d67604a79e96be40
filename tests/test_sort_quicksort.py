"""The quicksort of one thread: codes and positions, rows that share blocks, skewed keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from radix_checks import GPU
from sort_checks import bits, stable_order

import opencl_lab as ol
from opencl_lab.lab.ops.keys import ORDERS, random_keys
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER
from opencl_lab.ops.sort.trials import awkward_keys

INT32, INT64, FLOAT32 = (np.dtype(name) for name in ("int32", "int64", "float32"))
ALONE = replace(GPU, kind="cpu", compute_units=1, native_vector_bytes=64)
LENGTHS = (1, 2, 17, 255, 256, 257, 1024, 1025, 5000)


def keys_of(rng, shape, dtype):
    """Return random bits, special floats among them, few keys, and keys in each order."""
    yield awkward_keys(rng, dtype, shape)
    yield rng.choice(awkward_keys(rng, dtype, 20), shape)
    for order in ORDERS:
        yield random_keys(shape if len(shape) > 1 else (1, *shape), np.dtype(dtype), order, rng)


def check(keys, device, descending=False):
    expected = np.take_along_axis(keys, stable_order(keys, descending=descending), -1)
    found = ol.sort(keys, descending=descending, algorithm="quicksort", device=device)
    np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dtype", "descending"), [("int16", False), ("float32", True), ("float64", False)]
)
def test_keys_alone(serial, rng, dtype, descending):
    for n in LENGTHS:
        for keys in keys_of(rng, (n,), dtype):
            check(keys, serial, descending)


@pytest.mark.parametrize(("dtype", "n"), [("float32", 20), ("uint64", 33)])
def test_short_rows_share_blocks(serial, rng, dtype, n):
    for rows in (2, 9, 37):
        for keys in keys_of(rng, (rows, n), dtype):
            check(keys, serial)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dtype", "shape"), [("float16", (3, 3000)), ("int32", (3, 3000)), ("int8", (7, 50))]
)
def test_positions(serial, rng, dtype, shape):
    for keys in keys_of(rng, shape, dtype):
        found = ol.argsort(keys, algorithm="quicksort", device=serial)
        np.testing.assert_array_equal(found, stable_order(keys))


def test_values(serial, rng):
    values = rng.standard_normal((2, 1500)) + 1j
    for keys in keys_of(rng, values.shape, "float32"):
        order = stable_order(keys, descending=True)
        found = ol.sort_by_key(keys, values, descending=True, algorithm="quicksort", device=serial)
        for given, result in zip((keys, values), found, strict=True):
            expected = np.take_along_axis(given, order, -1)
            assert result.tobytes() == expected.tobytes()


def test_where_it_does_not_serve():
    quicksort = SORT_SOLVER.algorithm("quicksort")
    assert "CPU" in quicksort.supports(SortProblem(10, INT32), GPU)
    assert "64 bits" in quicksort.supports(SortProblem(10, INT64, indices=True), ALONE)
    assert SORT_SOLVER.choose(SortProblem(1000, INT64, indices=True), ALONE).name == "radix"
    narrow = replace(ALONE, native_vector_bytes=32)
    assert SORT_SOLVER.choose(SortProblem(1000, INT32), narrow).name == "radix"
