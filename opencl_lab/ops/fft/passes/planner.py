"""The interface of the planners of both forms, which the rest of the package uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.space import Config
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.factors import is_smooth
from opencl_lab.ops.fft.passes.layout import BatchedLayout

LARGE_PROBLEM = 1 << 14
"""Points of all transforms from which on large primes are radices."""

RealForm: TypeAlias = Literal["r2c-packed", "c2r-packed", "r2c-full", "c2r-full"]
"""Which side of a transform is real, and how it is done: by two neighbours *packed* as one complex
number, in a transform of half the length, or in one of *full* length."""


class How(NamedTuple):
    """Direction and scaling of transforms.

    Packed real signals are halved, as their transform may overflow where their spectrum does not.
    """

    inverse: bool = False  # whether the exponents are positive
    scale: float = 1.0  # factor of the results
    halved: bool = False  # whether numbers are halved when they are read


FORWARD = How()


@dataclass(frozen=True)
class Planner(ABC):
    """Adds the launches of transforms to a plan, in one of the two forms."""

    config: Config  # the tuning parameters of `opencl_lab.ops.fft.passes.forms`
    device: Device

    cooperative: ClassVar[bool]
    """Whether the items of a work-group share its work, as on a GPU."""
    large_primes: ClassVar[int] = 0
    """Largest sum of a length's large prime factors that are radices; else it is convolved."""

    @classmethod
    def has_passes(cls, n: int, count: int = 1) -> bool:
        """Return whether `count` transforms of length `n` are passes, and no convolution.

        A length with large primes has a program of its own, which small problems do not pay for.
        """
        return is_smooth(n, cls.large_primes if n * count >= LARGE_PROBLEM else 0)

    @abstractmethod
    def transform(self, builder: PlanBuilder, layout: BatchedLayout, how: How = FORWARD) -> None:
        """Add complex transforms of a length that `has_passes`.

        They read and write rows (positions have stride 1) or columns (lanes have stride 1).
        """

    def real(
        self, builder: PlanBuilder, layout: BatchedLayout, form: RealForm, scale: float
    ) -> bool:
        """Add transforms from or to contiguous real rows if one launch can do them; return whether.

        Where they are packed, `layout.n` is the number of complex numbers of a row, and there is
        one frequency more on the other side; else it is the number of real numbers, and there are
        ``n // 2 + 1`` frequencies.
        """
        return False

    def planes(
        self, builder: PlanBuilder, rows: BatchedLayout, columns: BatchedLayout, how: Sequence[How]
    ) -> bool:
        """Add transforms of rows and then of columns if one launch can do both; return whether.

        `rows` has the planes as its slowest axis, and is written where `columns` are read; `how`
        is that of each.
        """
        return False

    def convolution(self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How) -> bool:
        """Add transforms of any length by convolutions of length `m`, if the planner has a way.

        Return whether it has: one or more launches in which the chirps are part of the steps. The
        convolution is that of `opencl_lab.ops.fft.passes.bluestein`.
        """
        return False
