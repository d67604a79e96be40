"""2D convolution as users call it, here and in other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.ops.conv2d.references import cupy_sums, opencv_conv2d, scipy_conv2d, torch_sums
from opencl_lab.lab.reference.peers import Calls, OurCall, RanksCall
from opencl_lab.ops.conv2d.functions import conv2d
from opencl_lab.ops.conv2d.problem import Conv2dProblem

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
