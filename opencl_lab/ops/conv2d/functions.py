"""The public function for convolution and correlation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import exact_number
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.conv2d.arguments import bind, is_pair, outer, result_shape
from opencl_lab.ops.conv2d.problem import Boundary, Mode
from opencl_lab.ops.conv2d.solver import CONV2D_SOLVER
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    check_out,
    contiguous,
    direct_target,
    empty,
    is_device_array,
    reshaped,
    to_device,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.waiting import WaitFor


@replayed("weights")
def conv2d(
    call: Call,
    image: Any,
    weights: Any,
    *,
    mode: Mode = "same",
    boundary: Boundary = "constant",
    cval: complex = 0.0,
    flip: bool = False,
    channels_last: bool | None = None,
    saturate: bool = True,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Correlate images with a filter, as `scipy.ndimage.correlate` does.

    Parameters
    ----------
    image : array_like or pyopencl.array.Array, shape (..., height, width)
        bool, integers of 8 to 64 bits, float16, float32, float64, complex64 or complex128;
        leading dimensions are a batch, any strides. With `channels_last` the shape is
        (..., height, width, channels), as in most files, and each channel is filtered separately.
    weights : array_like or pyopencl.array.Array, shape (rows, columns)
        Real numbers, for complex images also complex ones; sizes may be odd or even, unequal,
        and larger than the image. Or a tuple of a column and a row, one-dimensional NumPy
        arrays whose outer product is the filter, formed exactly of integers, else in float64 or
        wider. Such filters are faster, and are also recognised when given whole. For
        an image on the device, weights may be on the host; on the device they must have
        the type in which sums are made.
    mode : str
        ``"same"``: the result has the size of the image, and the centre of the filter is
        weight ``size // 2``, as in `scipy.ndimage`. ``"valid"`` and ``"full"``: where filter
        and image overlap completely, or at all, as in `scipy.signal.correlate2d`.
    boundary : str
        Values beyond the edges: ``"constant"`` (`cval`), ``"nearest"``,
        ``"reflect"`` (d c b a | a b c d), ``"mirror"`` (d c b | a b c d) or ``"wrap"``.
    cval : float
        Complex for complex images only.
    flip : bool
        Rotate the filter by 180 degrees: convolution, as in `scipy.ndimage.convolve` and
        `scipy.signal.convolve2d`.
    channels_last : bool, optional
        Whether the last dimension holds channels. By default it does not, but an image whose shape
        suggests so, 3 or 4 after more than 4 rows and columns, is refused.
    saturate : bool
        Clip integer results to the limits of their type, as OpenCV does. Otherwise they wrap around
        as in SciPy: they are the sums modulo 2^8 to 2^64, and zero for an infinity or NaN.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``conv2d``.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result, with its shape and dtype; may be `image`.
    queue : pyopencl.CommandQueue, optional
        Where to filter; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the array type and dtype of `image`. For device arrays the work is enqueued on
        `queue`, without waiting.

    Raises
    ------
    InvalidProblem
        For an unsupported dtype, too few dimensions, an image that looks as if it had channels
        without `channels_last`, masked arrays, an empty filter, weights beyond the range of the
        type in which sums are made, an unknown mode or boundary, a wrong `out`, or arrays that do
        not fit into the device's memory.
    InvalidConfig
        For an unknown algorithm or a configuration that the device cannot run.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.

    Notes
    -----
    Images of integers or bool with weights of an integer dtype are summed exactly, in integers, of
    128 bits if results saturate and 64 may not be enough; `cval` must be whole for that, unless it
    lies under no filter. Other sums are made in float64 for images of float64 or integers of 32 and
    64 bits, else in float32. For integer results they are rounded to the nearest integer (SciPy
    truncates); float16 results are rounded once, at the end. Results of bool images are False where
    the sum is zero after that; `saturate` does not matter. Of complex images, the real and the
    imaginary part are filtered, with both parts of the weights if these are complex, too: with
    their conjugates unless `flip`, as in SciPy.

    For all algorithms, the error of a result is at most that of a direct sum in any order: for n
    weights, about n times half the machine epsilon times the sum of the magnitudes of its products.
    A filter counts as a column times a row (``separable``) only if each weight is their product up
    to a few roundings. The rounding error of Fourier transforms is relative to the largest pixels
    of a block, usually of up to 512 x 512. So the algorithm ``fft`` sums results directly that
    would lose accuracy, in dark areas beside a bright one; for stars in a dark sky these are nearly
    all. Where transforms probably take less time, ``auto`` takes ``adaptive``, which looks at a
    sample of the image and then does as ``fft`` or as ``register``; only filters that are a column
    times a row take ``fft`` without a sample, and ``algorithm="separable"`` is better for stars.
    Infinities and NaN affect only results whose filter covers them.

    A weight of zero times an infinity or NaN is NaN here, as in `scipy.signal`;
    `scipy.ndimage` leaves out the weights that are zero.
    """
    given = as_array(image)
    options: dict[str, Any] = {"mode": mode, "boundary": boundary, "flip": flip}
    options |= {"channels_last": channels_last, "saturate": saturate}
    call.use(given, queue, device)
    if given.dtype.kind == "c":
        options |= {"algorithm": algorithm, "config": config, "queue": queue, "device": device}
        return _of_complex(call, given, weights, cval, out, options)
    if is_device_array(weights):
        if not is_device_array(given):
            raise InvalidProblem(
                "weights are on the device and the image is not; use weights.get()"
            )
        call.check(weights)
    problem, inputs = bind(given, weights, cval=cval, call=call, **options)
    if is_device_array(given):
        inputs = {
            name: array if is_device_array(array) else to_device(array, call.queue)
            for name, array in inputs.items()
        }
    if not is_device_array(weights):
        call.constants(array for name, array in inputs.items() if name != "image")
    shape = result_shape(problem, given.shape, channels_last)
    target = direct_target(out, shape, problem.dtype, (given, *inputs.values()))
    run = CONV2D_SOLVER.run(
        problem,
        inputs,
        algorithm=algorithm,
        config=config,
        out={"result": None if target is None else reshaped(target, problem.result_shape, call)},
        call=call,
    )
    result = reshaped(run.outputs["result"], shape, call)
    if out is None:
        return result
    if target is None:
        assign(out, result, call)
    return out


