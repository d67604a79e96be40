"""Matrix products: results for all kinds of numbers and arrays, by each form of an algorithm."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from gemm_checks import (
    ALGORITHMS,
    CASES,
    FORMS,
    PACKED_FORMS,
    SMALL,
    assert_product,
    check,
    generated,
    matrices,
    options_of,
    skip_untaken,
)

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import select_device
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, INTEGER_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

SHAPES = [
    (0, 0, 0), (0, 5, 3), (5, 0, 3), (4, 3, 0), (5, 6, 0), (1, 1, 1), (1, 9, 1), (9, 1, 5),
    (1, 1, 70), (8, 8, 8), (8, 16, 8), (9, 7, 17), (7, 15, 9), (21, 26, 5), (33, 31, 35),
    (3, 70, 2), (70, 3, 130), (64, 64, 64),
]  # fmt: skip


@pytest.fixture(autouse=True)
def taken(request):
    """Skip the tests of an algorithm that is not for the device under test."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    form = parameters.get("form")
    if form and "device" in request.fixturenames:
        skip_untaken(form, request.getfixturevalue("device"))


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["naive", "tiled", "direct", *PACKED_FORMS])
@pytest.mark.parametrize("trans_a", [False, True])
def test_every_shape(form, trans_a, rng, queue):
    """With tiles inside and over the edges, and less than one. Others have tests of their own."""
    trans_b = trans_a if form in ("packed", "packed, in place") else not trans_a
    for m, n, k in (*SHAPES, SHAPES[-1]):  # twice: counters are zero again
        problem = GemmProblem(
            m, n, k, alpha=-1.5, beta=0.75 * (m != n), trans_a=trans_a, trans_b=trans_b
        )
        check(rng, problem, form.partition(",")[0], FORMS[form], queue)


def dealt():
    """Return half of all combinations: in them every two of algorithm, type and case occur.

    `blocked` has types in tests of its own, and each here once.
    """
    for i, algorithm in enumerate(("naive", "tiled", "direct", "packed", "blocked")):
        for j, dtype in enumerate(ELEMENT_TYPES):
            for half in (0, len(CASES) // 2)[: 1 + (algorithm != "blocked")]:
                case = (i + j + half) % len(CASES)
                form = PACKED_FORMS[case + j % 2] if algorithm == "packed" else algorithm
                if (algorithm, dtype) != ("direct", "float16"):  # which it does not convert
                    yield form, dtype, case


@pytest.mark.few(2)
@pytest.mark.parametrize(("form", "dtype", "case"), [*dealt()])
def test_elements_stacks_and_epilogues(form, dtype, case, rng, queue):
    problem = GemmProblem(13, 19, 11, **options_of(dtype, case))
    check(rng, problem, form.partition(",")[0], FORMS[form], queue)


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ["naive", "tiled", "direct"])
@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_integers_wrap_around_as_in_numpy(dtype, form, rng, queue):
    limits = np.iinfo(dtype)

    def numbers(*shape):
        found = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        found[..., :2] = limits.min if found.shape[-1] % 2 else limits.max
        return found

    how = {"algorithm": form, "config": SMALL[form]}
    a, b, c, bias = numbers(3, 7, 21), numbers(9, 21), numbers(3, 7, 9), numbers(7, 1)
    right = np.matmul(a, b.T)
    np.testing.assert_array_equal(gemm(a, b.T, **how, queue=queue), right, strict=True)
    alpha, beta = -3, 2**63 + 5
    with np.errstate(over="ignore"):
        wrapped = (np.array([x % 2**64], "u8").astype(dtype) for x in (alpha, beta))
        first, second = wrapped
        right = first * right + second * c + bias
    more = {"alpha": alpha, "beta": beta, **how}
    found = gemm(a, b, c=c, bias=bias, trans_b=True, **more, queue=queue)
    np.testing.assert_array_equal(found, right, strict=True)
    a, b, c, bias = (cl.array.to_device(queue, x) for x in (a, b, c, bias))
    for _ in range(2):
        found = gemm(a, b, c=c, bias=bias, trans_b=True, **more)
        np.testing.assert_array_equal(found.get(), right, strict=True)


def in_an_array(number):
    return np.array(Fraction(number), object)


MADE = [int, np.uint64, Decimal, np.longdouble, in_an_array]


