"""Sorting, matrix products, FFTs and convolutions of arrays that lie on many ranks of MPI.

Every rank calls the same functions with the same arguments (but for its own part of the data). Each
drives one device. `comm` is a communicator of mpi4py, by default that of all ranks; with one
rank, the functions are those of `opencl_lab`. See ``docs/distributed.md``.
"""

from opencl_lab.distributed import fft
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.conv2d import conv2d
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.freivalds import WrongProduct
from opencl_lab.distributed.gemm import gemm
from opencl_lab.distributed.layout import block_cyclic, blocks, slab
from opencl_lab.distributed.mpi import agreed, collective, phases, same, world
from opencl_lab.distributed.sort import argsort, sort, sort_by_key, topk, unique

__all__ = [
    "DistArray",
    "WrongProduct",
    "agreed",
    "argsort",
    "block_cyclic",
    "blocks",
    "collective",
    "conv2d",
    "device_of",
    "fft",
    "gemm",
    "phases",
    "same",
    "slab",
    "sort",
    "sort_by_key",
    "topk",
    "unique",
    "world",
]
