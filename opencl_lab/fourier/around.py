"""Steps around complex transforms of smooth lengths: real signals, and every other length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.device import Device
from opencl_lab.fourier.builder import Ends, Steps
from opencl_lab.fourier.factors import convolution_length, is_smooth
from opencl_lab.fourier.twiddles import chirp, chirp_kernel, stepped_roots
from opencl_lab.operations.dft.problem import DftProblem, real_dtype
from opencl_lab.plan import Argument, Buffer, Launch, Plan, round_up
from opencl_lab.runtime.copies import WIDEN, widening

__all__ = [
    "BLUESTEIN",
    "REAL",
    "ROWS",
    "SCALES",
    "WIDEN",
    "Transform",
    "any_length",
    "columns_as_rows",
    "mirror",
    "over_rows",
    "product",
    "real_signal",
    "real_spectrum",
    "widened",
]

BLUESTEIN = "fourier/bluestein.cl.mako"
MIRROR = "fourier/mirror.cl.mako"
PRODUCT = "fourier/pointwise.cl.mako"
REAL = "fourier/real.cl.mako"
ROWS = "fourier/rows.cl.mako"
SCALES = "fourier/scales.cl.mako"
WG_SIZES = (256, 128, 64)
"""Items of a group: fewer where more would leave a fifth of them without a point."""
VECTOR_BYTES = 32
GROUPS_PER_UNIT = 8
LEAST_PART = 4096
"""Numbers of a row that are worth a group of their own."""

Arguments: TypeAlias = Mapping[str, Argument | int]
Transform: TypeAlias = Callable[[Steps, Ends, bool, float], None]
"""Adds the launches of complex transforms: steps, where from and to, inverse, scale."""


def over_rows(
    steps: Steps,
    device: Device,
    template: str,
    kernel: str,
    points: int,
    rows: int,
    arguments: Arguments,
    wg_size: int | None = None,
    local_bytes: int = 0,
    **params: int | str,
) -> None:
    """Add a launch with an item for each point of each row; plain numbers become indices."""
    index = steps.index(*(b.nbytes // b.dtype.itemsize for b in steps.buffers))
    wg_size = _fit(wg_size or _wg_size(points), device)
    steps.launches.append(
        Launch(
            template=template,
            kernel=kernel,
            params={
                "REAL_T": steps.real_t,
                "INDEX_T": "uint" if index is np.uint32 else "ulong",
                "WG_SIZE": wg_size,
                **params,
            },
            # All in the first dimension: others are short on some devices.
            global_size=(round_up(points, wg_size) * rows,),
            local_size=(wg_size,),
            arguments={
                name: index(value) if isinstance(value, int) else value
                for name, value in arguments.items()
            },
            local_bytes=local_bytes,
        )
    )


def _wg_size(points: int) -> int:
    """Return the items of a group: many, as devices begin about one group a clock."""
    return next(
        (size for size in WG_SIZES if 5 * points >= 4 * round_up(points, size)), WG_SIZES[-1]
    )


def _fit(wg_size: int, device: Device) -> int:
    return min(wg_size, device.capabilities.max_work_group, device.max_work_items[0])


Whole: TypeAlias = Callable[[Steps, Ends, bool, bool, float], bool]
"""Adds transforms of real rows, or to them, or returns False: it cannot. The first flag says that
neighbours of even rows are the parts of a complex number, and the second that it is the inverse."""
Convolution: TypeAlias = Callable[[Steps, Ends, int, bool, float], bool]
"""Adds transforms as convolutions of the length given, or returns False: it cannot."""


def any_length(transform: Transform, convolution: Convolution | None, device: Device) -> Transform:
    """Return `transform`, which takes smooth lengths, made to take every length.

    `convolution` is preferred for the others where there is one and it can.
    """

    def complete(steps: Steps, ends: Ends, inverse: bool, scale: float) -> None:
        if is_smooth(ends.n):
            transform(steps, ends, inverse, scale)
            return
        m = convolution_length(ends.n)
        if convolution is None or not convolution(steps, ends, m, inverse, scale):
            _bluestein(steps, ends, m, inverse, scale, transform, device)

    return complete


def columns_as_rows(
    steps: Steps, ends: Ends, inverse: bool, scale: float, transform: Transform, device: Device
) -> None:
    """Add transforms of contiguous columns by way of rows in scratch memory."""
    size = ends.n * ends.count
    rows, other = steps.scratch("rows", size), steps.scratch("rows", size)
    sizes = {"n": ends.n, "lanes": ends.lanes}
    arguments: Arguments = {"source": ends.source, "rows": rows, **sizes}
    over_rows(steps, device, ROWS, "rows_in", ends.n, ends.count, arguments)
    transform(steps, Ends.rows(ends.n, ends.count, rows, other, ends.halved), inverse, scale)
    arguments = {"rows": other, "target": ends.target, **sizes}
    over_rows(steps, device, ROWS, "rows_out", ends.n, ends.count, arguments)


def _bluestein(
    steps: Steps,
    ends: Ends,
    m: int,
    inverse: bool,
    scale: float,
    transform: Transform,
    device: Device,
) -> None:
    n, count = ends.n, ends.count
    rows, other = steps.scratch("rows", m * count), steps.scratch("rows", m * count)
    wave = steps.table("chirp", n, steps.dtype, chirp, n, inverse, steps.dtype)
    kernel = steps.table("chirp_kernel", m, steps.dtype, chirp_kernel, n, m, inverse, steps.dtype)

    def strides(of: tuple[int, int, int]) -> dict[str, int]:
        return dict(zip(("outer", "position", "lane"), of, strict=True))

    over_rows(
        steps, device, BLUESTEIN, "chirp_in", m, count,
        {
            "source": ends.source, "rows": rows, "chirp": wave, "n": n, "m": m,
            "lanes": ends.lanes, **strides(ends.source_strides),
        },
    )  # fmt: skip
    transform(steps, Ends.rows(m, count, rows, other, ends.halved), False, 1.0)
    over_rows(
        steps, device, BLUESTEIN, "chirp_multiply", m, count,
        {"rows": other, "kernel_roots": kernel, "m": m},
    )  # fmt: skip
    # Back, as real and imaginary parts are exchanged on the way: the program is the same.
    transform(steps, Ends.rows(m, count, other, rows), False, 1.0)
    over_rows(
        steps, device, BLUESTEIN, "chirp_out", n, count,
        {
            "rows": rows, "target": ends.target, "chirp": wave, "n": n, "m": m,
            "lanes": ends.lanes, **strides(ends.target_strides), "scale": steps.real.type(scale),
        },
    )  # fmt: skip


def _widen(source: str, target: str, count: int, device: Device) -> Launch:
    """Return the launch that converts float16 to float32."""
    return widening(source, target, count, _fit(_wg_size(count), device))


def mirror(n: int, rows: int, dtype: np.dtype[Any], conjugate: bool, device: Device) -> Plan:
    """Return the plan that makes whole spectra of the halves of real signals' ones.

    Parameters
    ----------
    n, rows : int
        The first n // 2 + 1 frequencies of each row are ``half_rows``; all n are ``whole``.
    dtype : numpy.dtype
        complex64 or complex128.
    conjugate : bool
        Whether to take the complex conjugate of everything.
    device : Device
    """
    steps = Steps(dtype, real_dtype(dtype))
    steps.buffers.append(Buffer("half_rows", "in", (rows, n // 2 + 1), dtype))
    steps.buffers.append(Buffer("whole", "out", (rows, n), dtype))
    arguments: Arguments = {"half_rows": "half_rows", "whole": "whole", "n": n}
    over_rows(steps, device, MIRROR, "mirror", n, rows, arguments, CONJUGATE=conjugate)
    return steps.finish()


def product(count: int, dtype: np.dtype[Any], device: Device) -> Plan:
    """Return the plan that multiplies ``first`` by ``second``, each of `count` complex numbers."""
    steps = Steps(dtype, real_dtype(dtype))
    steps.buffers.append(Buffer("first", "in", (count,), dtype))
    steps.buffers.append(Buffer("second", "in", (count,), dtype))
    steps.buffers.append(Buffer("product", "out", (count,), dtype))
    arguments: Arguments = {name: name for name in ("first", "second", "product")}
    over_rows(steps, device, PRODUCT, "multiply", count, 1, {**arguments, "count": count})
    return steps.finish()


def widened(steps: Steps, problem: DftProblem, device: Device, source: str = "signal") -> str:
    """Return the name of a problem's signal, which is converted first if it is float16."""
    if not problem.half:
        return source
    count = problem.n * problem.batch
    wide = steps.scratch("wide", count, steps.real)
    if count:
        steps.launches.append(_widen(source, wide, count, device))
    return wide


