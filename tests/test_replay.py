"""Calls that repeat: further calls of a kind give what the first road gives, on any data."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest
from public_calls import BOX, CALLS, WAVE, arguments
from scipy import ndimage
from shared_fixtures import ArraySide

import opencl_lab as ol
from opencl_lab.runtime import replay
from opencl_lab.runtime.call_key import ENVIRONMENT
from opencl_lab.tuned import database

pytestmark = pytest.mark.usefixtures("nothing_recorded")


KEPT = {"topk", "topk of many", "searchsorted", "sort_by_key by index"}
KEPT |= {"sort", "sort rows", "argsort", "sort_by_key", "gemm", "conv2d", "dft", "fft", "rfft"}
KEPT |= {"gemm of a stack", "gemm of one stack", "gemm with bias", "gemm of complex"}
"""Calls that must not take the long road twice on the host; on the device, that is all of them."""


def equal(one, other):
    one, other = (
        tuple(np.asarray(item.get() if hasattr(item, "get") else item) for item in value)
        if isinstance(value, tuple)
        else np.asarray(value.get() if hasattr(value, "get") else value)
        for value in (one, other)
    )
    if isinstance(one, tuple):
        return all(map(equal, one, other))
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


@pytest.fixture
def queue(device):
    """The library's own, which tells no times."""
    return device.queue()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CALLS)
def test_further_calls_give_what_the_first_would(name, side, rng, runs):
    function, _, options = CALLS[name]
    first, second, third = (arguments(name, side, rng) for _ in range(3))
    options = {**options, "queue": side.queue}
    kept = function(*first, **options)
    before = [function(*given, **options) for given in (second, third)]
    replayed = len(runs)
    assert replayed == 2 if side.name == "device" or name in KEPT else replayed in (0, 2)
    replay.forget()
    assert equal(kept, function(*first, **options))  # no later call has written to it
    for given, result in zip((second, third), before, strict=True):
        replay.forget()
        right = function(*given, **options)
        assert isinstance(result, type(right))
        assert equal(result, right)
        if side.name == "device" and not isinstance(right, tuple):
            assert result.queue == right.queue and result.strides == right.strides
            with warnings.catch_warnings():  # of a driver about pyopencl's own kernels
                warnings.simplefilter("ignore")
                assert equal(result + result, right + right)  # it is an array like any other


def test_values_of_weights_belong_to_the_kind(side, rng, runs):
    image = rng.standard_normal((30, 30), dtype=np.float32)
    given = side.put(image)
    for weights in (BOX, WAVE, BOX * 2, BOX.tolist(), (np.ones(3), np.arange(3.0)), BOX):
        result = ol.conv2d(given, weights, queue=side.queue)
        whole = np.multiply.outer(*weights) if isinstance(weights, tuple) else weights
        right = ndimage.correlate(image, np.array(whole, np.float64), mode="constant")
        np.testing.assert_allclose(side.get(result), right, atol=1e-5)
    assert len(runs) == 1
    small, large = np.full((3, 3), 2), np.full((3, 3), 2**31)
    pixels = rng.integers(0, 200, (9, 9), np.uint8)
    for weights in (small, large, small):
        result = ol.conv2d(pixels, weights)
        replay.forget()
        assert equal(result, ol.conv2d(pixels, weights))


def test_options_belong_to_the_kind(rng, runs):
    a = np.zeros((4, 4), np.float32)
    for alpha in (1.0, 0.0, -0.0, 1, True, float("nan"), float("nan")):
        ol.gemm(a, a, alpha=alpha)
    assert not runs
    x = rng.integers(0, 9, 50, np.int32)
    assert np.array_equal(ol.sort(x), np.sort(x))
    assert np.array_equal(ol.sort(x, descending=True), np.sort(x)[::-1])
    assert np.array_equal(ol.sort(x.astype(np.float64)), np.sort(x))
    assert np.array_equal(ol.sort(x[:49]), np.sort(x[:49]))
    assert np.array_equal(ol.sort(x[::-1]), np.sort(x))
    with pytest.raises(ol.InvalidProblem):
        ol.sort(x, axis=3)
    with pytest.raises(TypeError):
        ol.sort(x, no_such_option=1)
    with pytest.raises(TypeError):
        ol.sort()
    assert not runs


