"""Problems of the matrix product: what is refused, how results are compared, references."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_checks import matrices

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import GemmProblem

# ------------------------------------------------------------------ what is refused


def floats(*shape):
    return np.ones(shape, np.float32)


DOUBLES = {"a": np.ones((2, 3)), "b": np.ones((3, 4))}
COMPLEX = dict.fromkeys("ab", np.ones((2, 2), np.complex64))
INTEGERS = dict.fromkeys("ab", np.ones((2, 2), np.int32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.ones((2, 3), np.int32)}, "a is int32, b is float32; convert with astype"),
        ({"b": np.ones((3, 4), np.float64)}, "a is float32, b is float64"),
        ({"a": np.ones((2, 3), np.float16)}, "a is float16, b is float32"),
        ({"a": np.ones((2, 3), np.complex64)}, "a is complex64"),
        ({"c": np.ones((2, 4), np.float64), "beta": 1}, "c is float64"),
        ({"a": floats(5, 2, 4)}, "a is 5 x 2 x 4, b is 3 x 4"),
        ({"b": np.float32(3)}, "b is a single number"),
        ({"b": floats(4)}, "a is 2 x 3, b is 4"),
        ({"b": floats(3), "c": floats(2, 1)}, r"result, \(2,\), not"),
        (
            {"b": floats(3), "bias": floats(2, 1)},
            r"vector, \(2,\), not",
        ),
        ({"trans_a": True}, "sums of length 2 and b of length 3: a is 2 x 3, transposed"),
        ({"b": floats(4, 4)}, "sums of length 3 and b of length 4"),
        ({"beta": 0.5}, "beta is 0.5, so c is needed"),
        ({"c": floats(4, 2)}, r"c must have the shape of the result, \(2, 4\)"),
        ({"precision": "fp8"}, "no precision 'fp8' for gemm; there is: native, 3xtf32, tf32"),
        ({"alpha": 1j}, "alpha must be a real number for float32, not 1j"),
        ({"beta": "much"}, "beta must be a real number"),
        ({"alpha": np.complex64(2)}, "alpha must be a real number"),
        ({"trans_a": "yes"}, "trans_a must be True or False, or N, T or C as in BLAS, not 'yes'"),
        ({"trans_b": 3}, "trans_b must be True or False"),
        ({"trans_b": None}, "trans_b must be True or False"),
        ({"out": floats(2, 3)}, r"out must have shape \(2, 4\) and dtype float32"),
        ({"out": np.ones((2, 4), np.float64)}, "not .* and float64"),
        ({"alpha": "2"}, "alpha must be a real number, not '2'"),
        ({"a": floats(5, 2, 3), "b": floats(4, 3, 4)}, "of a and b do not broadcast: a is 5"),
        ({"a": floats(5, 2, 3), "c": floats(2, 4)}, r"shape of the result, \(5, 2, 4\)"),
        ({"a": floats(5, 2, 3), "out": floats(2, 4)}, r"out must have shape \(5, 2, 4\)"),
        ({"bias": floats(2)}, r"for each column, \(4,\), or for each row, \(2, 1\), not \(2,\)"),
        ({"bias": floats(2, 4)}, "a whole matrix is c, with beta=1"),
        ({"bias": floats(1, 1, 4)}, "bias must have a number for each column"),
        ({"bias": np.float32(3)}, r"not \(\); a whole matrix"),
        ({"bias": np.ones(4)}, "b is float32, bias is float64; convert with astype"),
        ({"activation": "tanh"}, "no activation 'tanh' for gemm; there is: relu, gelu"),
        ({**DOUBLES, "precision": "tf32"}, "'tf32' is for float32, not for float64"),
        ({**COMPLEX, "activation": "relu"}, "for real numbers only"),
        ({**COMPLEX, "alpha": "1j"}, "alpha must be a number, not '1j'"),
        ({**COMPLEX, "beta": [1j, 2], "c": COMPLEX["a"]}, "beta must be a number, not"),
        ({**COMPLEX, "bias": floats(2)}, "a is complex64, b is complex64, bias is float32"),
        ({**INTEGERS, "activation": "relu"}, "for floating-point numbers only"),
        ({**INTEGERS, "alpha": 0.5}, "alpha must be a whole number for int32, not 0.5"),
        ({**INTEGERS, "beta": np.inf, "c": INTEGERS["a"]}, "beta must be a whole number"),
        ({**INTEGERS, "alpha": 1j}, "alpha must be a real number, not 1j"),
    ],
)
def test_invalid_problems(change, message, queue):
    given = {"a": floats(2, 3), "b": floats(3, 4), **change}
    with pytest.raises(InvalidProblem, match=message):
        gemm(**given, queue=queue)


def test_transposition_in_the_words_of_blas(rng, queue):
    a, b, _ = matrices(rng, 6, 7, 8, trans_b=True)
    right = gemm(a, b, trans_b=True, queue=queue)
    for no, yes in (("N", "T"), ("n", "c"), (0, 2), (np.False_, np.True_), (np.int8(0), "C")):
        result = gemm(a, b, trans_a=no, trans_b=yes, queue=queue)
        np.testing.assert_array_equal(result, right)
        problem = GEMM.problem(m=6, n=7, k=8, trans_a=no, trans_b=yes)
        assert problem == GemmProblem(6, 7, 8, trans_b=True)


def test_scalars_beyond_the_dtype_are_infinities_or_zeros(queue):
    """As for BLAS, which gets them rounded, and without a warning, which is an error here."""
    how = {"trans_b": True, "algorithm": "naive", "queue": queue}
    a = np.ones((6, 8), np.float32)
    nan = np.full((6, 6), np.nan, np.float32)
    for alpha in (1e40, -(10**400), np.longdouble("1e4000")):
        expected = np.full((6, 6), np.copysign(np.inf, float(np.sign(alpha))))
        np.testing.assert_array_equal(gemm(a, a, alpha=alpha, **how), expected)
    beside = {"c": nan / nan, **how}
    result = gemm(a, a, beta=1e-50, **beside)  # c is not read
    np.testing.assert_array_equal(result, np.full((6, 6), 8))
    np.testing.assert_array_equal(
        gemm(a, nan[:, :1].repeat(8, 1), alpha=1e-50, **beside), 0 * result
    )
    assert np.isnan(gemm(a, a, beta=1e40, **beside)).all()
    assert np.isinf(gemm(a, a, beta=1e40, **{**beside, "c": result})).all()
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(gemm(wide, wide, alpha=1e40, **how), np.full((6, 6), 8e40))
    assert GemmProblem(1, 1, 1, alpha=0.1).alpha == 0.1  # others stay as they were given
