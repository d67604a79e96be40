"""The public functions: those of numpy.fft and scipy.fft, and the direct sum."""
