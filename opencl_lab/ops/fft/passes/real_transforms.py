"""Transforms of real signals to their first n // 2 + 1 frequencies, and back: r2c and c2r.

A planner may do them in one launch (`Planner.real`). Else they are complex transforms with a launch
before or after:

* Even n: two neighbours are packed as one complex number. The spectrum is computed from the
  transform of these n / 2 numbers, or the reverse (``r2c_packed`` and ``c2r_packed`` in
  ``real.cl.mako``).
* Odd n: two rows are the real and imaginary components of one complex row of n numbers. Each is
  scaled first, so that the rounding errors of a large row do not swamp a small one.

Source: J. W. Cooley, P. A. W. Lewis, P. D. Welch, "The fast Fourier transform algorithm:
programming considerations in the calculation of sine, cosine and Laplace transforms", 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.planner import How, Planner
from opencl_lab.ops.fft.passes.rows import Arguments, over_rows, scales_of, widened
from opencl_lab.ops.fft.passes.twiddles import strided_twiddles

REAL = "fourier/real.cl.mako"


@dataclass(frozen=True)
class RealRows:
    """Transforms of `batch` rows of `n` real numbers, in launches around complex ones."""

    planner: Planner
    builder: PlanBuilder
    n: int
    batch: int

    def r2c(self, source: str, target: str, scale: float) -> None:
        """Add the transforms to the first n // 2 + 1 frequencies, of float16 by way of float32."""
        source = widened(self.builder, self.planner.device, source)
        (self._paired_r2c if self.n % 2 else self._packed_r2c)(source, target, scale)

    def c2r(self, source: str, target: str, scale: float) -> None:
        """Add the inverse transforms. The imaginary component of frequency 0 is taken as 0."""
        (self._paired_c2r if self.n % 2 else self._packed_c2r)(source, target, scale)

    def _packed_r2c(self, source: str, target: str, scale: float) -> None:
        """Transform neighbours packed as complex numbers; then compute the spectrum."""
        h, batch, builder = self.n // 2, self.batch, self.builder
        layout = BatchedLayout.rows(h, batch, source, target, (h, h + 1))
        if self.planner.real(builder, layout, "r2c-packed", scale):
            return
        half = builder.scratch("half_rows", h * batch)
        packed = BatchedLayout.rows(h, batch, source, half)
        any_length(self.planner, builder, packed, How(scale=scale, halved=True))
        self._halves("r2c_packed", {"half_rows": half, "spectrum": target})

    def _packed_c2r(self, source: str, target: str, scale: float) -> None:
        """Compute half the spectrum of the packed numbers; then transform it back."""
        h, batch, builder, scale = self.n // 2, self.batch, self.builder, 2 * scale
        layout = BatchedLayout.rows(h, batch, source, target, (h + 1, h))
        if self.planner.real(builder, layout, "c2r-packed", scale):
            return
        half = builder.scratch("half_rows", h * batch)
        self._halves("c2r_packed", {"spectrum": source, "half_rows": half})
        packed = BatchedLayout.rows(h, batch, half, target)
        any_length(self.planner, builder, packed, How(True, scale))

    def _halves(self, kernel: str, buffers: Arguments) -> None:
        """Add a launch with an item for each pair of opposite frequencies, k and h - k."""
        h, builder, dtype = self.n // 2, self.builder, self.builder.dtype
        points = h // 2 + 1
        twiddles = builder.table(
            "twiddles", points, dtype, strided_twiddles, points, 1, self.n, dtype
        )
        arguments: Arguments = {**buffers, "twiddles": twiddles, "h": h}
        over = builder, self.planner.device, (REAL, kernel), points, self.batch
        over_rows(*over, arguments, ALONE=True)

    def _paired_r2c(self, source: str, target: str, scale: float) -> None:
        """Transform rows in pairs; then separate their spectra."""
        n, batch, builder = self.n, self.batch, self.builder
        layout = BatchedLayout.rows(n, batch, source, target, (n, self.bins))
        if self.planner.real(builder, layout, "r2c-full", scale):
            return
        rows, other = self._two_rows()
        scales = self._scales(source, n, 1)
        self._pairs("pair_pack", n, {"signal": source, "rows": rows}, scales)
        self._complex(rows, other, False, scale)
        self._pairs("pair_split", self.bins, {"rows": other, "spectrum": target}, scales)

    def _paired_c2r(self, source: str, target: str, scale: float) -> None:
        """Combine spectra in pairs; then transform them back."""
        n, batch, builder = self.n, self.batch, self.builder
        layout = BatchedLayout.rows(n, batch, source, target, (self.bins, n))
        if self.planner.real(builder, layout, "c2r-full", scale):
            return
        rows, other = self._two_rows()
        # The imaginary component of frequency 0 is taken as 0.
        scales = self._scales(source, n + 1, 2)
        self._pairs("pair_join", self.bins, {"spectrum": source, "rows": rows}, scales)
        self._complex(rows, other, True, scale)
        self._pairs("pair_unpack", n, {"rows": other, "signal": target}, scales)

    @property
    def bins(self) -> int:
        """Frequencies of a row."""
        return self.n // 2 + 1

    @property
    def pairs(self) -> int:
        """Number of complex rows; the last one may have a single real row."""
        return ceil_divide(self.batch, 2)

    def _two_rows(self) -> tuple[str, str]:
        size = self.n * self.pairs
        return self.builder.scratch("rows", size), self.builder.scratch("rows", size)

    def _scales(self, source: str, count: int, first: int) -> Arguments:
        """Return the argument with the scales of rows that share a transform, if any do."""
        if self.batch == 1:
            return {}
        scales = scales_of(self.builder, self.planner, source, count, first, self.batch)
        return {"scales": scales}

    def _complex(self, rows: str, other: str, inverse: bool, scale: float) -> None:
        layout = BatchedLayout.rows(self.n, self.pairs, rows, other)
        any_length(self.planner, self.builder, layout, How(inverse, scale))

    def _pairs(self, kernel: str, points: int, buffers: Arguments, scales: Arguments) -> None:
        """Add a launch with an item for each point of each pair of rows."""
        arguments = {**buffers, **scales, "n": self.n, "count": self.batch}
        over = self.builder, self.planner.device, (REAL, kernel), points, self.pairs
        over_rows(*over, arguments, ALONE=self.batch == 1)
