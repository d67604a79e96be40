"""What several tests of the convolution share."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from opencl_lab.ops.conv2d.functions import conv2d

ALGORITHMS = ("register", "tiled", "naive")


def assert_close(result, right, weights, largest=1.0):
    """Compare within the bound of a sum of so many products."""
    assert result.shape == right.shape
    eps = np.finfo(np.float64 if result.dtype == np.float64 else np.float32).eps
    bound = 2 * (weights.size + 12) * eps * largest * np.abs(weights).sum()
    if result.dtype == np.float16:
        bound = bound + np.finfo(np.float16).eps * np.abs(right)
    assert (np.abs(result.astype(np.float64) - right) <= bound).all()


def right(image, weights, **options):
    filter_image = ndimage.convolve if options.pop("flip", False) else ndimage.correlate
    options["mode"] = options.pop("boundary", "constant")
    return filter_image(image.astype(np.float64), weights, **options)


def check(image, weights, largest=1.0, algorithm="auto", config=None, queue=None, **options):
    """Compare a result of the size of the image with SciPy's."""
    result = conv2d(image, weights, algorithm=algorithm, config=config, queue=queue, **options)
    assert result.dtype == image.dtype
    assert_close(result, right(image, weights, **options), weights, largest)
