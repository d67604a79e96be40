"""The convolution by Fourier transforms: many blocks, what is not finite, when it is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal
from test_conv2d import assert_close, right

from opencl_lab import compare
from opencl_lab.comparison import contestants
from opencl_lab.device import Device, select_device
from opencl_lab.doctor.peaks import Peaks
from opencl_lab.errors import InvalidConfig
from opencl_lab.operations.conv2d.fft import Blocks
from opencl_lab.operations.conv2d.functions import conv2d
from opencl_lab.operations.conv2d.operation import CONV2D
from opencl_lab.operations.conv2d.problem import BOUNDARIES, Conv2dProblem

FFT = CONV2D.algorithm("fft")
MANY = {"BLOCK": 32, "PAIRS": 3}  # blocks of a small image, so that there are several


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_blocks_of_an_image(boundary, rng, queue):
    flip = boundary in ("constant", "reflect", "wrap")
    filter_shape = (4, 13) if flip else (9, 8)
    image, weights = rng.random((61, 75), np.float32), rng.uniform(-1, 1, filter_shape)
    options = {"boundary": boundary, "cval": -1.5, "flip": flip}
    result = conv2d(image, weights, algorithm="fft", config=MANY, queue=queue, **options)
    assert_close(result, right(image, weights, **options), weights, 1.5)


@pytest.mark.parametrize("mode", ["valid", "full"])
def test_parts_batches_and_colours(mode, rng, queue):
    images, weights = rng.random((3, 40, 50, 3), np.float32), rng.uniform(-1, 1, (7, 6))
    options = {"mode": mode, "algorithm": "fft", "config": MANY, "queue": queue}
    result = conv2d(images, weights, channels_last=True, **options)
    for image in range(3):
        for channel in range(3):
            plane = signal.correlate2d(images[image, ..., channel], weights, mode)
            assert_close(result[image, ..., channel], plane, weights)


def test_a_filter_larger_than_image_and_block(rng, queue):
    image, weights = rng.random((20, 30), np.float32), rng.uniform(-1, 1, (45, 70))
    result = conv2d(image, weights, boundary="wrap", algorithm="fft", config=MANY, queue=queue)
    assert_close(result, right(image, weights, boundary="wrap"), weights)


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


def test_the_error_is_relative_to_the_largest_pixel_of_a_block(rng, queue):
    image, weights = rng.random((64, 64), np.float32), rng.uniform(-1, 1, (15, 15))
    image[5, 5] = 1e6
    result = conv2d(image, weights, algorithm="fft", queue=queue)
    assert np.abs(result - right(image, weights)).max() < 1e-6 * 1e6
    wide = conv2d(image.astype(float), weights, algorithm="fft", queue=queue)
    assert np.abs(wide - right(image, weights)).max() < 4e-15 * 1e6


def test_bytes_are_rounded(rng, queue):
    image = rng.integers(0, 255, (61, 75), np.uint8, endpoint=True)
    weights = rng.uniform(-1, 1, (9, 9))
    weights /= weights.sum() / 2
    result = conv2d(image, weights, saturate=True, algorithm="fft", config=MANY, queue=queue)
    assert (np.abs(result - right(image, weights).clip(0, 255)) <= 0.5 + 1e-2).all()
    assert result.min() == 0 and result.max() == 255
    with pytest.raises(InvalidConfig, match="exact"):
        conv2d(image, np.ones((9, 9), int), algorithm="fft", queue=queue)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_it_is_chosen_for_large_filters(kind):
    device = Device("toy", kind, max_allocation=1 << 32, global_memory=1 << 34)

    def chosen(size, taps, **options):
        return CONV2D.choose(CONV2D.problem(size=size, ksize=taps, **options), device).name

    assert chosen(4096, 7) == "register" and chosen(4096, 31) == "fft"
    assert chosen(4096, 15) == ("fft" if kind == "cpu" else "register")
    assert chosen(16, 31) == "register"  # launches take longer than that
    assert chosen(4096, 31, filter="box") == "separable"
    whole = replace(CONV2D.problem(size=4096, ksize=31, dtype="uint8"), accumulator=np.dtype("i4"))
    assert CONV2D.choose(whole, device).name == "register"
    wide = replace(device, native_vector_bytes=64)  # direct sums are faster there
    assert CONV2D.choose(CONV2D.problem(size=4096, ksize=15), wide).name == "register"
    small = replace(device, max_allocation=1 << 16)
    assert CONV2D.choose(CONV2D.problem(size=4096, ksize=31), small).name == "register"


def test_blocks_cover_the_results():
    for out, taps in ((1, 1), (5, 3), (226, 31), (1000, 31), (1000, 999)):
        problem = Conv2dProblem(out, out, taps, taps)
        blocks = Blocks.of(problem, 128)
        for count, step, length in zip(blocks.count, blocks.step, blocks.length, strict=True):
            assert (count - 1) * step < out <= count * step
            assert length >= step + taps - 1 and length % 16 == 0


def test_pairs_at_a_time_share_their_launches():
    device = select_device()
    problem = CONV2D.problem(size=300, ksize=15)
    config = FFT.default_config(problem, device).replace(BLOCK=64, PAIRS=4)
    plan = FFT.plan(problem, config, device)
    pairs = Blocks.of(problem, 64).pairs(problem)
    starts = [int(at.arguments["first_pair"]) for at in plan.launches if at.kernel == "blocks_in"]
    assert starts == list(range(0, pairs, 4)) and pairs % 4


def test_its_times_are_held_against_its_own_arithmetic(monkeypatch):
    options = {"size": 256, "ksize": 63}
    problem = CONV2D.problem(**options)
    assert FFT.work(problem).flops < problem.work.flops / 20
    (row,) = compare("conv2d", algorithms="fft", against="none", repeats=5, **options)
    # A peak that the transforms stay below, and direct sums in this time would be above.
    peak = problem.work.flops / (row.kernel_ms * 1e-3) / 5
    monkeypatch.setattr(contestants, "stored_peaks", lambda device: Peaks(flops32=peak))
    (row,) = compare("conv2d", algorithms="fft", against="none", repeats=5, **options)
    assert row.status == "correct" and 0 < row.peak < 1
