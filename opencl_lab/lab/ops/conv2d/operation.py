"""The convolution as an operation: references, data, tolerance."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.core.kernels import host_c_type
from opencl_lab.lab.files import FORMATS, PICTURES, TIFFS, convert, is_rounded, read_array
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.ops.conv2d import tolerance
from opencl_lab.lab.ops.conv2d.expected_fft import correlate_soon
from opencl_lab.lab.ops.conv2d.filters import FILTERS, SIGNED, named_filter
from opencl_lab.lab.ops.conv2d.references import (
    CALLS,
    opencv_conv2d,
    opencv_spreads,
    scipy_conv2d,
    scipy_drops,
    torch_sums,
)
from opencl_lab.lab.ops.shared import in_c, in_torch, refuse_given
from opencl_lab.lab.reference.descriptor import Arrays, HostReference, needs
from opencl_lab.lab.reference.peers import from_host
from opencl_lab.lab.reference.threads import opencv_threads
from opencl_lab.ops.conv2d.arguments import COLOURS, bind, weight_inputs
from opencl_lab.ops.conv2d.problem import BOUNDARIES, IMAGE_TYPES, MODES, Conv2dProblem
from opencl_lab.ops.conv2d.solver import CONV2D_SOLVER
from opencl_lab.ops.conv2d.trials import ODD_SIZES


def _c_defines(problem: Conv2dProblem) -> dict[str, str]:
    if problem.long_sums:
        raise ReferenceUnavailable("the sums need more than 64 bits")
    defines = {"ELEMENT_T": host_c_type(problem.dtype), "SUM_T": host_c_type(problem.sum_type)}
    if problem.dtype.kind in "iu":
        limits = np.iinfo(problem.dtype)
        defines |= {"ELEMENT_MIN": f"({limits.min})", "ELEMENT_MAX": str(limits.max)}
    return defines


def _products(problem: Conv2dProblem) -> int:
    return problem.products


def _c_arguments(problem: Conv2dProblem, inputs: Arrays, outputs: Arrays) -> tuple[Any, ...]:
    boundary, cval = problem.extension
    return (
        *(inputs["image"], inputs["weights"], outputs["result"]),
        *problem.image_shape,
        *(problem.out_height, problem.out_width),
        *problem.offset,
        *problem.filter_shape,
        *(BOUNDARIES.index(boundary), int(problem.flip), int(problem.saturate), float(cval)),
    )


class Conv2d(Operation[Conv2dProblem]):
    """Correlation and convolution of images with one filter."""

    solver = CONV2D_SOLVER
    calls = CALLS
    summary = "Filter images: 2D correlation, or convolution with --flip."
    options = (
        Option("size", int, 1024, "rows and columns of square images"),
        Option("height", int, None, "rows of an image", default_text="size"),
        Option("width", int, None, "pixels in a row", default_text="size"),
        Option("batch", int, 1, "number of images"),
        Option("channels", int, 1, "number of values of a pixel, such as 3 for colours"),
        Option("dtype", str, "float32", "type of the pixels", IMAGE_TYPES),
        Option(
            "ksize", int, None, "rows and columns of the filter", default_text="by the filter, or 3"
        ),
        Option(
            "filter",
            str,
            None,
            "weights by name; sobel is the derivative along x, sobel-y that along y",
            FILTERS,
            default_text="random weights",
            about_data=True,
            with_files=True,
        ),
        Option(
            "sigma",
            float,
            None,
            "standard deviation in gaussian, unsharp, laplacian and sharpen",
            about_data=True,
            with_files=True,
        ),
        Option("weights", str, None, "file with the weights", about_data=True, with_files=True),
        Option("mode", str, "same", "extent of the result", MODES),
        Option(
            "boundary",
            str,
            "constant",
            "extension beyond the edges",
            BOUNDARIES,
            default_text="constant; reflect for named filters on a file",
        ),
        Option("cval", float, 0.0, "value beyond the edges for the boundary constant"),
        Option("flip", bool, False, "rotate the filter by 180 degrees: true convolution"),
        Option(
            "saturate",
            bool,
            False,
            "integers saturate instead of wrapping around; always so for input files",
        ),
    )
    size_option = "size"
    check_cases = tuple(
        MappingProxyType({**ODD_SIZES, "batch": 2, **other})
        for other in ({"boundary": "constant"}, {"boundary": "reflect", "flip": True})
    )
    inputs = ("image",)
    formats = (*FORMATS, *PICTURES, *TIFFS)
    output = "result"
    references = (
        *in_c("conv2d.c", "conv2d", _c_defines, _c_arguments, _products),
        HostReference("scipy", scipy_conv2d, needs("scipy"), cost=_products, differs=scipy_drops),
        HostReference(
            "opencv",
            opencv_conv2d,
            needs("cv2", "opencv-python-headless"),
            threaded=True,
            held=opencv_threads,
            differs=opencv_spreads,
        ),
        in_torch(torch_sums, "result", cost=_products),
        from_host(CALLS, "cupy"),
    )

    def problem(self, **options: Any) -> Conv2dProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        height, width = (
            chosen["size"] if chosen[name] is None else chosen[name] for name in ("height", "width")
        )
        dtype = np.dtype(chosen["dtype"])
        weights = self._given_weights(chosen, options.get("dtype"))
        ksize = 3 if chosen["ksize"] is None else chosen["ksize"]
        rows, columns = (ksize, ksize) if weights is None else weights.shape
        sums: dict[str, Any] = {}
        if weights is not None:
            options = {name: chosen[name] for name in ("cval", "saturate", "mode", "boundary")}
            found = weight_inputs(weights, dtype, **options)
            sums = {"accumulator": found.accumulator, "long_sums": found.long_sums}
            sums["separable"] = "row" in found.inputs
        names = ("batch", "channels", "mode", "boundary", "cval", "flip", "saturate")
        return Conv2dProblem(
            height=height,
            width=width,
            filter_height=rows,
            filter_width=columns,
            dtype=dtype,
            **sums,
            **{name: chosen[name] for name in names},
        )

    @staticmethod
    def _given_weights(chosen: dict[str, Any], dtype: object) -> np.ndarray[Any, Any] | None:
        """Return the weights that the options name, or None for random ones.

        `dtype` is None if the user gave none.
        """
        if chosen["weights"] is None and chosen["filter"] is None:
            if chosen["sigma"] is not None:
                raise InvalidProblem("sigma belongs to a named filter: give filter='gaussian'")
            return None
        if chosen["weights"] is None:
            return named_filter(chosen["filter"], chosen["ksize"], chosen["sigma"])
        for other in ("filter", "ksize", "sigma"):
            if chosen[other] is not None:
                raise InvalidProblem(f"the weights come from a file; leave {other} out")
        weights = read_array(chosen["weights"], rounded=is_rounded(dtype))
        if weights.ndim != 2 or not weights.size:
            raise InvalidProblem(
                f"{chosen['weights']} must hold rows and columns of weights, its shape is "
                f"{weights.shape}"
            )
        return weights

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[Conv2dProblem, Arrays]:
        """Filter the array `image`, converted to `dtype` if given.

        A last dimension of 3 or 4, in three dimensions or more, is colour. Integers saturate.
        Integers become float32 for filters with results of either sign. The boundary of named
        filters is ``reflect`` if neither `boundary` nor `cval` is given, since zeros would
        make an artificial edge.
        """
        chosen = self.with_defaults(options)
        refuse_given(options, ("size", "height", "width", "batch", "channels"))
        weights = self._given_weights(chosen, options.get("dtype"))
        if weights is None:
            raise InvalidProblem("which filter? Name one with filter, or a file with weights")
        if chosen["filter"] is not None and not {"boundary", "cval"} & set(options):
            chosen["boundary"] = "reflect"
        image = arrays["image"]
        if image.dtype.kind == "c":
            raise InvalidProblem(f"cannot filter images of dtype {image.dtype}: give real numbers")
        if "dtype" in options:
            image = convert(image, options["dtype"])
        elif image.dtype.kind in "iu" and chosen["filter"] in SIGNED:
            # float32 holds integers of 16 bits exactly, but not longer ones
            image = image.astype(np.float32 if image.dtype.itemsize <= 2 else np.float64)
        elif image.dtype.name not in IMAGE_TYPES:  # such as int64, from text
            image = image.astype(np.float64)
        return bind(
            image,
            weights,
            channels_last=_is_coloured(image),
            saturate=True,
            **{name: chosen[name] for name in ("mode", "boundary", "cval", "flip")},
        )

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result in the form of a user's image, with its opacity unchanged."""
        result = outputs[self.output]
        if not arrays:  # one image without colours has only rows and columns
            lone = tuple(axis for axis in (0, 3) if result.shape[axis] == 1)
            return result.squeeze(lone)
        image = arrays["image"]
        coloured = _is_coloured(image)
        lead = image.shape[: -3 if coloured else -2]
        shaped = result.reshape(*lead, *result.shape[1 : 4 if coloured else 3])
        if coloured and image.shape[-1] == 4 and shaped.shape == image.shape:
            shaped = shaped.copy()
            shaped[..., 3] = image[..., 3]
        return shaped

    def generate(self, problem: Conv2dProblem, seed: int, **options: Any) -> Arrays:
        """Return random images over their type's range or from 0 to 1, and the weights."""
        chosen = self.with_defaults(options)
        rng = np.random.default_rng(seed)
        shape = problem.image_shape
        if problem.dtype.kind == "f":
            wide = np.float64 if problem.dtype == np.float64 else np.float32
            image = rng.random(shape, wide).astype(problem.dtype, copy=False)
        else:
            limits = np.iinfo(problem.dtype)
            image = rng.integers(limits.min, limits.max, shape, problem.dtype, endpoint=True)
        if chosen["filter"] is not None:
            chosen["ksize"] = problem.filter_height
        weights = self._given_weights(chosen, problem.dtype)
        if weights is None:
            weights = 2 * rng.random(problem.filter_shape) - 1
            weights /= max(1.0, np.abs(weights).sum())
            if problem.separable:
                weights = np.outer(weights[:, 0], weights[0])
        names = ("cval", "saturate", "mode", "boundary")
        options = {name: getattr(problem, name) for name in names}
        found = weight_inputs(weights, problem.dtype, **options).inputs
        kept = ("weights", "row", "column") if problem.separable else ("weights",)
        return {"image": image, **{name: found[name] for name in kept}}

    def sample(self, problem: Conv2dProblem) -> Conv2dProblem:
        """Return a small problem of the same kind, with a filter of 15 x 15 at most."""
        rows, columns = (min(taps, 15) for taps in problem.filter_shape)
        return replace(super().sample(problem), filter_height=rows, filter_width=columns)

    def expected(self, problem: Conv2dProblem, inputs: Arrays) -> Arrays:
        """Return the result by NumPy, summed in float64 or in integers, or by transforms."""
        return {"result": correlate_soon(problem, inputs["image"], inputs["weights"])}

    def compare(
        self, problem: Conv2dProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare within the a-priori error bound of the sums; see `tolerance.compare`."""
        return tolerance.compare(problem, inputs, expected["result"], actual["result"])

    def pictures(
        self, problem: Conv2dProblem, inputs: Arrays, expected: Arrays, outputs: Arrays
    ) -> Arrays:
        """Return the first image before and after, and its difference from the expected one."""
        if 0 in problem.result_shape or 0 in problem.image_shape:
            return {}
        before, after, right = (
            array[0] if problem.channels in COLOURS else array[0, ..., 0]
            for array in (inputs["image"], outputs["result"], expected["result"])
        )
        error = np.abs(after.astype(np.float64) - right.astype(np.float64))
        error = error.max(axis=-1) if error.ndim == 3 else error
        return {"before": before, "after": after, "difference from the reference": error}


def _is_coloured(image: np.ndarray[Any, Any]) -> bool:
    return image.ndim >= 3 and image.shape[-1] in COLOURS


CONV2D = Conv2d()
