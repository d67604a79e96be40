"""Fast Fourier transforms with the signatures, shapes and norms of `numpy.fft`.

NumPy arrays give NumPy arrays; a `pyopencl.array.Array` gives one on the same queue, enqueued
without waiting. float16, float32 and complex64 are transformed in single precision, and results are
in single precision; all other numbers are transformed in double precision. The functions named
`rfft...` copy float16 as it is, which halves the bytes that go to the device. Inputs are never
changed. Errors are those of `opencl_lab.dft`. The algorithm is `fft` of the operation ``dft``:
Stockham passes, four-step transforms for long lengths, Bluestein's convolution for lengths with
large prime factors, half-length transforms for real signals. Cosine and sine transforms, and
`hfft2`, `hfftn` and their inverses, which NumPy does not have, have the signatures of `scipy.fft`.
"""

import numpy  # noqa: F401  (as a whole: else another thread may see it half imported)
from numpy.fft import fftfreq, rfftfreq

from opencl_lab.ops.fft.functions.cosine import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from opencl_lab.ops.fft.functions.fourier import (
    fft,
    fft2,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
