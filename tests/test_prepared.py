"""Calls that are prepared: they give what the public functions give, and refuse other arrays."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from public_calls import complexes, floats

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.runtime import replay

CASES = {
    "sort": ([lambda rng: rng.integers(-99, 99, (4, 50), np.int32)], {"axis": 0}),
    "argsort": ([floats(300)], {"descending": True}),
    "searchsorted": ([lambda rng: np.sort(floats(90)(rng)), floats(4, 5)], {"side": "right"}),
    "gemm": ([floats(20, 30), floats(30, 10)], {"alpha": 2.0}),
    "conv2d": ([floats(30, 40)], {"weights": np.arange(9.0).reshape(3, 3), "mode": "valid"}),
    "dft": ([complexes(3, 50)], {}),
    "fft": ([complexes(4, 64)], {"norm": "ortho"}),
    "rfft": ([floats(4, 90)], {}),
    "ifft2": ([complexes(16, 20)], {}),
}


@pytest.fixture
def queue(device):
    """The library's own, which tells no times."""
    return device.queue()


@pytest.mark.few(5)
@pytest.mark.parametrize("name", CASES)
def test_prepared_calls_are_public_calls(name, side, rng):
    makers, options = CASES[name]
    options = {**options, "queue": side.queue}

    def arguments():
        return [side.put(make(rng)) for make in makers]

    function = getattr(ol.fft, name, None) or getattr(ol, name)
    example = arguments()
    shapes = [item.shape for item in example]
    shape = shapes if len(shapes) > 1 else shapes[0]
    prepared = ol.prepare(name, shape=shape, dtype=example[0].dtype, **options)
    other = ol.prepare(function, *example, **options)
    assert prepared.shapes == other.shapes and prepared.dtypes == other.dtypes
    out = None
    for _ in range(3):
        given = arguments()
        replay.forget()
        right = side.get(function(*given, **options))
        for call in (prepared, other):
            np.testing.assert_array_equal(side.get(call(*given)), right, strict=True)
        out = side.put(np.empty_like(right)) if out is None else out
        assert prepared(*given, out=out) is out
        np.testing.assert_array_equal(side.get(out), right)


def test_in_place_and_apart_are_told_apart(queue, rng):
    prepared = ol.prepare("sort", shape=(500,), dtype=np.int32, queue=queue)
    keys = rng.integers(0, 99, 500, np.int32)
    for _ in range(2):
        given = cl.array.to_device(queue, keys)
        out = cl.array.zeros(queue, 500, np.int32)
        assert prepared(given, out=out) is out and np.array_equal(given.get(), keys)
        assert prepared(given, out=given) is given
        assert np.array_equal(given.get(), np.sort(keys))
        assert np.array_equal(out.get(), np.sort(keys))


def test_the_same_arrays_again_are_read_again(queue, rng):
    keys, out = cl.array.empty(queue, 500, np.int32), cl.array.empty(queue, 500, np.int32)
    prepared = ol.prepare("sort", keys)
    for n in range(4):
        values = rng.integers(0, 99, 500, np.int32)
        keys.set(values)
        assert prepared(keys, out=out) is out
        assert np.array_equal(out.get(), np.sort(values)), n
        assert np.array_equal(prepared(keys).get(), np.sort(values)), n
    with pytest.raises(InvalidProblem, match="prepared for"):
        prepared(keys, out)


def test_an_array_that_was_given_another_queue_is_seen(queue, rng):
    other = cl.CommandQueue(queue.context)
    keys = cl.array.to_device(queue, rng.integers(0, 99, 500, np.int32))
    prepared = ol.prepare("sort", keys)
    assert prepared(keys).queue == prepared(keys).queue == queue
    keys.queue = other
    assert prepared(keys).queue == other


def test_as_a_context_it_measures(queue):
    prepared = ol.prepare("sort", shape=(1000,), queue=queue)
    keys = np.ones(1000, np.float32)
    prepared(keys)
    with prepared as timed:
        for _ in range(5):
            timed(keys)
    assert prepared.calls == 5 and 1e-6 < prepared.seconds < 1


@pytest.mark.parametrize(
    ("arguments", "what", "message"),
    [
        (("sort",), {}, "either arrays or shape="),
        (("sort", np.ones(3)), {"shape": (3,)}, "either arrays or shape="),
        (("sart",), {"shape": (3,)}, "cannot prepare 'sart'; possible are: .*sort"),
        ((print,), {"shape": (3,)}, "cannot prepare <built-in function print>"),
        ((None,), {"shape": (3,)}, "cannot prepare None"),
        (("sort",), {"shape": (3,), "axes": 1}, "cannot prepare sort so: .*'axes'"),
        (("gemm",), {"shape": (3, 3)}, "cannot prepare gemm so: .*'b'"),
        (("sort",), {"shape": ((3,), (3,))}, "cannot prepare sort so: too many"),
        (("sort",), {"shape": (3,), "out": np.ones(3)}, "out is given to the calls"),
        (("sort",), {"shape": (3,), "queue": 3}, "queue must be a pyopencl.CommandQueue"),
        (("sort",), {"shape": (3,), "dtype": ("f4", "f4")}, "1 arrays and dtype= 2 types"),
        (("conv2d",), {"shape": ((8, 8), (3, 3))}, "weights are an option of what is prepared"),
        (("sort",), {"shape": (-3,)}, "negative dimensions"),
        (("sort",), {"shape": (3,), "dtype": "wrong"}, "not understood|no array"),
        (("sort", [1, 2]), {}, "arrays or shape=, not list"),
        (("gemm",), {"shape": ((2, 3), (4, 5))}, "a gives sums of length 3"),
    ],
)
def test_what_cannot_be_prepared(arguments, what, message):
    with pytest.raises(InvalidProblem, match=message):
        ol.prepare(*arguments, **what)


def test_other_arrays_are_refused(queue):
    prepared = ol.prepare("sort", shape=(8,), dtype=np.int32, queue=queue)
    for wrong in (np.zeros(9, np.int32), np.zeros(8, np.float32), np.zeros((8, 1), np.int32)):
        with pytest.raises(InvalidProblem, match=r"sort was prepared for \(8,\) of int32, not"):
            prepared(wrong)
    with pytest.raises(InvalidProblem, match=r"was prepared for \(8,\) of int32, not no array"):
        prepared()


def test_weights_are_those_of_the_time_when_it_was_prepared(queue, rng):
    image, weights = floats(20, 30)(rng), floats(3, 3)(rng)
    right = ol.conv2d(image, weights)
    prepared = ol.prepare("conv2d", image, weights=weights)
    weights[:] = 0
    for given in (image, np.asfortranarray(image), image):
        np.testing.assert_allclose(prepared(given), right, atol=1e-5)
