"""From the arguments of `conv2d` to a problem and its inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import real_number
from opencl_lab.ops.conv2d.problem import Conv2dProblem, accumulator_for
from opencl_lab.ops.conv2d.separable import split
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    contiguous,
    copied,
    is_device_array,
    reshaped,
)
from opencl_lab.runtime.call import Call

WIDE = np.dtype(np.int64)
COLOURS = (3, 4)
"""Numbers of channels that look like the pixels of a colour image."""


def weight_inputs(
    weights: Any, dtype: np.dtype[Any], *, cval: float = 0.0, saturate: bool = False
) -> tuple[dict[str, np.ndarray[Any, Any]], np.dtype[Any]]:
    """Return the inputs that describe a host filter for images of `dtype`, and the type of sums.

    The weights are two-dimensional, or a tuple of a column and a row that stand for their outer
    product. The inputs are ``weights``, and ``row`` and ``column`` where the filter has rank 1.
    """
    lines = None
    if _is_pair(weights):
        lines = weights
        for line in lines:
            _check_numbers(line)
        weights = np.multiply.outer(*lines)
    whole = as_array(weights)
    _check_numbers(whole)
    if whole.ndim != 2:
        raise InvalidProblem(
            f"weights must have two dimensions, or be a column and a row, not {whole.ndim}"
        )
    exact = whole.dtype.kind in "biu" and float(cval).is_integer()
    accumulator = accumulator_for(dtype, exact)
    if accumulator == np.int32 and whole.size:
        # As Python integers, which do not overflow.
        largest = max(abs(int(whole.max())), abs(int(whole.min())))
        if largest >= 2**31 or abs(cval) >= 2**31:
            accumulator = accumulator_for(dtype)
        elif saturate:
            limits = np.iinfo(dtype)
            pixel = max(-int(limits.min), int(limits.max), abs(int(cval)))
            if int(np.abs(whole.astype(object)).sum()) * pixel >= 2**31:
                accumulator = WIDE
    with np.errstate(over="ignore"):
        inputs = {"weights": np.ascontiguousarray(whole, accumulator)}
        if accumulator.kind == "f" and whole.size:
            if lines is None:
                lines = split(whole, accumulator)
            if lines is not None:
                inputs["column"] = np.ascontiguousarray(lines[0], accumulator)
                inputs["row"] = np.ascontiguousarray(lines[1], accumulator)
    return inputs, accumulator


def _is_pair(weights: Any) -> bool:
    """Return whether `weights` are a column and a row, not a nested list of two rows."""
    return (
        isinstance(weights, tuple)
        and len(weights) == 2
        and all(isinstance(line, np.ndarray) and line.ndim == 1 for line in weights)
    )


def _check_numbers(weights: np.ndarray[Any, Any]) -> None:
    if weights.dtype.kind not in "biuf":
        raise InvalidProblem(f"weights must be real numbers, not of dtype {weights.dtype}")


def _device_weights(
    weights: AnyArray, dtype: np.dtype[Any], saturate: bool, call: Call
) -> tuple[dict[str, AnyArray], np.dtype[Any]]:
    """Return the inputs of a filter on the device; the host does not read its values."""
    if weights.ndim != 2:
        raise InvalidProblem(f"weights on the device must have two dimensions, not {weights.ndim}")
    allowed = [accumulator_for(dtype)]
    if dtype.kind in "iu":
        allowed.append(WIDE if saturate else np.dtype(np.int32))
        if saturate and weights.dtype == np.int32:  # sums that wrapped around cannot be saturated
            weights = copied(weights, call, dtype=WIDE)
    if weights.dtype not in allowed:
        names = " or ".join(str(kind) for kind in allowed)
        raise InvalidProblem(
            f"weights on the device must be {names} for an image of {dtype} (saturate={saturate}), "
            f"not {weights.dtype}: convert with astype, or give a NumPy array"
        )
    return {"weights": contiguous(weights, call)}, np.dtype(weights.dtype)


def bind(
    image: AnyArray,
    weights: Any,
    *,
    mode: str,
    boundary: str,
    cval: float,
    flip: bool,
    channels_last: bool | None,
    saturate: bool,
    call: Call | None = None,
) -> tuple[Conv2dProblem, dict[str, AnyArray]]:
    """Return the problem of a user's image and filter, and its inputs.

    Host weights for an image on the device are allowed; they are not copied here.
    """
    call = call or Call()
    cval = real_number(cval, "cval")
    least = 3 if channels_last else 2
    if image.ndim < least:
        raise InvalidProblem(
            f"an image has at least {least} dimensions, not {image.ndim}: "
            f"(..., height, width{', channels' if channels_last else ''})"
        )
    if channels_last is None and image.ndim > 2:
        rows, columns, channels = image.shape[-3:]
        if channels in COLOURS and min(rows, columns) > max(COLOURS):
            raise InvalidProblem(
                f"the shape {tuple(image.shape)} looks like pixels of {channels} channels: "
                "channels_last=True filters each channel, and channels_last=False a stack of "
                f"images of {columns} x {channels}"
            )
    dtype = np.dtype(image.dtype).newbyteorder("=")
    saturate = bool(saturate) and dtype.kind in "iu"
    if is_device_array(weights):
        inputs, accumulator = _device_weights(weights, dtype, saturate, call)
    else:
        inputs, accumulator = weight_inputs(weights, dtype, cval=cval, saturate=saturate)
    height, width = image.shape[-least : image.ndim - least + 2]
    rows, columns = inputs["weights"].shape
    problem = Conv2dProblem(
        height,
        width,
        rows,
        columns,
        dtype,
        math.prod(image.shape[:-least]),
        image.shape[-1] if channels_last else 1,
        mode,
        boundary,
        cval,
        bool(flip),
        saturate,
        accumulator,
        "row" in inputs,
    )
    inputs["image"] = reshaped(contiguous(image, call), problem.image_shape, call)
    return problem, inputs


def result_shape(
    problem: Conv2dProblem, image_shape: tuple[int, ...], channels_last: bool | None
) -> tuple[int, ...]:
    """Return the shape of the result for an image of this shape."""
    lead = image_shape[: -3 if channels_last else -2]
    tail = (problem.channels,) if channels_last else ()
    return (*lead, problem.out_height, problem.out_width, *tail)
