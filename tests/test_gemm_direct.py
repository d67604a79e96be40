"""The product of small matrices in place: edges, element types, stacks, choices of one thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gemm_checks import CASES, SMALL, check, made_device, options_of, skip_untaken

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import check_plan
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm import ranking
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

DIRECT = GEMM.algorithm("direct")
PLAIN = SMALL["direct"]
# Around a block of 4 x 8 sums in vectors of 4; less than a block, a vector, a number.
SHAPES = [
    (8, 16, 8),
    (9, 17, 15),
    (7, 13, 3),
    (5, 9, 9),
    (3, 5, 6),
    (2, 1, 4),
    (21, 26, 1),
    (5, 6, 0),
]
ALONE = replace(made_device("cpu", 4096, 1 << 20, 1), native_vector_bytes=64)


@pytest.fixture
def queue(queue, device):
    """A queue of a device that the algorithm is for."""
    skip_untaken("direct", device)
    return queue


@pytest.mark.few(2)
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_every_edge(dtype, trans_b, rng, queue):
    for place, shape in enumerate(SHAPES):
        options = {"trans_a": bool(place % 2), "trans_b": trans_b, "conj_a": place % 3 == 0}
        problem = GemmProblem(*shape, np.dtype(dtype), alpha=2.0, **options)
        check(rng, problem, "direct", PLAIN, queue)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "case"),
    [
        (dtype, case)
        for place, dtype in enumerate(("float32", "float64", "complex64", "complex128"))
        for case in range(place % 2, len(CASES), 2)
    ],
)
def test_elements_stacks_and_epilogues(dtype, case, rng, queue):
    problem = GemmProblem(13, 19, 11, **options_of(dtype, case))
    check(rng, problem, "direct", PLAIN, queue)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "int32", "uint64"])
def test_integers_wrap_around_as_in_numpy(dtype, rng, queue):
    whole = np.iinfo(dtype)

    def numbers(*shape):
        return rng.integers(whole.min, whole.max, shape, dtype, endpoint=True)

    for m, n, k in ((13, 19, 11), (5, 1, 30), (1, 3, 7), (40, 33, 2)):
        a, b, c = numbers(k, m).T, numbers(n, k).T, numbers(m, n)
        options = {"algorithm": "direct", "queue": queue}
        np.testing.assert_array_equal(ol.gemm(a, b, **options), a @ b)
        found = ol.gemm(a, b, alpha=3, beta=-2, c=c, **options)
        np.testing.assert_array_equal(found, (3 * (a @ b) - 2 * c).astype(dtype), strict=True)


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


def test_threads_share_rows():
    threads = replace(ALONE, compute_units=4)
    problem = GemmProblem(1000, 40, 30)
    (launch,) = DIRECT.plan(problem, DIRECT.configure(problem, threads), threads).launches
    panels, tiles, _ = launch.global_size
    assert panels * tiles >= 16
    assert (tiles - 1) * int(launch.arguments["tile_m"]) < 1000


def test_what_it_does_not_do_is_said():
    assert "half" in DIRECT.supports(GemmProblem(8, 8, 8, np.dtype("float16")), ALONE)
    assert "for CPUs" in DIRECT.supports(GemmProblem(8, 8, 8), made_device())
    long = GemmProblem(8, 8, 1 << 20, trans_b=True)
    assert "no room" in DIRECT.supports(long, ALONE)
    assert DIRECT.supports(replace(long, trans_b=False), ALONE) is None
    with pytest.raises(InvalidConfig, match="do not stay in registers"):
        DIRECT.configure(GemmProblem(9, 9, 9), ALONE, {"ROWS": 14, "VECTORS": 4})


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


@pytest.mark.parametrize("shapes", [((6, 9), (9, 0)), ((0, 9), (9, 4)), ((0, 0), (0, 0))])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_products_without_columns_or_rows(dtype, shapes, device):
    a, b = (np.ones(shape, dtype) for shape in shapes)
    for algorithm in ("auto", "direct") if device.kind == "cpu" else ("auto",):
        assert ol.gemm(a, b, algorithm=algorithm, device=device).shape == (a @ b).shape


def test_stacks_share_matrices(rng, serial):
    a, b = rng.random((4, 1, 5, 6), np.float32), rng.random((3, 6, 7), np.float32)
    np.testing.assert_allclose(ol.gemm(a, b, device=serial), a @ b, rtol=1e-5)
