"""Convolutions of other libraries as references, and as users call them, ours too."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.ops.conv2d.expected import rounded
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import Conv2dProblem

OPENCV_TRANSFORMS = {"float32": 130, "float64": 50}
"""Least number of weights from which on `cv2.filter2D` takes a DFT on x86."""

TORCH_PADDING = {
    "constant": "constant",
    "nearest": "replicate",
    "mirror": "reflect",
    "wrap": "circular",
}


def _refuse_others(problem: Any, name: str) -> None:
    if problem.mode != "same":
        raise ReferenceUnavailable(f"{name} has no mode {problem.mode!r}, only 'same'")
    if problem.long_sums:
        raise ReferenceUnavailable(f"{name} has no sums of 128 bits")


def scipy_conv2d(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Filter by `scipy.ndimage.correlate` or `convolve`, rounded as the operation does."""
    from scipy import ndimage  # type: ignore[import-untyped,unused-ignore]

    _refuse_others(problem, "scipy.ndimage")
    filter_image = ndimage.convolve if problem.flip else ndimage.correlate
    sum_type = np.dtype(np.float64) if problem.dtype != np.float32 else problem.dtype
    result = np.empty(problem.result_shape, problem.dtype)
    for image, target in zip(inputs["image"], result, strict=True):
        for channel in range(problem.channels):
            sums = filter_image(
                image[..., channel].astype(sum_type, copy=False),
                inputs["weights"],
                mode=problem.boundary,
                cval=problem.cval,
            )
            target[..., channel] = rounded(problem, sums)
    return {"result": result}


def scipy_drops(problem: Any, inputs: Arrays) -> str:
    """Return that SciPy leaves out weights, if it does."""
    sizes = np.abs(inputs["weights"])
    dropped = bool(((sizes > 0) & (sizes <= np.finfo(np.float64).eps)).any())
    return "SciPy takes weights of 2.2e-16 and less as 0" if dropped else ""


def opencv_spreads(problem: Any, inputs: Arrays) -> str:
    """Return that OpenCV's transforms, which it takes for large filters, spread NaN."""
    least = OPENCV_TRANSFORMS.get(problem.dtype.name, np.inf)
    spreads = inputs["weights"].size >= least and not np.isfinite(inputs["image"]).all()
    return "OpenCV filters by DFT here, which spreads NaN and infinities" if spreads else ""


def opencv_conv2d(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Filter by `cv2.filter2D`, which saturates integers, with the threads that OpenCV has."""
    import cv2  # type: ignore[import-not-found,unused-ignore]

    _refuse_others(problem, "OpenCV")
    borders = {
        "constant": cv2.BORDER_CONSTANT,
        "nearest": cv2.BORDER_REPLICATE,
        "reflect": cv2.BORDER_REFLECT,
        "mirror": cv2.BORDER_REFLECT_101,
    }
    if problem.boundary not in borders or (problem.boundary == "constant" and problem.cval):
        raise ReferenceUnavailable(
            f"OpenCV's filter2D has no boundary {problem.boundary!r} with cval {problem.cval:g}"
        )
    if problem.dtype == np.float16:
        raise ReferenceUnavailable("OpenCV has no float16 images")
    if problem.dtype.kind in "iu" and not problem.saturate:
        raise ReferenceUnavailable("OpenCV saturates integers; use --saturate")
    weights = inputs["weights"]
    weights = np.ascontiguousarray(weights[::-1, ::-1]) if problem.flip else weights
    weights = weights.astype(np.float64 if problem.dtype == np.float64 else np.float32, copy=False)
    offset_y, offset_x = problem.offset
    result = np.empty(problem.result_shape, problem.dtype)
    for image, target in zip(inputs["image"], result, strict=True):
        if target.size:
            cv2.filter2D(
                image,
                -1,
                weights,
                dst=target,
                anchor=(-offset_x, -offset_y),
                borderType=borders[problem.boundary],
            )
    return {"result": result}


def torch_sums(problem: Any, torch: Any, arrays: Mapping[str, Any]) -> Any:
    """Filter by `torch.nn.functional.conv2d`, tensors on any of PyTorch's devices."""
    if problem.dtype not in (np.float32, np.float64) or problem.channels != 1:
        raise ReferenceUnavailable("PyTorch takes float32 or float64 images of one channel here")
    boundary, cval = problem.extension
    if boundary not in TORCH_PADDING or 0 in problem.image_shape:
        raise ReferenceUnavailable(f"PyTorch has no boundary {boundary!r}")
    before, sizes = [-offset for offset in problem.offset], (problem.height, problem.width)
    along = zip(problem.result_shape[1:3], problem.filter_shape, sizes, before, strict=True)
    after = [out + taps - 1 - size - ahead for out, taps, size, ahead in along]
    image = arrays["image"].reshape(problem.batch, 1, *sizes)
    weights = arrays["weights"].flip(0, 1) if problem.flip else arrays["weights"]
    weights = weights[None, None]
    if boundary == "constant" and not cval and before == after:
        sums = torch.nn.functional.conv2d(image, weights, padding=tuple(before))
    else:
        padding = (before[1], after[1], before[0], after[0])
        value = {"value": cval} if boundary == "constant" else {}
        padded = torch.nn.functional.pad(image, padding, mode=TORCH_PADDING[boundary], **value)
        sums = torch.nn.functional.conv2d(padded, weights)
    return sums.reshape(problem.result_shape)


def cupy_sums(problem: Any, cupy: Any, arrays: Mapping[str, Any]) -> Any:
    """Filter by `cupyx.scipy.ndimage`, on arrays of CuPy."""
    if problem.dtype.kind != "f":
        raise ReferenceUnavailable("CuPy rounds filtered integers by rules of its own")
    _refuse_others(problem, "cupyx.scipy.ndimage")
    ndimage = importlib.import_module("cupyx.scipy.ndimage")
    function = ndimage.convolve if problem.flip else ndimage.correlate
    weights = arrays["weights"][None, :, :, None]  # images and channels are filtered apart
    return function(arrays["image"], weights, mode=problem.boundary, cval=problem.cval)


OPTIONS = ("mode", "boundary", "cval", "flip", "saturate")


def _ours(problem: Conv2dProblem, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    options = {name: getattr(problem, name) for name in OPTIONS}
    options |= {"weights": arrays["weights"], "channels_last": True, "algorithm": algorithm}
    return OurCall(conv2d, (arrays["image"],), options)


def _over_ranks(problem: Conv2dProblem, arrays: Mapping[str, Any]) -> RanksCall:
    call = _ours(problem, arrays, "auto")
    options = {name: value for name, value in call.options.items() if name != "algorithm"}
    return RanksCall("conv2d", call.arrays, options)


def _scipy(problem: Conv2dProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return scipy_conv2d(problem, dict(arrays), 1)["result"]


def _opencv(problem: Conv2dProblem, module: Any, arrays: Mapping[str, Any]) -> Any:
    return opencv_conv2d(problem, dict(arrays), default_threads())["result"]


CALLS = Calls(
    _ours,
    {"scipy": _scipy, "opencv": _opencv, "torch": torch_sums, "cupy": cupy_sums},
    ("image",),
    over_ranks=_over_ranks,
)
