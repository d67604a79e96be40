"""Filters by SciPy, for arrays of the stand-in for CuPy."""

import cupy
import scipy.ndimage


def _filter(name):
    def call(input, weights, output=None, mode="reflect", cval=0.0, origin=0):
        found = getattr(scipy.ndimage, name)(
            cupy.asnumpy(input), cupy.asnumpy(weights), output, mode, cval, origin
        )
        return cupy.asarray(found)

    return call


correlate, convolve = _filter("correlate"), _filter("convolve")
