"""The operations. Importing this package registers every one of them."""

from opencl_lab.operations import conv2d as conv2d
from opencl_lab.operations import dft as dft
from opencl_lab.operations import gemm as gemm
from opencl_lab.operations import sort as sort
