"""What filters images, and which algorithm is the fastest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import is_one_thread
from opencl_lab.ops.conv2d import rolling
from opencl_lab.ops.conv2d.problem import Conv2dProblem
from opencl_lab.ops.estimates import VECTOR_BYTES, on_threads
from opencl_lab.ops.solver import AUTO, Registry, Solver

# A vector of results, and each of its products.
ROLLING_NS = 1.2, 0.17
ROLLING_LINES_NS = 1.2, 0.23  # with a row and a column
REGISTER_NS = 1.6, 0.22
SEPARABLE_NS = 2.0, 0.3
CONVERT_NS = 25.0
"""To convert a vector from another type than that of the sums, and back."""
WIDE_NS = 2.0
"""A product whose sum takes 128 bits."""
MANY_TAPS = 49
"""Weights from which on two short filters beat one in `register`: 7 x 7 was the first to gain."""
FEW_VALUES = 1024
"""Values of a result for each compute unit of an NVIDIA GPU, and weights of its filter, up to which
`naive` takes as long as `register` and gives the same bits: all items run at once. Its only program
is for all sizes, and is built in a quarter of the time that `register` takes for each filter."""
FEW_TAPS = 225
PAYS = 0.9
"""Time of transforms as a share of that of direct sums, below which they are considered: a margin
for the sample of the image, for launches that are called off, and for errors of the estimates."""


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
        direct = ("naive", "register") if _is_small(problem, device) else ("register",)
        if problem.filter_height * problem.filter_width < MANY_TAPS:
            return (*one, *direct)  # two passes over memory would not save enough
        if _transforms_pay(problem, device):
            # The direct sums of `adaptive` are those for a filter of any rank.
            large = "fft" if problem.separable else "adaptive"
            return (*one, large, *self.registry)
        return (*one, *(() if problem.separable else direct), *self.registry)

    def serial_us(self, problem: Conv2dProblem) -> float:
        """Return the estimated microseconds on one thread."""
        if not rolling.pays(problem):
            return self.parallel_us(problem, 1)
        separated = rolling.is_separated(problem)
        return _us(problem, ROLLING_LINES_NS if separated else ROLLING_NS, separated)

    def parallel_us(self, problem: Conv2dProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        separable = problem.separable and math.prod(problem.filter_shape) >= MANY_TAPS
        alone = _us(problem, SEPARABLE_NS if separable else REGISTER_NS, separable)
        return on_threads(alone, units)


CONV2D_SOLVER = Conv2dSolver()


def _is_small(problem: Conv2dProblem, device: Device) -> bool:
    """Return whether an item for each value of the result takes no longer than strips."""
    taps, values = math.prod(problem.filter_shape), math.prod(problem.result_shape)
    few = values <= FEW_VALUES * device.compute_units and taps <= FEW_TAPS
    return few and device.compute_capability is not None


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


def _us(problem: Conv2dProblem, nanoseconds: tuple[float, float], separable: bool) -> float:
    """Return the estimated microseconds on one thread: see `opencl_lab.ops.estimates`."""
    if problem.long_sums:
        return 1e-3 * WIDE_NS * problem.products
    rows, columns = problem.filter_shape
    taps = rows + columns if separable else rows * columns
    vectors = math.prod(problem.result_shape) * problem.sum_type.itemsize / VECTOR_BYTES
    each = nanoseconds[0] + nanoseconds[1] * taps
    if problem.dtype != problem.sum_type:
        each += CONVERT_NS
    return 1e-3 * vectors * each
