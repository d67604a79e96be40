"""Lossless conversion of a user's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem


def convert(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return `array` as `dtype`, without changing values except by rounding to a floating type.

    InvalidProblem is raised for values out of range, for fractions or NaN converted to integers,
    and for complex numbers converted to real ones.
    """
    target = np.dtype(dtype)
    kind = array.dtype.kind
    if kind == "c" and target.kind != "c":
        raise InvalidProblem(f"cannot convert complex numbers to {target}")
    with np.errstate(all="ignore"):
        converted = array.astype(target, copy=False)
        if target.kind in "fc":
            lost = np.isfinite(array) & ~np.isfinite(converted)
        elif target.kind == "b":
            lost = converted != array
        else:
            limits = np.iinfo(target)
            if kind == "f":
                low, high = np.float64(limits.min), np.float64(limits.max + 1)
                lost = ~((array >= low) & (array < high) & (array == np.trunc(array)))
            else:
                lost = (array < limits.min) | (array > limits.max)
    if lost.any():
        raise InvalidProblem(
            f"the value {array[lost][0]} cannot be converted to {target} "
            f"({np.count_nonzero(lost)} such); leave --dtype out, or take another"
        )
    return converted
