"""Convolutions and correlations with the signatures and results of `scipy.signal`.

NumPy arrays give NumPy arrays; a `pyopencl.array.Array` gives one on the same queue, enqueued
without waiting and without a trip to the host. Arrays have any number of dimensions and any
strides, and are of bool, integers, float16, float32, float64, complex64 or complex128.
"""

from opencl_lab.ops.signal.functions import correlate, fftconvolve, oaconvolve

__all__ = ["correlate", "fftconvolve", "oaconvolve"]
