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
        """Return the strides of one side of a transform by the names of the kernel's parameters."""
        return {f"{side}_{axis}": stride for axis, stride in self._asdict().items()}


@dataclass(frozen=True)
class BatchedLayout:
    """Length, counts and strides of many transforms: FFTW's iodims, cuFFT's advanced data layout.

    Element (o, p, c) of a side lies at ``o * outer + p * position + c * lane``, by its strides.
    Here p < `n` is the position in a transform, and o < `outer` and c < `lanes` number the
    transforms: c those that may be neighbours in memory, such as the columns of a matrix, and o the
    others. Rows that follow each other are lanes, too, a row apart: then `outer` is 1. (These are
    not the lanes of a vector, though a vector over the batch holds some of them.)
    """

    n: int  # points of a transform
    # The number of transforms is the product of these.
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
        """Return transforms of `count` contiguous rows, of `lengths` in and out if not `n`."""
        read, written = (Strides(length * count, 1, length) for length in lengths or (n, n))
        return cls(n, 1, count, source, target, read, written)

    @property
    def count(self) -> int:
        """Number of transforms."""
        return self.outer * self.lanes

    @property
    def extent(self) -> int:
        """Elements of the larger side, gaps between rows included."""
        return self.outer * max(self.source_strides.outer, self.target_strides.outer)

    @property
    def reads_rows(self) -> bool:
        """Whether neighbouring positions are neighbours in the source."""
        return self.source_strides.position == 1

    @property
    def writes_rows(self) -> bool:
        """Whether neighbouring positions are neighbours in the target."""
        return self.target_strides.position == 1