def _of_complex(
    call: Call, image: AnyArray, weights: Any, cval: Any, out: Any, options: Mapping[str, Any]
) -> AnyArray:
    """Filter complex images by real convolutions, of each part with each part of the weights."""
    if is_pair(weights) and any(map(np.iscomplexobj, weights)):
        weights = outer(*weights)
    factors = weights if is_pair(weights) else as_array(weights)
    cval = cval if np.iscomplexobj(cval) else exact_number(cval, "cval")
    pairs = contiguous(image, call)
    pairs = pairs.view(pairs.dtype.type(0).real.dtype)  # real and imaginary parts take turns

    def filtered(factor: Any) -> list[AnyArray]:
        parts = (pairs[..., 0::2], np.real(cval)), (pairs[..., 1::2], np.imag(cval))
        return [conv2d(part, factor, cval=value, **options) for part, value in parts]

    if is_pair(factors) or factors.dtype.kind != "c":
        real, imaginary = filtered(factors)
    else:
        (real, imaginary), (across, minus) = filtered(factors.real), filtered(factors.imag)
        with np.errstate(invalid="ignore", over="ignore"):
            if options["flip"]:
                real, imaginary = real - minus, imaginary + across
            else:  # correlations take the conjugates of the weights
                real, imaginary = real + minus, imaginary - across
    result = empty(image, real.shape, image.dtype.newbyteorder("="), call)
    numbers = result.view(real.dtype)
    for place, part in enumerate((real, imaginary)):
        target = numbers[..., place::2]
        assign(target, part, call)
        if is_device_array(result):
            for event in target.events:
                result.add_event(event)
    if out is None:
        return result
    check_out(out, image, result.shape, result.dtype)
    assign(out, result, call)
    return out
