"""The signatures of SciPy, each written once, as functions that order arguments.

The first thing that they return begins a call: it takes the name of the function, and what
`Filtering.of` has besides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.filters.filtering import Filtering
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.waiting import WaitFor

Begin: TypeAlias = Callable[..., Filtering]
Edges: TypeAlias = tuple[Any, Any, Any]
"""Mode, cval and origin."""


def along_axis(
    call: Call,
    input: Any,
    size: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    origin: int = 0,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.ndimage.uniform_filter1d` does: size, axis, edges."""
    begin = partial(Filtering.of, call, input, output, queue, device)
    return begin, size, axis, (mode, cval, origin)


def differences(
    call: Call,
    input: Any,
    axis: int = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: complex = 0.0,
    *,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.ndimage.sobel` does: axis, mode, cval; and axes, which that lacks."""
    return partial(Filtering.of, call, input, output, queue, device), axis, mode, cval, axes


def of_gaussians(
    call: Call,
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: complex = 0.0,
    *,
    axes: Any = None,
    truncate: float = 4.0,
    radius: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.ndimage.gaussian_laplace` does: sigma, mode, axes, reach, cval."""
    begin = partial(Filtering.of, call, input, output, queue, device)
    return begin, sigma, mode, axes, (truncate, radius), cval


def by_weights(
    call: Call,
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: complex = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.ndimage.correlate` does: weights, edges, axes, place."""
    begin = partial(Filtering.of, call, input, output, queue, device)
    return begin, weights, (mode, cval, origin), axes, {"queue": queue, "device": device}


def over_footprint(
    call: Call,
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.ndimage.median_filter` does: size, footprint, edges, axes."""
    begin = partial(Filtering.of, call, input, output, queue, device, ordered=True)
    return begin, size, footprint, (mode, cval, origin), axes


def of_rank(
    call: Call,
    input: Any,
    rank: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.ndimage.rank_filter` does: rank, size, footprint, edges, axes."""
    begin = partial(Filtering.of, call, input, output, queue, device, ordered=True)
    return begin, rank, size, footprint, (mode, cval, origin), axes
