"""Minima, maxima, medians and other ranks of windows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import real_number, whole_number
from opencl_lab.drivers.discovery import depth_of_caller
from opencl_lab.ops.alike import like
from opencl_lab.ops.filters.arguments import Host, each, host_weights, one_window, size_of
from opencl_lab.ops.filters.filtering import Filtering
from opencl_lab.ops.filters.networks import MOST_VALUES
from opencl_lab.ops.filters.problem import LONGEST
from opencl_lab.ops.filters.signatures import Begin, Edges, along_axis, of_rank, over_footprint
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call


@like(along_axis)
def minimum_filter1d(call: Call, begin: Begin, size: Any, axis: Any, edges: Edges) -> AnyArray:
    """Return the least values of windows along an axis; see `scipy.ndimage.minimum_filter1d`.

    Parameters are those of `correlate1d`, with the `size` of the window for its weights. If
    there is a NaN under the window, it is the result; `cval` is converted to the type of `input`
    as NumPy converts; integers are exact. SciPy compares in float64, and what becomes of a
    NaN depends on its place.
    """
    f, (mode, cval, origin) = begin("minimum_filter1d", ordered=True), edges
    return f.extremes([one_window(size, f.axis(axis), mode, origin)], "min", cval)


@like(along_axis)
def maximum_filter1d(call: Call, begin: Begin, size: Any, axis: Any, edges: Edges) -> AnyArray:
    """Return the largest values of windows along an axis; see `scipy.ndimage.maximum_filter1d`.

    Parameters and rules are those of `minimum_filter1d`.
    """
    f, (mode, cval, origin) = begin("maximum_filter1d", ordered=True), edges
    return f.extremes([one_window(size, f.axis(axis), mode, origin)], "max", cval)


def _places(f: Filtering, size: Any, footprint: Any, axes: Any) -> Host:
    """Return which places of a window count; of a size all."""
    count = len(f.axes(axes))
    if footprint is None:
        if size is None:
            raise InvalidProblem(f"{f.name} needs the size of a window, or its footprint")
        sizes = [size_of(item) for item in each(size, count, "size")]
        if math.prod(sizes) >= LONGEST:
            raise InvalidProblem(f"a window of {math.prod(sizes):,} values is too large")
        return np.ones(sizes, bool)
    if size is not None:
        warnings.warn("ignoring size because footprint is set", stacklevel=depth_of_caller())
    places = np.asarray(host_weights(footprint, "footprint"), bool)
    if places.ndim != count:
        raise InvalidProblem(
            f"a footprint for {count} axes has as many dimensions, not {places.ndim}"
        )
    if not places.any():
        raise InvalidProblem(f"no place of the footprint counts: {f.name} has nothing to take")
    return f.turned(places, axes)


def _ranked(f: Filtering, rank: int, places: Host, edges: Edges, axes: Any) -> AnyArray:
    """Return the values of a rank; negative ones are counted from the end."""
    count, (mode, cval, origin) = int(np.count_nonzero(places)), edges
    place = rank + count * (rank < 0)
    if not 0 <= place < count:
        raise InvalidProblem(f"there is no rank {rank} among the {count} values of the footprint")
    reduce = "min" if place == 0 else "max" if place == count - 1 else "rank"
    windows = f.windows(places.shape, mode, origin, axes)
    # Those of full windows are cut to the type of the result after each axis.
    by_axis = count > MOST_VALUES or not np.can_cast(f.array.dtype, f.dtype)
    if places.all() and reduce != "rank" and by_axis:
        return f.extremes(windows, reduce, cval)
    return f.window(windows, places, reduce, cval, rank=place)


@like(over_footprint, "footprint")
def minimum_filter(
    call: Call, begin: Begin, size: Any, footprint: Any, edges: Edges, axes: Any
) -> AnyArray:
    """Return the least values of windows; see `scipy.ndimage.minimum_filter`.

    Parameters
    ----------
    size : int or tuple of int
        The size of the window along each axis.
    footprint : array_like, optional
        In place of `size`: which places of the window count, with a dimension for each of `axes`,
        in the order that they have in the array.
    mode, origin
        One value, or one for each of `axes`.
    axes : int or tuple of int, optional
        The axes to filter, all by default.
    input, output, cval, queue, device
        As for `minimum_filter1d`, whose rules hold.
    """
    f = begin("minimum_filter")
    return _ranked(f, 0, _places(f, size, footprint, axes), edges, axes)


@like(over_footprint, "footprint")
def maximum_filter(
    call: Call, begin: Begin, size: Any, footprint: Any, edges: Edges, axes: Any
) -> AnyArray:
    """Return the largest values of windows; see `scipy.ndimage.maximum_filter`.

    Parameters and rules are those of `minimum_filter`.
    """
    f = begin("maximum_filter")
    return _ranked(f, -1, _places(f, size, footprint, axes), edges, axes)


@like(over_footprint, "footprint")
def median_filter(
    call: Call, begin: Begin, size: Any, footprint: Any, edges: Edges, axes: Any
) -> AnyArray:
    """Return the medians of windows; see `scipy.ndimage.median_filter`.

    Of an even number of values it is the upper one of the two in the middle. Parameters and rules
    are those of `minimum_filter`.
    """
    f = begin("median_filter")
    places = _places(f, size, footprint, axes)
    return _ranked(f, int(np.count_nonzero(places)) // 2, places, edges, axes)


@like(of_rank, "footprint")
def rank_filter(
    call: Call, begin: Begin, rank: Any, size: Any, footprint: Any, edges: Edges, axes: Any
) -> AnyArray:
    """Return the values of a rank in windows; see `scipy.ndimage.rank_filter`.

    Rank 0 is the least value, -1 the largest. Other parameters and rules are those of
    `minimum_filter`.
    """
    f = begin("rank_filter")
    number = whole_number(rank, "rank")
    return _ranked(f, number, _places(f, size, footprint, axes), edges, axes)


@like(of_rank, "footprint", renamed={"rank": "percentile"})
def percentile_filter(
    call: Call, begin: Begin, percentile: Any, size: Any, footprint: Any, edges: Edges, axes: Any
) -> AnyArray:
    """Return the values of a percentile in windows; see `scipy.ndimage.percentile_filter`.

    Of n values it is that of rank ``int(n * percentile / 100)``; 100 is the largest one, and
    negative percentiles are counted from 100. Other parameters and rules are those of
    `minimum_filter`.
    """
    f = begin("percentile_filter")
    places = _places(f, size, footprint, axes)
    share = real_number(percentile, "percentile")
    share += 100 * (share < 0)
    if not 0 <= share <= 100:
        raise InvalidProblem(f"a percentile is from -100 to 100, not {percentile}")
    count = int(np.count_nonzero(places))
    return _ranked(f, min(int(count * share / 100.0), count - 1), places, edges, axes)
