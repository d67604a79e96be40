"""`opencl_lab.signal` beside `scipy.signal`: modes, methods, axes, types, errors."""

import warnings

import numpy as np
import pyopencl.array
import pytest
import scipy.signal

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.ops.signal import spectra

MODES = ("full", "same", "valid")
SINGLE = (np.float16, np.float32, np.complex64)
LENGTHS = (((7,), (3,)), ((8,), (4,)), ((3,), (8,)), ((9, 8), (4, 3)), ((5, 6, 7), (2, 3, 4)))
TYPES = (
    *(("f4", "f4"), ("f8", "f8"), ("c8", "c8"), ("f4", "c8"), ("c16", "f8"), ("f8", "c16")),
    *(("i4", "i4"), ("i1", "i2"), ("u8", "i1"), ("?", "?"), ("f4", "i4")),
)


def numbers(rng, shape, dtype):
    dtype = np.dtype(dtype)
    values = 20 * rng.random(shape) - (10 if dtype.kind != "u" else 0)
    if dtype.kind == "c":
        values = values + 5j * rng.random(shape)
    return values.astype(dtype) if dtype.kind != "b" else values > 0


def check(side, name, arrays, **options):
    """Compare a function with SciPy's of the same name, three times, as the last is a replay."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = getattr(scipy.signal, name)(*arrays, **options)
    eps = 1e-5 if any(array.dtype in SINGLE for array in arrays) else 1e-12
    near = eps * 4 * np.abs(expected).max(initial=1)
    given = list(map(side.put, arrays))
    for _ in range(3):
        got = side.get(getattr(ol.signal, name)(*given, **options))
        assert got.dtype == expected.dtype and got.shape == expected.shape, (name, options)
        np.testing.assert_allclose(got, expected, rtol=0, atol=near, err_msg=f"{name} {options}")


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_convolutions_and_correlations_are_those_of_scipy(side, rng, lengths, mode):
    arrays = [numbers(rng, shape, np.float32) for shape in lengths]
    check(side, "fftconvolve", arrays, mode=mode)
    check(side, "oaconvolve", arrays, mode=mode)
    for method in ("direct", "fft", "auto"):
        check(side, "correlate", arrays, mode=mode, method=method)


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_types_are_those_of_scipy(side, rng, types, device):
    double = device.capabilities.fp64 or {*types} <= {"f4", "c8"}
    arrays = [numbers(rng, shape, kind) for shape, kind in zip(((40,), (17,)), types, strict=True)]
    if not double:
        with pytest.raises(InvalidConfig, match="no double precision"):
            ol.signal.fftconvolve(*map(side.put, arrays))
        if np.result_type(*types).itemsize >= 8:
            with pytest.raises(InvalidConfig, match="no double precision"):
                ol.signal.correlate(*map(side.put, arrays), method="fft")
        if np.result_type(*types).kind in "fc":
            return
    elif types != ("f4", "i4"):  # SciPy transforms that float32 in single precision
        check(side, "fftconvolve", arrays)
    for method in ("direct", "auto", *["fft"] * bool(double and types != ("?", "?"))):
        check(side, "correlate", arrays, mode="same", method=method)


def test_truth_values_are_rounded_before_they_are_told(side, rng, device):
    if not device.capabilities.fp64:
        pytest.skip("transforms of truth values take double precision")
    arrays = [side.put(numbers(rng, 40, bool)) for _ in range(2)]
    results = [ol.signal.correlate(*arrays, method=method) for method in ("direct", "fft")]
    np.testing.assert_array_equal(*map(side.get, results))  # SciPy's "fft" takes noise for True


def test_half_precision_is_computed_in_single(side, rng):
    arrays = [numbers(rng, n, np.float16) for n in (9, 4)]
    check(side, "fftconvolve", arrays)
    for method in ("direct", "fft"):
        result = side.get(ol.signal.correlate(*map(side.put, arrays), method=method))
        expected = np.correlate(*(array.astype(float) for array in arrays), "full")
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("one", "other", "axes"),
    [
        ((9, 8), (9, 3), 1),
        ((9, 8), (1, 3), [-1]),
        ((1, 8), (9, 3), (1,)),
        ((3, 4, 5), (3, 2, 3), [2, 1]),
        ((3, 50), (3, 1), 1),
        ((1, 4), (5, 1), 0),
    ],
)
def test_axes_and_broadcasting(side, rng, name, mode, one, other, axes):
    arrays = [numbers(rng, shape, np.float32) for shape in (one, other)]
    check(side, name, arrays, mode=mode, axes=axes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("one", "other"), [((500,), (7,)), ((7,), (501,)), ((100, 3), (5, 90)), ((90, 100), (4, 6))]
)
def test_long_arrays_are_convolved_in_blocks(side, rng, monkeypatch, mode, one, other):
    monkeypatch.setattr(spectra, "LEAST_BLOCK", 16)
    ol.free_memory()
    arrays = [numbers(rng, one, np.complex64), numbers(rng, other, np.float32)]
    if mode == "valid" and (one[0] > other[0]) != (one[-1] > other[-1]):
        with pytest.raises(InvalidProblem, match="at least as large as the other"):
            ol.signal.oaconvolve(*arrays, mode=mode)
    else:
        check(side, "oaconvolve", arrays, mode=mode)
    ol.free_memory()


def test_integers_are_exact_whatever_they_are(side):
    large = np.array([2**62, 3, -(2**40)], np.int64)
    for method in ("direct", "auto"):
        result = side.get(ol.signal.correlate(*map(side.put, (large, large)), method=method))
        np.testing.assert_array_equal(result, np.correlate(large, large, "full"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_sums_of_small_integers_wrap_around(side, rng, device, dtype):
    limits = np.iinfo(dtype)
    x, y = rng.integers(limits.min, limits.max, (2, 200), dtype, endpoint=True)
    for method in ("direct", "auto", "fft") if device.capabilities.fp64 else ("direct",):
        result = side.get(ol.signal.correlate(side.put(x), side.put(y), method=method))
        np.testing.assert_array_equal(result, np.correlate(x, y, "full"))


def test_strided_arrays_of_any_layout(side, rng):
    x, y = numbers(rng, (12, 10), np.float32), numbers(rng, (6, 5), np.float32)
    for method in ("direct", "fft"):
        got = ol.signal.correlate(side.put(x)[::-1, ::2], side.put(y)[::2], method=method)
        expected = scipy.signal.correlate(x[::-1, ::2], y[::2], method=method)
        np.testing.assert_allclose(side.get(got), expected, rtol=1e-4, atol=1e-2)


def test_numbers_without_dimensions_and_empty_arrays(side):
    for name in ("fftconvolve", "oaconvolve", "correlate"):
        check(side, name, [np.array(2 + 1j, "c8"), np.array(3 + 2j, "c8")])
        check(side, name, [np.array([[2]]), np.array([[3]])])
    for name in ("fftconvolve", "oaconvolve"):
        result = getattr(ol.signal, name)(side.put(np.ones((2, 0))), side.put(np.ones((2, 3))))
        assert result.shape == (0,) and result.dtype == np.float64
    with pytest.raises(InvalidProblem, match="no empty arrays"):
        ol.signal.correlate(side.put(np.ones(0)), side.put(np.ones(3)))


def test_an_array_of_the_host_goes_to_the_device_of_the_other(queue, rng):
    x, y = numbers(rng, 50, np.float32), numbers(rng, 7, np.float32)
    there = pyopencl.array.to_device(queue, x)
    for result in (ol.signal.fftconvolve(there, y), ol.signal.fftconvolve(y, there)):
        assert result.queue == queue
        np.testing.assert_allclose(result.get(), np.convolve(x, y), rtol=1e-4, atol=1e-3)


def test_host_arrays_are_computed_on_the_serial_side_if_asked(serial, rng):
    arrays = [rng.integers(-9, 9, n, np.int8) for n in (50, 7)]
    for name, how in (
        ("fftconvolve", {}),
        ("oaconvolve", {}),
        ("correlate", {"method": "direct"}),
        ("correlate", {"method": "fft"}),
    ):
        got = getattr(ol.signal, name)(*arrays, **how, device=serial)
        np.testing.assert_allclose(got, getattr(scipy.signal, name)(*arrays, **how), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "shapes", "options"),
    [
        ("fftconvolve", ((3, 4), (3,)), {}),
        ("fftconvolve", ((3, 4), (2, 4)), {"axes": 1}),
        ("fftconvolve", ((3, 4), (3, 4)), {"axes": []}),
        ("fftconvolve", ((3, 4), (3, 4)), {"axes": [0, 0]}),
        ("fftconvolve", ((3, 4), (3, 4)), {"axes": 2}),
        ("fftconvolve", ((3, 4), (4, 3)), {"mode": "valid"}),
        ("oaconvolve", ((30,), (4,)), {"mode": "most"}),
        ("correlate", ((3, 4), (3,)), {}),
        ("correlate", ((3, 4), (4, 3)), {"mode": "valid", "method": "direct"}),
        ("correlate", ((3,), (4,)), {"mode": "most"}),
        ("correlate", ((3,), (4,)), {"method": "most"}),
    ],
)
def test_errors_are_those_of_scipy(side, name, shapes, options):
    arrays = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):
        getattr(scipy.signal, name)(*arrays, **options)
    with pytest.raises(InvalidProblem):
        getattr(ol.signal, name)(*map(side.put, arrays), **options)
