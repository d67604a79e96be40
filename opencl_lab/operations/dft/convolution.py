"""Convolution by transforms."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from opencl_lab.discovery import DeviceSpec
from opencl_lab.errors import InvalidProblem
from opencl_lab.fourier.builder import real_dtype
from opencl_lab.fourier.factors import next_smooth
from opencl_lab.fourier.rows import pointwise_product
from opencl_lab.operations.dft.problem import complex_dtype
from opencl_lab.operations.dft.transform import (
    complex_axis,
    converted,
    finish,
    from_real,
    prepared,
    to_real,
)
from opencl_lab.runtime.arrays import AnyArray, contiguous, copied, is_device_array
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of
from opencl_lab.wording import counted

__all__ = ["Mode", "convolve"]

Mode: TypeAlias = Literal["full", "same", "valid"]
MODES = get_args(Mode)


def convolve(
    a: Any, b: Any, mode: str, out: AnyArray | None, queue: Any, device: DeviceSpec
) -> AnyArray:
    """Convolve `a` with `b`; see `opencl_lab.fft.convolve`."""
    if mode not in MODES:
        raise InvalidProblem(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    first, queue = prepared(a, queue, device)
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
    full = [n + m - 1 for n, m in zip(first.shape, second.shape, strict=True)]
    part = _part(full, first.shape, second.shape, mode)
    dtype = _common_type(first, second)
    first, second = converted(first, dtype), converted(second, dtype)
    lengths = [next_smooth(n) for n in full]
    if dtype.kind == "c":
        first, second = (_complex_axes(x, lengths, False, queue) for x in (first, second))
        result = _complex_axes(_product(first, second, queue), lengths, True, queue)
    else:
        first, second = (_real_forward(x, lengths, queue) for x in (first, second))
        result = _complex_axes(_product(first, second, queue), lengths[:-1], True, queue)
        result = to_real(result, lengths[-1], -1, None, queue)
    chosen = result[part]
    if out is not None:
        return finish(chosen, out, queue)
    if is_device_array(chosen) and chosen.size < result.size:
        return copied(chosen, queue)  # also where a view would do: it would keep all of the memory
    return contiguous(chosen, queue)


def _common_type(first: AnyArray, second: AnyArray) -> np.dtype[Any]:
    """Return the type in which two arrays are transformed."""
    dtype = np.result_type(first.dtype, second.dtype)
    if dtype.kind == "c":
        return complex_dtype(dtype)
    # Transforms read float16 as it is, but nothing is converted to it.
    return dtype if first.dtype == second.dtype == np.float16 else real_dtype(complex_dtype(dtype))


def _product(first: AnyArray, second: AnyArray, queue: Any) -> AnyArray:
    if not is_device_array(first):
        with np.errstate(all="ignore"):  # infinities are the user's, and come out as NaN
            return first * second
    session = session_of(queue)
    executable = session.executable(
        ("product", first.size, first.dtype),
        lambda: pointwise_product(first.size, first.dtype, session.device),
    )
    inputs = {"first": first, "second": second}
    return execute(executable, inputs, queue).outputs["product"].reshape(first.shape)


def _complex_axes(x: AnyArray, lengths: list[int], inverse: bool, queue: Any) -> AnyArray:
    for axis, length in enumerate(lengths):
        x = complex_axis(x, length, axis, None, inverse, queue)
    return x


def _real_forward(x: AnyArray, lengths: list[int], queue: Any) -> AnyArray:
    return _complex_axes(from_real(x, lengths[-1], -1, None, queue), lengths[:-1], False, queue)


def _part(
    full: list[int], first: tuple[int, ...], second: tuple[int, ...], mode: str
) -> tuple[slice, ...]:
    """Return the part of the periodic result that `mode` asks for."""
    starts, sizes = [0] * len(full), list(full)
    if mode == "same":
        starts, sizes = [(f - n) // 2 for f, n in zip(full, first, strict=True)], list(first)
    elif mode == "valid":
        starts = [m - 1 for m in second]
        sizes = [n - m + 1 for n, m in zip(first, second, strict=True)]
    return tuple(slice(start, start + n) for start, n in zip(starts, sizes, strict=True))
