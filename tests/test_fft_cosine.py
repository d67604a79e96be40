"""Cosine and sine transforms against SciPy, in extended precision where errors are judged."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem

scipy_fft = pytest.importorskip("scipy.fft")

ONE = ("dct", "idct", "dst", "idst")
SEVERAL = tuple(f"{name}n" for name in ONE)
TYPES = (1, 2, 3, 4)


def relative(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def check(name, x, *args, given=None, **options):
    """Allow four times the error of SciPy, which is half a unit of the last digit at least."""
    theirs, ours = (getattr(module, name) for module in (scipy_fft, ol.fft))
    result = ours(x if given is None else given, *args, **options)
    if isinstance(given, cl.array.Array):
        assert isinstance(result, cl.array.Array)
        result = result.get()
    beside = theirs(x, *args, **options)
    assert result.shape == beside.shape and result.dtype == beside.dtype
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    right = theirs(x.astype(wide), *args, **options)
    least = np.finfo(result.dtype).eps / 2
    assert relative(result, right) <= 4 * max(relative(beside, right), least), (name, args, options)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ONE)
def test_every_type_and_length(name, rng):
    for type, n in itertools.product(TYPES, (1, 5, 16)):
        if n > 1 or type > 1 or "dst" in name:
            check(name, rng.standard_normal((3, n), np.float32), type)
    check(name, rng.standard_normal((3, 5)), 2)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ONE)
def test_norms_and_weights_of_the_ends(name, rng):
    x = rng.standard_normal((3, 5), np.float32)
    norms, weights = ("backward", "ortho", "forward"), (None, True, False)
    for type, norm, ortho in itertools.product(TYPES, norms, weights):
        check(name, x, type, norm=norm, orthogonalize=ortho)


@pytest.mark.full
def test_axes_lengths_and_types_of_numbers(side, rng):
    x = 9 * rng.standard_normal((5, 6, 16), np.float32)
    for dtype in ("float32", "float16", "complex64"):
        y = (x + 1j * x[::-1] if dtype == "complex64" else x).astype(dtype)
        given = side.put(y)
        for type, n, axis in ((2, None, 0), (3, 16, 1), (4, 5, -1)):
            check("dst" if dtype == "complex64" else "dct", y, type, n, axis, given=given)
    for dtype in ("int32", "bool"):
        y = x.astype(dtype)
        check("dct", y, axis=0, given=side.put(y))
    given = side.put(x)
    check("dct", x[:, 1:, ::2], 2, axis=0, given=given[:, 1:, ::2])
    for name, arguments in zip(
        SEVERAL,
        (
            {"axes": (0, 2)},
            {"s": (16, 5), "axes": (0, -1)},
            {"axes": 0, "norm": "ortho"},
            {"s": (5, -1), "type": 4},
        ),
        strict=True,
    ):
        check(name, x, given=given, **arguments)
    np.testing.assert_array_equal(side.get(given), x)


def test_weights_of_the_ends_for_complex_numbers(rng):
    """Real and imaginary parts are transformed alike; SciPy does not heed `orthogonalize` there."""
    x = rng.standard_normal((2, 5)) + 1j * rng.standard_normal((2, 5))
    found = ol.fft.dct(x, orthogonalize=True)
    np.testing.assert_allclose(found.real, scipy_fft.dct(x.real, orthogonalize=True))
    np.testing.assert_allclose(found.imag, scipy_fft.dct(x.imag, orthogonalize=True))


def test_out_no_axes_and_no_rows(rng):
    x = rng.standard_normal((3, 5))
    out = np.empty((3, 5))
    assert ol.fft.dct(x, out=out) is out
    np.testing.assert_allclose(out, scipy_fft.dct(x), atol=1e-14)
    same = ol.fft.dctn(x, axes=())
    assert same is not x
    np.testing.assert_array_equal(same, x)
    for dtype in (np.float32, np.complex64):
        assert ol.fft.dct(np.ones((0, 4), dtype)).shape == (0, 4)
        assert ol.fft.dctn(np.ones((0, 4), dtype), s=(3,)).dtype == dtype


def test_names_and_parameters_are_those_of_scipy():
    for name in (*ONE, *SEVERAL, "hfft2", "ihfft2", "hfftn", "ihfftn"):
        ours, theirs = (
            [
                (p.name, p.default)
                for p in inspect.signature(getattr(module, name)).parameters.values()
                if p.name not in ("plan", "out", "queue", "device", "wait_for")
            ]
            for module in (ol.fft, scipy_fft)
        )
        assert ours == theirs, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type": 5}, "type must be 1, 2, 3 or 4, not 5"),
        ({"type": "2"}, "type must be a whole number"),
        ({"n": 1, "type": 1}, "cosine transform of type 1 needs at least 2 samples, not 1"),
        ({"n": 0}, "cosine transform of type 2 needs at least 1 sample, not 0"),
        ({"n": -1}, "at least 1 sample, not -1"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"axis": 1}, "axis 1 is out of bounds"),
        ({"norm": "both"}, "norm must be one of"),
        ({"x": ["a"]}, "cannot transform values"),
        ({"out": np.ones(3)}, "out must have shape"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(InvalidProblem, match=message):
        ol.fft.dct(**{"x": np.ones(4), **arguments})
