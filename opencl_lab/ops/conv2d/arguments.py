"""From the arguments of `conv2d` to a problem and its inputs."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import exact_number
from opencl_lab.ops.conv2d.problem import Conv2dProblem, accumulator_for, limits_of, value_read
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    contiguous,
    copied,
    is_device_array,
    reshaped,
)
from opencl_lab.runtime.call import Call

Host: TypeAlias = np.ndarray[Any, Any]
WIDE = np.dtype(np.int64)
COLOURS = (3, 4)
"""Numbers of channels that look like the pixels of a colour image."""
MOST_KEPT = 1 << 16
"""Largest filter, in bytes, whose column and row are cached."""
ROUNDINGS = 8  # by which a weight may differ from the outer product of two vectors


class Filter(NamedTuple):
    """A filter as kernels take it."""

    inputs: dict[str, AnyArray]
    """The array ``weights``; if the filter has rank 1 and sums are no integers, ``row`` and
    ``column``, too."""
    accumulator: np.dtype[Any]
    long_sums: bool = False
    """Whether sums take 128 bits."""


def weight_inputs(
    weights: Any,
    dtype: np.dtype[Any],
    *,
    cval: int | float = 0.0,
    saturate: bool = False,
    mode: str = "same",
    boundary: str = "constant",
) -> Filter:
    """Return a host filter for images of `dtype`; `saturate` is true for bool.

    The weights are two-dimensional, or a tuple of a column and a row that stand for their outer
    product. That is formed exactly of integers, else in float64 or wider. Weights are rounded once,
    to the type of the sums, and everything else follows from these. So it does not matter in which
    form a filter is given.
    """
    whole = outer(*map(_numbers, weights)) if is_pair(weights) else _numbers(weights)
    if whole.ndim != 2:
        raise InvalidProblem(
            f"weights must have two dimensions, or be a column and a row, not {whole.ndim}"
        )
    cval = exact_number(value_read(cval, mode, boundary, whole.shape), "cval")
    if dtype.kind in "biu" and whole.dtype.kind != "f" and (isinstance(cval, int) or not cval):
        accumulator, wide = _integer_sums(dtype, _size(whole), _size(whole, np.sum), saturate, cval)
        return Filter({"weights": _integers(whole, accumulator)}, accumulator, wide)
    accumulator = accumulator_for(dtype)
    inputs = {"weights": _rounded(whole, accumulator)}
    lines = split(inputs["weights"], accumulator) if whole.size else None
    if lines is not None:
        inputs |= {"column": lines[0], "row": lines[1]}
    return Filter(inputs, accumulator)


def is_pair(weights: Any) -> bool:
    """Return whether `weights` are a column and a row, not a nested list of two rows."""
    return (
        isinstance(weights, tuple)
        and len(weights) == 2
        and all(isinstance(line, np.ndarray) and line.ndim == 1 for line in weights)
    )


def _numbers(weights: Any) -> Host:
    """Return real weights as an array; integers that fit no dtype as Python's."""
    found: Host = as_array(weights)
    if found.dtype == object or (found.dtype == np.float64 and found is not weights):
        exact = np.asarray(weights, object)  # NumPy makes floats of 2**63 beside -1
        if exact.size and all(isinstance(number, (int, np.integer)) for number in exact.flat):
            integers: Host = np.frompyfunc(int, 1, 1)(exact)
            return integers
    if found.dtype.kind not in "biuf":
        raise InvalidProblem(f"weights must be real numbers, not of dtype {found.dtype}")
    return found


def outer(column: Host, row: Host) -> Host:
    """Return the outer product, exact for integers; lines may be complex, too."""
    kinds = column.dtype.kind, row.dtype.kind
    if "c" in kinds:
        wide = np.result_type(np.complex128, column, row)
    elif "f" in kinds:
        wide = np.result_type(np.float64, column, row)
        if any(line.dtype.kind != "f" and line.dtype.itemsize == 8 for line in (column, row)):
            wide = np.dtype(np.longdouble)
    else:
        wide = np.dtype(np.int64 if _size(column) * _size(row) < 2**63 else object)
    try:
        with np.errstate(over="raise", under="ignore", invalid="ignore"):
            product: Host = np.multiply.outer(column.astype(wide), row.astype(wide))
    except FloatingPointError:
        raise InvalidProblem(f"a product of column and row is beyond the range of {wide}") from None
    return product


def _size(weights: Host, of: Any = np.max) -> int:
    """Return the largest magnitude of integers, or the sum of magnitudes, without overflow."""
    if not weights.size:
        return 0
    largest = max(abs(int(weights.max())), abs(int(weights.min())))
    if of is np.max:
        return largest
    kind = np.int64 if largest * weights.size < 2**63 else object
    return int(np.abs(weights.astype(kind)).sum())


def _integer_sums(
    dtype: np.dtype[Any], largest: int, total: int, saturate: bool, cval: int | float
) -> tuple[np.dtype[Any], bool]:
    """Return the type of exact sums, and whether they take 128 bits.

    `largest` and `total` are the largest magnitude of the weights and the sum of magnitudes.
    """
    least = accumulator_for(dtype, exact=True)
    if not saturate:  # modulo the size of the type
        return least, False
    most = max(total, 1) * max(*map(abs, limits_of(dtype)), abs(int(cval)))
    if most < 2**31:
        return least, False
    if most < 2**63:
        return WIDE, False
    if largest >= 2**63 or most >= 2**127:
        raise InvalidProblem(
            f"weights of {largest.bit_length() + 1} bits and sums of {most.bit_length() + 1} are "
            "too long, 64 and 128 are the most: give smaller weights, saturate=False, or weights "
            "of a floating-point dtype"
        )
    return WIDE, True


