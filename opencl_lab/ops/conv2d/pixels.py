"""What kernels need to know of images: types, sizes, and how they continue beyond the edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type
from opencl_lab.ops.conv2d.problem import Conv2dProblem


@dataclass(frozen=True)
class FilterPass:
    """One pass of a kernel over images: its buffers and its geometry."""

    # Names of buffers.
    source: str
    weights: str
    target: str
    source_type: np.dtype[Any]
    target_type: np.dtype[Any]
    # (rows, columns) of the images, of the results, of the first window's offset, of the filter.
    size: tuple[int, int]
    out_size: tuple[int, int]
    offset: tuple[int, int]
    taps: tuple[int, int]

    @classmethod
    def whole(cls, problem: Conv2dProblem) -> FilterPass:
        """Return the single pass that solves a problem."""
        return cls(
            "image",
            "weights",
            "result",
            problem.dtype,
            problem.dtype,
            (problem.height, problem.width),
            (problem.out_height, problem.out_width),
            problem.offset,
            problem.filter_shape,
        )

    def reaches_far(self, boundary: str) -> bool:
        """Return whether windows reach so far beyond an edge that the image repeats twice."""
        for size, out, offset, taps in zip(
            self.size, self.out_size, self.offset, self.taps, strict=True
        ):
            reach = max(-offset, out + taps - 1 + offset - size)
            if reach > size - (boundary == "mirror"):
                return boundary not in ("constant", "nearest")
        return False


@dataclass(frozen=True)
class Pixels:
    """What ``pixels.mako`` renders for a pass; its header says what the fields mean."""

    element_t: str
    result_t: str
    sum_t: str
    boundary: str
    far: bool
    long_sums: bool
    saturate: bool
    flip: bool
    constant_weights: bool

    @classmethod
    def of(
        cls, problem: Conv2dProblem, one: FilterPass, constant_weights: bool, device: Device
    ) -> Pixels:
        """Return the pixels of a pass; `constant_weights` asks for constant memory if they fit."""
        sum_type = problem.sum_type
        weights_bytes = one.taps[0] * one.taps[1] * sum_type.itemsize
        wraps = sum_type.kind == "i" and not problem.saturate  # as unsigned numbers may
        boundary, _ = problem.extension
        return cls(
            element_t=_name_of(one.source_type),
            result_t=_name_of(one.target_type),
            sum_t="u" * wraps + c_type(sum_type),
            boundary=boundary,
            far=one.reaches_far(boundary),
            long_sums=problem.long_sums,
            saturate=problem.saturate and one.target_type.kind in "iu",
            flip=problem.flip,
            constant_weights=constant_weights and weights_bytes <= device.constant_memory,
        )


def _name_of(dtype: np.dtype[Any]) -> str:
    return "bool" if dtype.kind == "b" else c_type(dtype)


def value_outside(problem: Conv2dProblem) -> np.generic:
    """Return the value beyond the edges, for the boundary ``constant``."""
    if problem.value_type.kind == "u":  # sums of 128 bits know that pixels have no sign
        return np.uint64(problem.extension[1]).view(np.int64)
    with np.errstate(over="ignore"):  # beyond the type's range it is infinite there
        value: np.generic = problem.sum_type.type(problem.extension[1])
    return value
