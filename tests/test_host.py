"""Arrays of the host: in place by address, in place as buffers, or copied; one wait a call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime import replay
from opencl_lab.runtime.session import session_of

pytestmark = pytest.mark.usefixtures("nothing_recorded")

INT32 = np.dtype(np.int32)
WAYS = ("address", "buffer", "copy")


@pytest.fixture(params=WAYS)
def way(request, fresh):
    """How kernels get at memory of the host, where the device allows it."""
    session = session_of(fresh)
    if request.param == "address" and not session.device.shared_pointers:
        pytest.skip("the device takes no addresses of the host")
    if request.param == "buffer" and not session.device.unified_memory:
        pytest.skip("the device has memory of its own")
    session.device = replace(
        session.device,
        unified_memory=request.param != "copy",
        shared_pointers=request.param == "address",
    )
    replay.forget()
    return request.param


@pytest.fixture
def commands(monkeypatch):
    """Record buffers, copies and waits in the order in which they come."""
    seen = []

    class RecordingBuffer(cl.Buffer):
        def __init__(self, context, flags, *args, **more):
            seen.append("made of" if flags & cl.mem_flags.USE_HOST_PTR else "buffer")
            super().__init__(context, flags, *args, **more)

    def recording(name, function):
        def record(*args, **more):
            seen.append(name)
            return function(*args, **more)

        return record

    monkeypatch.setattr(cl, "Buffer", RecordingBuffer)
    monkeypatch.setattr(cl, "enqueue_copy", recording("copy", cl.enqueue_copy))
    monkeypatch.setattr(cl.CommandQueue, "finish", recording("finish", cl.CommandQueue.finish))
    monkeypatch.setattr(cl.Event, "wait", recording("wait", cl.Event.wait))
    return seen


def test_commands_of_one_call(way, fresh, rng, commands):
    keys = rng.integers(0, 99, 200, np.int32)
    before = keys.copy()
    out = np.full((1, 200), -1, np.int32)
    problem = SortProblem(200, INT32)
    SORT.run(problem, {"keys": keys.reshape(1, 200)}, queue=fresh)  # makes its counters
    del commands[:]
    run = SORT.run(problem, {"keys": keys.reshape(1, 200)}, queue=fresh, out={"sorted": out})
    assert (
        commands
        == {
            "address": ["wait"],
            "buffer": ["made of", "made of", "copy", "finish"],
            "copy": ["copy", "copy", "finish"],
        }[way]
    )
    assert len(run.transfer_events) == (2 if way == "copy" else 0)
    assert (run.transfer_ms == 0) == (way != "copy")
    assert run.outputs["sorted"] is out
    np.testing.assert_array_equal(out[0], np.sort(before))
    np.testing.assert_array_equal(keys, before)


def read_only(array):
    array.flags.writeable = False
    return array


def shifted(array):
    """Return a copy at an address that is aligned to no element."""
    raw = np.empty(array.nbytes + 1, np.uint8)[1:]
    moved = raw.view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def half_shifted(array):
    """Return a complex copy that is aligned to real numbers alone."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % array.itemsize + array.itemsize // 2
    moved = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert moved.flags.aligned and moved.ctypes.data % array.itemsize
    return moved


@pytest.mark.parametrize("change", [read_only, shifted, half_shifted, np.asfortranarray])
def test_inputs_of_every_kind(change, way, fresh, rng):
    x = rng.standard_normal((6, 64, 2)).view(np.complex128)[..., 0].astype(np.complex64)
    given = change(x.copy())
    before = given.copy()
    np.testing.assert_allclose(
        ol.fft.fft(given, queue=fresh), np.fft.fft(x), rtol=0, atol=1e-5 * np.abs(x).max() * 64
    )
    np.testing.assert_array_equal(given, before)


def test_a_call_that_fails_leaves_nothing_running(fresh, rng, commands, monkeypatch):
    if not session_of(fresh).device.shared_pointers:
        pytest.skip("the device takes no addresses of the host")
    keys = rng.integers(0, 999, 300, np.int32)
    for _ in range(3):
        ol.sort(keys, queue=fresh)
    failing = ["interrupted"]
    end = cl.Event.wait

    def wait(event):
        if failing:
            raise KeyboardInterrupt(failing.pop())
        return end(event)

    monkeypatch.setattr(cl.Event, "wait", wait)
    commands.clear()
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        ol.sort(keys, queue=fresh)
    assert commands == ["finish"]
    np.testing.assert_array_equal(ol.sort(keys, queue=fresh), np.sort(keys))
