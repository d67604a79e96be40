"""A plan under construction: buffers, tables and launches, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from opencl_lab.core.kernels import Element, index_type
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, Role, Table

StepT = TypeVar("StepT")


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the real and imaginary components of a complex type."""
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


@dataclass
class PlanBuilder:
    """Buffers and launches of a plan that grows."""

    dtype: np.dtype[Any]  # complex64 or complex128: of the transforms
    buffers: list[Buffer] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    # The steps of the last launch, if others may join it.
    joined: list[PlannedStep[Any]] = field(default_factory=list)

    @property
    def real(self) -> np.dtype[Any]:
        """Type of a real number."""
        return real_dtype(self.dtype)

    @property
    def element(self) -> Element:
        """What templates know of the complex numbers."""
        return Element.of(self.dtype)

    def buffer(self, name: str) -> Buffer:
        """Return the buffer with a name."""
        return next(buffer for buffer in self.buffers if buffer.name == name)

    def add(
        self, name: str, role: Role, shape: tuple[int, ...], dtype: np.dtype[Any] | None = None
    ) -> str:
        """Add a buffer of the user, of complex numbers by default; return its name."""
        self.buffers.append(Buffer(name, role, shape, dtype or self.dtype))
        return name

    def scratch(self, name: str, elements: int, dtype: np.dtype[Any] | None = None) -> str:
        """Add a scratch buffer, of complex numbers by default; return its name."""
        return self.add(self._unique(name), "scratch", (elements,), dtype)

    def zeros(self, name: str, elements: int) -> str:
        """Add a buffer of words that are zero before and after each launch; return its name."""
        return self.add(self._unique(name), "zeros", (elements,), np.dtype(np.uint32))

    def table(
        self,
        name: str,
        elements: int,
        dtype: np.dtype[Any],
        function: Callable[..., np.ndarray[Any, Any]],
        *arguments: Hashable,
    ) -> str:
        """Add a table made by the host, unless there is one already; return its name."""
        table = Table(function, arguments)
        for known in self.buffers:
            if known.table == table:
                return known.name
        self.buffers.append(Buffer(self._unique(name), "table", (elements,), dtype, table))
        return self.buffers[-1].name

    def _unique(self, name: str) -> str:
        return f"{name}_{len(self.buffers)}"

    def is_unaligned(self, name: str) -> bool:
        """Return whether a buffer of real numbers is used as one of complex numbers.

        A user's array of real numbers may be aligned to a real number only.
        """
        return self.buffer(name).dtype.kind != "c"

    def elements(self, name: str) -> int:
        """Return how many elements a buffer has."""
        return math.prod(self.buffer(name).shape)

    def index(self, *elements: int) -> Any:
        """Return the index type for the largest of some numbers of elements."""
        return index_type(max(elements))

    def finish(self) -> Plan:
        """Return the plan, without tables of launches that others have replaced."""
        used = {name for launch in self.launches for name in launch.arguments.values()}
        buffers = (one for one in self.buffers if one.role != "table" or one.name in used)
        return Plan(tuple(buffers), tuple(self.launches))


@dataclass(frozen=True)
class PlannedStep(Generic[StepT]):
    """One step of a launch: what its template emits, and its arguments."""

    step: StepT  # what the template emits
    tasks: int  # number of tasks of single items, or of work-groups
    index: Any  # NumPy type that counts the elements of the arrays
    arguments: dict[str, Argument]  # of the kernel by name, without the number of the step


def arguments_of(steps: Sequence[PlannedStep[Any]]) -> dict[str, Argument]:
    """Return the arguments of a launch of some steps; names end with the number of the step."""
    return {
        f"{name}_{number}": argument
        for number, step in enumerate(steps)
        for name, argument in step.arguments.items()
    }
