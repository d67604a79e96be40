"""gputools' convolutions and filters, computed by opencl_lab.ndimage.

    import gputools_adapter    # before names are imported from gputools; then gputools as before

Its device and arrays stay. `sub_blocks` is ignored; sums that are not normalized, and strides of
device arrays, are not taken.
What `cval` gives lies beyond the edges, and only there.
"""

import sys

import gputools
import numpy as np

from opencl_lab import ndimage

MODES = {"edge": "nearest", "reflect": "mirror", "symmetric": "reflect"}  # names of numpy.pad


def filtered(function, data, *given, strides=1, res_g=None, mode="constant", **how):
    """Return, or write to `res_g`, what a filter makes of each stride-th value."""
    found = function(data, *given, mode=mode, queue=gputools.get_device().queue, **how)
    if np.any(np.not_equal(strides, 1)):
        steps = (strides,) * data.ndim if np.isscalar(strides) else strides
        found = found[tuple(slice(None, None, step) for step in steps)].copy()
    if res_g is None:
        return found
    res_g[...] = found
    return res_g


def on_host(weights):
    """Return weights as a NumPy array."""
    return weights if isinstance(weights, np.ndarray) else weights.get()


def convolve(data, h, res_g=None, sub_blocks=None, mode="constant"):
    """Convolve by weights of as many dimensions."""
    how = {"mode": MODES.get(mode, mode), "output": "float32"}
    return filtered(ndimage.convolve, data, on_host(h), res_g=res_g, **how)


def convolve_sep(data, *lines, res_g=None, strides=1, sub_blocks=None):
    """Convolve by weights for each axis, those of the last axis first."""

    def along_all(data, **how):
        for axis, line in enumerate(reversed(lines)):
            data = ndimage.convolve1d(data, on_host(line), axis, "float32", **how)
        return data

    return filtered(along_all, data, res_g=res_g, strides=strides)


def gaussian_filter(data, sigma=4.0, truncate=4.0, strides=1, res_g=None):
    """Blur."""
    how = {"truncate": truncate, "strides": strides, "res_g": res_g}
    return filtered(ndimage.gaussian_filter, data, sigma, **how)


def median_filter(data, size=3, cval=0, res_g=None, sub_blocks=None):
    """Return medians."""
    return filtered(ndimage.median_filter, data, size, cval=cval, res_g=res_g)


def extreme(function, worst):
    """Return a filter for which nothing lies beyond the edges, unless `cval` says so."""

    def of_windows(data, size=7, res_g=None, strides=1, cval=None, sub_blocks=None):
        how = {"mode": "nearest"} if cval in (None, worst) else {"cval": cval}
        return filtered(function, data, size, res_g=res_g, strides=strides, **how)

    return of_windows


def uniform_filter(data, size=7, res_g=None, strides=1, sub_blocks=None, cval=0):
    """Return means."""
    return filtered(ndimage.uniform_filter, data, size, res_g=res_g, strides=strides, cval=cval)


FUNCTIONS = {
    "convolve": convolve,
    "convolve_sep2": convolve_sep,
    "convolve_sep3": convolve_sep,
    "gaussian_filter": gaussian_filter,
    "blur": gaussian_filter,
    "median_filter": median_filter,
    "max_filter": extreme(ndimage.maximum_filter, -np.inf),
    "min_filter": extreme(ndimage.minimum_filter, np.inf),
    "uniform_filter": uniform_filter,
}
for module in (gputools, sys.modules["gputools.convolve"]):
    vars(module).update(FUNCTIONS)
