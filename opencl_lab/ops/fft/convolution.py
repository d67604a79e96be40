"""Convolution by transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import counted
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.passes.builder import real_dtype
from opencl_lab.ops.fft.passes.factors import next_smooth
from opencl_lab.ops.fft.passes.rows import pointwise_product
from opencl_lab.ops.fft.problem import complex_dtype
from opencl_lab.ops.fft.transform import (
    axis_of,
    complex_axis,
    converted,
    finish,
    from_real,
    prepared,
    to_real,
)
from opencl_lab.runtime.arrays import (
    AnyArray,
    broadcast,
    contiguous,
    copied,
    is_device_array,
)
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

__all__ = ["Mode", "convolve"]

Mode: TypeAlias = Literal["full", "same", "valid"]
MODES = get_args(Mode)


def convolve(
    a: Any,
    b: Any,
    mode: str,
    axes: int | Sequence[int] | None,
    out: AnyArray | None,
    queue: Any,
    device: DeviceSpec,
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
    summed = _summed(first, second, axes)
    if mode == "valid":
        if not all(first.shape[d] >= second.shape[d] for d in summed):
            first, second = second, first
        if any(first.shape[d] < second.shape[d] for d in summed):
            raise InvalidProblem(
                f"for mode valid, one of {second.shape} and {first.shape} must not be longer than "
                "the other in any dimension"
            )
    full = [
        n + m - 1 if d in summed else max(n, m)
        for d, (n, m) in enumerate(zip(first.shape, second.shape, strict=True))
    ]
    part = _part(full, first.shape, second.shape, mode, summed)
    dtype = _common_type(first, second)
    first, second = converted(first, dtype), converted(second, dtype)
    lengths = {d: next_smooth(full[d]) for d in summed}
    if not summed:  # the transforms need an axis; one of length 1 has the sum of a single product
        lengths, part = {len(full): 1}, (*part, 0)
        longer = (*(slice(None) for _ in full), None)
        first, second = first[longer], second[longer]
    if dtype.kind == "c":
        first, second = (_complex_axes(x, lengths, False, queue) for x in (first, second))
        result = _complex_axes(_product(first, second, queue), lengths, True, queue)
    else:
        last, length = lengths.popitem()
        first, second = (from_real(x, length, last, None, queue) for x in (first, second))
        first, second = (_complex_axes(x, lengths, False, queue) for x in (first, second))
        result = _complex_axes(_product(first, second, queue), lengths, True, queue)
        result = to_real(result, length, last, None, queue)
    chosen = result[part]
    if out is not None:
        return finish(chosen, out, queue)
    if is_device_array(chosen) and chosen.size < result.size:
        return copied(chosen, queue)  # also where a view would do: it would keep all of the memory
    return contiguous(chosen, queue)


def _summed(first: AnyArray, second: AnyArray, axes: int | Sequence[int] | None) -> list[int]:
    """Return the axes with sums: of those asked for the ones that are longer than 1 in both."""
    shapes = first.shape, second.shape
    if axes is None:
        asked = list(range(first.ndim))
    else:
        given = axes if isinstance(axes, (Sequence, np.ndarray)) else (axes,)
        asked = sorted(axis_of(first, axis) for axis in given)
        if not asked or len(set(asked)) < len(asked):
            raise InvalidProblem(f"axes must be one or more, each once, not {axes!r}")
    for d, lengths in enumerate(zip(*shapes, strict=True)):
        if d not in asked and len({*lengths} - {1}) > 1:
            raise InvalidProblem(
                f"cannot convolve {shapes[0]} with {shapes[1]}: other axes than {axes} must have "
                "the same length, or 1"
            )
    return [d for d in asked if 1 not in (shapes[0][d], shapes[1][d])]


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
    shape = np.broadcast_shapes(first.shape, second.shape)
    first, second = (broadcast(x, shape, queue) for x in (first, second))
    session = session_of(queue)
    executable = session.executable(
        ("product", first.size, first.dtype),
        lambda: pointwise_product(first.size, first.dtype, session.device),
    )
    inputs = {"first": first, "second": second}
    return execute(executable, inputs, queue).outputs["product"].reshape(first.shape)


def _complex_axes(x: AnyArray, lengths: dict[int, int], inverse: bool, queue: Any) -> AnyArray:
    for axis, length in lengths.items():
        x = complex_axis(x, length, axis, None, inverse, queue)
    return x


def _part(
    full: list[int],
    first: tuple[int, ...],
    second: tuple[int, ...],
    mode: str,
    summed: list[int],
) -> tuple[slice | int, ...]:
    """Return the part of the periodic result that `mode` asks for."""
    starts, sizes = [0] * len(full), list(full)
    if mode == "same":
        starts, sizes = [(f - n) // 2 for f, n in zip(full, first, strict=True)], list(first)
    elif mode == "valid":
        for d in summed:
            starts[d], sizes[d] = second[d] - 1, first[d] - second[d] + 1
    return tuple(slice(start, start + n) for start, n in zip(starts, sizes, strict=True))
