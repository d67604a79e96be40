"""The problem of a matrix product, and how a user's matrices become one."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.plan import Work
from opencl_lab.runtime.arrays import AnyArray, contiguous, is_device_array, is_plain
from opencl_lab.solver import Problem, real_number
from opencl_lab.wording import counted

__all__ = ["PRECISIONS", "REAL_TYPES", "GemmProblem", "bind"]

REAL_TYPES = ("float32", "float64")
FLOAT32 = np.dtype("float32")
PRECISIONS = ("native",)
TRANSPOSED = {"N": False, "T": True, "C": True, 0: False, 1: True, 2: True}
"""The words and numbers by which BLAS and its wrappers say it; real numbers have no conjugates."""


@dataclass(frozen=True)
class GemmProblem(Problem):
    """The product ``alpha * op(a) @ op(b) + beta * c``, with op(a) m x k and op(b) k x n.

    Parameters
    ----------
    m, n, k : int
        Rows and columns of the result, and the length of the sums.
    dtype : numpy.dtype
        float32 or float64, in the machine's byte order.
    alpha, beta : float
        With beta 0, c is not read; with alpha or k 0, a and b are not read. What `dtype` can hold
        as an infinity or zero only becomes that, as for BLAS, which gets it rounded.
    trans_a, trans_b : bool
        Whether a is stored as k x m, and b as n x k. BLAS's words and numbers become a bool.
    precision : str
        ``native``: arithmetic in `dtype`.
    """

    sizes = ("m", "n", "k")
    layout = ("dtype", "trans_a", "trans_b", "precision")

    m: int
    n: int
    k: int
    dtype: np.dtype[Any] = FLOAT32
    alpha: float = 1.0
    beta: float = 0.0
    trans_a: bool = False
    trans_b: bool = False
    precision: str = "native"

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k) < 0:
            raise InvalidProblem(
                f"m, n and k must not be negative, not {self.m}, {self.n} and {self.k}"
            )
        if self.dtype.name not in REAL_TYPES or not self.dtype.isnative:
            raise InvalidProblem(
                f"cannot multiply matrices of dtype {self.dtype}; "
                f"supported: {', '.join(REAL_TYPES)}"
            )
        if self.precision not in PRECISIONS:
            raise InvalidProblem(
                f"there is no precision {self.precision!r} for gemm; there is: "
                f"{', '.join(PRECISIONS)}"
            )
        for name in ("alpha", "beta"):
            with np.errstate(over="ignore", under="ignore"):
                held = float(self.dtype.type(getattr(self, name)))
            if not held or math.isinf(held):
                object.__setattr__(self, name, held)
        for name in ("trans_a", "trans_b"):
            object.__setattr__(self, name, _transposed(getattr(self, name), name))

    @property
    def depth(self) -> int:
        """Length of the sums that are really formed: 0 where alpha is 0."""
        return 0 if self.alpha == 0 else self.k

    @property
    def shape_a(self) -> tuple[int, int]:
        """Shape in which a is stored."""
        return (self.k, self.m) if self.trans_a else (self.m, self.k)

    @property
    def shape_b(self) -> tuple[int, int]:
        """Shape in which b is stored."""
        return (self.n, self.k) if self.trans_b else (self.k, self.n)

    @property
    def title(self) -> str:
        """The shapes of the factors, their type, and what is not plain about the product."""
        parts = [f"{self.m:,} x {self.k:,} by {self.k:,} x {self.n:,} matrices of {self.dtype}"]
        parts += ["a transposed"] * self.trans_a + ["b transposed"] * self.trans_b
        parts += [f"alpha {self.alpha:g}"] * (self.alpha != 1)
        parts += [f"beta {self.beta:g}"] * (self.beta != 0)
        return ", ".join(parts + [f"precision {self.precision}"] * (self.precision != "native"))

    @property
    def work(self) -> Work:
        """A multiplication and an addition a product, one read an input, one write a result."""
        elements = self.m * self.n * (2 if self.beta else 1)
        if self.m and self.n:
            elements += (self.m + self.n) * self.depth
        return Work(
            flops=2.0 * self.m * self.n * self.depth, bytes=float(elements * self.dtype.itemsize)
        )


def _check_matrices(matrices: Mapping[str, AnyArray]) -> None:
    """Require matrices of one dtype on one side."""
    for name, matrix in matrices.items():
        if matrix.ndim > 2:
            raise InvalidProblem(
                f"{name} has {matrix.ndim} dimensions; gemm takes one product of matrices at a "
                "time, batches are not supported: call it for each matrix"
            )
        if matrix.ndim < 2:
            raise InvalidProblem(
                f"{name} has {counted(matrix.ndim, 'dimension')}, not 2; reshape a vector to one "
                "row or column"
            )
    if len({is_device_array(matrix) for matrix in matrices.values()}) > 1:
        raise InvalidProblem(
            f"{', '.join(matrices)} must all be host arrays or all be device arrays"
        )
    names = {name: matrix.dtype.name for name, matrix in matrices.items()}
    if not set(names.values()) <= set(REAL_TYPES) or len(set(names.values())) > 1:
        found = ", ".join(f"{name} is {dtype}" for name, dtype in names.items())
        raise InvalidProblem(
            f"the matrices must all be {' or all '.join(REAL_TYPES)}: {found}; "
            "convert with astype (on the command line: --dtype float64), nothing is converted "
            "silently"
        )


def _transposed(value: Any, name: str) -> bool:
    """Return whether to transpose, from a bool or from what BLAS takes instead of one."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    try:
        return TRANSPOSED[value.upper() if isinstance(value, str) else operator.index(value)]
    except (KeyError, TypeError):
        raise InvalidProblem(
            f"{name} must be True or False, or N, T or C as in BLAS, not {value!r}"
        ) from None


