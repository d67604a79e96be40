"""The problem of a matrix product, or of a stack of them."""

from __future__ import annotations

import math
import operator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import python_value
from opencl_lab.core.plan import Work
from opencl_lab.core.wording import counted
from opencl_lab.ops.problem import Problem

ELEMENT_TYPES = ("float16", "float32", "float64", "complex64", "complex128")
INTEGER_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Integer types that `opencl_lab.gemm` multiplies, too, exactly; they are not measured or tuned."""
WRAPPING: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("i2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
}
"""Types by size in which integers are summed. Unsigned ones, as only these wrap around in C; but
int16, which C multiplies as int: a product of two and one more number do not overflow it."""
FLOAT32 = np.dtype("float32")
Precision: TypeAlias = Literal["native", "3xtf32", "tf32"]
Activation: TypeAlias = Literal["relu", "gelu"]
PRECISIONS = get_args(Precision)
ACTIVATIONS = ("", *get_args(Activation))
BIASES = ("", "row", "column")
TRANSPOSED = {"N": False, "T": True, "C": True, 0: False, 1: True, 2: True}
"""The words and numbers of BLAS and its wrappers for transposing."""
CONJUGATED = ("C", 2)

Stack: TypeAlias = tuple[int, bool, bool]
"""One dimension of a stack of products: how many, and whether a and b move along it."""


@dataclass(frozen=True)
class GemmProblem(Problem):
    """The product ``activation(alpha * op(a) @ op(b) + beta * c + bias)``, or a stack of them.

    Here op(a) is m x k and op(b) is k x n.
    """

    sizes = ("m", "n", "k", "batch")
    layout = ("dtype", "trans_a", "trans_b", "precision")

    # Rows and columns of the result, and the length of the sums.
    m: int
    n: int
    k: int
    # One of `ELEMENT_TYPES` or `INTEGER_TYPES`, in the machine's byte order. Numbers of float16 are
    # added up in float32. Integers wrap around.
    dtype: np.dtype[Any] = FLOAT32
    # With beta 0, c is not read; with alpha or k 0, a and b are not read. A value that overflows or
    # underflows in `dtype` becomes an infinity or zero, as in BLAS.
    alpha: complex = 1.0
    beta: complex = 0.0
    # Whether a is stored as k x m, and b as n x k. BLAS's words and numbers become a bool.
    trans_a: bool = False
    trans_b: bool = False
    # ``native``: arithmetic in `dtype`. ``3xtf32`` and ``tf32``: float32 by the matrix units of a
    # device that has them, by three products for each, or by one; native elsewhere.
    precision: str = "native"
    # Whether a and b are conjugated.
    conj_a: bool = False
    conj_b: bool = False
    batch: int = 1  # products in the stack
    # Dimensions of the stack, the last one side by side in memory. None: one, along which both a
    # and b move.
    stacks: tuple[Stack, ...] = ()
    # ``row``: m numbers, one for each row of the result; ``column``: n. Added before `activation`,
    # the same for all products of a stack.
    bias: str = ""
    activation: str = ""  # ``relu``, ``gelu`` (by the error function), or none

    def __post_init__(self) -> None:
        self._check_sizes()
        if self.dtype.name not in ELEMENT_TYPES + INTEGER_TYPES or not self.dtype.isnative:
            raise InvalidProblem(
                f"cannot multiply matrices of dtype {self.dtype}; "
                f"supported: {', '.join(ELEMENT_TYPES)}, and integers"
            )
        self._check_words()
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, self._held(getattr(self, name), name))
        for name in ("a", "b"):
            given = getattr(self, f"trans_{name}")
            object.__setattr__(self, f"trans_{name}", is_transposed(given, f"trans_{name}"))
            conjugated = self.is_complex and (getattr(self, f"conj_{name}") != is_conjugated(given))
            object.__setattr__(self, f"conj_{name}", conjugated)
        stacks = tuple((int(n), bool(a), bool(b)) for n, a, b in self.stacks)
        object.__setattr__(self, "stacks", () if stacks == ((self.batch, True, True),) else stacks)
        if self.stacks and math.prod(count for count, _, _ in self.stacks) != self.batch:
            raise InvalidProblem(f"stacks {self.stacks} do not hold {self.batch} products")

    def _check_words(self) -> None:
        for name, known in (
            ("precision", PRECISIONS),
            ("activation", ACTIVATIONS),
            ("bias", BIASES),
        ):
            if getattr(self, name) not in known:
                raise InvalidProblem(
                    f"there is no {name} {getattr(self, name)!r} for gemm; there is: "
                    f"{', '.join(word for word in known if word)}"
                )
        if self.precision != "native" and self.dtype != FLOAT32:
            raise InvalidProblem(
                f"precision {self.precision!r} is for float32, not for {self.dtype}"
            )
        if self.activation and self.dtype.kind != "f":
            kind = "real" if self.is_complex else "floating-point"
            raise InvalidProblem(f"activation {self.activation!r} is for {kind} numbers only")

    def _held(self, value: complex, name: str) -> complex:
        """Return a scalar as kernels hold it, if that is an infinity or zero; else unchanged."""
        if isinstance(value, complex) and not self.is_complex:
            raise InvalidProblem(
                f"{name} must be a real number for {self.dtype}, not {value!r}; complex ones are "
                "for complex64 and complex128"
            )
        if self.is_integer:
            with suppress(ValueError, OverflowError):  # of NaN and infinities
                if value == int(value.real):
                    return int(value.real)
            raise InvalidProblem(f"{name} must be a whole number for {self.dtype}, not {value!r}")
        with np.errstate(over="ignore", under="ignore"):
            held: complex = self.sum_type.type(value).item()
        if not held or not np.isfinite(held):
            return held
        return complex(value) if self.is_complex else value

    @property
    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self.dtype.kind == "c"

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers."""
        return self.dtype.name in INTEGER_TYPES

    @property
    def sum_type(self) -> np.dtype[Any]:
        """Type in which products are added up, and of alpha and beta."""
        if self.is_integer:
            return WRAPPING[self.dtype.itemsize]
        return FLOAT32 if self.dtype.itemsize == 2 else self.dtype

    @property
    def components(self) -> int:
        """Real numbers in an element."""
        return 2 if self.is_complex else 1

    @property
    def number_bytes(self) -> int:
        """Bytes of an integer, or of a real number, that is summed."""
        return self.sum_type.itemsize // self.components

    @property
    def real_type(self) -> np.dtype[Any]:
        """Type of the real numbers that are added up: `sum_type`, or its components."""
        return np.dtype(f"f{self.number_bytes}")

    @property
    def depth(self) -> int:
        """Length of the sums that are formed: 0 where alpha is 0."""
        return 0 if self.alpha == 0 else self.k

    @property
    def dimensions(self) -> tuple[Stack, ...]:
        """Dimensions of the stack of products; none where there is one product."""
        if self.stacks or self.batch == 1:
            return self.stacks
        return ((self.batch, True, True),)

    def _stacked(self, moves: int, rows: int, columns: int) -> tuple[int, ...]:
        return (*(item[0] for item in self.dimensions if item[moves]), rows, columns)

    @property
    def shape_a(self) -> tuple[int, ...]:
        """Shape in which a is stored."""
        return self._stacked(1, *((self.k, self.m) if self.trans_a else (self.m, self.k)))

    @property
    def shape_b(self) -> tuple[int, ...]:
        """Shape in which b is stored."""
        return self._stacked(2, *((self.n, self.k) if self.trans_b else (self.k, self.n)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*(count for count, _, _ in self.dimensions), self.m, self.n)

    @property
    def title(self) -> str:
        """The shapes of the factors, their type, and the options that differ from the defaults."""
        parts = [f"{self.m:,} x {self.k:,} by {self.k:,} x {self.n:,} matrices of {self.dtype}"]
        parts += [counted(self.batch, "product")] * (self.batch != 1)
        for name in ("a", "b"):
            words = [
                word
                for word, kind in (("conjugated", "conj"), ("transposed", "trans"))
                if getattr(self, f"{kind}_{name}")
            ]
            parts += [f"{name} {' and '.join(words)}"] * bool(words)
        for name, usual in (("alpha", 1), ("beta", 0)):
            value = getattr(self, name)
            shown = value if value.imag or isinstance(value, int) else value.real
            parts += [f"{name} {shown:g}"] * (value != usual)
        parts += [f"a bias for each {self.bias}"] * bool(self.bias)
        parts += [self.activation] * bool(self.activation)
        return ", ".join(parts + [f"precision {self.precision}"] * (self.precision != "native"))

    @property
    def work(self) -> Work:
        """A multiplication and an addition per product; one read per input, one write per result.

        A complex product counts as four real ones.
        """
        elements = math.prod(self.shape) * (2 if self.beta else 1)
        if self.m and self.n:
            elements += (math.prod(self.shape_a) + math.prod(self.shape_b)) * bool(self.depth)
        flops = 2.0 * self.m * self.n * self.depth * self.batch * (4 if self.is_complex else 1)
        return Work(flops=flops, bytes=float(elements * self.dtype.itemsize))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values; complex scalars as text."""
        values = super().as_dict()
        for name in ("alpha", "beta"):
            if isinstance(values[name], complex):
                values[name] = repr(values[name])
        return {**values, "stacks": [list(stack) for stack in self.stacks]}


def is_transposed(value: Any, name: str) -> bool:
    """Return whether to transpose, from a bool or from a value of BLAS's ``trans``."""
    value = python_value(value)
    if isinstance(value, bool):
        return value
    try:
        return TRANSPOSED[value.upper() if isinstance(value, str) else operator.index(value)]
    except (KeyError, TypeError):
        raise InvalidProblem(
            f"{name} must be True or False, or N, T or C as in BLAS, not {value!r}"
        ) from None


def is_conjugated(value: Any) -> bool:
    """Return whether a value of BLAS's ``trans`` asks for the conjugate."""
    if isinstance(value, (bool, np.bool_)):
        return False
    return (value.upper() if isinstance(value, str) else value) in CONJUGATED