@pytest.mark.few(1)
def test_arrays_that_share_memory_are_another_kind(side, rng):
    put, get = side.put, side.get
    one, two = (rng.standard_normal((20, 20), dtype=np.float32) for _ in range(2))
    a, b = put(one), put(two)
    for _ in range(2):
        np.testing.assert_allclose(get(ol.gemm(a, a)), one @ one, atol=1e-4)
        np.testing.assert_allclose(get(ol.gemm(a, b)), one @ two, atol=1e-4)
        np.testing.assert_allclose(get(ol.gemm(a, a.T)), one @ one.T, atol=1e-4)
    out = put(np.zeros_like(one))
    for _ in range(3):
        assert ol.sort(b, out=out) is out
        np.testing.assert_array_equal(get(out), np.sort(two))
        copied = put(two)
        assert ol.sort(copied, out=copied) is copied
        np.testing.assert_array_equal(get(copied), np.sort(two))
    np.testing.assert_array_equal(get(b), two)


@pytest.mark.few(1)
def test_orders_of_memory(side, rng):
    for _ in range(3):
        one, two = (rng.standard_normal((7, 7), dtype=np.float32) for _ in range(2))
        a, b = side.put(np.asfortranarray(one)), side.put(two)
        for left, right in ((a, b), (a.T, b), (b, a)):
            product = side.get(left) @ side.get(right)
            np.testing.assert_allclose(side.get(ol.gemm(left, right)), product, atol=1e-4)


def test_arguments_without_a_kind_take_the_first_road(rng, runs):
    endless = []
    endless.append(endless)
    with pytest.raises((ol.InvalidProblem, TypeError, ValueError)):
        ol.fft.fftn(np.ones((3, 3)), axes=endless)
    keys = rng.integers(0, 9, 50, np.int32)
    assert np.array_equal(ol.sort(np.ma.array(keys)), np.sort(keys))
    assert not runs


def test_nothing_is_replayed_if_not_wanted(rng, runs, monkeypatch):
    code = "from opencl_lab.runtime import replay; assert not replay.ENABLED"
    off = {**os.environ, "OCLAB_REPLAY": "off"}
    subprocess.run([sys.executable, "-c", code], env=off, check=True)
    monkeypatch.setattr(replay, "ENABLED", False)
    keys = rng.integers(0, 9, 50, np.int32)
    for _ in range(3):
        assert np.array_equal(ol.sort(keys), np.sort(keys))
    assert not runs and not replay._recorded


def test_views_and_offsets_of_device_arrays(queue, rng):
    for shift in (0, 8, 0, 8):
        whole = rng.integers(0, 99, (40, 50), np.int32)
        given = cl.array.to_device(queue, whole)[shift:30, ::2]
        np.testing.assert_array_equal(ol.sort(given).get(), np.sort(whole[shift:30, ::2]))


def test_a_change_of_the_tuning_is_seen(device, rng, runs, monkeypatch):
    x = rng.integers(0, 9, 50, np.int32)
    for _ in range(2):
        ol.sort(x)
    assert len(runs) == 1
    database.forget()
    ol.sort(x)
    assert len(runs) == 1
    ol.sort(x)
    assert len(runs) == 2
    monkeypatch.setenv("OCLAB_TUNING", "off")
    ol.sort(x)
    assert len(runs) == 2


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_the_environment_belongs_to_the_key(name, monkeypatch):
    keys = replay._public[ol.sort].keys
    monkeypatch.delenv(name, raising=False)
    before = keys.of((np.arange(3),), {})[0]
    assert keys.of((np.arange(3),), {})[0] == before
    monkeypatch.setenv(name, "1")
    assert keys.of((np.arange(3),), {})[0] != before


def test_a_queue_that_is_asked_for_is_used(queue, rng, runs, held_back):
    own, other = cl.CommandQueue(queue.context), cl.CommandQueue(queue.context)
    assert ol.sort(cl.array.to_device(own, np.ones(9)), queue=other).queue == other
    for n in (300, 300, 300):
        x = rng.integers(0, 99, n, np.int32)
        given = cl.array.to_device(own, np.zeros_like(x))
        with held_back(own):
            given.set(x, async_=True)
            result = ol.sort(given, queue=other)
            assert result.queue == other
            *_, event = given.events
            assert event.command_queue == other  # its own queue must not write to it before
            out = cl.array.empty(own, n, np.int32)
            assert ol.sort(given, queue=other, out=out) is out
        np.testing.assert_array_equal(result.get(), np.sort(x))
        np.testing.assert_array_equal(out.get(), np.sort(x))
        values, count = ol.unique(given, return_counts=True, queue=other)
        assert values.queue == other and count.get().sum() == n
    assert len(runs) == 6
    pooled = ol.sort(given)
    np.testing.assert_array_equal(
        ol.sort(pooled, descending=True, queue=other).get(), pooled.get()[::-1]
    )


