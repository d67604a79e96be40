"""silx's convolutions and medians on OpenCL devices, computed by opencl_lab.ndimage.

    import silx_adapter    # once; then silx.opencl.convolution and silx.opencl.medfilt as before

Contexts, queues and arrays stay silx's. Weights need no longer be square, and windows of medians
may have any size.
"""

from pyopencl.array import Array
from silx.opencl.convolution import Convolution
from silx.opencl.medfilt import MedianFilter2D

from opencl_lab import ndimage

MODES = {"periodic": "wrap", "replicate": "nearest"}


def convolve(self, array, output=None):
    """Return the convolved array, on the host unless `output` is a device array."""
    self._check_array(array)
    mode = MODES.get(self.mode, self.mode)
    every = tuple(range(array.ndim))
    window = every[-self.kernel.ndim :]  # of the last axes: silx takes no others
    for axes in every if self.separable else [window]:
        array = ndimage.convolve(array, self.kernel, mode=mode, axes=axes, queue=self.queue)
    if isinstance(array, Array) and not isinstance(output, Array):
        array = array.get()
    if output is None:
        return array
    output[...] = array
    return output


def medfilt2d(self, image, kernel_size=None):
    """Return the medians as float32."""
    size = self.kernel_size if kernel_size is None else self.calc_kernel_size(kernel_size)
    how = {"output": "float32", "mode": "nearest", "queue": self.queue}
    return ndimage.median_filter(image, tuple(size), **how)


Convolution._init_kernels = lambda self: None  # silx's own are not built
Convolution.convolve = Convolution.__call__ = convolve
MedianFilter2D.medfilt2d = MedianFilter2D.__call__ = medfilt2d