def real_signal(
    steps: Steps,
    problem: DftProblem,
    source: str,
    target: str,
    transform: Transform,
    whole: Whole | None,
    device: Device,
) -> None:
    """Add the transform of real rows to their first n // 2 + 1 frequencies.

    `source` and `target` are names of buffers. `whole` is preferred where it can. There is one
    where the items of a group may work together.
    """
    n, batch, scale = problem.n, problem.batch, problem.scale
    signal = widened(steps, problem, device, source)
    arguments: Arguments
    if n % 2 == 0:
        h = n // 2
        pairs_of, bins_of = (h * batch, 1, h), ((h + 1) * batch, 1, h + 1)
        ends = Ends(h, 1, batch, signal, target, pairs_of, bins_of, halved=True)
        if whole is not None and whole(steps, ends, True, False, scale):
            return
        half = steps.scratch("half_rows", h * batch)
        transform(steps, Ends.rows(h, batch, signal, half, halved=True), False, scale)
        roots = steps.table(
            "roots", h // 2 + 1, steps.dtype, stepped_roots, h // 2 + 1, 1, n, steps.dtype
        )
        arguments = {"half_rows": half, "spectrum": target, "roots": roots, "h": h}
        over_rows(steps, device, REAL, "real_split", h // 2 + 1, batch, arguments, ALONE=True)
        return
    samples_of, bins_of = (n * batch, 1, n), ((n // 2 + 1) * batch, 1, n // 2 + 1)
    ends = Ends(n, 1, batch, signal, target, samples_of, bins_of)
    if whole is not None and whole(steps, ends, False, False, scale):
        return
    pairs = -(-batch // 2)
    rows, other = steps.scratch("rows", n * pairs), steps.scratch("rows", n * pairs)
    shared = _scales(steps, device, signal, n, 1, batch, whole is not None)
    sizes: Arguments = {**shared, "n": n, "count": batch}
    alone = batch == 1
    arguments = {"signal": signal, "rows": rows, **sizes}
    over_rows(steps, device, REAL, "pair_pack", n, pairs, arguments, ALONE=alone)
    transform(steps, Ends.rows(n, pairs, rows, other), False, scale)
    arguments = {"rows": other, "spectrum": target, **sizes}
    over_rows(steps, device, REAL, "pair_split", n // 2 + 1, pairs, arguments, ALONE=alone)


def _scales(
    steps: Steps, device: Device, source: str, count: int, first: int, batch: int, grouped: bool
) -> dict[str, str]:
    """Add the scales of rows of `count` reals that share transforms; return them as an argument.

    Number 0 of a row counts, and those from `first` on.
    """
    if batch == 1:
        return {}
    word = steps.real.itemsize
    # No more items than numbers, but for few of them.
    wg_size = _fit(1 << min(8, max(5, count.bit_length() - 1)), device) if grouped else 1

    def weigh(source: str, target: str, count: int, parts: int, first: int) -> None:
        over_rows(
            steps, device, SCALES, "weigh", wg_size * parts, batch,
            {
                "numbers": source, "results": target, "count": count, "parts": parts,
                "from": first,
            },
            wg_size=wg_size,
            local_bytes=wg_size * word if wg_size > 1 else 0,
            VECTOR_WIDTH=1 if wg_size > 1 else VECTOR_BYTES // word,
        )  # fmt: skip

    groups = GROUPS_PER_UNIT * device.compute_units
    parts = max(1, min(-(-groups // batch), count // LEAST_PART))
    if parts > 1:
        largest = steps.scratch("largest", batch * parts, steps.real)
        weigh(source, largest, count, parts, first)
        source, count, first = largest, parts, 1
    scales = steps.scratch("scales", batch, steps.real)
    weigh(source, scales, count, 1, first)
    return {"scales": scales}


def real_spectrum(
    steps: Steps,
    problem: DftProblem,
    source: str,
    target: str,
    transform: Transform,
    whole: Whole | None,
    device: Device,
) -> None:
    """Add the transform of the first n // 2 + 1 frequencies of real rows to these rows.

    The other parameters are those of `real_signal`.
    """
    n, batch, scale = problem.n, problem.batch, problem.scale
    arguments: Arguments
    if n % 2 == 0:
        h = n // 2
        pairs_of, bins_of = (h * batch, 1, h), ((h + 1) * batch, 1, h + 1)
        ends = Ends(h, 1, batch, source, target, bins_of, pairs_of)
        if whole is not None and whole(steps, ends, True, True, scale):
            return
        half = steps.scratch("half_rows", h * batch)
        roots = steps.table(
            "roots", h // 2 + 1, steps.dtype, stepped_roots, h // 2 + 1, 1, n, steps.dtype
        )
        arguments = {"spectrum": source, "half_rows": half, "roots": roots, "h": h}
        over_rows(steps, device, REAL, "real_join", h // 2 + 1, batch, arguments, ALONE=True)
        transform(steps, Ends.rows(h, batch, half, target), True, scale)
        return
    samples_of, bins_of = (n * batch, 1, n), ((n // 2 + 1) * batch, 1, n // 2 + 1)
    ends = Ends(n, 1, batch, source, target, bins_of, samples_of)
    if whole is not None and whole(steps, ends, False, True, scale):
        return
    pairs = -(-batch // 2)
    rows, other = steps.scratch("rows", n * pairs), steps.scratch("rows", n * pairs)
    # The imaginary part of frequency 0 is taken for 0.
    shared = _scales(steps, device, source, n + 1, 2, batch, whole is not None)
    sizes: Arguments = {**shared, "n": n, "count": batch}
    alone = batch == 1
    arguments = {"spectrum": source, "rows": rows, **sizes}
    over_rows(steps, device, REAL, "pair_join", n // 2 + 1, pairs, arguments, ALONE=alone)
    transform(steps, Ends.rows(n, pairs, rows, other), True, scale)
    arguments = {"rows": other, "signal": target, **sizes}
    over_rows(steps, device, REAL, "pair_unpack", n, pairs, arguments, ALONE=alone)
