"""Mako templates of OpenCL C kernels: one folder an operation, one file an algorithm."""
