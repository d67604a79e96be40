"""What filters images, and which algorithm is the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import is_one_thread
from opencl_lab.ops.conv2d import estimates, rolling
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.solver import AUTO, Registry, Solver


class Conv2dSolver(Solver[Conv2dProblem]):
    """Correlation and convolution of images with one filter."""

    name = "conv2d"
    multiples: ClassVar[Mapping[str, float]] = {"tiled": 20, "naive": 25}
    registry: ClassVar[Registry] = {
        "separable": "opencl_lab.ops.conv2d.register:Separable",
        "register": "opencl_lab.ops.conv2d.register:Register",
        "tiled": "opencl_lab.ops.conv2d.direct:TiledConvolution",
        "naive": "opencl_lab.ops.conv2d.direct:NaiveConvolution",
        "fft": "opencl_lab.ops.conv2d.fft:FftConvolution",
        "adaptive": "opencl_lab.ops.conv2d.adaptive:Adaptive",
        "rolling": "opencl_lab.ops.conv2d.rolling:Rolling",
    }

    def ranked(self, problem: Conv2dProblem, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the algorithms by the size of the filter."""
        if problem.long_sums:
            return ("naive",)
        one = ("rolling",) if is_one_thread(device) and rolling.pays(problem) else ()
        if problem.filter_height * problem.filter_width < estimates.MANY_TAPS:
            return (*one, "register")  # two passes over memory would not save enough
        if _transforms_pay(problem, device):
            # The direct sums of `adaptive` are those for a filter of any rank.
            large = "fft" if problem.separable else "adaptive"
            return (*one, large, *self.registry)
        return (*one, *self.registry)

    def serial_us(self, problem: Conv2dProblem) -> float:
        """Return the estimated microseconds on one thread."""
        return estimates.serial_us(problem)

    def parallel_us(self, problem: Conv2dProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return estimates.parallel_us(problem, units)


CONV2D_SOLVER = Conv2dSolver()


PAYS = 0.9
"""Time of transforms as a share of that of direct sums, below which they are considered: a margin
for the sample of the image, for launches that are called off, and for errors of the estimates."""


@lru_cache(maxsize=256)  # on the way of every call with a large filter
def _transforms_pay(problem: Conv2dProblem, device: Device) -> bool:
    """Return whether transforms are faster than direct sums for most images."""
    from opencl_lab.ops.conv2d.fft import FftConvolution

    fft = CONV2D_SOLVER.algorithm("fft")
    assert isinstance(fft, FftConvolution)
    if 0 in problem.result_shape or fft.supports(problem, device) is not None:
        return False
    config = fft.default_config(problem, device)
    return fft.operations(problem, config, device) < PAYS * problem.work.flops
