"""Properties of Fourier transforms, and every reference."""

from __future__ import annotations

import numpy as np
import pytest
from fft_checks import random_signal, relative
from hypothesis import given
from hypothesis import strategies as st

import opencl_lab as ol
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.ops.fft.problem import DftProblem, scale_of

# ---------------------------------------------------------------- properties

LENGTHS = st.sampled_from([1, 30, 64, 77, 101, 131])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_every_reference_at_hand_agrees(kind):
    scale = scale_of(30, "ortho", kind != "r2c")
    problem = DftProblem(
        30, batch=4, inverse=kind == "c2c", scale=scale, kind=kind, half=kind == "r2c"
    )
    inputs = DFT.generate(problem, 1)
    expected = DFT.expected(problem, inputs)
    like = {"spectrum": problem.spectrum}
    for reference in DFT.references:
        if reference.kind == "c" or reference.unavailable() is None:
            prepared = prepare(reference, problem, inputs, like, 1, select_device())
            for _ in range(2):  # the first call may plan
                prepared.run()
                difference = DFT.compare(problem, inputs, expected, prepared.outputs())
                assert difference.ok, reference.name


@given(st.sampled_from([16, 1000, 1024, 1009, 729]), SEEDS)
def test_error_is_at_most_twice_that_of_pocketfft(n, seed):
    x = random_signal(np.random.default_rng(seed), (4, n))
    right = np.fft.fft(x.astype(np.complex128))
    scipy_fft = pytest.importorskip("scipy.fft")
    assert relative(ol.fft.fft(x), right) <= 2 * relative(scipy_fft.fft(x), right)
