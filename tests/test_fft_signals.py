"""Convolution by transforms, and power spectra."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fft_checks import random_signal, relative

import opencl_lab as ol

# -------------------------------------------------------- convolution, power


@pytest.mark.few(2)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve(mode, rng, side):
    a, b = random_signal(rng, 50), random_signal(rng, 7)
    result = side.get(ol.fft.convolve(side.put(a), side.put(b), mode, queue=side.queue))
    assert relative(result, np.convolve(a, b, mode)) < 1e-6
    a, b = rng.standard_normal(50), rng.integers(-3, 4, 7)
    result = ol.fft.convolve(a, b, mode, queue=side.queue)
    np.testing.assert_allclose(result, np.convolve(a, b, mode), atol=1e-12)


@pytest.mark.full
def test_convolve_broadcasts_as_scipy(rng, queue):
    signal = pytest.importorskip("scipy.signal")
    cases = (
        ((3,), (5,), None),
        ((6, 7), (3, 2), None),
        ((10, 9), (1, 4), None),
        ((5, 1), (3, 4), None),
        ((3, 1, 6), (1, 2, 4), (2,)),
        ((3, 8, 2), (3, 5, 1), 1),
        ((3, 8, 5), (1, 5, 4), (-1, 1)),
        ((1, 5), (3, 5), 0),  # nothing is summed, along the last axis neither
        ((1, 5), (3, 5), (0,)),
        ((5, 1, 5), (1, 8, 5), -2),
        ((1, 4, 6), (1, 1, 6), (0, 1)),
    )
    for number, (first, second, axes) in enumerate(cases):
        make = random_signal if number % 2 else lambda rng, shape: rng.standard_normal(shape)
        a, b = make(rng, first), make(rng, second)
        for mode in ("full", "same", "valid"):
            right = signal.fftconvolve(a, b, mode, axes=axes)
            found = ol.fft.convolve(a, b, mode, axes, queue=queue)
            assert found.shape == right.shape, (first, second, axes, mode)
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)
            given = (cl.array.to_device(queue, x) for x in (a, b))
            found = ol.fft.convolve(*given, mode, axes)
            assert isinstance(found, cl.array.Array)
            np.testing.assert_allclose(found.get(), right, rtol=1e-5, atol=1e-5)
    for shapes, axes, message in (
        (((3, 8), (2, 5)), 1, "must have the same length, or 1"),
        (((3, 8), (3, 5)), (1, -1), "each once"),
        (((3, 8), (3, 5)), (), "one or more"),
        (((3, 8), (3, 5)), 2, "out of bounds"),
    ):
        with pytest.raises(ol.InvalidProblem, match=message):
            ol.fft.convolve(*map(np.ones, shapes), axes=axes, queue=queue)


def test_power_spectrum_as_scipy(rng):
    signal = pytest.importorskip("scipy.signal")
    for x in (rng.standard_normal((2, 9)), rng.integers(-9, 9, (3, 8)), np.ones((1, 1))):
        for scaling in ("density", "spectrum"):
            for window in ("boxcar", "hann"):
                given_window = signal.get_window(window, x.shape[-1])
                found = ol.fft.power_spectrum(x, 30, window=given_window, scaling=scaling)
                right = signal.periodogram(x, 30, window, detrend=False, scaling=scaling)
                for ours, theirs in zip(found, right, strict=True):
                    np.testing.assert_allclose(ours, theirs, atol=1e-14)


@pytest.mark.parametrize("n", [99, 100])
def test_power_spectrum(n, rng, queue):
    x = rng.standard_normal((3, n))
    frequencies, power = ol.fft.power_spectrum(x, 50.0, queue=queue)
    np.testing.assert_array_equal(frequencies, np.fft.rfftfreq(n, 1 / 50))
    step = 50.0 / n  # the density's integral is the mean power
    np.testing.assert_allclose(power.sum(-1) * step, (x**2).mean(-1))
    time = np.arange(n) / 50.0
    tone = 3 * np.sin(2 * np.pi * 10 * step * time)
    window = np.hanning(n)
    for weights in (None, window):
        _, power = ol.fft.power_spectrum(tone, 50.0, window=weights, scaling="spectrum")
        assert np.argmax(power) == 10
        assert power[10] == pytest.approx(9 / 2, rel=1e-3)
    faint = np.float32(1e-10) * x.astype(np.float32)
    _, found = ol.fft.power_spectrum(faint, 1e-40, queue=queue)  # its factor is no float32
    _, right = ol.fft.power_spectrum(faint.astype(np.float64), 1e-40, queue=queue)
    np.testing.assert_allclose(found, right, rtol=1e-3)
    for level, factor in ((1e17, 1.0), (1.0, 1e60)):  # squares that are no float32; nor are factors
        window = np.full(n, factor)
        _, found = ol.fft.power_spectrum(np.full(n, level, "f4"), window=window, queue=queue)
        assert found[0] == pytest.approx(n * level**2, rel=1e-6)
    short = np.array([0, 1, 2, 1], np.float32)
    window = np.array([1e40, 1, 1, 1])  # a factor that is no float32, of a sample that is zero
    assert not ol.fft.power_spectrum(short, window=window, queue=queue)[1].any()
    assert np.isinf(ol.fft.power_spectrum(np.array([np.inf, 1, 2]), queue=queue)[1]).all()
    window = np.hanning(n)
    given_tone = cl.array.to_device(queue, tone)
    window = cl.array.to_device(queue, window)
    np.testing.assert_allclose(
        ol.fft.power_spectrum(given_tone, 50.0, window=window, scaling="spectrum")[1], power
    )
