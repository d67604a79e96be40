"""Arrays of the device and lengths that `ol.fft` takes."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fft_checks import random_signal, relative

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.drivers.discovery import select_device
from opencl_lab.runtime.session import default_queue


def test_transposed_device_arrays_along_the_axis_that_is_contiguous(rng):
    host = random_signal(rng, (4, 3, 6))
    given = cl.array.to_device(default_queue(select_device("cpu")), host)
    real = cl.array.to_device(given.queue, host.real.copy())
    order = (2, 0, 1)  # the last axis goes first, the others keep their order
    for found, expected in (
        (ol.fft.irfft(given.transpose(order), axis=0), np.fft.irfft(host, axis=2)),
        (ol.fft.rfft(real.transpose(order), axis=0), np.fft.rfft(host.real, axis=2)),
        (ol.dft(given.transpose(order), axis=0), np.fft.fft(host, axis=2)),
        (ol.sort(real.transpose(order), axis=0), np.sort(host.real, axis=2)),
    ):
        assert relative(found.get(), np.moveaxis(expected, 2, 0)) < 1e-6


@pytest.mark.parametrize("n", [np.int8(100), np.uint8(200), np.array(9), True])
def test_lengths_of_other_integer_types(n, rng):
    signal = rng.standard_normal(12)
    for name in ("fft", "rfft", "irfft"):
        expected = getattr(np.fft, name)(signal, int(n))
        assert relative(getattr(ol.fft, name)(signal, n), expected) < 1e-13


def test_device_arrays_without_a_queue_and_of_truth_values(rng, queue):
    host = rng.integers(0, 2, 12) > 0
    for dtype in (np.float32, bool):
        given = cl.array.to_device(queue, host.astype(dtype)).with_queue(None)
        for function in (ol.fft.fft, ol.dft):
            np.testing.assert_allclose(
                function(given, queue=queue).get(), np.fft.fft(host), atol=1e-5
            )


@pytest.mark.parametrize("arguments", [{"n": 8.5}, {"axis": 0.0}, {"axis": "a"}, {"out": [0] * 8}])
def test_arguments_of_the_wrong_type_are_said(arguments):
    with pytest.raises(InvalidProblem):
        ol.fft.fft(np.ones(8), **arguments)