def _integers(weights: Host, dtype: np.dtype[Any]) -> Host:
    """Return integers in a type, modulo its size."""
    if weights.dtype == object:
        bits = 8 * dtype.itemsize
        weights = (weights & (2**bits - 1)).astype(f"u{dtype.itemsize}")
    return np.ascontiguousarray(weights.astype(dtype))


def _rounded(weights: Host, dtype: np.dtype[Any]) -> Host:
    """Return weights in a floating-point type, whose range they must not leave."""
    with np.errstate(over="ignore", under="ignore"):
        try:
            rounded = np.ascontiguousarray(weights, dtype)
            lost = np.isinf(rounded) & (np.abs(weights) < np.inf)
        except OverflowError:  # of Python's integers
            lost = np.ones(1, bool)
    if lost.any():
        raise InvalidProblem(
            f"a weight is beyond the range of {dtype}, in which the sums are made: scale the "
            "weights, or filter an image of float64"
        )
    return rounded


def split(weights: Host, dtype: np.dtype[Any]) -> tuple[Host, Host] | None:
    """Return a column and a row whose outer product is `weights`, or None if there are none.

    Each weight is compared by itself, so that small ones are not lost beside large ones, and sums
    with the column and the row keep the error bound of sums with the weights. Differences of a few
    roundings in `dtype`, the type of the sums and of the weights, are allowed; subnormal numbers
    have fewer digits to round to.

    The row is that of the largest weight; the column is the column of that weight divided by it.
    So sums along the rows are those of a row of the filter, and overflow no sooner. If the weight
    is above 1, about its square root moves from the row to the column, so that both stay in range.
    """
    whole = np.ascontiguousarray(weights.astype(dtype, copy=False), np.float64)
    split = _kept_split if whole.nbytes <= MOST_KEPT else _split
    return split(whole.tobytes(), whole.shape, dtype)


def _split(data: bytes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Host, Host] | None:
    weights = np.frombuffer(data).reshape(shape)
    sizes = np.abs(weights)
    if not sizes.size or not np.isfinite(sizes).all():
        return None
    at_row, at_column = divmod(int(sizes.argmax()), shape[1])
    largest = weights[at_row, at_column]
    power = max(0, np.frexp(largest)[1] // 2)
    with np.errstate(all="ignore"):
        column = np.ldexp(weights[:, at_column] / (largest or 1.0), power).astype(dtype)
        row = np.ldexp(weights[at_row], -power).astype(dtype)
        rest = np.abs(weights - np.outer(column.astype(np.float64), row.astype(np.float64)))
    limits = np.finfo(dtype)
    eps = float(limits.eps)
    rounding = eps * np.maximum(sizes, float(limits.tiny))
    if not (rest <= ROUNDINGS * rounding).all():
        return None
    for line in (column, row):
        line.flags.writeable = False
    return column, row


_kept_split = lru_cache(maxsize=64)(_split)


def _device_weights(
    weights: AnyArray, dtype: np.dtype[Any], saturate: bool, cval: int | float, call: Call
) -> Filter:
    """Return a filter on the device; the host does not read its values."""
    if weights.ndim != 2:
        raise InvalidProblem(f"weights on the device must have two dimensions, not {weights.ndim}")
    floating, exact = accumulator_for(dtype), accumulator_for(dtype, exact=True)
    allowed = [floating]
    if dtype.kind in "biu":
        allowed += [np.dtype(np.int32), WIDE] if saturate else [exact]
    if weights.dtype not in allowed:
        names = " or ".join(str(kind) for kind in allowed)
        raise InvalidProblem(
            f"weights on the device must be {names} for an image of {dtype} (saturate={saturate}), "
            f"not {weights.dtype}: convert with astype, or give a NumPy array"
        )
    accumulator, wide = np.dtype(weights.dtype), False
    if accumulator.kind == "i" and saturate:
        largest = 2 ** (8 * accumulator.itemsize - 1)
        most = largest * weights.size
        accumulator, wide = _integer_sums(dtype, largest - 1, most, saturate, cval)
        if accumulator != weights.dtype:
            weights = copied(weights, call, dtype=accumulator)
    return Filter({"weights": contiguous(weights, call)}, accumulator, wide)


def bind(
    image: AnyArray,
    weights: Any,
    *,
    mode: str,
    boundary: str,
    cval: Any,
    flip: bool,
    channels_last: bool | None,
    saturate: bool,
    call: Call | None = None,
) -> tuple[Conv2dProblem, dict[str, AnyArray]]:
    """Return the problem of a user's image and filter, and its inputs.

    Host weights for an image on the device are allowed; they are not copied here.
    """
    call = call or Call()
    cval = exact_number(cval, "cval")
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
    # Sums that wrap around do not tell whether they are zero.
    saturate = dtype.kind == "b" or (bool(saturate) and dtype.kind in "iu")
    if is_device_array(weights):
        read = value_read(cval, mode, boundary, weights.shape)
        found = _device_weights(weights, dtype, saturate, read, call)
    else:
        found = weight_inputs(
            weights, dtype, cval=cval, saturate=saturate, mode=mode, boundary=boundary
        )
    inputs = found.inputs
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
        found.accumulator,
        "row" in inputs,
        found.long_sums,
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
