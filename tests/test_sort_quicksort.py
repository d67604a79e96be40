"""The quicksort of one thread: codes and positions, rows that share blocks, skewed keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from radix_checks import GPU
from sort_checks import bits, stable_order

import opencl_lab as ol
from opencl_lab.core.plan import check_plan
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER

INT32, INT64, FLOAT32 = (np.dtype(name) for name in ("int32", "int64", "float32"))
ALONE = replace(GPU, kind="cpu", compute_units=1, native_vector_bytes=64)
LENGTHS = (1, 2, 17, 255, 256, 257, 1024, 1025, 5000)


def keys_of(rng, shape, dtype):
    """Return random bits, special floats among them, and several kinds of skewed keys."""
    dtype = np.dtype(dtype)
    n = shape[-1]
    random = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    yield random
    if dtype.kind == "f":
        special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0], dtype)
        yield rng.choice(special, shape)
        yield np.where(rng.random(shape) < 0.3, rng.choice(special, shape), random)
    yield np.full(shape, 3, dtype)
    yield rng.integers(0, 4, shape).astype(dtype)
    yield np.where(rng.random(shape) < 0.9, dtype.type(7), random)
    yield np.broadcast_to(np.arange(n), shape).astype(dtype)
    yield np.broadcast_to(np.arange(n)[::-1], shape).astype(dtype)
    yield np.broadcast_to(np.minimum(np.arange(n), n - np.arange(n)), shape).astype(dtype)


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


def test_a_plan_is_one_launch_of_one_item():
    for problem in (
        SortProblem(10_000, INT32),
        SortProblem(5000, INT32, rows=30, indices=True),
        SortProblem(64, FLOAT32, rows=100, value_bytes=16),
    ):
        plan = SORT_SOLVER.plan(problem, ALONE)
        check_plan(plan, ALONE)
        (launch,) = plan.launches
        assert (launch.kernel, launch.global_size) == ("quicksort_cpu", (1,))
        assert not plan.with_role("zeros")  # nothing is claimed


def test_where_it_does_not_serve():
    quicksort = SORT_SOLVER.algorithm("quicksort")
    assert "CPU" in quicksort.supports(SortProblem(10, INT32), GPU)
    assert "64 bits" in quicksort.supports(SortProblem(10, INT64, indices=True), ALONE)
    assert SORT_SOLVER.choose(SortProblem(1000, INT64, indices=True), ALONE).name == "radix"
    narrow = replace(ALONE, native_vector_bytes=32)
    assert SORT_SOLVER.choose(SortProblem(1000, INT32), narrow).name == "radix"
