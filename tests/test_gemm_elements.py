"""Every element type, stack of products and epilogue, by the algorithms of textbooks."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from gemm_checks import CASES, SMALL, check, generated, options_of, skip_untaken

import opencl_lab as ol
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, INTEGER_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER


def dealt():
    """Return half of all combinations: in them every two of algorithm, type and case occur.

    `blocked` has types in tests of its own, and each here once.
    """
    return [
        (algorithm, dtype, (i + j + half) % len(CASES))
        for i, algorithm in enumerate(("naive", "tiled", "blocked"))
        for j, dtype in enumerate(ELEMENT_TYPES)
        for half in (0, len(CASES) // 2)[: 1 + (algorithm != "blocked")]
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize(("algorithm", "dtype", "case"), dealt())
def test_elements_stacks_and_epilogues(algorithm, dtype, case, rng, queue):
    problem = GemmProblem(7, 9, 11, **options_of(dtype, case))
    check(rng, problem, algorithm, SMALL[algorithm], queue)


@pytest.mark.few(2)
@pytest.mark.parametrize("algorithm", ["naive", "tiled"])
@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_integers_wrap_around_as_numpy(dtype, algorithm, rng, queue):
    limits = np.iinfo(dtype)

    def numbers(*shape):
        found = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        found[..., :2] = limits.min if found.shape[-1] % 2 else limits.max
        return found

    how = {"algorithm": algorithm, "config": SMALL[algorithm]}
    a, b, c, bias = numbers(3, 7, 21), numbers(9, 21), numbers(3, 7, 9), numbers(7, 1)
    right = np.matmul(a, b.T)
    np.testing.assert_array_equal(ol.gemm(a, b.T, **how, queue=queue), right, strict=True)
    alpha, beta = -3, 2**63 + 5
    with np.errstate(over="ignore"):
        wrapped = (np.array([x % 2**64], "u8").astype(dtype) for x in (alpha, beta))
        first, second = wrapped
        right = first * right + second * c + bias
    more = {"alpha": alpha, "beta": beta, **how}
    found = ol.gemm(a, b, c=c, bias=bias, trans_b=True, **more, queue=queue)
    np.testing.assert_array_equal(found, right, strict=True)
    a, b, c, bias = (cl.array.to_device(queue, x) for x in (a, b, c, bias))
    for _ in range(2):
        found = ol.gemm(a, b, c=c, bias=bias, trans_b=True, **more)
        np.testing.assert_array_equal(found.get(), right, strict=True)


def in_an_array(number):
    return np.array(Fraction(number), object)


MADE = [int, np.int64, np.array, np.uint64, Decimal, Fraction, np.longdouble, in_an_array]


@pytest.mark.parametrize("made", MADE)
def test_factors_of_integers_are_exact(made, queue):
    ones, large = np.ones((2, 2), np.int64), 2**60 + 1
    found = ol.gemm(ones, ones, alpha=made(large), beta=made(large), c=ones, queue=queue)
    np.testing.assert_array_equal(found, np.full((2, 2), 3 * large))
    with pytest.raises(ol.InvalidProblem, match="alpha must be a whole number"):
        ol.gemm(ones, ones, alpha=Fraction(2 * large + 1, 2), queue=queue)


def test_which_algorithms_multiply_integers(device):
    for shape in ((300, 300, 300), (300, 2, 300)):
        problem = GemmProblem(*shape, np.dtype("int16"))
        names = ("direct",) if device.kind == "cpu" else ("tiled", "naive")
        assert GEMM_SOLVER.choose(problem, device).name in names
    with pytest.raises(ol.InvalidConfig, match="it multiplies no integers"):
        GEMM_SOLVER.choose(problem, device, "gemv")


def test_words_of_blas_and_plain_stacks_become_one_form():
    complex64 = np.dtype("complex64")
    assert GemmProblem(2, 3, 4, complex64, trans_a="C") == GemmProblem(
        2, 3, 4, complex64, trans_a=True, conj_a=True
    )
    assert GemmProblem(2, 3, 4, trans_a="C", conj_b=True) == GemmProblem(2, 3, 4, trans_a=True)
    stacked = GemmProblem(2, 3, 4, batch=5, stacks=((5, True, True),))
    assert stacked == GemmProblem(2, 3, 4, batch=5)
    assert (stacked.shape_a, stacked.shape) == ((5, 2, 4), (5, 2, 3))
    assert stacked.work.flops == 5 * 2 * 2 * 3 * 4


@pytest.mark.few(1)
@pytest.mark.parametrize("algorithm", ["naive", "packed", "direct", "blocked", "gemv"])
def test_what_is_added_once_keeps_its_infinities(algorithm, rng, device):
    """As in BLAS: neither part of a C of complex numbers is multiplied by 0."""
    skip_untaken(algorithm, device)
    problem = GemmProblem(5, 3, 20, np.dtype("complex64"), beta=1)
    inputs = generated(rng, problem)
    inputs["c"][0, 0], inputs["c"][4, 2] = complex(np.inf, 1), complex(2, -np.inf)
    found = GEMM_SOLVER.run(problem, inputs, algorithm=algorithm).outputs["result"]
    with np.errstate(invalid="ignore"):
        product = inputs["a"] @ inputs["b"]
    np.testing.assert_allclose(found.real, (product + inputs["c"]).real, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.imag, (product + inputs["c"]).imag, rtol=1e-4, atol=1e-4)
