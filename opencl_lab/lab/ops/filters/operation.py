"""Filters of images and volumes as an operation: references, data, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.files import FORMATS, PICTURES, TIFFS, convert
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.ops.filters.expected import compare, filtered
from opencl_lab.lab.ops.filters.references import (
    CALLS,
    opencv_filter,
    scipy_differs,
    scipy_filter,
)
from opencl_lab.lab.ops.shared import refuse_given
from opencl_lab.lab.reference.descriptor import Arrays, HostReference, needs
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.lab.reference.threads import opencv_threads
from opencl_lab.ops.conv2d.arguments import COLOURS
from opencl_lab.ops.filters.calls import (
    ALONG,
    FILTER_SOLVER,
    FUNCTIONS,
    USUAL,
    FilterCall,
    asked,
    derivative_axis,
    filtered_axes,
    named_filter,
)
from opencl_lab.ops.filters.problem import MODES
from opencl_lab.ops.filters.trials import ODD_SHAPE

TYPES = ("uint8", "int16", "uint16", "int32", "float32", "float64")
SMOOTH = ("gaussian", "mean")
"""Filters whose results are numbers between those of the image, but not whole ones."""
SIGNED = ("gradient", "sobel", "prewitt", "laplace")
"""Filters whose results may be beyond the image's type."""
SIZES = ("size", "height", "width", "depth", "channels")


def _window(name: str) -> Option:
    return Option(name, int, None, f"the {name} of windows of so many values along each axis")


def _values(problem: FilterCall) -> int:
    return problem.count * problem.taps


