"""Transforms of real signals to their first n // 2 + 1 frequencies, and back: r2c and c2r.

A planner may do them in one launch (`Planner.real`). Else they are complex transforms with a launch
before or after:

* Even n: two neighbours are packed as one complex number. The spectrum is computed from the
  transform of these n / 2 numbers, or the reverse (``r2c_packed`` and ``c2r_packed`` in
  ``real.cl.mako``).
* Odd n: rows become complex, with imaginary components of zero. (Two rows could be the components
  of one complex row, but each has to be scaled first and both to be separated, which took longer.)

Source: J. W. Cooley, P. A. W. Lewis, P. D. Welch, "The fast Fourier transform algorithm:
programming considerations in the calculation of sine, cosine and Laplace transforms", 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.planner import How, Planner
from opencl_lab.ops.fft.passes.rows import Arguments, over_rows, widened
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
        (self._full_r2c if self.n % 2 else self._packed_r2c)(source, target, scale)

    def c2r(self, source: str, target: str, scale: float) -> None:
        """Add the inverse transforms. The imaginary component of frequency 0 is taken as 0."""
        (self._full_c2r if self.n % 2 else self._packed_c2r)(source, target, scale)

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
        self._launch(kernel, points, arguments)

    def _full_r2c(self, source: str, target: str, scale: float) -> None:
        """Transform complex rows; then keep half of their frequencies."""
        layout = BatchedLayout.rows(self.n, self.batch, source, target, (self.n, self.bins))
        if self.planner.real(self.builder, layout, "r2c-full", scale):
            return
        rows, other = self._complex_rows()
        self._launch("complex_rows", self.n, {"signal": source, "rows": rows, "n": self.n})
        self._transform(rows, other, False, scale)
        halves: Arguments = {"rows": other, "spectrum": target, "n": self.n}
        self._launch("half_spectra", self.bins, halves)

    def _full_c2r(self, source: str, target: str, scale: float) -> None:
        """Complete spectra by their symmetry; then transform them back."""
        layout = BatchedLayout.rows(self.n, self.batch, source, target, (self.bins, self.n))
        if self.planner.real(self.builder, layout, "c2r-full", scale):
            return
        rows, other = self._complex_rows()
        whole_spectra(self.builder, self.planner.device, self.n, self.batch, (source, rows))
        self._transform(rows, other, True, scale)
        self._launch("real_rows", self.n, {"rows": other, "signal": target, "n": self.n})

    @property
    def bins(self) -> int:
        """Frequencies of a row."""
        return self.n // 2 + 1

    def _complex_rows(self) -> tuple[str, str]:
        size = self.n * self.batch
        return self.builder.scratch("rows", size), self.builder.scratch("rows", size)

    def _transform(self, rows: str, other: str, inverse: bool, scale: float) -> None:
        layout = BatchedLayout.rows(self.n, self.batch, rows, other)
        any_length(self.planner, self.builder, layout, How(inverse, scale))

    def _launch(self, kernel: str, points: int, arguments: Arguments) -> None:
        """Add a launch with an item for each of so many points of each row."""
        device = self.planner.device
        over_rows(self.builder, device, (REAL, kernel), points, self.batch, arguments)


def whole_spectra(
    builder: PlanBuilder, device: Device, n: int, rows: int, ends: tuple[str, str], sign: int = 1
) -> None:
    """Add a launch that makes all n frequencies of halves, or with `sign` -1 their conjugates."""
    arguments: Arguments = {
        "spectrum": ends[0], "rows": ends[1], "n": n, "sign": builder.real.type(sign),
    }  # fmt: skip
    over_rows(builder, device, (REAL, "whole_spectra"), n // 2 + 1, rows, arguments)


def mirrored(n: int, rows: int, dtype: np.dtype[Any], conjugate: bool, device: Device) -> Plan:
    """Return the plan that makes the ``whole`` spectra of real signals, or their conjugates.

    ``half_rows`` holds the first n // 2 + 1 frequencies of each row.
    """
    builder = PlanBuilder(dtype)
    ends = (
        builder.add("half_rows", "in", (rows, n // 2 + 1)),
        builder.add("whole", "out", (rows, n)),
    )
    whole_spectra(builder, device, n, rows, ends, -1 if conjugate else 1)
    return builder.finish()
