"""Where a batch of transforms reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Strides(NamedTuple):
    """Elements between neighbours along each axis of a batch of transforms."""

    outer: int
    position: int
    lane: int

    def named(self, side: str) -> dict[str, int]:
        """Return them by the names of a kernel's parameters, for one side of a transform."""
        return {f"{side}_{axis}": stride for axis, stride in self._asdict().items()}


@dataclass(frozen=True)
class BatchedLayout:
    """Length, counts and strides of many transforms: FFTW's iodims, cuFFT's advanced data layout.

    Element (o, p, c) of a side lies at ``o * outer + p * position + c * lane`` of its strides,
    where p < `n` is the position in a transform, and o < `outer` and c < `lanes` number the
    transforms: c those that may be neighbours in memory, such as the columns of a matrix, o the
    others. (The lanes of a vector are another thing: a vector over the batch holds some of these.)
    """

    n: int  # points of a transform
    # How many transforms there are: their product.
    outer: int
    lanes: int
    # Names of the buffers that are read and written.
    source: str
    target: str
    # In complex numbers, or in the elements of the buffer where one side is real.
    source_strides: Strides
    target_strides: Strides

    @classmethod
    def columns(cls, n: int, outer: int, inner: int, source: str, target: str) -> BatchedLayout:
        """Return transforms along the middle axis of outer x n x inner arrays."""
        strides = Strides(n * inner, inner, 1)
        return cls(n, outer, inner, source, target, strides, strides)

    @classmethod
    def rows(
        cls, n: int, count: int, source: str, target: str, lengths: tuple[int, int] | None = None
    ) -> BatchedLayout:
        """Return transforms of `count` contiguous rows; `lengths` if theirs differ from `n`."""
        read, written = (Strides(length * count, 1, length) for length in lengths or (n, n))
        return cls(n, 1, count, source, target, read, written)

    @property
    def count(self) -> int:
        """How many transforms there are."""
        return self.outer * self.lanes

    @property
    def reads_rows(self) -> bool:
        """Whether neighbouring positions are neighbours in the source."""
        return self.source_strides.position == 1

    @property
    def writes_rows(self) -> bool:
        """Whether neighbouring positions are neighbours in the target."""
        return self.target_strides.position == 1
