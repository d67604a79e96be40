"""Arrays of the host: in place by address, in place as buffers, or copied; one wait a call."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.core.device import Device
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime import bound, host_call, pointers, replay
from opencl_lab.runtime.declarations import with_declarations
from opencl_lab.runtime.session import session_of

pytestmark = pytest.mark.usefixtures("nothing_recorded")

INT32 = np.dtype(np.int32)
BOTH = """
__kernel void both(__global int *x, __global int *y)
{
    const size_t i = get_global_id(0);
    y[i] = x[i];
    x[i] += 5;
}
"""
WAYS = ("address", "buffer", "copy")


def svm_works(device):
    """Return whether kernels take addresses of the host."""
    return [pointers.takes_pointers(device) for _ in range(pointers.UNTESTED_CALLS + 1)][-1]


@pytest.fixture(params=WAYS)
def way(request, fresh, monkeypatch):
    """How kernels get at memory of the host, where the device allows it."""
    session = session_of(fresh)
    if request.param == "address" and not svm_works(session.device):
        pytest.skip("the device takes no addresses of the host")
    if request.param == "buffer" and not session.device.unified_memory:
        pytest.skip("the device has memory of its own")
    session.device = replace(session.device, unified_memory=request.param != "copy")
    monkeypatch.setattr(host_call, "takes_pointers", lambda device: request.param == "address")
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


@pytest.mark.parametrize("way", ["buffer"], indirect=True)
@pytest.mark.usefixtures("way")
def test_no_event_goes_before_the_queue_has_finished(fresh, rng, commands, monkeypatch):
    """Else pyopencl waits for it and holds up all threads, such as one that shows progress."""
    copy = cl.enqueue_copy

    class Kept:
        def __init__(self, *args, **more):
            self.event = copy(*args, **more)

        def __del__(self):
            commands.append("gone")

    monkeypatch.setattr(cl, "enqueue_copy", Kept)
    keys = {"keys": rng.integers(0, 99, (1, 200), np.int32)}
    SORT.run(SortProblem(200, INT32), keys, queue=fresh)
    assert commands[-2:] == ["finish", "gone"] and commands.count("gone") == 1


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


def test_misaligned_results(way, fresh, rng):
    keys = rng.integers(0, 99, 300, np.int32)
    out = shifted(np.zeros_like(keys))
    ol.sort(keys, out=out, queue=fresh)
    np.testing.assert_array_equal(out, np.sort(keys))


def test_steps_wait_once_and_take_no_array_of_the_host_between(way, fresh, rng, commands):
    x = [rng.standard_normal((16, 20)).astype(np.complex64) for _ in range(3)]
    for given in x[:2]:
        ol.fft.fft2(given, queue=fresh)
    commands.clear()
    result = ol.fft.fft2(x[2], queue=fresh)
    waits = {"address": 0, "buffer": 1, "copy": 2}[way]
    # The end of the last command takes a runtime less than that of the queue.
    ends = [name for name in commands if name in ("finish", "wait")]
    assert ends == ["wait" if way == "address" else "finish"] and commands.count("copy") == waits
    assert commands.count("made of") == (2 if way == "buffer" else 0)
    replay.forget()
    np.testing.assert_array_equal(result, ol.fft.fft2(x[2], queue=fresh))


@pytest.mark.parametrize("change", [np.asarray, read_only, shifted, half_shifted])
def test_further_calls_take_arrays_as_they_come(change, way, fresh, rng, commands):
    x = rng.standard_normal((3, 4, 64)).astype(np.complex64)
    results = []
    for signal in x[[0, 0, 1, 2]]:
        commands.clear()
        given = change(signal.copy())
        results.append(ol.fft.fft(given, queue=fresh))
        np.testing.assert_array_equal(given, signal)
    # NumPy copies what is aligned to nothing, and kernels use the copy in place.
    in_place = change in (np.asarray, shifted) and way == "address"
    assert commands == ["wait"] if in_place else commands[-1] == "finish"
    replay.forget()
    for signal, result in zip(x[[0, 0, 1, 2]], results, strict=True):
        np.testing.assert_array_equal(result, ol.fft.fft(signal, queue=fresh))


def test_a_call_that_fails_leaves_nothing_running(fresh, rng, commands, monkeypatch):
    if not svm_works(session_of(fresh).device):
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


@pytest.mark.parametrize("units", [2, 16])
def test_the_end_is_looked_for_where_there_are_units_enough(units, fresh, rng, monkeypatch):
    session = session_of(fresh)
    if not svm_works(session.device):
        pytest.skip("the device takes no addresses of the host")
    times = iter([0.0, 0.0, host_call.POLLING_SECONDS / 2, host_call.POLLING_SECONDS, *[9.0] * 99])
    looks = []
    monkeypatch.setattr(host_call, "perf_counter", lambda: looks.append(next(times)) or looks[-1])
    monkeypatch.setattr(cl.Event, "command_execution_status", 1)
    keys = rng.integers(0, 999, 300, np.int32)
    ol.sort(keys, queue=fresh)
    session.device = replace(session.device, compute_units=units)
    np.testing.assert_array_equal(ol.sort(keys, queue=fresh), np.sort(keys))
    assert looks == (
        [0.0, 0.0, host_call.POLLING_SECONDS / 2, host_call.POLLING_SECONDS] if units == 16 else []
    )


def test_addresses_and_buffers_are_set_without_a_trial(fresh, rng, monkeypatch):
    if not svm_works(session_of(fresh).device):
        pytest.skip("the device takes no addresses of the host")
    if not hasattr(cl.Kernel, "_set_arg_svm"):
        pytest.skip("this pyopencl has no function for addresses alone")
    keys = rng.integers(0, 999, (3, 300), np.int32)
    for row in keys:
        ol.sort(row, queue=fresh)
    kinds = {"address": [], "other": []}

    def noting(what, function):
        def note(kernel, index, memory):
            kinds[what].append(type(memory))
            return function(kernel, index, memory)

        return note

    monkeypatch.setattr(bound, "_set_address", noting("address", bound._set_address))
    monkeypatch.setattr(bound, "_set", noting("other", bound._set))
    np.testing.assert_array_equal(ol.sort(keys[0], queue=fresh), np.sort(keys[0]))
    assert kinds["address"] == [cl.SVM] * 2 and kinds["other"] and cl.SVM not in kinds["other"]


def test_access_of_places():
    def run(inputs, outputs):
        return host_call.BoundRun(None, dict(enumerate(inputs)), dict(enumerate(outputs)))

    runs = [run([0], [1]), run([1, 2], [2, 3])]
    accesses = [host_call._access(runs, place) for place in range(5)]
    assert accesses == ["source", "target", "changed", "target", ""]


@pytest.mark.parametrize("change", [np.asarray, shifted])
def test_a_changed_array_is_taken_there_and_back(change, way, fresh):
    array = change(np.arange(100, dtype=np.int32))
    with session_of(fresh).exclusive(fresh):
        memory = host_call.HostMemory(session_of(fresh), fresh, way == "address")
        changed = memory.changed(array)
        target = memory.target(there := np.zeros_like(array))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # a log is no failure
            program = cl.Program(fresh.context, BOTH).build()
        launched = program.both(fresh, (100,), (1,), changed, target)
        memory.fetch(launched)
        fresh.finish()
    np.testing.assert_array_equal(there, np.arange(100))
    np.testing.assert_array_equal(array, np.arange(100) + 5)


def test_executables_take_both_sides_in_turns(way, fresh, rng):
    keys = rng.integers(0, 999, (4, 300), np.int32)
    for row in keys:
        np.testing.assert_array_equal(ol.sort(row, queue=fresh), np.sort(row))
        there = cl.array.to_device(fresh, row)
        np.testing.assert_array_equal(ol.sort(there, queue=fresh).get(), np.sort(row))


# ------------------------------------------------------------------ addresses


@pytest.fixture
def unknown(monkeypatch):
    monkeypatch.setattr(pointers, "_shown", {})
    monkeypatch.setattr(pointers, "_told", {})


def test_what_a_device_claims_is_not_asked(unknown, monkeypatch):
    monkeypatch.setattr(pointers, "_shows_pointers", None)
    gpu = Device("some", "gpu")
    assert not pointers.takes_pointers(gpu)
    assert pointers.takes_pointers(replace(gpu, shared_pointers=True))
    assert not pointers.takes_pointers(Device("own memory", "cpu"))
    assert not pointers.takes_pointers(replace(gpu, unified_memory=True))
    simulator = Device("simulator", "cpu", unified_memory=True, simulated=True)
    assert not pointers.takes_pointers(simulator)


def test_a_cpu_is_asked_once(device, unknown, monkeypatch):
    if "PoCL 3.0" not in device.platform_version:
        pytest.skip("only PoCL 3.0 is known to take addresses without a promise")
    built, build = [], cl.Program.build
    monkeypatch.setattr(cl.Program, "build", lambda *given: built.append(given) or build(*given))
    for _ in range(3):  # a few calls do not wait for it
        assert not pointers.takes_pointers(device)
    assert not built
    assert pointers.takes_pointers(device)
    if with_declarations(device.platform_version, pointers.ADD):  # PoCL is that of pip
        assert built[0][1] == ["-w", "-D_OPENCL_H_"]  # without reading 15,000 declarations
    monkeypatch.setattr(cl, "Context", None)
    assert pointers.takes_pointers(device)


def test_constants_are_used_by_address_once_that_is_known(fresh, monkeypatch, rng):
    if not session_of(fresh).device.unified_memory:
        pytest.skip("the device has memory of its own")
    known = []
    monkeypatch.setattr(host_call, "takes_pointers", lambda device: bool(known))
    image, weights = rng.standard_normal((2, 9, 9), np.float32)
    weights = weights[:3, :3]
    replay.forget()
    right = [ol.conv2d(image, weights, queue=fresh) for _ in range(3)][-1]  # the last is replayed
    made, constants = host_call.HostCall._constant, []

    def note(call, array):
        constants.append(made(call, array))
        return constants[-1]

    monkeypatch.setattr(host_call.HostCall, "_constant", note)
    if svm_works(session_of(fresh).device):
        known.append(True)
    for _ in range(2):
        np.testing.assert_array_equal(ol.conv2d(image, weights, queue=fresh), right)
    assert bool(constants) == bool(known)
    assert all(isinstance(item, cl.SVM) for item in constants)


@pytest.mark.parametrize("refuses", [True, False])
def test_a_cpu_that_takes_no_addresses(refuses, device, unknown, monkeypatch):
    if device.shared_pointers or device.kind != "cpu":
        pytest.skip("such devices are not asked")
    copies = []

    def place(array):
        if refuses:
            raise cl.LogicError("INVALID_ARG_VALUE")
        copies.append(array.copy())
        return svm(copies[-1])

    svm = cl.SVM
    monkeypatch.setattr(cl, "SVM", place)
    for _ in range(pointers.UNTESTED_CALLS + 1):
        assert not pointers.takes_pointers(device)
    assert refuses or len(copies) == 2
