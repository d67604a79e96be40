"""Trials of convolution."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import IMAGE_TYPES, MODES, Boundary, Conv2dProblem, Mode
from opencl_lab.ops.conv2d.solver import CONV2D_SOLVER
from opencl_lab.ops.trial import Array, Drawer, Task, Trial, Trials

BOUNDARIES: dict[Boundary, str] = {
    "constant": "constant",
    "nearest": "edge",
    "reflect": "symmetric",
    "mirror": "reflect",
    "wrap": "wrap",
}
"""What lies beyond the edges, and its names in `numpy.pad`."""
ODD_SIZES = {"height": 61, "width": 211}
"""Sizes of an image, of which no block is a divisor."""
SIDES = (1, 2, 3, 3, 5, 6, 7, 9, 15, 31)
"""Of filters."""


def _correlated(
    image: Array, weights: Array, boundary: Boundary, mode: Mode = "same", flip: bool = False
) -> Array:
    """Return the sums of `scipy.ndimage.correlate` in float64, or `convolve`."""
    around = [(size // 2, size - 1 - size // 2) for size in weights.shape]
    if flip:
        weights, around = weights[::-1, ::-1], [pair[::-1] for pair in around]
    if mode != "same":
        around = [((size - 1) * (mode == "full"),) * 2 for size in weights.shape]
    pad: Any = BOUNDARIES[boundary]
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(image.astype(np.float64), around, mode=pad), weights.shape
    )
    sums: Array = np.einsum("yxji,ji->yx", windows, weights.astype(np.float64))
    return sums


def _filtered(
    dtype: str,
    shape: tuple[int, int],
    boundary: Boundary,
    rng: np.random.Generator,
    size: tuple[int, ...] = tuple(ODD_SIZES.values()),
    mode: Mode = "same",
    flip: bool = False,
) -> Task:
    kind = np.dtype(dtype)
    image = rng.integers(0, 256, size).astype(kind)
    weights: Array = rng.integers(-1, 2, shape)
    if kind.kind == "f":
        weights = rng.standard_normal(shape).astype(np.float32 if dtype == "float16" else kind)
    right = _correlated(image, weights, boundary, mode, flip)
    if kind.kind != "f":
        right = right.clip(np.iinfo(kind).min, np.iinfo(kind).max)

    def call(x: Any, **how: Any) -> Any:
        return conv2d(x, weights, boundary=boundary, mode=mode, flip=flip, **how)

    return Task(call, (image,), (right.astype(kind),))


def _separable(rng: np.random.Generator) -> Task:
    image = rng.random((90, 300)).astype(np.float32)
    weights = np.outer(rng.random(9), rng.random(9))

    def call(x: Any, **how: Any) -> Any:
        return conv2d(x[::2, 1::3], weights, boundary="reflect", **how)

    right = _correlated(image[::2, 1::3], weights, "reflect")
    return Task(call, (image,), (right.astype(np.float32),))


def _long_sums(rng: np.random.Generator) -> Task:
    limits = np.iinfo(np.int64)
    image = rng.integers(limits.min, limits.max, (75, 66), endpoint=True)
    image = image.repeat(2, 1)  # every other sum is a pixel: the long products cancel
    weights = np.array([[1, -(2**40), 2**40]])
    left, middle, right = (np.roll(image, step, 1).astype(object) for step in (1, 0, -1))
    sums = (left + 2**40 * (right - middle)).clip(limits.min, limits.max)

    def call(x: Any, **how: Any) -> Any:
        return conv2d(x, weights, boundary="wrap", **how)

    return Task(call, (image,), (sums.astype(np.int64),))


def _draw(d: Drawer) -> Trial:
    dtype, mode, boundary = d.dtype(IMAGE_TYPES), d.pick(MODES), d.pick(tuple(BOUNDARIES))
    shape, flip = (d.pick(SIDES), d.pick(SIDES)), d.chance(0.3)
    size = d.size(300, shape[0]), d.size(300, shape[1])
    task = partial(_filtered, dtype, shape, boundary, size=size, mode=mode, flip=flip)
    return Trial(f"{shape} on {size} of {dtype}, {mode}, {boundary}, {flip}", task, dtype)


QUICK = (
    Trial("3 x 3 on float64", partial(_filtered, "float64", (3, 3), "reflect"), "float64"),
    # So large that all take transforms which can.
    Trial("63 x 63 on float32", partial(_filtered, "float32", (63, 63), "mirror"), "float32"),
    Trial("9 x 9 of rank one on strided float32", _separable, "float32"),
    Trial("1 x 3 on int64, sums of 128 bits", _long_sums, "int64", exact=True),
)
TYPICAL = tuple(Conv2dProblem(500, 500, 3, 3, np.dtype(name)) for name in ("float32", "float64"))
TRIALS = (Trials(CONV2D_SOLVER, QUICK, TYPICAL, draw=_draw),)
