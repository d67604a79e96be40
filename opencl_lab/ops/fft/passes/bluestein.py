"""Transforms of every length: those with large prime factors become convolutions.

With the chirp w[j] = exp(-pi i j^2 / n), j k = (j^2 + k^2 - (k - j)^2) / 2 turns the transform of
n points x into

    X[k] = w[k] * sum over j of (x[j] w[j]) * conj(w)[k - j],

a convolution, done by two transforms of a smooth length m >= 2n - 1 and a product between them.
For n = 1,009 points, a prime, m = 2,048: `convolution_length` takes the least length of factors
2, 3 and 5 that is a multiple of 64.

Source: L. I. Bluestein, "A linear filtering approach to the computation of discrete Fourier
transform", 1970.
"""

from __future__ import annotations

from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.factors import convolution_length
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.planner import FORWARD, How, Planner
from opencl_lab.ops.fft.passes.rows import Arguments, over_rows
from opencl_lab.ops.fft.passes.twiddles import chirp, chirp_spectrum

BLUESTEIN = "fourier/bluestein.cl.mako"


def any_length(
    planner: Planner, builder: PlanBuilder, layout: BatchedLayout, how: How = FORWARD
) -> None:
    """Add transforms of any length, as `Planner.transform` does those that have passes.

    A length of small prime factors is left to the planner. For any other one, the planner may have
    a convolution whose steps multiply by the chirps; else there are launches before, between and
    after two of its transforms.
    """
    if planner.has_passes(layout.n, layout.count):
        planner.transform(builder, layout, how)
        return
    m = convolution_length(layout.n)
    if not planner.convolution(builder, layout, m, how):
        _by_convolution(planner, builder, layout, m, how)


def _by_convolution(
    planner: Planner, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How
) -> None:
    """Add five launches: ``chirp_in``, transform, ``chirp_multiply``, transform, ``chirp_out``."""
    n, count, device = layout.n, layout.count, planner.device
    rows, other = builder.scratch("rows", m * count), builder.scratch("rows", m * count)
    wave = builder.table("chirp", n, builder.dtype, chirp, n, how.inverse, builder.dtype)
    spectrum = builder.table(
        "chirp_spectrum", m, builder.dtype, chirp_spectrum, n, m, how.inverse, builder.dtype
    )
    sizes: Arguments = {"chirp": wave, "n": n, "m": m, "lanes": layout.lanes}
    over_rows(
        builder, device, (BLUESTEIN, "chirp_in"), m, count,
        {"source": layout.source, "rows": rows, **sizes, **layout.source_strides._asdict()},
    )  # fmt: skip
    planner.transform(builder, BatchedLayout.rows(m, count, rows, other), How(halved=how.halved))
    over_rows(
        builder, device, (BLUESTEIN, "chirp_multiply"), m, count,
        {"rows": other, "chirp_spectrum": spectrum, "m": m},
    )  # fmt: skip
    # The same program as an inverse: ``chirp_multiply`` and ``chirp_out`` swap the components.
    planner.transform(builder, BatchedLayout.rows(m, count, other, rows))
    over_rows(
        builder, device, (BLUESTEIN, "chirp_out"), n, count,
        {
            "rows": rows, "target": layout.target, **sizes, **layout.target_strides._asdict(),
            "scale": builder.real.type(how.scale),
        },
    )  # fmt: skip
