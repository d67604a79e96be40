"""Convolution by transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.errors import InvalidProblem
from opencl_lab.operations.dft.factors import next_smooth
from opencl_lab.operations.dft.transform import (
    as_complex,
    as_real,
    complex_axis,
    converted,
    from_real,
    prepared,
    to_real,
    without_warnings,
)
from opencl_lab.runtime.arrays import AnyArray, contiguous, is_device_array
from opencl_lab.words import counted

__all__ = ["convolve"]

MODES = ("full", "same", "valid")


def convolve(a: Any, b: Any, mode: str, queue: Any) -> AnyArray:
    """Convolve `a` with `b`; see `opencl_lab.fft.convolve`."""
    if mode not in MODES:
        raise InvalidProblem(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    first, queue = prepared(a, queue)
    second, queue = prepared(b, queue)
    if is_device_array(first) != is_device_array(second):
        raise InvalidProblem("both arrays must be on the host, or both on a device")
    if first.ndim != second.ndim or not first.ndim:
        raise InvalidProblem(
            f"cannot convolve {counted(first.ndim, 'dimension')} with {second.ndim}"
        )
    if not (first.size and second.size):
        raise InvalidProblem("cannot convolve empty arrays")
    if mode == "valid":
        longer = [n >= m for n, m in zip(first.shape, second.shape, strict=True)]
        if not all(longer):
            first, second = second, first
        if any(n < m for n, m in zip(first.shape, second.shape, strict=True)):
            raise InvalidProblem(
                f"for mode valid, one of {second.shape} and {first.shape} must not be longer than "
                "the other in any dimension"
            )
    dtype = np.result_type(first.dtype, second.dtype)
    first, second = converted(first, dtype), converted(second, dtype)
    full = [n + m - 1 for n, m in zip(first.shape, second.shape, strict=True)]
    lengths = [next_smooth(n) for n in full]
    if dtype.kind == "c":
        product = _product(
            _forward(as_complex(first), lengths, queue),
            _forward(as_complex(second), lengths, queue),
        )
        result = _complex_axes(product, lengths, True, queue)
    else:
        product = _product(
            _real_forward(as_real(first), lengths, queue),
            _real_forward(as_real(second), lengths, queue),
        )
        result = _complex_axes(product, lengths[:-1], True, queue)
        result = to_real(result, lengths[-1], -1, None, queue)
    return _cut(result, full, first.shape, second.shape, mode, queue)


def _product(first: AnyArray, second: AnyArray) -> AnyArray:
    with np.errstate(all="ignore"):  # infinities are the user's, and come out as NaN
        return without_warnings(lambda: first * second)


def _complex_axes(x: AnyArray, lengths: list[int], inverse: bool, queue: Any) -> AnyArray:
    for axis, length in enumerate(lengths):
        x = complex_axis(x, length, axis, None, inverse, queue)
    return x


def _forward(x: AnyArray, lengths: list[int], queue: Any) -> AnyArray:
    return _complex_axes(x, lengths, False, queue)


def _real_forward(x: AnyArray, lengths: list[int], queue: Any) -> AnyArray:
    return _complex_axes(from_real(x, lengths[-1], -1, None, queue), lengths[:-1], False, queue)


def _cut(
    result: AnyArray,
    full: list[int],
    first: tuple[int, ...],
    second: tuple[int, ...],
    mode: str,
    queue: Any,
) -> AnyArray:
    """Return the part of the periodic result that `mode` asks for."""
    starts, sizes = [0] * len(full), list(full)
    if mode == "same":
        starts, sizes = [(f - n) // 2 for f, n in zip(full, first, strict=True)], list(first)
    elif mode == "valid":
        starts = [m - 1 for m in second]
        sizes = [n - m + 1 for n, m in zip(first, second, strict=True)]
    part = tuple(slice(start, start + n) for start, n in zip(starts, sizes, strict=True))
    return contiguous(result[part], queue)