def _stored(array: AnyArray, queue: Any) -> tuple[AnyArray, bool]:
    """Return a plain array, and whether it is the transpose of `array`; copy only if it must."""
    if not is_plain(array) and is_plain(array.T):
        return array.T, True
    return contiguous(array, queue), False


def bind(
    a: AnyArray,
    b: AnyArray,
    c: AnyArray | None,
    *,
    alpha: Any,
    beta: Any,
    trans_a: Any,
    trans_b: Any,
    precision: str,
    queue: Any = None,
) -> tuple[GemmProblem, dict[str, AnyArray]]:
    """Return the problem of a user's matrices, and these as its inputs."""
    alpha, beta = real_number(alpha, "alpha"), real_number(beta, "beta")
    trans_a, trans_b = _transposed(trans_a, "trans_a"), _transposed(trans_b, "trans_b")
    matrices = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}
    _check_matrices(matrices)
    m, k = a.shape[::-1] if trans_a else a.shape
    rows_b, n = b.shape[::-1] if trans_b else b.shape
    if k != rows_b:
        raise InvalidProblem(
            f"a gives sums of length {k} and b of length {rows_b}: "
            f"a is {a.shape[0]} x {a.shape[1]}{', transposed' if trans_a else ''}, "
            f"b is {b.shape[0]} x {b.shape[1]}{', transposed' if trans_b else ''}"
        )
    if c is not None and tuple(c.shape) != (m, n):
        raise InvalidProblem(f"c must have the shape of the result, {(m, n)}, not {tuple(c.shape)}")
    inputs = {}
    inputs["a"], turned_a = _stored(a, queue)
    inputs["b"], turned_b = _stored(b, queue)
    dtype = np.dtype(a.dtype.name)
    trans_a, trans_b = trans_a != turned_a, trans_b != turned_b
    problem = GemmProblem(m, n, k, dtype, alpha, beta, trans_a, trans_b, precision)
    if problem.beta:
        if c is None:
            raise InvalidProblem(f"beta is {beta:g}, so c is needed")
        inputs["c"] = contiguous(c, queue)
    return problem, inputs