@pytest.mark.parametrize("made", MADE)
def test_factors_of_integers_are_exact(made, queue):
    ones, large = np.ones((2, 2), np.int64), 2**60 + 1
    found = gemm(ones, ones, alpha=made(large), beta=made(large), c=ones, queue=queue)
    np.testing.assert_array_equal(found, np.full((2, 2), 3 * large))
    with pytest.raises(InvalidProblem, match="alpha must be a whole number"):
        gemm(ones, ones, alpha=Fraction(2 * large + 1, 2), queue=queue)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ALGORITHMS)
def test_what_is_added_once_keeps_its_infinities(form, rng, queue):
    """As in BLAS: neither part of a C of complex numbers is multiplied by 0."""
    problem = GemmProblem(5, 3, 20, np.dtype("complex64"), beta=1)
    inputs = generated(rng, problem)
    inputs["c"][0, 0], inputs["c"][4, 2] = complex(np.inf, 1), complex(2, -np.inf)
    found = GEMM_SOLVER.run(problem, inputs, algorithm=form, queue=queue).outputs["result"]
    with np.errstate(invalid="ignore"):
        right = inputs["a"] @ inputs["b"] + inputs["c"]
    np.testing.assert_allclose(found.real, right.real, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.imag, right.imag, rtol=1e-4, atol=1e-4)


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ALGORITHMS)
def test_what_is_not_needed_is_not_read(form, rng, queue):
    options = {"algorithm": form, "config": SMALL[form], "queue": queue}
    a, b, c = matrices(rng, 9, 17, 5)
    nan = np.full_like
    assert_product(gemm(a, b, beta=0, c=nan(c, np.nan), **options), a, b)
    right = np.float32(3) * c
    for bad in (np.nan, np.inf):
        result = gemm(nan(a, bad), nan(b, bad), alpha=0, beta=3, c=c, **options)
        np.testing.assert_array_equal(result, right)
        assert not gemm(nan(a, bad), b, alpha=0, **options).any()
    for alpha in (1, np.inf, np.nan):
        empty = gemm(a[:, :0], b[:0], alpha=alpha, beta=3, c=c, **options)
        np.testing.assert_array_equal(empty, right)
        assert not gemm(a[:, :0], b[:0], alpha=alpha, **options).any()


def test_device_arrays_are_not_waited_for(rng, queue):
    a, b, _ = matrices(rng, 20, 20, 20)
    device_a, device_b = (cl.array.to_device(queue, x) for x in (a, b))
    gemm(device_a, device_b).get()  # builds
    gate = cl.UserEvent(queue.context)
    device_a.add_event(gate)
    result = gemm(device_a, device_b)
    assert result.events[-1].command_execution_status != cl.command_execution_status.COMPLETE
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert_product(result.get(), a, b)


def test_wrong_sides_and_queues(rng, queue, own_queue):
    a, b, c = matrices(rng, 4, 4, 4)
    device_a, device_b = (cl.array.to_device(queue, x) for x in (a, b))
    with pytest.raises(InvalidProblem, match="a, b must all be host arrays or all be device"):
        gemm(device_a, b)
    with pytest.raises(InvalidProblem, match="same side"):
        gemm(device_a, device_b, out=c)
    other = own_queue(queue.device)
    with pytest.raises(InvalidProblem, match="different contexts"):
        gemm(device_a, cl.array.to_device(other, b))


# ------------------------------------------------------------------ one thread


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128", "int32"])
def test_small_calls_on_one_thread(dtype, rng, serial):
    for shape in ((1, 1, 1), (5, 4, 3), (31, 33, 35), (1, 90, 80), (90, 2, 80)):
        m, n, k = shape
        a, b = (rng.integers(-9, 9, size).astype(dtype) for size in ((m, k), (k, n)))
        found = gemm(a, b, device=serial)
        np.testing.assert_array_equal(found, a @ b, strict=True)
    stack = rng.integers(-9, 9, (7, 6, 6)).astype(dtype)
    np.testing.assert_array_equal(gemm(stack, stack, device=serial), stack @ stack)


def test_small_calls_stay_in_the_calling_thread(serial):
    threads = select_device()
    assert GEMM_SOLVER.side(GemmProblem(64, 64, 64), threads) is serial
    assert GEMM_SOLVER.side(GemmProblem(1000, 1000, 1000), threads) is threads
    assert GEMM_SOLVER.side(GemmProblem(64, 64, 64), threads, "tensor") is threads
