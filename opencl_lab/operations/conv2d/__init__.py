"""2D convolution: the problem, its algorithms, the operation, and the public function."""

from opencl_lab.operations.conv2d.algorithms import Naive, Tiled
from opencl_lab.operations.conv2d.filters import FILTERS, named_filter
from opencl_lab.operations.conv2d.functions import conv2d
from opencl_lab.operations.conv2d.operation import CONV2D, Conv2d
from opencl_lab.operations.conv2d.problem import BOUNDARIES, IMAGE_TYPES, MODES, Conv2dProblem
from opencl_lab.operations.conv2d.register import Register, Separable

__all__ = [
    "BOUNDARIES",
    "CONV2D",
    "FILTERS",
    "IMAGE_TYPES",
    "MODES",
    "Conv2d",
    "Conv2dProblem",
    "Naive",
    "Register",
    "Separable",
    "Tiled",
    "conv2d",
    "named_filter",
]
