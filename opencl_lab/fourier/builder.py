"""A plan under construction: buffers, tables and launches, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opencl_lab.kernels import index_type
from opencl_lab.operations.dft.problem import COMPLEX_TYPES, DftProblem
from opencl_lab.plan import Buffer, Launch, Plan, Table

__all__ = ["Ends", "Steps"]


@dataclass(frozen=True)
class Ends:
    """Where some transforms of one length read and write.

    Element (o, p, c) of a side lies at ``o * outer + p * position + c * lane``, where
    p is the position in a transform; o and c number the transforms. If `halved`, numbers are
    halved as they are read, since the transform of a packed real signal may be larger than the
    spectrum that is made of it.
    """

    n: int
    outer: int
    lanes: int
    source: str
    target: str
    source_strides: tuple[int, int, int]
    target_strides: tuple[int, int, int]
    halved: bool = False

    @classmethod
    def columns(cls, n: int, outer: int, inner: int, source: str, target: str) -> Ends:
        """Return transforms along the middle axis of outer x n x inner arrays."""
        strides = (n * inner, inner, 1)
        return cls(n, outer, inner, source, target, strides, strides)

    @classmethod
    def rows(cls, n: int, count: int, source: str, target: str, halved: bool = False) -> Ends:
        """Return transforms of `count` contiguous rows."""
        strides = (n * count, 1, n)
        return cls(n, 1, count, source, target, strides, strides, halved)

    @property
    def count(self) -> int:
        """How many transforms there are."""
        return self.outer * self.lanes


@dataclass
class Steps:
    """Buffers and launches of a plan that grows."""

    dtype: np.dtype[Any]
    real: np.dtype[Any]
    buffers: list[Buffer] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)

    @classmethod
    def of(cls, problem: DftProblem) -> Steps:
        """Return the start of a plan: the input and the output."""
        steps = cls(problem.dtype, problem.real)
        steps.buffers.append(Buffer("signal", "in", *problem.signal))
        steps.buffers.append(Buffer("spectrum", "out", *problem.spectrum))
        return steps

    @property
    def real_t(self) -> str:
        """OpenCL C type of a real number."""
        return COMPLEX_TYPES[self.dtype.name]

    def scratch(self, name: str, elements: int, dtype: np.dtype[Any] | None = None) -> str:
        """Add scratch memory, of complex numbers unless told otherwise; return its name."""
        unique = f"{name}_{len(self.buffers)}"
        self.buffers.append(Buffer(unique, "scratch", (elements,), dtype or self.dtype))
        return unique

    def zeros(self, name: str, elements: int) -> str:
        """Add words that are zero at each launch, which leaves them so; return their name."""
        unique = f"{name}_{len(self.buffers)}"
        self.buffers.append(Buffer(unique, "zeros", (elements,), np.dtype(np.uint32)))
        return unique

    def table(
        self,
        name: str,
        elements: int,
        dtype: np.dtype[Any],
        function: Callable[..., np.ndarray[Any, Any]],
        *arguments: Hashable,
    ) -> str:
        """Add a table of the host; return its name."""
        table = Table(function, arguments)
        for known in self.buffers:
            if known.table == table:
                return known.name
        unique = f"{name}_{len(self.buffers)}"
        self.buffers.append(Buffer(unique, "table", (elements,), dtype, table))
        return unique

    def loose(self, name: str) -> bool:
        """Return whether a buffer of real numbers serves as one of complex numbers.

        A user's array of reals is aligned to one of them and not to two.
        """
        return any(b.name == name and b.dtype.kind != "c" for b in self.buffers)

    def index(self, *elements: int) -> Any:
        """Return the type that counts so many elements."""
        return index_type(max(elements))

    def finish(self) -> Plan:
        """Return the plan."""
        return Plan(tuple(self.buffers), tuple(self.launches))
