"""Correlations and convolutions of arrays with weights of as many dimensions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.ops.alike import like
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import Boundary
from opencl_lab.ops.filters.arguments import Host, are_whole, host_weights, rounded
from opencl_lab.ops.filters.filtering import Filtering
from opencl_lab.ops.filters.problem import Window
from opencl_lab.ops.filters.signatures import Begin, Edges, by_weights
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call


def _is_of_images(
    f: Filtering, windows: list[Window], weights: Host, cval: Any, turned: bool
) -> bool:
    """Return whether it is a convolution of images that `conv2d` makes with equal results."""
    kind = f.array.dtype
    if not f.array.size or kind.kind not in "iuf" or weights.dtype.kind == "c" or f.dtype != kind:
        return False
    last = [window.axis for window in windows] == [f.ndim - 2, f.ndim - 1]
    one_edge = len({window.mode for window in windows}) == 1
    centred = all(window.before == (window.size - turned) // 2 for window in windows)
    exact = kind.kind == "f" or are_whole(weights, np.array([cval], object))
    return last and one_edge and centred and exact


def _by_window(
    begin: Begin, name: str, weights: Any, edges: Edges, axes: Any, place: dict[str, Any]
) -> AnyArray:
    array, (mode, cval, origin) = host_weights(weights, "weights"), edges
    f, turned = begin(name, is_complex=array.dtype.kind == "c"), name == "convolve"
    count = len(f.axes(axes))
    if array.ndim != count or not array.size:
        raise InvalidProblem(f"{count} axes take weights of as many dimensions, not {array.shape}")
    array = f.turned(array, axes)
    windows = f.windows(array.shape, mode, origin, axes, turned=turned)
    if _is_of_images(f, windows, array, cval, turned):
        return conv2d(
            f.array,
            array if f.dtype.kind == "f" else rounded(array, np.dtype(np.uint64)).view(np.int64),
            boundary=cast(Boundary, windows[0].mode),
            cval=cval,
            flip=turned,
            channels_last=False,
            saturate=False,
            out=f.out,
            **place,
        )
    array = array[(slice(None, None, -1),) * array.ndim] if turned else np.conj(array)
    return f.window(windows, np.ones(array.shape, bool), "sum", cval, weights=array)


@like(by_weights, "weights")
def correlate(
    call: Call, begin: Begin, weights: Any, edges: Edges, axes: Any, place: dict[str, Any]
) -> AnyArray:
    """Correlate an array with weights of as many dimensions; see `scipy.ndimage.correlate`.

    Parameters
    ----------
    weights : array_like
        On the host, with a dimension for each of `axes`, in the order that they have in the array.
    mode, origin
        One value, or one for each of `axes`.
    axes : int or tuple of int, optional
        The axes to filter, all by default.
    input, output, cval, queue, device
        As for `correlate1d`, whose rules hold.
    """
    return _by_window(begin, "correlate", weights, edges, axes, place)


@like(by_weights, "weights")
def convolve(
    call: Call, begin: Begin, weights: Any, edges: Edges, axes: Any, place: dict[str, Any]
) -> AnyArray:
    """Convolve an array with weights of as many dimensions; see `scipy.ndimage.convolve`.

    Parameters are those of `correlate`.
    """
    return _by_window(begin, "convolve", weights, edges, axes, place)
