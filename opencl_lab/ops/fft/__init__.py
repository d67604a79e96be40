"""The discrete Fourier transform: the problem, its algorithms, the operation, the functions."""
