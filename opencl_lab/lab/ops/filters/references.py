"""Filters of other libraries as references, and as users call them, ours too."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.peers import Calls, OurCall
from opencl_lab.ops.filters.calls import ALONG, FUNCTIONS, FilterCall, asked, filter
from opencl_lab.ops.filters.problem import LinesProblem, Window, WindowProblem

SEPARATE = (*ALONG, "gradient")
"""Filters of SciPy that take no axes, or smooth along all of them."""
OPENCV_MEDIANS = {"uint8": 255, "uint16": 5, "int16": 5, "float32": 5}
"""The largest window of `cv2.medianBlur`."""


def _windows(problem: FilterCall) -> tuple[Window, ...]:
    inner = asked(problem).problem
    if isinstance(inner, WindowProblem):
        return inner.windows
    assert isinstance(inner, LinesProblem)
    return tuple(window for term in inner.terms for window in term)


def by_ndimage(problem: FilterCall, ndimage: Any, image: Any) -> Any:
    """Filter by `scipy.ndimage`, or a module with its functions."""
    sizes = ((window.size, problem.shape[window.axis]) for window in _windows(problem))
    if not image.size or any(size > n for size, n in sizes):
        raise ReferenceUnavailable("a window is longer than the axis")
    function = getattr(ndimage, FUNCTIONS[problem.filter].__name__)
    options = problem.options
    if "axes" not in options or problem.filter not in SEPARATE:
        return function(image, *problem.arguments, **options)
    rest = [axis for axis in range(image.ndim) if axis not in problem.axes]
    if rest != [image.ndim - 1]:
        raise ReferenceUnavailable(f"{function.__name__} filters along all axes")
    del options["axes"]
    if "axis" in options and options["axis"] < 0:
        options["axis"] += 1
    planes = [image[..., place] for place in range(image.shape[-1])]
    stack = np if isinstance(image, np.ndarray) else importlib.import_module("cupy")
    found = [function(plane, *problem.arguments, **options) for plane in planes]
    return stack.stack(found, axis=-1)


def _opencv(problem: FilterCall, cv2: Any, image: Any) -> Any:
    """Filter an image by OpenCV's function for it."""
    name, dtype = problem.filter, problem.dtype
    if len(problem.shape) not in (2, 3) or problem.axes != (0, 1) or not image.size:
        raise ReferenceUnavailable("OpenCV filters images, with or without colours, here")
    borders = {
        "nearest": cv2.BORDER_REPLICATE,
        "reflect": cv2.BORDER_REFLECT,
        "mirror": cv2.BORDER_REFLECT_101,
        **({} if problem.cval else {"constant": cv2.BORDER_CONSTANT}),
    }
    size = int(problem.value)
    if name == "median":
        if problem.mode != "nearest" or not size % 2 or size > OPENCV_MEDIANS.get(dtype.name, 0):
            raise ReferenceUnavailable(
                "OpenCV's medians have the mode nearest and odd sizes, up to 255 of uint8 and 5 of "
                "uint16, int16 and float32"
            )
        return cv2.medianBlur(image, size)
    if problem.mode not in borders or name == "percentile":
        raise ReferenceUnavailable(f"OpenCV has no {name} filter with the mode {problem.mode!r}")
    border = {"borderType": borders[problem.mode]}
    if name in ("minimum", "maximum"):
        if problem.mode == "constant" or (dtype.kind == "i" and dtype != np.int16):
            raise ReferenceUnavailable(f"OpenCV has no {name} of {dtype} with that mode")
        function = cv2.erode if name == "minimum" else cv2.dilate
        return function(image, np.ones((size, size), np.uint8), **border)
    if dtype.kind != "f":
        raise ReferenceUnavailable("OpenCV rounds integers, and SciPy cuts them")
    if name == "mean":
        return cv2.blur(image, (size, size), **border)
    if name == "gaussian":
        taps = _windows(problem)[0].size
        return cv2.GaussianBlur(image, (taps, taps), problem.value, **border)
    if name == "laplace":
        return cv2.Laplacian(image, -1, **border)
    if name == "sobel":
        along = problem.axis % len(problem.shape)
        return cv2.Sobel(image, -1, int(along == 1), int(along == 0), **border)
    raise ReferenceUnavailable(f"OpenCV has no function for the filter {name}")


def scipy_filter(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Filter by `scipy.ndimage`."""
    from scipy import ndimage  # type: ignore[import-untyped,unused-ignore]

    return {"result": by_ndimage(problem, ndimage, inputs["image"])}


def opencv_filter(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Filter by OpenCV, with the threads that it has."""
    import cv2  # type: ignore[import-not-found,unused-ignore]

    return {"result": _opencv(problem, cv2, inputs["image"])}


def scipy_differs(problem: Any, inputs: Arrays) -> str:
    """Return that SciPy has other rules for NaN than that the result is NaN, and no other."""
    nan = inputs["image"].dtype.kind == "f" and bool(np.isnan(inputs["image"]).any())
    return "what becomes of NaN in SciPy's filters depends on its place" if nan else ""


def _scipy(problem: Any, module: Any, arrays: Mapping[str, Any]) -> Any:
    return by_ndimage(problem, importlib.import_module("scipy.ndimage"), arrays["image"])


def _cv2(problem: Any, module: Any, arrays: Mapping[str, Any]) -> Any:
    return _opencv(problem, module, arrays["image"])


def _cupy(problem: Any, module: Any, arrays: Mapping[str, Any]) -> Any:
    return by_ndimage(problem, importlib.import_module("cupyx.scipy.ndimage"), arrays["image"])


def _ours(problem: FilterCall, arrays: Mapping[str, Any], algorithm: str) -> OurCall:
    names = ("ksize", "axis", "axes", "mode", "cval")
    options = {name: getattr(problem, name) for name in names}
    value = problem.arguments[0] if problem.arguments else True
    options |= {problem.filter: value, "algorithm": algorithm}
    return OurCall(filter, (arrays["image"],), options)


CALLS = Calls(_ours, {"scipy": _scipy, "opencv": _cv2, "cupy": _cupy}, ("image",))
