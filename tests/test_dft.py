"""The direct transform: accurate at every length, and the command line around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fft_checks import BOUND, random_signal, relative

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.reference.execute import prepare
from opencl_lab.ops.fft.functions.direct import dft
from opencl_lab.ops.fft.passes.twiddles import root_table, roots_of_unity
from opencl_lab.ops.fft.problem import DftProblem, scale_of
from opencl_lab.runtime.session import session_of

ALGORITHMS = ("direct-naive", "direct-tiled")


@pytest.mark.few
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n", [1, 3, 1009, 8192])
def test_error_stays_small_at_every_length(n, algorithm, dtype, rng, queue):
    x = random_signal(rng, n, dtype)
    right = np.fft.fft(x.astype(np.complex128))
    assert relative(dft(x, algorithm=algorithm, queue=queue), right) <= BOUND[dtype]


def test_a_long_transform_of_few_waves(queue, dtype="complex64"):
    """At n = 65536 every power j * k is used, and each wave must end in its own bin."""
    n, waves = 65_536, {1: 2.0, 4097: -1j, 65_535: 0.5}
    powers = np.arange(n)
    x = sum(a * roots_of_unity(-k * powers, n) for k, a in waves.items()).astype(dtype)
    right = np.zeros(n, np.complex128)
    for k, amplitude in waves.items():
        right[k] = n * amplitude
    assert relative(dft(x, algorithm="direct-tiled", queue=queue), right) <= BOUND[dtype]


def test_roots_are_right_to_the_last_digit():
    for n in (1, 2, 3, 7, 8, 1000, 65_537):
        powers = np.arange(-n, 2 * n)
        angle = -2 * np.arccos(np.longdouble(-1)) * (powers % n) / np.longdouble(n)
        roots = roots_of_unity(powers, n)
        assert np.max(np.abs(roots.real - np.cos(angle))) <= 2.3e-16
        assert np.max(np.abs(roots.imag - np.sin(angle))) <= 2.3e-16
    assert list(roots_of_unity(np.arange(4), 4)) == [1, -1j, -1, 1j]
    table = root_table(5, True, np.dtype("complex64"))
    np.testing.assert_array_equal(table, root_table(5, False, np.dtype("complex64")).conj())


@pytest.mark.few(2)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("inverse", [False, True])
def test_axes_norms_and_kinds_of_input(norm, inverse, rng, queue):
    right_of = np.fft.ifft if inverse else np.fft.fft
    for x in (
        rng.standard_normal((4, 5, 6)),
        rng.integers(-9, 9, (4, 5, 6)),
        rng.standard_normal((4, 5, 6)).astype(np.float32)[::-1, ::2],
        random_signal(rng, (4, 5, 6)).T,
        random_signal(rng, (4, 5), ">c16"),
    ):
        before = x.copy()
        for axis in range(-x.ndim, x.ndim):
            result = dft(x, inverse=inverse, norm=norm, axis=axis, queue=queue)
            right = right_of(x, axis=axis, norm=norm)
            single = x.dtype in (np.float32, np.complex64)
            assert result.dtype == (np.complex64 if single else np.complex128)
            assert result.shape == x.shape
            assert relative(result, right) < (1e-6 if single else 1e-14)
        np.testing.assert_array_equal(x, before)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["f2", "f8", "u4", "?"])
def test_real_signals_of_every_type_have_whole_spectra(dtype, side, rng, monkeypatch):
    def no_copy(*_, **__):
        raise AssertionError("it went through the host")

    queue, single = side.queue, dtype in ("f2", "f4")
    for shape, axis in (((3, 8), 1), ((3, 7), 1), ((1, 1), 0), ((5, 2, 2), 0), ((2, 0), 1)):
        x = (9 * rng.random(shape)).astype(dtype)
        given = side.put(x)
        for inverse, algorithm in ((False, "auto"), (True, "auto"), (True, "fft")):
            with monkeypatch.context() as patch:
                patch.setattr(cl.array.Array, "get", no_copy)
                result = dft(given, inverse=inverse, axis=axis, algorithm=algorithm, queue=queue)
            result = side.get(result)
            assert result.shape == shape and result.dtype == (np.complex64 if single else complex)
            if x.size:
                right = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), axis=axis)
                assert relative(result, right) <= (1e-6 if single else 1e-14)
                mirrored = np.take(result, -np.arange(shape[axis]), axis)
                np.testing.assert_array_equal(mirrored, result.conj())
    strided = side.put(x := (9 * rng.random((6, 8))).astype(dtype))[::-2, 1:]
    out = side.put(np.empty((3, 7), np.complex64 if single else complex))
    assert dft(strided, out=out, queue=queue) is out
    assert relative(side.get(out), np.fft.fft(x[::-2, 1:])) <= 1e-6


def test_a_device_without_double_precision_says_what_to_do(queue, monkeypatch):
    session = session_of(queue)
    poor = replace(session.device, capabilities=replace(session.device.capabilities, fp64=False))
    monkeypatch.setattr(session, "device", poor)
    with pytest.raises(InvalidConfig, match="convert it to float32"):
        dft(cl.array.to_device(queue, np.arange(4)))


def test_problems_that_are_refused(queue):
    with pytest.raises(InvalidProblem, match="axis 1 is out of bounds"):
        dft(np.zeros(3), axis=1, queue=queue)
    with pytest.raises(InvalidProblem, match="norm must be one of"):
        dft(np.zeros(3), norm="none", queue=queue)
    with pytest.raises(InvalidProblem, match="cannot transform values of dtype <U1"):
        dft(np.array(["a"]), queue=queue)
    for bad in ({"n": -1}, {"dtype": np.dtype("float32")}, {"kind": "r2r"}):
        with pytest.raises(InvalidProblem):
            DftProblem(**{"n": 4, **bad})
    with pytest.raises(InvalidProblem, match="cannot transform samples of int32"):
        DftProblem.of(4, np.dtype("int32"), 1, False, 1.0)
    with pytest.raises(InvalidProblem, match="inner must be 1"):
        DftProblem(4, inner=2, kind="r2c")
    with pytest.raises(InvalidConfig, match="contiguous rows only"):
        DFT.choose(DftProblem(4, inner=2), ol.select_device(), "direct-naive")


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
            prepared = prepare(reference, problem, inputs, like, 1, ol.select_device())
            for _ in range(2):  # the first call may plan
                prepared.run()
                difference = DFT.compare(problem, inputs, expected, prepared.outputs())
                assert difference.ok, reference.name


@pytest.mark.parametrize("n", [16, 729, 1000, 1009, 1024])
def test_error_is_at_most_twice_that_of_pocketfft(n, rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    for _ in range(8):
        x = random_signal(rng, (4, n))
        right = np.fft.fft(x.astype(np.complex128))
        assert relative(ol.fft.fft(x), right) <= 2 * relative(scipy_fft.fft(x), right)
