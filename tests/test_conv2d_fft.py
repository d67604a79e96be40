"""The convolution by Fourier transforms: many blocks, what is not finite, when it is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv2d_checks import check, right

from opencl_lab.core.device import Device
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.ops.conv2d.blocks import ERROR
from opencl_lab.ops.conv2d.functions import conv2d

FFT = CONV2D.algorithm("fft")
MANY = {"BLOCK": 32, "PAIRS": 3}  # blocks of a small image, so that there are several


@pytest.mark.few(1)
@pytest.mark.parametrize("boundary", ["constant", "wrap"])
def test_blocks_of_an_image(boundary, rng, queue):
    image, weights = rng.random((61, 75), np.float32), rng.uniform(-1, 1, (4, 13))
    options = {"boundary": boundary, "cval": -1.5, "flip": True}
    check(image, weights, 1.5, algorithm="fft", config=MANY, queue=queue, **options)


@pytest.mark.few(1)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_what_is_not_finite_stays_under_the_filter(bad, rng, queue):
    image, weights = rng.random((61, 75), np.float32), rng.uniform(0.5, 1, (5, 3))
    image[20, 33] = image[60, 74] = bad  # near a corner of blocks, and of the image
    image[20, 34] = abs(bad)
    options = {"boundary": "nearest", "queue": queue}
    direct = conv2d(image, weights, algorithm="naive", **options)
    result = conv2d(image, weights, algorithm="fft", config=MANY, **options)
    finite = np.isfinite(direct)
    assert not finite.all()
    np.testing.assert_array_equal(result[~finite], direct[~finite])
    np.testing.assert_allclose(result[finite], direct[finite], rtol=1e-5)


def apart(rng, shape):
    """Return arrays whose magnitudes are far apart, each in a way of its own."""
    noise, spread = rng.uniform(-1, 1, shape), 10 ** rng.uniform(-7, 7, shape)
    dark = np.where(np.arange(shape[1]) < shape[1] // 2, 1, 1e-8) * noise
    stars = np.where(rng.random(shape) < 0.01, 1e6, 0.0) * noise
    alone = np.zeros(shape)
    alone[shape[0] // 2, shape[1] // 2], alone[0, 0] = 1, 1e-7
    waves = np.cos(np.arange(shape[1]) * 0.7) * np.sin(np.arange(shape[0]) * 0.3)[:, None]
    return noise, spread * noise, dark, stars, stars + 1e-3 * noise, alone, waves


def assert_close_everywhere(result, image, weights):
    """Compare each value within the error bound of its own direct sum."""
    eps = np.finfo(result.dtype).eps * (2 if result.dtype == np.float64 else 1)
    sizes = right(np.abs(image), np.abs(weights))
    bound = (weights.size + 12) * eps / 2 * sizes + weights.size * np.finfo(result.dtype).tiny
    assert (np.abs(result - right(image, weights)) <= bound).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dtype", "config"), [("float32", {}), ("float64", {}), ("float32", {"WG_SIZE": 8})], ids=str
)
def test_small_results_beside_large_ones(dtype, config, rng, queue, device):
    if dtype == "float64" and not device.capabilities.fp64:
        pytest.skip("no double precision")
    more = {"algorithm": "fft", "config": {**MANY, "BLOCK": 64, **config}, "queue": queue}
    for weights in apart(rng, (15, 16)):
        for image in apart(rng, (70, 90)):
            weights, image = weights.astype(dtype), image.astype(dtype)
            assert_close_everywhere(conv2d(image, weights, **more), image, weights)


def test_items_know_pixels_that_others_put(rng, queue):
    """The largest pixel, by which results are trusted, is one that an item later in order puts."""
    image, weights = (rng.standard_normal(n).astype(np.float32) for n in ((40, 147), (5, 5)))
    config = {"BLOCK": 64, "PAIRS": 2, "WG_SIZE": 32}
    for large in (1, 1e20):  # the first leaves small numbers in memory
        image[:, 31] = large
        result = conv2d(image, weights, algorithm="fft", config=config, queue=queue)
        assert_close_everywhere(result, image, weights)


@pytest.mark.full
def test_errors_of_transforms_stay_below_their_bound(rng, queue):
    """Noise of +-1 makes the largest; results just above what is trusted may suffer most."""
    delta, signs = np.zeros((63, 63)), np.sign(rng.standard_normal((1100, 1100)))
    delta[31, 31] = 1
    small = np.where(rng.random(signs.shape) < 0.1, 1.02 * 2 * ERROR / delta.size, 1)
    image = (small * signs).astype(np.float32)
    errors = np.abs(conv2d(image, delta.astype(np.float32), algorithm="fft", queue=queue) - image)
    eps = np.finfo(np.float32).eps
    assert 6 * eps < errors.max() < ERROR * eps
    assert (errors <= delta.size * eps / 2 * np.abs(image)).all()


def test_only_tiles_with_bad_results_are_summed_anew(rng, queue, device):
    """Sums of small integers are exact, transforms are not: it shows which a result is of."""
    if device.kind != "cpu":
        pytest.skip("other devices mark single results")
    image, weights = (rng.integers(1, 9, shape) for shape in ((80, 300), (15, 15)))
    image = image.astype(np.float32)
    image[:, 100:200] *= 2.0**-20
    image[:, 200:] = 0
    exact = right(image, weights)
    more = {"algorithm": "fft", "config": {"BLOCK": 512}, "queue": queue}
    result = conv2d(image, weights.astype(np.float32), **more)
    changed = result != exact
    assert changed[8:-8, 16:80].mean() > 0.2
    assert not changed[:, 110:].any()
    assert not result[:, 210:].any()


def test_each_row_counts_once(rng, queue):
    """Below an edge, the rows from the middle on are enough only if they are counted twice."""
    image, weights = np.zeros((80, 300), np.float32), np.ones((15, 15), np.float32)
    image[40:] = rng.integers(11, 14, (40, 300))
    image[:, 200:] = 64
    more = {"algorithm": "fft", "config": {"BLOCK": 512}, "queue": queue}
    changed = conv2d(image, weights, **more) != right(image, weights)
    assert not changed[40:44, 16:180].any()
    assert changed[50:70, 16:180].mean() > 0.2  # these are taken as they are


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_it_is_chosen_for_large_filters(kind):
    device = Device("toy", kind, max_allocation=1 << 32, global_memory=1 << 34)

    def chosen(size, taps, **options):
        return CONV2D.choose(CONV2D.problem(size=size, ksize=taps, **options), device).name

    assert chosen(4096, 7) == chosen(4096, 13) == "register" and chosen(4096, 31) == "adaptive"
    assert chosen(1024, 21) == ("adaptive" if kind == "cpu" else "register")
    assert chosen(16, 31) == "register"  # launches take longer than that
    assert chosen(4096, 31, filter="box") == "separable"
    whole = replace(CONV2D.problem(size=4096, ksize=31, dtype="uint8"), accumulator=np.dtype("i4"))
    assert CONV2D.choose(whole, device).name == "register"
    wide = replace(device, native_vector_bytes=64)  # direct sums are faster there
    assert CONV2D.choose(CONV2D.problem(size=4096, ksize=21), wide).name == (
        "register" if kind == "cpu" else "adaptive"
    )
    for units in (2, 16):  # each launch wakes all threads
        threads = replace(wide, compute_units=units)
        assert CONV2D.choose(CONV2D.problem(size=1024, ksize=31), threads).name == (
            "register" if kind == "cpu" and units > 2 else "adaptive"
        )

    small = replace(device, max_allocation=1 << 16)
    assert CONV2D.choose(CONV2D.problem(size=4096, ksize=31), small).name == "register"
