"""The public function of the direct transform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import DftProblem, Norm, complex_dtype, scale_of
from opencl_lab.ops.fft.solver import DFT_SOLVER, DIRECT
from opencl_lab.ops.fft.transform import complex_type, prepared, real_type, whole_spectrum
from opencl_lab.runtime.arrays import AnyArray, axis_of
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.rows import Rows
from opencl_lab.runtime.waiting import WaitFor


@replayed()
def dft(
    call: Call,
    x: Any,
    *,
    inverse: bool = False,
    norm: Norm = "backward",
    axis: int = -1,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> AnyArray:
    """Transform by the definition, a sum of n products for each of n frequencies.

    ``X[k] = sum over j of x[j] exp(-2 pi i j k / n)``, in O(n^2); `opencl_lab.fft`
    has the fast transforms. Powers of the root are reduced modulo n exactly, so that
    single precision loses nothing at large n.

    Real signals are not converted to complex, and only their frequencies up to n / 2 are computed;
    the others are conjugates of these.

    Parameters
    ----------
    x : array_like or pyopencl.array.Array
        Any shape, any strides, real or complex. It is not changed. float16 is copied to
        the device without conversion; device arrays of other types are converted there.
    inverse : bool
        Inverse transform: the sign of the exponent is positive.
    norm : str, optional
        As in `numpy.fft`: ``"backward"`` scales the inverse by 1/n, ``"forward"``
        the forward transform, ``"ortho"`` both by 1/sqrt(n).
    axis : int
        Axis to transform along.
    algorithm : str
        ``"auto"``, the fastest one that uses the definition (`direct-tiled`), or the name of an
        algorithm of the operation ``dft``. For `compare`, `tune` and the command line, ``"auto"``
        is the fastest of all, mostly `fft`.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result, with its shape and dtype; may be `x` itself.
    queue : pyopencl.CommandQueue, optional
        Where to transform; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        complex64 for float16, float32 and complex64, else complex128, also for integers; of the
        shape of `x`. For device arrays the work is enqueued on `queue`, without waiting.

    Raises
    ------
    InvalidProblem
        For values that are not numbers, an axis out of bounds, an unknown norm, a
        wrong `out`, or an array that does not fit into the device's memory.
    InvalidConfig
        For an unknown algorithm, a configuration that the device cannot run, or
        double precision on a device without it.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    array = prepared(call, x, queue, device)
    real = array.dtype.kind != "c"
    dtype = real_type(array) if real else complex_type(array)
    rows = Rows.of(array, axis_of(axis, array.ndim), call, dtype=dtype)
    n = rows.length
    target = rows.target(out, complex_dtype(dtype))
    forward = real or not inverse  # the inverse of a real signal is the conjugate
    problem = DftProblem.of(n, dtype, rows.count, not forward, scale_of(n, norm, inverse))
    shape, _ = problem.signal
    run = DFT_SOLVER.run(
        problem,
        {"signal": rows.data.reshape(shape) if rows.data.size else rows.data},
        algorithm=DIRECT if algorithm == "auto" else algorithm,
        config=config,
        out={} if target is None or real else {"spectrum": target.reshape(shape)},
        call=call,
    )
    result = run.outputs["spectrum"].reshape(rows.count, problem.bins)
    if real:
        result = whole_spectrum(result, n, inverse, target, call)
    return rows.restore(result, out, call)
