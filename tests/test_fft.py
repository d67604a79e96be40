"""`ol.fft` as NumPy's functions: axes, norms, types, what is refused."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fft_checks import FFT, bound, check, random_signal, relative

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.problem import DftProblem

# ------------------------------------------------------------- ol.fft as NumPy


NAMES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@pytest.mark.few(2)
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", NAMES)
def test_one_axis_as_numpy(name, norm, rng, queue):
    x = random_signal(rng, (4, 5, 6), "complex128")
    x = x.real if name in ("rfft", "ihfft") else x
    some = ((1, 3), (-1, None))  # a norm is but a factor: the others need no more
    for axis, n in ((0, 3), (1, 8), (-1, None), (0, None)) if norm is None else some:
        right = getattr(np.fft, name)(x, n, axis, norm)
        result = getattr(ol.fft, name)(x, n, axis, norm, queue=queue)
        assert result.dtype == right.dtype and result.shape == right.shape
        np.testing.assert_allclose(result, right, atol=1e-13)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [f"{name}{d}" for name in NAMES[:4] for d in "2n"])
def test_several_axes_as_numpy(name, side, rng):
    x = random_signal(rng, (3, 4, 6))
    x = np.ascontiguousarray(x.real) if name.startswith("rfft") else x
    given_x = side.put(x)
    for s, axes in ((None, None), ((5, 4), (0, 2)), ((4, -1), (1, 2))):
        if axes is None and name.endswith("2"):
            axes = (-2, -1)
        right = getattr(np.fft, name)(x, s, axes)
        result = side.get(getattr(ol.fft, name)(given_x, s, axes, queue=side.queue))
        assert result.dtype == right.dtype and result.shape == right.shape
        assert relative(result, right) < 1e-6
    np.testing.assert_array_equal(side.get(given_x), x)


@pytest.mark.parametrize("n", [16, 194, 1000, 2 * 997])
def test_real_results_are_finite_where_their_sums_are(n, side):
    spectrum = np.zeros((2, n // 2 + 1), "c8")
    spectrum[:, n // 3] = 1.5e38
    result = side.get(ol.fft.irfft(side.put(spectrum), n, queue=side.queue))
    assert relative(result, np.fft.irfft(spectrum.astype("c16"), n)) < 1e-6


@pytest.mark.filterwarnings("ignore:.*deprecated in NumPy 2.0:DeprecationWarning")
def test_axes_that_come_twice_are_transformed_twice(rng, queue):
    """As NumPy does it: one after the other, each of its own length, that of None found then."""
    x = random_signal(rng, (2, 3), "complex128")
    for name, s, axes in (
        ("fftn", (2, 5, -1), (0, 0, 1)),
        ("irfftn", (None, 4), (1, 1)),
        ("rfftn", None, (1, 0, 1)),
    ):
        given = x.real if name == "rfftn" else x
        right = getattr(np.fft, name)(given, s, axes)
        np.testing.assert_allclose(getattr(ol.fft, name)(given, s, axes, queue=queue), right)


@pytest.mark.parametrize("name", NAMES)
def test_names_and_parameters_are_those_of_numpy(name):
    assert set(np.fft.__all__) <= set(ol.fft.__all__)
    for function in (name, *(f"{name}{d}" for d in "2n" if not name.strip("i").startswith("h"))):
        ours, theirs = (
            [
                (p.name, p.default)
                for p in inspect.signature(getattr(m, function)).parameters.values()
            ]
            for m in (ol.fft, np.fft)
        )
        assert ours == [*theirs, ("queue", None), ("device", None), ("wait_for", None)]


@pytest.mark.full
def test_mirrored_signals_of_several_axes_as_scipy(side, rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = random_signal(rng, (3, 4, 6))
    for name, signal in (("hfft", x), ("ihfft", np.ascontiguousarray(x.real))):
        given_x = side.put(signal)
        for dimensions, s, axes, norm in (
            ("2", None, (-2, -1), None),
            ("2", (5, -1), (2, 0), "ortho"),
            ("n", None, None, "forward"),
            ("n", (4, 5), (0, 2), "backward"),
        ):
            function = name + dimensions
            right = getattr(scipy_fft, function)(signal, s, axes, norm)
            result = side.get(getattr(ol.fft, function)(given_x, s, axes, norm, queue=side.queue))
            assert result.dtype == right.dtype and result.shape == right.shape
            assert relative(result, right) < 1e-6


@pytest.mark.few(1)
def test_shifts_and_mirrored_signals(side, rng):
    x = random_signal(rng, (4, 5, 3))
    given_x = side.put(x)
    for axes in (None, 1, (0, 2), ()):
        for name in ("fftshift", "ifftshift"):
            result = side.get(getattr(ol.fft, name)(given_x, axes))
            np.testing.assert_array_equal(result, getattr(np.fft, name)(x, axes))
    same = ol.fft.fftshift(given_x, ())
    assert same is not given_x
    assert ol.fft.fftshift([1, 2, 3], queue=side.queue).tolist() == [3, 1, 2]
    for part in (np.s_[:], np.s_[:, 1:], np.s_[::2]):
        spectrum = side.get(ol.fft.hfft(given_x[part], axis=1))
        assert relative(spectrum, np.fft.hfft(x[part], axis=1)) < 1e-6
    real = np.ascontiguousarray(x.real)
    assert relative(side.get(ol.fft.ihfft(side.put(real))), np.fft.ihfft(real)) < 1e-6
    np.testing.assert_array_equal(side.get(given_x), x)


@pytest.mark.few(1)
def test_halfs_are_read_as_they_are_stored(side, rng):
    for shape, arguments in (
        ((3, 96), {}), ((2, 45), {}), ((1, 17), {}), ((4, 6), {"axis": 0}), ((2, 8), {"n": 11}),
        ((0, 4), {}),
    ):  # fmt: skip
        x = rng.standard_normal(shape).astype(np.float16)
        given_x = side.put(x)
        for name in ("rfft", "fft"):
            result = side.get(getattr(ol.fft, name)(given_x, queue=side.queue, **arguments))
            right = getattr(np.fft, name)(x.astype(np.float64), **arguments)
            assert result.dtype == np.complex64 and result.shape == right.shape
            assert relative(result, right) <= 2 * bound(64)
    problem = DftProblem(96, batch=3, kind="r2c", half=True)
    check(problem)
    plan = FFT.plan(problem, FFT.configure(problem, select_device()), select_device())
    assert plan.by_name["signal"].dtype == np.float16
    for wrong in ({"kind": "c2r"}, {"dtype": np.dtype("complex128")}, {"kind": "c2c"}):
        with pytest.raises(InvalidProblem, match="half storage"):
            replace(problem, **wrong)


def test_types_strides_and_out(rng, queue):
    for dtype, kind in (("f2", "c8"), ("f4", "c8"), ("i4", "c16"), (">f8", "c16"), ("c8", "c8")):
        x = (9 * rng.standard_normal((6, 8))).astype(dtype)[::-1, ::2]
        result = ol.fft.fft(x, queue=queue)
        assert result.dtype == kind
        assert relative(result, np.fft.fft(x.astype("c16"))) < 1e-6
    out = np.empty((6, 4), np.complex64)
    assert ol.fft.fft(x, out=out, queue=queue) is out
    np.testing.assert_array_equal(out, result)
    assert ol.fft.fft(out, out=out, queue=queue) is out
    with pytest.raises(InvalidProblem, match="out must have shape"):
        ol.fft.fft(x, out=out[:2], queue=queue)


def test_what_is_refused(queue):
    for call in (
        lambda: ol.fft.fft(np.zeros(0)),
        lambda: ol.fft.fft(np.zeros(4), 0),
        lambda: ol.fft.fft(np.zeros(4), axis=1),
        lambda: ol.fft.fft(np.zeros(4), norm="both"),
        lambda: ol.fft.rfft(np.zeros(4, complex)),
        lambda: ol.fft.irfft(np.zeros(1)),
        lambda: ol.fft.fftn(np.zeros((2, 2)), s=(2,), axes=(0, 1)),
        lambda: ol.fft.rfftn(np.zeros((2, 2)), axes=()),
        lambda: ol.fft.fft(np.array(["a"])),
        lambda: ol.fft.hfft(np.zeros(4), norm="both"),
        lambda: ol.fft.hfft(np.zeros(4), norm=["ortho"]),
        *(lambda norm=norm: ol.fft.fft(np.zeros(4), norm=norm) for norm in ("", 0, [])),
        lambda: ol.fft.ihfft(np.zeros(4, complex)),
        lambda: ol.fft.fftshift(np.zeros(4), axes=1),
        lambda: ol.dft(np.zeros((2, 2)), axis=None),
        lambda: ol.fft.fftn(np.zeros((2, 2)), s=8),
        lambda: ol.fft.fftn(np.zeros((2, 2)), axes=1),
        lambda: ol.fft.fft(np.zeros(2), 2**70),
        lambda: ol.fft.irfft(np.zeros(2), 2**70),
        lambda: ol.fft.fft(np.ones(8), 8.5),
        lambda: ol.fft.fft(np.ones(8), axis="a"),
        lambda: ol.fft.fft(np.ones(8), out=[0] * 8),
    ):
        with pytest.raises(InvalidProblem):
            call()
    with pytest.raises(InvalidConfig, match="FORM must be"):
        DFT.run(
            DftProblem(8), DFT.generate(DftProblem(8), 0), algorithm="fft",
            config={"FORM": "none"}, queue=queue,
        )  # fmt: skip


def test_no_axes_and_no_rows(queue):
    x = np.ones((2, 3), np.complex64)
    same = ol.fft.fftn(x, axes=(), queue=queue)
    assert same is not x
    np.testing.assert_array_equal(same, x)
    assert ol.fft.fft(np.ones((0, 4)), queue=queue).shape == (0, 4)
    assert ol.fft.rfft(np.ones((0, 4)), queue=queue).shape == (0, 3)
    assert ol.fft.irfft(np.ones((0, 4)), queue=queue).shape == (0, 6)


# ------------------------------------------------- arrays of the device, lengths


def test_transposed_device_arrays_along_the_axis_that_is_contiguous(rng, queue):
    host = random_signal(rng, (4, 3, 6))
    given, real = (cl.array.to_device(queue, part.copy()) for part in (host, host.real))
    order = (2, 0, 1)  # the last axis goes first, the others keep their order
    for found, expected in (
        (ol.fft.irfft(given.transpose(order), axis=0), np.fft.irfft(host, axis=2)),
        (ol.fft.rfft(real.transpose(order), axis=0), np.fft.rfft(host.real, axis=2)),
        (ol.dft(given.transpose(order), axis=0), np.fft.fft(host, axis=2)),
        (ol.sort(real.transpose(order), axis=0), np.sort(host.real, axis=2)),
    ):
        assert relative(found.get(), np.moveaxis(expected, 2, 0)) < 1e-6


@pytest.mark.few(1)
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


def test_wrong_arguments_name_the_function():
    with pytest.raises(TypeError, match=r"^fft\(\) missing a required argument: 'a'"):
        ol.fft.fft()
    with pytest.raises(TypeError, match=r"^irfft2\(\) .*unexpected keyword argument 'q'"):
        ol.fft.irfft2([[1.0]], q=1)
