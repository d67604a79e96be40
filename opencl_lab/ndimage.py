"""Filters of arrays with the signatures and results of `scipy.ndimage`, on any OpenCL device.

NumPy arrays give NumPy arrays; a `pyopencl.array.Array` gives one on the same queue, enqueued
without waiting. Arrays have any number of dimensions and any strides, and are of bool, integers,
float32, float64, complex64 or complex128; weights and footprints are on the host. Results are those
of SciPy, also in their types: an integer stays one unless `output` says otherwise.

Where SciPy contradicts itself, these functions have one rule: a NaN under the window gives NaN,
also for ranks, and nowhere else; integers are exact; `cval` is converted as NumPy converts numbers.
"""

from opencl_lab.ops.filters.convolving import convolve, correlate
from opencl_lab.ops.filters.linear import (
    convolve1d,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from opencl_lab.ops.filters.ranks import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)

__all__ = [
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "laplace",
    "maximum_filter",
    "maximum_filter1d",
    "median_filter",
    "minimum_filter",
    "minimum_filter1d",
    "percentile_filter",
    "prewitt",
    "rank_filter",
    "sobel",
    "uniform_filter",
    "uniform_filter1d",
]
