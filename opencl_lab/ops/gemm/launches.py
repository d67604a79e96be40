"""What the plans of all algorithms of the matrix product share: buffers, parameters, arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    Element,
    c_type,
    index_type,
    lacks_barriers,
    lacks_type,
    largest_power,
)
from opencl_lab.core.plan import Argument, Buffer, named
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.solver import Algorithm

VECTOR_BYTES = 16
"""Bytes that a lane of a GPU loads or stores at once."""


class Product(Algorithm[GemmProblem]):
    """An algorithm of the matrix product."""

    modelled: ClassVar[bool] = True
    synchronises: ClassVar[bool] = True
    """Whether its kernels have barriers, in loops."""
    takes_integers: ClassVar[bool] = False

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need a type that algorithm and device support, and barriers where items share tiles."""
        reason = self.lacks_type(problem, device)
        return reason or (lacks_barriers(device) if self.synchronises else None)

    def pays(self, problem: GemmProblem, device: Device) -> bool:
        """Return whether an algorithm for units that few devices have is faster than all others."""
        return False

    def lacks_type(self, problem: GemmProblem, device: Device) -> str | None:
        """Return why the numbers cannot be multiplied, or None if they can."""
        if problem.is_integer and not self.takes_integers:
            return "it multiplies no integers"
        return lacks_type(device, problem.dtype)


def is_empty(problem: GemmProblem) -> bool:
    """Return whether the result has no elements, so that nothing is launched."""
    return 0 in problem.shape


def buffers(problem: GemmProblem) -> tuple[Buffer, ...]:
    """Return the arrays of a problem as buffers."""
    found = [
        Buffer("a", "in", problem.shape_a, problem.dtype),
        Buffer("b", "in", problem.shape_b, problem.dtype),
        Buffer("result", "out", problem.shape, problem.dtype),
    ]
    if problem.beta:
        found.append(Buffer("c", "in", problem.shape, problem.dtype))
    if problem.bias:
        size = problem.m if problem.bias == "row" else problem.n
        found.append(Buffer("bias", "in", (size,), problem.dtype))
    return tuple(found)


def index_of(problem: GemmProblem) -> Any:
    """Return the NumPy type that indexes the largest of the arrays.

    A packed complex matrix has four real numbers per element.
    """
    largest = max(map(math.prod, (problem.shape_a, problem.shape_b, problem.shape)))
    return index_type(largest * (4 if problem.is_complex else 1))


def vector_width(problem: GemmProblem, device: Device) -> int:
    """Return how many elements the device's preferred vectors have."""
    nbytes = device.native_vector_bytes if device.kind == "cpu" else VECTOR_BYTES
    return int(min(max(1, nbytes // problem.sum_type.itemsize), 16 // problem.components))


def builtin_width(problem: GemmProblem, device: Device) -> int:
    """Return how many real numbers a built-in function may load or store at once."""
    return largest_power(device.capabilities.vector_bytes // problem.real_type.itemsize)


@dataclass(frozen=True)
class Factor:
    """What templates know of A, or of B: how it is stored, and how it counts."""

    transposed: bool  # A is stored as k rows of m, B as n rows of k
    conjugated: bool  # it counts by its complex conjugate


@dataclass(frozen=True)
class Epilogue:
    """What templates know of ``activation(alpha * sum + beta * c + bias)``."""

    c: bool  # there is a C; without one, beta is not used either
    bias: str  # ``row``, ``column``, or none
    activation: str  # ``relu``, ``gelu``, or none


def element_of(problem: GemmProblem) -> Element:
    """Return what templates know of the elements; integers are those that wrap around."""
    return Element.of(problem.sum_type if problem.is_integer else problem.dtype)


def params(problem: GemmProblem) -> dict[str, Any]:
    """Return the parameters by which all templates know a problem."""
    return {
        "ELEMENT": element_of(problem),
        "INDEX_T": c_type(index_of(problem)),
        "A": Factor(problem.trans_a, problem.conj_a),
        "B": Factor(problem.trans_b, problem.conj_b),
        "EPILOGUE": Epilogue(bool(problem.beta), problem.bias, problem.activation),
        "STACKS": len(problem.dimensions),
    }


def arguments(problem: GemmProblem) -> dict[str, Argument]:
    """Return the arguments that ``arguments`` of ``gemm/product.mako`` declares, in its order."""
    index = index_of(problem)
    return {
        **named("a", "b", *["c"] * bool(problem.beta), *["bias"] * bool(problem.bias), "result"),
        "m": index(problem.m),
        "n": index(problem.n),
        "k": index(problem.depth),
        # An infinite alpha times an empty sum must not become NaN.
        "alpha": _scalar(problem, problem.alpha if problem.depth else 0),
        "beta": _scalar(problem, problem.beta),
        **_steps(problem, index),
    }


def _scalar(problem: GemmProblem, value: complex) -> np.generic:
    if problem.is_integer:
        size = problem.dtype.itemsize
        wrapped = int(value.real) % (1 << 8 * size)
        scalars: np.ndarray[Any, Any] = np.array([wrapped], f"u{size}").view(problem.sum_type)
        return scalars[0]  # type: ignore[no-any-return]
    with np.errstate(over="ignore", under="ignore"):
        scalar: np.generic = problem.sum_type.type(value)
    return scalar


def _steps(problem: GemmProblem, index: Any) -> dict[str, Argument]:
    """Return, for each dimension of the stack, its length and the strides of a and b."""
    step_a, step_b = problem.m * problem.k, problem.k * problem.n
    found: list[tuple[int, int, int]] = []
    for count, moves_a, moves_b in reversed(problem.dimensions):
        found.append((count, step_a * moves_a, step_b * moves_b))
        step_a *= count if moves_a else 1
        step_b *= count if moves_b else 1
    return {
        name: value
        for d, (count, of_a, of_b) in enumerate(reversed(found))
        for name, value in (
            (f"count_{d}", np.uint32(count)),
            (f"a_step_{d}", index(of_a)),
            (f"b_step_{d}", index(of_b)),
        )
    }