class Filter(Operation[FilterCall]):
    """The filters of `opencl_lab.ndimage` by their names."""

    solver = FILTER_SOLVER
    calls = CALLS
    summary = "Filter images and volumes, as scipy.ndimage does."
    options = (
        Option("gaussian", float, None, "a Gaussian of this standard deviation",
               default_text=f"{USUAL[1]:g} for generated data, if no filter is named"),
        Option("gradient", float, None, "size of the gradient, of Gaussians of this deviation"),
        *map(_window, ("mean", "minimum", "maximum", "median")),
        Option("percentile", float, None, "this percentile of windows of --ksize values"),
        Option("sobel", bool, False, "derivative along --axis, smoothed by 1, 2, 1"),
        Option("prewitt", bool, False, "derivative along --axis, smoothed by 1, 1, 1"),
        Option("laplace", bool, False, "sum of second derivatives"),
        Option("ksize", int, None, "values of a window along each axis, for percentile",
               default_text="3"),
        Option("axis", int, None, "axis of sobel and prewitt", default_text="the last filtered"),
        Option("axes", tuple, None, "axes to filter, such as 1,2 for each page by itself",
               default_text="all but colours"),
        Option("mode", str, "reflect", "what lies beyond the edges", tuple(MODES)),
        Option("cval", float, 0.0, "value beyond the edges for the mode constant"),
        Option("size", int, 1024, "rows and columns of a square image"),
        Option("height", int, None, "rows of an image", default_text="size"),
        Option("width", int, None, "pixels in a row", default_text="size"),
        Option("depth", int, None, "images of a volume", default_text="none: an image"),
        Option("channels", int, 1, "number of values of a pixel, such as 3 for colours"),
        Option("dtype", str, "float32", "type of the numbers", TYPES),
    )  # fmt: skip
    size_option = "size"
    inputs = ("image",)
    formats = (*FORMATS, *PICTURES, *TIFFS)
    output = "result"
    references = (
        HostReference("scipy", scipy_filter, needs("scipy"), cost=_values, differs=scipy_differs),
        HostReference(
            "opencv",
            opencv_filter,
            needs("cv2", "opencv-python-headless"),
            threaded=True,
            held=opencv_threads,
        ),
        from_host(CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> FilterCall:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        height, width = (
            chosen["size"] if chosen[name] is None else chosen[name] for name in ("height", "width")
        )
        if chosen["channels"] < 1:
            raise InvalidProblem(f"a pixel has 1 value or more, not {chosen['channels']}")
        depth = () if chosen["depth"] is None else (chosen["depth"],)
        colours = () if chosen["channels"] == 1 else (chosen["channels"],)
        shape = (*depth, height, width, *colours)
        return self._call(chosen, shape, np.dtype(chosen["dtype"]), bool(colours))

    @staticmethod
    def _call(
        chosen: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any], coloured: bool
    ) -> FilterCall:
        name, value = named_filter(chosen) or USUAL
        axes = filtered_axes(shape, chosen["axes"], coloured)
        for item, takers in (("ksize", ("percentile",)), ("axis", ALONG)):
            if chosen[item] is not None and name not in takers:
                raise InvalidProblem(f"{item} is for {' and '.join(takers)}: leave it out")
        ksize = 3 if chosen["ksize"] is None else chosen["ksize"]
        axis = derivative_axis(chosen["axis"], axes)
        edges = chosen["mode"], chosen["cval"]
        return FilterCall(shape, dtype, name, value, ksize, axis, axes, *edges)

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[FilterCall, Arrays]:
        """Filter the array `image`, converted to `dtype` if given.

        A last dimension of 3 or 4, in three dimensions or more, is colour. Without `dtype`, means,
        Gaussians and derivatives of integers are computed in floating point.
        """
        chosen, image = self.with_defaults(options), arrays["image"]
        refuse_given(options, SIZES)
        found = named_filter(chosen)
        if found is None:
            raise InvalidProblem(f"which filter? Name one: {', '.join(FUNCTIONS)}")
        if image.dtype.kind == "c":
            raise InvalidProblem(f"cannot filter images of dtype {image.dtype}: give real numbers")
        if "dtype" in options:
            image = convert(image, options["dtype"])
        elif image.dtype.kind in "biu" and found[0] in (*SMOOTH, *SIGNED):
            # float32 holds integers of 16 bits exactly, but not longer ones
            image = image.astype(np.float32 if image.dtype.itemsize <= 2 else np.float64)
        elif image.dtype.kind in "bf" and image.dtype.name not in TYPES:
            wide = np.float32 if image.dtype.itemsize == 2 else np.float64
            image = image.astype(np.uint8 if image.dtype.kind == "b" else wide)
        image = np.ascontiguousarray(image, image.dtype.newbyteorder("="))
        problem = self._call(chosen, image.shape, image.dtype, _is_coloured(image, chosen))
        return problem, {"image": image, **asked(problem).inputs}

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result, in the image's type if that is of integers, and its opacity."""
        result: np.ndarray[Any, Any] = outputs[self.output]
        if not arrays:
            return result
        image, chosen = arrays["image"], self.with_defaults(options)
        name, _ = named_filter(chosen) or USUAL
        # Text holds int64, and float64 does not hold all of that.
        whole = image.dtype.kind in "iu" and image.dtype.itemsize < 8
        if whole and name in SMOOTH and "dtype" not in options:
            limits = np.iinfo(image.dtype)
            result = np.rint(result).clip(limits.min, limits.max).astype(image.dtype)
        if _is_coloured(image, chosen) and image.shape[-1] == 4:
            result = result.copy()
            result[..., 3] = image[..., 3]
        return result

    def generate(self, problem: FilterCall, seed: int, **options: Any) -> Arrays:
        """Return random numbers over their type's range or from 0 to 1, and weights."""
        rng = np.random.default_rng(seed)
        if problem.dtype.kind == "f":
            wide = np.float64 if problem.dtype == np.float64 else np.float32
            image: np.ndarray[Any, Any] = rng.random(problem.shape, wide)
        else:
            limits = np.iinfo(problem.dtype)
            image = rng.integers(
                limits.min, limits.max, problem.shape, problem.dtype, endpoint=True
            )
        return {"image": image, **asked(problem).inputs}

    def check_changes(self, problem: FilterCall) -> Sequence[Mapping[str, Any]]:
        """Return a small shape with as many axes, of which few values are not filtered."""
        sizes = enumerate(problem.shape)
        few = (ODD_SHAPE[d % 2] if d in problem.axes else min(size, 4) for d, size in sizes)
        return ({"shape": tuple(few)},)

    def expected(self, problem: FilterCall, inputs: Arrays) -> Arrays:
        """Return the result by NumPy, summed in float64 or in integers."""
        inner = asked(problem).problem
        return {"result": filtered(inner, inputs["image"], inputs.get("weights"))}

    def compare(
        self, problem: FilterCall, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare within the a-priori error bound of sums; all else exactly."""
        return compare(asked(problem).problem, inputs, expected["result"], actual["result"])

    def pictures(
        self, problem: FilterCall, inputs: Arrays, expected: Arrays, outputs: Arrays
    ) -> Arrays:
        """Return an image before and after, and its difference from the expected one."""
        if problem.axes != (0, 1) or problem.shape[2:] not in ((), (3,), (4,)):
            return {}
        before, after, right = inputs["image"], outputs["result"], expected["result"]
        error = np.abs(after.astype(np.float64) - right.astype(np.float64))
        error = error.max(axis=-1) if error.ndim == 3 else error
        return {"before": before, "after": after, "difference from the reference": error}


def _is_coloured(image: np.ndarray[Any, Any], chosen: Mapping[str, Any]) -> bool:
    return chosen["axes"] is None and image.ndim >= 3 and image.shape[-1] in COLOURS


FILTER = Filter()
