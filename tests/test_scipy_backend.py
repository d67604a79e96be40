"""The backend of `scipy.fft`: what runs here, and what is left to SciPy."""

from __future__ import annotations

import inspect

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from fft_checks import random_signal, relative

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem

# -------------------------------------------------------------- SciPy backend


def test_scipy_s_axes_and_lengths_may_be_iterators(rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = rng.standard_normal((4, 6))
    calls = {
        "fftn": [{"axes": (0, 1)}, {"s": (5, 7)}, {"s": (5, None)}, {"axes": (0, 0)}],
        "dctn": [{"axes": (1, 0)}],
        "rfftn": [{"s": (3, 3), "axes": (0, 1)}],
    }
    for name, cases in calls.items():
        for options in cases:
            outcomes = []
            for backend in ("scipy", ol.scipy_backend):
                iterators = {key: iter(value) for key, value in options.items()}
                with scipy_fft.set_backend(backend):
                    try:
                        outcomes.append(getattr(scipy_fft, name)(x, **iterators))
                    except (ValueError, TypeError) as error:
                        outcomes.append(str(error))
            right, found = outcomes
            assert isinstance(found, str) == isinstance(right, str), (name, options, outcomes)
            if isinstance(right, str):
                assert found == right
            else:
                np.testing.assert_allclose(found, right, atol=1e-12)


def test_scipy_s_way_with_orthogonalize(rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = random_signal(rng, (4, 6))
    for options in ({"orthogonalize": True}, {"norm": "ortho", "orthogonalize": False}):
        right = scipy_fft.dct(x, **options)
        with scipy_fft.set_backend(ol.scipy_backend):
            np.testing.assert_allclose(scipy_fft.dct(x, **options), right, atol=1e-12)


@pytest.mark.full
def test_scipy_calls_run_here_or_fall_back(rng):
    scipy_fft = pytest.importorskip("scipy.fft")
    x = random_signal(rng, (4, 6))
    calls = ol.scipy_backend.calls

    def counted(function, *args, **kwargs):
        before = dict(calls)
        result = function(*args, **kwargs)
        return result, {name: calls[name] - before[name] for name in calls}

    with scipy_fft.set_backend(ol.scipy_backend):
        for name in ("fft", "ifft", "irfft", "hfft", "fft2", "ifftn", "irfftn"):
            result, ran = counted(getattr(scipy_fft, name), x, norm="ortho", workers=2)
            assert ran == {"here": 1, "elsewhere": 0}
            assert relative(result, getattr(np.fft, name)(x, norm="ortho")) < 1e-6
        result, ran = counted(scipy_fft.rfftn, x.real, (4,), 1, overwrite_x=True)
        assert ran["here"] == 1
        assert relative(result, np.fft.rfft(x.real, 4, 1)) < 1e-6
        for function, value in (
            (scipy_fft.fft, x.astype(np.clongdouble)),
            (scipy_fft.dct, x.real.astype(np.longdouble)),
            (scipy_fft.fftn, np.float64(3)),
        ):
            result, ran = counted(function, value)
            assert ran == {"here": 0, "elsewhere": 1}
        names = ["hfft2", "hfftn", "ihfft2", "ihfftn"]
        names += [f"{i}{kind}{n}" for i in ("", "i") for kind in ("dct", "dst") for n in ("", "n")]
        for name in names:
            given_x = x if name.startswith("h") else x.real
            result, ran = counted(getattr(scipy_fft, name), given_x, norm="ortho", workers=-1)
            assert ran == {"here": 1, "elsewhere": 0}
            with scipy_fft.set_backend("scipy"):
                right = getattr(scipy_fft, name)(given_x, norm="ortho")
            assert result.dtype == right.dtype
            assert relative(result, right) < 1e-6
    result, ran = counted(scipy_fft.fft, x)
    assert not any(ran.values())


@pytest.mark.parametrize("name", ["fft", "rfftn", "irfft2", "hfftn", "dct", "idstn", "fht"])
def test_the_backend_refuses_what_scipy_refuses(name):
    """With the words of SciPy, and if the backend is the only one, as a global one is."""
    scipy_fft = pytest.importorskip("scipy.fft")
    function, x = getattr(scipy_fft, name), np.ones((3, 4), np.float32)
    if name == "fht":
        right = function(x, 0.1, 0.5)
        with scipy_fft.set_backend(ol.scipy_backend, only=True):
            np.testing.assert_array_equal(function(x, 0.1, 0.5), right)
        return
    wrong = [{"workers": 0}, {"workers": -99999}, {"workers": 1.5}, {"norm": "both"}, {"norm": []}]
    if "n" in inspect.signature(function).parameters:
        wrong += [{"n": 0}, {"n": -1}, {"n": 2.0}, {"n": "2"}, {"axis": 2}, {"axis": 0.0}]
    else:
        wrong += [
            {"axes": (0, 0)}, {"axes": (1, -1)}, {"axes": (0, 2)}, {"axes": (0.0, 1)},
            {"s": (None, 2)}, {"s": (2, 2, 2)}, {"s": (2,), "axes": (0, 1)}, {"s": (2, 0)},
            {"s": 2.5}, {"s": (2.0, 2)}, {"s": (2, -2)},
        ]  # fmt: skip
    if "plan" in inspect.signature(function).parameters:
        wrong += [{"plan": "any"}]
    if "type" in inspect.signature(function).parameters:
        wrong += [{"type": 0}, {"type": 5}, {"type": 1.5}, {"type": "2"}]
    if name.startswith("r"):
        wrong += [{"x": x + 1j}, {"axes": ()}]
    if name != "idstn":  # which has nothing to do then
        wrong += [{"x": np.ones(())}]
    for arguments in ({"x": x, **each} for each in (*wrong, {"x": ["a"]})):
        before = dict(ol.scipy_backend.calls)
        try:
            right = function(**arguments)
        except Exception as error:
            with (
                scipy_fft.set_backend(ol.scipy_backend, only=True),
                pytest.raises(type(error)) as found,
            ):
                function(**arguments)
            assert str(found.value) == str(error), arguments
        else:
            pytest.fail(f"SciPy takes {arguments}: {right}")
        assert ol.scipy_backend.calls["elsewhere"] == before["elsewhere"] + 1


def test_device_arrays_that_the_backend_refuses(queue):
    scipy_fft = pytest.importorskip("scipy.fft")
    given_x = cl.array.to_device(queue, np.ones((3, 4), np.float32))
    with scipy_fft.set_backend(ol.scipy_backend):
        assert isinstance(scipy_fft.dct(given_x), cl.array.Array)
        with pytest.raises(InvalidProblem, match="axis 5 is out of bounds"):
            scipy_fft.fft(given_x, axis=5)
        for wrong in (
            lambda: scipy_fft.fht(given_x, 0.1, 0.5),
            lambda: scipy_fft.fftn(given_x, axes=(0, 0)),
        ):
            with pytest.raises(InvalidProblem, match=r"cannot do this with device arrays.*get"):
                wrong()


def test_arrays_of_other_libraries_are_left_to_other_backends():
    scipy_fft = pytest.importorskip("scipy.fft")

    class Other:
        def __array_namespace__(self):
            raise AssertionError

    assert ol.scipy_backend.__ua_function__(scipy_fft.fft, (Other(),), {}) is NotImplemented
