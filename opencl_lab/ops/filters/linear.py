"""Sums of products along axes: correlations, convolutions, Gaussians, derivatives, means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import real_number, whole_number
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.alike import like
from opencl_lab.ops.filters.arguments import (
    Host,
    before,
    each,
    host_weights,
    mode_of,
    one_window,
)
from opencl_lab.ops.filters.filtering import Filtering, Term
from opencl_lab.ops.filters.problem import LONGEST
from opencl_lab.ops.filters.signatures import (
    Begin,
    Edges,
    along_axis,
    differences,
    of_gaussians,
)
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.waiting import WaitFor

LEAST_SIGMA = 1e-15
"""Axes with no larger sigma are not filtered."""


def _line(weights: Any) -> Host:
    line = host_weights(weights, "weights")
    if line.ndim != 1 or not line.size:
        raise InvalidProblem(
            f"weights along an axis have one dimension and one value at least: not {line.shape}"
        )
    return line


@like(along_axis, "weights", renamed={"size": "weights"})
def correlate1d(call: Call, begin: Begin, weights: Any, axis: Any, edges: Edges) -> AnyArray:
    """Correlate lines along an axis with weights; see `scipy.ndimage.correlate1d`.

    Parameters
    ----------
    input : array_like or pyopencl.array.Array
        Any shape, any strides: bool, integers, float32, float64, complex64 or complex128.
    weights : array_like, shape (size,)
        On the host, real or complex.
    axis : int
    output : array or dtype, optional
        Receives the result, with its shape; may be `input`. Or the dtype of a new array. By default
        that of `input`, or complex if weights are.
    mode : str
        What lies beyond the edges: ``"reflect"`` (d c b a | a b c d), ``"mirror"`` (d c b | a b c
        d), ``"nearest"``, ``"wrap"``, ``"constant"`` (`cval`), or SciPy's ``"grid-mirror"``,
        ``"grid-wrap"`` and ``"grid-constant"``, which are reflect, wrap and constant.
    cval : float
        Complex for complex arrays only.
    origin : int
        How far the centre of the window, its value ``size // 2``, is moved.
    queue : pyopencl.CommandQueue, optional
        Where to filter; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        `output`, or a new array on the side of `input`; for device arrays the work is enqueued.

    Notes
    -----
    Integers with whole weights are summed exactly, modulo the size of the result's type. Other
    results of float32 are summed in float32, if `input` is that, bool or of integers of up to 16
    bits; all others in float64. A result that is an integer is cut towards zero, bool is whether
    that is not zero. A NaN or an infinity under the window counts, also under a weight of zero.
    """
    line, (mode, cval, origin) = _line(weights), edges
    f = begin("correlate1d", is_complex=line.dtype.kind == "c")
    term = (f.axis(axis), np.conj(line), before(line.size, origin), mode_of(mode))
    return f.weighted([[term]], cval)


@like(along_axis, "weights", renamed={"size": "weights"})
def convolve1d(call: Call, begin: Begin, weights: Any, axis: Any, edges: Edges) -> AnyArray:
    """Convolve lines along an axis with weights; see `scipy.ndimage.convolve1d`.

    Parameters are those of `correlate1d`.
    """
    line, (mode, cval, origin) = _line(weights), edges
    f = begin("convolve1d", is_complex=line.dtype.kind == "c")
    term = (f.axis(axis), line[::-1], before(line.size, origin, turned=True), mode_of(mode))
    return f.weighted([[term]], cval)


def _gaussian(sigma: Any, order: Any, truncate: Any, radius: Any) -> Host:
    """Return the weights of a correlation with a derivative of a Gaussian, in float64."""
    deviation, degree = real_number(sigma, "sigma"), whole_number(order, "order")
    if not (math.isfinite(deviation) and deviation * deviation > 0):
        raise InvalidProblem(f"sigma must be finite and not 0, not {deviation:g}")
    if degree < 0:
        raise InvalidProblem(f"the order of a derivative is not negative: {degree}")
    far = real_number(truncate, "truncate") * deviation + 0.5
    if radius is not None:
        far = whole_number(radius, "radius")
    if not -1 < far < LONGEST // 2:
        raise InvalidProblem(f"the radius of a filter is from 0 to {LONGEST // 2 - 1:,}, not {far}")
    x = np.arange(-int(far), int(far) + 1)
    with np.errstate(all="ignore"):
        variance = np.float64(deviation) * deviation
        bell = np.exp(-0.5 / variance * x**2)
        bell = bell / bell.sum()
        # The derivative of p(x) * bell is (p'(x) - x / variance * p(x)) * bell.
        p = np.poly1d([1.0])
        for _ in range(degree):
            p = p.deriv() - np.poly1d([1.0 / variance, 0.0]) * p
        weights: Host = p(x) * bell
    return weights[::-1]


@replayed()
def gaussian_filter1d(
    call: Call,
    input: Any,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: complex = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Filter lines along an axis by a Gaussian or its derivative of an order.

    See `scipy.ndimage.gaussian_filter1d`, and `correlate1d` for the other parameters. The filter
    reaches ``int(truncate * sigma + 0.5)`` values far, or `radius`.
    """
    f = Filtering.of(call, input, output, queue, device, "gaussian_filter1d")
    line = _gaussian(sigma, order, truncate, radius)
    return f.weighted([[(f.axis(axis), line, line.size // 2, mode_of(mode))]], cval)


def _gaussians(
    axes: tuple[int, ...], sigma: Any, order: Any, mode: Any, truncate: Any, radius: Any
) -> Term:
    """Return the filters along axes, without those of no width."""
    count = len(axes)
    options = [(sigma, "sigma"), (order, "order"), (mode, "mode"), (radius, "radius")]
    rows = zip(axes, *(each(value, count, name) for value, name in options), strict=True)
    term = []
    for axis, width, degree, edge, reach in rows:
        if real_number(width, "sigma") > LEAST_SIGMA:
            line = _gaussian(width, degree, truncate, reach)
            term.append((axis, line, line.size // 2, mode_of(edge)))
    return term


@replayed()
def gaussian_filter(
    call: Call,
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: complex = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Filter by a Gaussian or its derivatives; see `scipy.ndimage.gaussian_filter`.

    Parameters
    ----------
    sigma, order, mode, radius
        One value, or one for each of `axes`.
    axes : int or tuple of int, optional
        The axes to filter, all by default.
    input, output, cval, truncate, queue, device, wait_for
        As for `gaussian_filter1d`.

    Notes
    -----
    As in SciPy, integers are cut after each axis: constant 100 of uint8 becomes 98.
    ``output="float32"`` cures it.
    """
    f = Filtering.of(call, input, output, queue, device, "gaussian_filter")
    return f.weighted([_gaussians(f.axes(axes), sigma, order, mode, truncate, radius)], cval)


def _of_derivatives(
    f: Filtering, sigma: Any, order: int, mode: Any, axes: Any, truncate: Any, radius: Any
) -> list[Term]:
    """Return, for each axis, the filters of the derivative along it, all with its mode."""
    found = f.axes(axes)
    terms: list[Term] = []
    for axis, edge in zip(found, each(mode, len(found), "mode"), strict=True):
        orders = [order * (other == axis) for other in found]
        term = sorted(_gaussians(found, sigma, orders, edge, truncate, radius), key=lambda t: t[0])
        terms.append(term or [(axis, np.ones(1), 0, "constant")])
    return terms


@like(of_gaussians)
def gaussian_laplace(
    call: Call, begin: Begin, sigma: Any, mode: Any, axes: Any, reach: tuple[Any, Any], cval: Any
) -> AnyArray:
    """Add up the second derivatives of Gaussians; see `scipy.ndimage.gaussian_laplace`.

    Parameters are those of `gaussian_filter`. A mode for each axis is that of the whole derivative
    along it.
    """
    f = begin("gaussian_laplace")
    return f.weighted(_of_derivatives(f, sigma, 2, mode, axes, *reach), cval)


@like(of_gaussians)
def gaussian_gradient_magnitude(
    call: Call, begin: Begin, sigma: Any, mode: Any, axes: Any, reach: tuple[Any, Any], cval: Any
) -> AnyArray:
    """Return the size of the gradient; see `scipy.ndimage.gaussian_gradient_magnitude`.

    Parameters are those of `gaussian_filter`; complex numbers are refused. Squares are made in the
    type of the result, as in SciPy.
    """
    f = begin("gaussian_gradient_magnitude")
    if f.dtype.kind == "c":
        raise InvalidProblem(f"scipy.ndimage.{f.name} of complex numbers is not offered here")
    return f.weighted(_of_derivatives(f, sigma, 1, mode, axes, *reach), cval, root=True)


def _differences(
    f: Filtering, across: list[int], axis: Any, mode: Any, cval: Any, axes: Any
) -> AnyArray:
    """Return differences along an axis, smoothed across it by weights."""
    along, found = f.axis(axis), f.axes(axes)
    if along not in found:
        raise InvalidProblem(f"axis {axis} is not among the axes {axes}")
    modes = [mode_of(one) for one in each(mode, len(found), "mode")]
    edges = dict(zip(found, modes, strict=True))
    others = [(d, np.array(across), 1, edges[d]) for d in found if d != along]
    return f.weighted([[(along, np.array([-1, 0, 1]), 1, edges[along]), *others]], cval)


@like(differences)
def sobel(call: Call, begin: Begin, axis: Any, mode: Any, cval: Any, axes: Any) -> AnyArray:
    """Return differences along an axis, smoothed by 1, 2, 1 along the others of `axes`.

    See `scipy.ndimage.sobel`, and `correlate1d` for the parameters; `mode` may be one for each of
    `axes`, which SciPy lacks: all by default.
    """
    return _differences(begin("sobel"), [1, 2, 1], axis, mode, cval, axes)


@like(differences)
def prewitt(call: Call, begin: Begin, axis: Any, mode: Any, cval: Any, axes: Any) -> AnyArray:
    """Return differences along an axis, smoothed by 1, 1, 1 along the others; else as `sobel`."""
    return _differences(begin("prewitt"), [1, 1, 1], axis, mode, cval, axes)


@replayed()
def laplace(
    call: Call,
    input: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: complex = 0.0,
    *,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Add up second differences, 1, -2, 1 along each axis; see `scipy.ndimage.laplace`.

    Parameters are those of `gaussian_filter`.
    """
    f = Filtering.of(call, input, output, queue, device, "laplace")
    found = f.axes(axes)
    modes = [mode_of(one) for one in each(mode, len(found), "mode")]
    second = np.array([1, -2, 1])
    return f.weighted([[(d, second, 1, edge)] for d, edge in zip(found, modes, strict=True)], cval)


@like(along_axis)
def uniform_filter1d(call: Call, begin: Begin, size: Any, axis: Any, edges: Edges) -> AnyArray:
    """Return the means of windows along an axis; see `scipy.ndimage.uniform_filter1d`.

    Parameters are those of `correlate1d`, with the `size` of the window for its weights. Each
    mean is that of its window alone: SciPy's running sums keep a NaN for the rest of the line.
    Integers of up to 32 bits are summed exactly.
    """
    f, (mode, cval, origin) = begin("uniform_filter1d"), edges
    return f.means([one_window(size, f.axis(axis), mode, origin)], cval)


@replayed()
def uniform_filter(
    call: Call,
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: complex = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Return the means of windows; see `scipy.ndimage.uniform_filter`, and `uniform_filter1d`.

    `size`, `mode` and `origin` are one value, or one for each of `axes`.
    """
    f = Filtering.of(call, input, output, queue, device, "uniform_filter")
    return f.means(f.windows(size, mode, origin, axes), cval)
