"""The product of small matrices in place: edges, element types, stacks, choices of one thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gemm_checks import made_device

import opencl_lab as ol
from opencl_lab.core.plan import check_plan
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm import ranking
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

DIRECT = GEMM.algorithm("direct")
ALONE = replace(made_device("cpu", 4096, 1 << 20, 1), native_vector_bytes=64)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128", "int32"])
def test_small_calls_on_one_thread(dtype, rng, serial):
    for shape in ((1, 1, 1), (5, 4, 3), (31, 33, 35), (1, 90, 80), (90, 2, 80)):
        m, n, k = shape
        a, b = (rng.integers(-9, 9, size).astype(dtype) for size in ((m, k), (k, n)))
        found = ol.gemm(a, b, device=serial)
        np.testing.assert_array_equal(found, a @ b, strict=True)
    stack = rng.integers(-9, 9, (7, 6, 6)).astype(dtype)
    np.testing.assert_array_equal(ol.gemm(stack, stack, device=serial), stack @ stack)


# ------------------------------------------------------------------ plans


def test_one_thread_needs_one_launch_and_no_other_memory(rng):
    for dtype in ("float32", "complex128", "int8"):
        for shape in ((64, 64, 64), (31, 33, 35), (200, 200, 200), (3, 2, 7)):
            for trans in (False, True):
                problem = GemmProblem(*shape, np.dtype(dtype), trans_b=trans, batch=3)
                plan = GEMM_SOLVER.plan(problem, ALONE)
                check_plan(plan, ALONE)
                (launch,) = plan.launches
                assert {buffer.name for buffer in plan.buffers} == {"a", "b", "result"}
                assert launch.work_group == 1


# ------------------------------------------------------------------ what one thread takes


def test_shape_decides_what_comes_first_on_one_thread():
    expected = [
        ((64, 64, 64), False, "direct"), ((1, 100, 100), False, "gemv"),
        ((4, 64, 64), False, "direct"), ((4, 64, 64), True, "gemv"),
        ((100, 4, 100), False, "gemv"), ((100, 8, 100), False, "direct"),
        ((4, 4, 4), False, "direct"), ((64, 64, 8192), False, "packed"),
    ]  # fmt: skip
    for shape, trans_b, first in expected:
        problem = GemmProblem(*shape, trans_b=trans_b)
        assert ranking.ranked(problem, ALONE)[0] == first, shape
    tiny, threads = GemmProblem(4, 4, 4, batch=1000), replace(ALONE, compute_units=2)
    assert ranking.ranked(tiny, ALONE)[0] == "direct"
    assert ranking.ranked(tiny, threads)[0] == "packed"
    halves = GemmProblem(64, 64, 64, np.dtype("float16"))
    assert GEMM_SOLVER.choose(halves, ALONE).name == "packed"


def test_longer_products_are_expected_to_take_longer():
    for dtype in ("float32", "complex128", "int8", "float16"):
        times = []
        for size in (0, 1, 8, 64, 200, 1000):
            problem = GemmProblem(size, size, size, np.dtype(dtype))
            times.append(GEMM_SOLVER.serial_us(problem))
            assert GEMM_SOLVER.parallel_us(problem, 2) > GEMM_SOLVER.parallel_us(problem, 16)
        assert times == sorted(times)
        assert times[-1] > 2000 > 100 > times[3]


def test_small_calls_stay_in_the_calling_thread(serial):
    threads = ol.select_device()
    assert GEMM_SOLVER.side(GemmProblem(64, 64, 64), threads) is serial
    assert GEMM_SOLVER.side(GemmProblem(1000, 1000, 1000), threads) is threads
    assert GEMM_SOLVER.side(GemmProblem(64, 64, 64), threads, "tensor") is threads
