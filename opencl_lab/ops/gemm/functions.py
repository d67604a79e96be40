"""The public function of the matrix product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.gemm.bind import bind, result_shape, shaped
from opencl_lab.ops.gemm.problem import Activation, Precision
from opencl_lab.ops.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    direct_target,
    is_device_array,
)
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed
from opencl_lab.runtime.together import Devices, asked_for
from opencl_lab.runtime.waiting import WaitFor

LARGE = 1 << 20
"""Bytes of matrices from which working tile by tile may pay or be necessary."""


@replayed()
def gemm(
    call: Call,
    a: Any,
    b: Any,
    *,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    c: Any = None,
    trans_a: bool | str | int = False,
    trans_b: bool | str | int = False,
    bias: Any = None,
    activation: Activation | None = None,
    precision: Precision = "native",
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
    devices: Devices = None,
) -> AnyArray:
    """Return ``activation(alpha * op(a) @ op(b) + beta * c + bias)``.

    Here op is the identity, the transpose or the conjugate transpose; see `trans_a`.

    Large host arrays are multiplied tile by tile if copies take long, or if they need more memory
    than the device has (or than ``OCLAB_DEVICE_BYTES``).

    Parameters
    ----------
    a, b : array_like or pyopencl.array.Array
        Matrices of float16, float32, float64, complex64, complex128 or integers of 8 to 64 bits,
        all arrays of one dtype, all on the host or all on a device; any strides. Arrays with more
        than two dimensions are stacks of matrices, which broadcast as in `numpy.matmul`: shapes
        ``(..., m, k)`` and ``(..., k, n)``. As there, a vector `a` is one row, a vector `b` one
        column, and the result does not have that dimension. A transposed view such as ``x.T`` or
        ``x.swapaxes(-1, -2)`` is not copied, and broadcasting does not repeat matrices in memory.
        Products of float16 are summed in float32 and rounded once, at the end. Integers wrap
        around, as in NumPy.
    alpha, beta : float or complex
        Complex for complex matrices only, whole numbers for integers. As in BLAS: with ``beta=0``,
        `c` is not read; with ``alpha=0``, `a` and `b` are not read, so that NaN in them does not
        reach the result.
        They are rounded to the dtype, for float16 to float32, in which 1e40 is an infinity and
        1e-50 is zero. For complex matrices they are complex even if real, also ``alpha=1``: so if
        one component of a sum is infinite, the other becomes NaN, as in BLAS and `numpy.matmul`.
        With ``beta=1``, `c` is added without a multiplication.
    c : array_like or pyopencl.array.Array, optional
        Of the shape of the result; needed where `beta` is not 0. It is not
        changed, unless `out` is `c`.
    trans_a, trans_b : bool, or "N", "T", "C", or 0, 1, 2
        Whether to transpose the matrices of `a`, of `b`: their last two dimensions are swapped; a
        vector stays one row or column. Letters are those of BLAS, in either case, numbers those of
        `scipy.linalg.blas`; "C" and 2 mean the conjugate transpose.
    bias : array_like or pyopencl.array.Array, optional
        Added to all matrices of the result: a number for each column, of shape ``(n,)`` or
        ``(1, n)``, or for each row, ``(m, 1)``. For a vector it has the length of the result.
    activation : str, optional
        ``"relu"``, which propagates NaN, or ``"gelu"``, by the error function; for real
        floating-point numbers.
    precision : str
        For float32. ``"native"``: arithmetic in the dtype. ``"3xtf32"`` and ``"tf32"`` use matrix
        units: the former splits each number into two limbs of 11 bits, which is as accurate as
        native; the latter uses one. Without such units, or for small products, it is native.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``gemm``, of which ``"naive"`` and
        ``"tiled"`` multiply integers; or ``"hybrid"``: host arrays are multiplied by NumPy's BLAS
        if that is faster; the first such call for a problem times both sides.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result, with its shape and dtype; may be any of the inputs.
    queue : pyopencl.CommandQueue, optional
        Where to multiply; default: a device array's own, else the library's on `select_device()`.
    device : str, int or Device, optional
        In place of `queue`, as `select_device` takes it.
    wait_for : pyopencl.Event or several, optional
        What the first launch waits for; with host arrays, the call itself waits.
    devices : sequence of str, int or Device, optional
        In place of both: devices that multiply host arrays together, each a band of rows. One
        that is named twice counts as two. The first one alone makes small products.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the array type and dtype of `a` and shape ``(..., m, n)``, without the dimensions of
        vectors; for two vectors on the host a number. For device arrays the work is enqueued on
        `queue`, without waiting.

    Raises
    ------
    InvalidProblem
        For incompatible shapes, an unsupported or mixed dtype, a single number as `a` or `b`, an
        unknown precision or activation, a complex `alpha` or `beta` for real matrices or a
        fractional one for integers, a missing `c`, a wrong `bias` or `out`, or arrays that do not
        fit into the device's memory.
    InvalidConfig
        For an unknown algorithm, one that does not solve this problem, or a configuration that
        the device cannot run; for `devices` with `queue` or `device`, or without any device.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    added = {"c": c, "bias": bias}
    given = {"a": a, "b": b, **{name: item for name, item in added.items() if item is not None}}
    arrays = {name: as_array(array) for name, array in given.items()}
    together = asked_for(devices, queue, device, arrays.values())
    call.use(arrays["a"], queue, together[0] if together else device)
    for array in arrays.values():
        call.check(array)
    problem, inputs = bind(
        arrays["a"],
        arrays["b"],
        arrays.get("c"),
        alpha=alpha,
        beta=beta,
        trans_a=trans_a,
        trans_b=trans_b,
        precision=precision,
        bias=arrays.get("bias"),
        activation=activation,
        call=call,
    )
    shape = result_shape(arrays["a"], arrays["b"], trans_a, trans_b)
    target = direct_target(out, shape, problem.dtype, tuple(arrays.values()))
    place = None if target is None else shaped(target, problem.shape, call)
    how: dict[str, Any] = {"algorithm": algorithm, "config": config, "call": call}
    result = None
    nbytes = max(
        problem.work.bytes, sum(array.size * array.dtype.itemsize for array in inputs.values())
    )
    if len(together) > 1:
        from opencl_lab.ops.gemm.host.shared import multiply_together

        result = multiply_together(
            problem, inputs, place, together, algorithm=algorithm, config=config
        )
    if result is None and (algorithm == HYBRID or nbytes >= LARGE):
        from opencl_lab.ops.gemm.host.dispatch import multiply_by_blas_or_in_parts

        result, how["algorithm"] = multiply_by_blas_or_in_parts(problem, inputs, place, **how)
    if result is None:
        result = GEMM_SOLVER.run(problem, inputs, out={"result": place}, **how).outputs["result"]
    if target is not None:
        return target
    result = shaped(result, shape, call)
    if out is None:
        return result if shape or is_device_array(result) else result[()]
    assign(out, result, call)
    return out
