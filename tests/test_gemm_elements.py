"""Every element type, stack of products and epilogue, by the algorithms of textbooks."""

from __future__ import annotations

import math

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from gemm_checks import SMALL, skip_untaken

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, INTEGER_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

CASES = [
    {},
    {
        "alpha": 1.5, "beta": 0.5, "trans_a": True, "conj_a": True, "batch": 3, "bias": "row",
        "activation": "relu",
    },
    {
        "beta": -1.0, "trans_b": True, "conj_b": True, "batch": 6, "bias": "column",
        "stacks": ((2, True, False), (3, False, True)), "activation": "gelu",
    },
    {
        "trans_a": True, "trans_b": True, "batch": 4, "stacks": ((2, False, True), (2, True, True)),
        "bias": "row",
    },
]  # fmt: skip
TOLERANCES = {2: 2e-3, 4: 2e-6, 8: 1e-14}


def generated(rng, problem):
    """Return random arrays for the inputs of a problem."""
    shapes = {"a": problem.shape_a, "b": problem.shape_b}
    shapes |= {"c": problem.shape} if problem.beta else {}
    sizes = {"row": (problem.m,), "column": (problem.n,)}
    shapes |= {"bias": sizes[problem.bias]} if problem.bias else {}
    parts = {name: rng.standard_normal((2, *shape)) for name, shape in shapes.items()}
    return {
        name: (part[0] + 1j * part[1] if problem.is_complex else part[0]).astype(problem.dtype)
        for name, part in parts.items()
    }


def expected(problem, inputs):
    """Return the result in twice the precision or so, by NumPy."""
    wide = {name: array.astype(np.result_type(array, float)) for name, array in inputs.items()}
    factors = []
    for place, name in enumerate("ab"):
        factor = wide[name]
        factor = factor.swapaxes(-1, -2) if getattr(problem, f"trans_{name}") else factor
        factor = factor.conj() if getattr(problem, f"conj_{name}") else factor
        for axis, stack in enumerate(problem.dimensions):
            factor = factor if stack[place + 1] else np.expand_dims(factor, axis)
        factors.append(factor)
    result = problem.alpha * np.matmul(*factors) + problem.beta * wide.get("c", 0)
    bias = wide.get("bias", np.zeros(1))
    result = result + (bias[:, None] if problem.bias == "row" else bias)
    if problem.activation == "relu":
        result = np.maximum(result, 0)
    if problem.activation == "gelu":
        result = result * (1 + np.vectorize(math.erf)(result / math.sqrt(2))) / 2
    return result


def dealt():
    """Return half of all combinations: in them every two of algorithm, type and case occur."""
    return [
        (algorithm, dtype, (i + j + half) % len(CASES))
        for i, algorithm in enumerate(("naive", "tiled", "blocked"))
        for j, dtype in enumerate(ELEMENT_TYPES)
        for half in (0, len(CASES) // 2)
    ]


@pytest.mark.parametrize(("algorithm", "dtype", "case"), dealt())
def test_elements_stacks_and_epilogues(algorithm, dtype, case, rng, queue):
    options = dict(CASES[case])
    if dtype.startswith("complex"):
        options |= {"activation": "", "alpha": 0.5 - 1.5j}
    if dtype in ("float64", "complex128") and not queue.device.double_fp_config:
        pytest.skip("no double precision")
    problem = GemmProblem(7, 9, 11, np.dtype(dtype), **options)
    inputs = generated(rng, problem)
    run = GEMM_SOLVER.run(
        problem, inputs, algorithm=algorithm, config=SMALL[algorithm], queue=queue
    )
    result, right = run.outputs["result"], expected(problem, inputs)
    assert result.dtype == problem.dtype
    assert result.shape == right.shape
    real = problem.dtype.itemsize // problem.parts
    assert abs(result - right).max() <= TOLERANCES[real] * abs(right).max()


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


@pytest.mark.parametrize("made", [int, np.int64, np.array, np.uint64])
def test_factors_of_integers_are_exact(made, queue):
    ones, large = np.ones((2, 2), np.int64), 2**60 + 1
    found = ol.gemm(ones, ones, alpha=made(large), beta=made(large), c=ones, queue=queue)
    np.testing.assert_array_equal(found, np.full((2, 2), 3 * large))


def test_which_algorithms_multiply_integers(device):
    for shape in ((300, 300, 300), (300, 2, 300)):
        problem = GemmProblem(*shape, np.dtype("int16"))
        assert GEMM_SOLVER.choose(problem, device).name in ("tiled", "naive")
    with pytest.raises(ol.InvalidConfig, match="it multiplies no integers"):
        GEMM_SOLVER.choose(problem, device, "gemv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "tf32", "dtype": np.dtype("float64")}, "'tf32' is for float32, not for f"),
        ({"activation": "relu", "dtype": np.dtype("complex64")}, "for real numbers only"),
        ({"activation": "tanh"}, "no activation 'tanh' for gemm; there is: relu, gelu"),
        ({"bias": "both"}, "no bias 'both' for gemm; there is: row, column"),
        ({"batch": 5, "stacks": ((2, True, True), (2, True, True))}, "do not hold 5 products"),
        ({"alpha": 1j}, "alpha must be a real number for float32"),
    ],
)
def test_problems_that_are_refused(options, message):
    with pytest.raises(InvalidProblem, match=message):
        GemmProblem(2, 3, 4, **options)


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


@pytest.mark.parametrize("algorithm", ["naive", "packed", "blocked", "gemv"])
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