class Derived(cl.array.Array):
    """An array like reikna's: another constructor, and views without `nbytes`."""

    def __init__(self, owner, shape, dtype, **options):
        super().__init__(options.pop("_queue", owner), shape, dtype, **options)
        self.nbytes, self.owner = None, owner

    def __getitem__(self, index):
        raise TypeError("views are the library's own")

    @classmethod
    def of(cls, array):
        return cls(array.queue, array.shape, array.dtype, data=array.base_data)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CALLS)
def test_derived_device_arrays_are_like_pyopencl_s_own(name, queue, rng, runs):
    function, _, options = CALLS[name]
    given = arguments(name, ArraySide("device", queue), rng)
    right = function(*given, **options)
    derived = [Derived.of(x) if isinstance(x, cl.array.Array) else x for x in given]
    for count in (1, 2):
        result = function(*derived, **options)
        assert equal(result, right) and len(runs) == count  # replayed, also the first one


def test_parts_of_buffers_are_replayed(queue, rng, runs):
    whole = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 1 << 16)

    def part(begin, array, nbytes=1 << 13):
        memory = whole.get_sub_region(begin << 12, nbytes)
        made = cl.array.Array(queue, array.shape, array.dtype, data=memory)
        made.set(array)
        kept.append(memory)  # some drivers of GPUs release parts of buffers badly
        return made

    kept = []
    for begin in (0, 1, 5):
        one, two = (rng.standard_normal((20, 20), dtype=np.float32) for _ in range(2))
        a, b = part(begin, one), part(begin + 2, two)
        np.testing.assert_allclose(ol.gemm(a, b).get(), one @ two, atol=1e-4)
        out = part(begin + 4, two)
        assert ol.sort(b, out=out) is out
        np.testing.assert_array_equal(out.get(), np.sort(two))
    assert len(runs) == 4
    for begin in (0, 1, 0, 1):  # a and out are the same or overlap
        one = rng.standard_normal((40, 40), dtype=np.float32)
        a = part(0, one)
        kept.append(whole.get_sub_region(begin << 12, 1 << 13))
        out = cl.array.Array(queue, one.shape, one.dtype, data=kept[-1])
        np.testing.assert_array_equal(ol.sort(a, out=out).get(), np.sort(one))


def test_empty_calls_are_replayed(side, queue, runs):
    def made(*shape, dtype=np.float32):
        return side.put(np.ones(shape, dtype))

    calls = {
        "sort": lambda: (ol.sort, (made(0),), {}),
        "columns": lambda: (ol.sort, (made(0, 3),), {"axis": 0}),
        "argsort": lambda: (ol.argsort, (made(4, 0),), {}),
        "pairs": lambda: (ol.sort_by_key, (made(0), made(0)), {}),
        "topk": lambda: (ol.topk, (made(9), 0), {}),
        "searchsorted": lambda: (ol.searchsorted, (made(9), made(0)), {}),
        "in nothing": lambda: (ol.searchsorted, (made(0), made(9)), {}),
        "gemm": lambda: (ol.gemm, (made(0, 4), made(4, 5)), {}),
        "no depth": lambda: (ol.gemm, (made(3, 0), made(0, 5)), {}),
        "no depth, c": lambda: (ol.gemm, (made(3, 0), made(0, 5)), {"beta": 2, "c": made(3, 5)}),
        "conv2d": lambda: (ol.conv2d, (made(0, 5), BOX), {}),
        "fft": lambda: (ol.fft.fft, (made(0, 8, dtype=np.complex64),), {}),
        "out": lambda: (ol.sort, (made(0),), {"out": made(0)}),
    }
    for name, make in calls.items():
        replay.forget()
        function, args, options = make()
        right = function(*args, **options)
        for _ in range(2):
            before = len(runs)
            function, args, options = make()
            result = function(*args, **options)
            assert len(runs) == before + 1, name
            assert equal(result, right), name
            assert "out" not in options or result is options["out"]
    empty, out = made(0), made(0)
    for given, target in ((empty, empty), (empty, out), (empty, empty), (out, empty)):
        assert ol.sort(given, out=target) is target


def test_what_is_kept_is_bounded(rng, monkeypatch):
    monkeypatch.setattr(replay, "MOST_RECORDED", 3)
    for n in range(2, 9):
        ol.sort(np.arange(n))
    assert len(replay._recorded) == 3
    image = np.ones((9, 9), np.float32)
    ol.conv2d(image, np.ones((200, 200)))  # too much to compare in every call
    assert len(replay._recorded) == 3
