"""VkFFT's transforms by NumPy, on arrays of pyopencl."""

import numpy as np


class VkFFTApp:
    """With the parameters that are used here; `norm` 0 leaves results as they are, 1 is NumPy's."""

    def __init__(self, shape, dtype, queue, *, axes, inplace, norm, r2c):
        assert not inplace and norm in (0, 1)
        self.shape, self.dtype, self.queue = shape, np.dtype(dtype), queue
        (self.axis,), self.norm, self.r2c = axes, norm, r2c
        assert (self.dtype.kind == "f") == r2c

    def fft(self, source, target):
        self._transform(np.fft.rfft if self.r2c else np.fft.fft, source, target, "backward")

    def ifft(self, source, target):
        norm = "backward" if self.norm else "forward"
        self._transform(np.fft.irfft if self.r2c else np.fft.ifft, source, target, norm)

    def _transform(self, function, source, target, norm):
        found = function(source.get(), self.shape[self.axis], self.axis, norm)
        target.set(np.ascontiguousarray(found.astype(target.dtype)), queue=self.queue)
