"""The discrete Fourier transform: the problem, its algorithms, the operation, the functions."""

from opencl_lab.operations.dft.direct import DirectNaive, DirectTiled
from opencl_lab.operations.dft.functions import dft
from opencl_lab.operations.dft.operation import DFT, Dft
from opencl_lab.operations.dft.problem import DftProblem

__all__ = ["DFT", "Dft", "DftProblem", "DirectNaive", "DirectTiled", "dft"]
