"""SciPy's arguments of filters: modes, windows, weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import python_value, text, whole_number
from opencl_lab.ops.filters.numbers import Type
from opencl_lab.ops.filters.problem import MODES, Window
from opencl_lab.runtime.arrays import as_array, axis_of, is_device_array

Host = np.ndarray[Any, Any]


def real_type_of(dtype: Type) -> Type:
    """Return the type of a number's parts."""
    return np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype


def each(value: Any, count: int, name: str) -> list[Any]:
    """Return a value for each axis: of a sequence, else the same one."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise InvalidProblem(f"{name} must be one value, or {count}, as many as axes: {value!r}")
    return values


def axes_of(axes: Any, count: int) -> tuple[int, ...]:
    """Return the axes to filter, of an array of `count` dimensions: all of them for None."""
    if axes is None:
        return tuple(range(count))
    found = tuple(axis_of(axis, count) for axis in (axes if np.iterable(axes) else (axes,)))
    if len(set(found)) < len(found):
        raise InvalidProblem(f"axes must be unique, and not {axes!r}")
    return found


def mode_of(mode: Any) -> str:
    """Return what lies beyond the edges, by one name of several."""
    name = text(mode, "mode")
    if name not in MODES:
        raise InvalidProblem(f"mode must be one of {', '.join(MODES)}, not {name!r}")
    return MODES[name]


def before(size: int, origin: Any, turned: bool = False) -> int:
    """Return how many values a window of a size has before its centre, moved by the origin.

    A `turned` window is that of a convolution.
    """
    shift = whole_number(origin, "origin")
    place = size // 2 + shift
    if not 0 <= place < size:
        least, most = -(size // 2), (size - 1) // 2
        raise InvalidProblem(
            f"origin {shift} leaves a window of {size}: it is from {least} to {most}"
        )
    if turned:
        place = size - 1 - place
    return place


def size_of(size: Any) -> int:
    """Return the size of a window along an axis."""
    number = python_value(size)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    found = whole_number(number, "size")
    if found < 1:
        raise InvalidProblem(f"the size of a window must be positive, not {found}")
    return found


def are_whole(*arrays: Host) -> bool:
    """Return whether all numbers are integers."""
    for array in arrays:
        if array.dtype.kind in "biu":
            continue
        for number in array.ravel().tolist():
            if not math.isfinite(number) or number != int(number):
                return False
    return True


def symmetry(line: Host) -> int:
    """Return 1 or -1 for weights that SciPy adds up in pairs, or 0."""
    if not line.size % 2:
        return 0
    eps, numbers = np.finfo(np.float64).eps, line.astype(np.float64)
    if (np.abs(numbers - numbers[::-1]) <= eps).all():
        return 1
    return -1 if (np.abs(numbers + numbers[::-1]) <= eps).all() else 0


def rounded(weights: Host, dtype: Type) -> Host:
    """Return weights in the type of the sums.

    What a weight of a symmetric line loses by rounding is added to the next one, from the middle
    to the ends, so that the sum of all stays what it is: a smoothed image is as bright as before.
    """
    if dtype.kind == "u":
        bits = 8 * dtype.itemsize
        found = np.array([int(weight) % 2**bits for weight in weights.ravel().tolist()], dtype)
        return found.reshape(weights.shape)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = np.ascontiguousarray(weights, dtype)
        if dtype == np.float32 and weights.ndim == 1 and symmetry(weights) == 1:
            middle, lost = weights.size // 2, 0.0
            for i in range(middle + 1):
                pair = 1 if i == 0 else 2
                one = dtype.type(weights[middle + i] + lost / pair)
                lost += pair * (float(weights[middle + i]) - float(one))
                found[middle - i] = found[middle + i] = one
    return found


def host_weights(weights: Any, name: str) -> Host:
    """Return an array of weights, or of places that count, on the host."""
    array = as_array(weights)
    if is_device_array(array):
        raise InvalidProblem(f"{name} must be on the host: {name}.get()")
    if array.dtype.kind not in "biufc":
        raise InvalidProblem(f"{name} must be numbers, not of dtype {array.dtype}")
    kinds = {"c": np.complex128, "f": np.float64}
    return np.asarray(array, kinds.get(array.dtype.kind))


def one_window(size: Any, axis: int, mode: Any, origin: Any, turned: bool = False) -> Window:
    """Return the window along an axis."""
    count = size_of(size)
    return Window(axis, count, before(count, origin, turned), mode_of(mode))
