"""Events that calls wait for: `wait_for=` on device and host arrays, first calls and replays."""

import threading

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem, LaunchError
from opencl_lab.core.queues import within_gate
from opencl_lab.runtime import replay

OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
WEIGHTS = np.arange(9, dtype=np.float32).reshape(3, 3)
CALLS = {
    "sort": ol.sort,
    "argsort": ol.argsort,
    "sort_by_key": lambda x, **how: ol.sort_by_key(x, x, **how)[1],
    "topk": lambda x, **how: ol.topk(x, 3, **how)[0],
    "unique": ol.unique,
    "searchsorted": lambda x, **how: ol.searchsorted(x[0], x, **how),
    "gemm": lambda x, **how: ol.gemm(x, x, **how),
    "conv2d": lambda x, **how: ol.conv2d(x, WEIGHTS, **how),
    "complex conv2d": lambda x, **how: ol.conv2d(x.view(np.complex64), 1j * WEIGHTS, **how),
    "dft": ol.dft,
    "rfft2": ol.fft.rfft2,
    "dctn": ol.fft.dctn,
    "fftshift": ol.fft.fftshift,
    "gaussian_filter": lambda x, **how: ol.ndimage.gaussian_filter(x, 1, **how),
    "oaconvolve": lambda x, **how: ol.signal.oaconvolve(x, WEIGHTS, **how),
    "correlate": lambda x, **how: ol.signal.correlate(x, x, method="fft", **how),
    "median_filter": lambda x, **how: ol.ndimage.median_filter(x, 3, **how),
}


@pytest.fixture(params=["in order", "out of order"])
def here(request, queue):
    """A queue of the caller, and another one of the same context."""
    context, device = queue.context, queue.device
    properties = OUT_OF_ORDER if request.param == "out of order" else 0
    if properties & ~device.queue_properties:
        pytest.skip("the device has no such queues")
    return cl.CommandQueue(context, device, properties), cl.CommandQueue(context, device)


@pytest.fixture
def held(queue):
    """A command that waits for the test, which lets it begin a little later."""
    event = cl.UserEvent(queue.context)
    timer = threading.Timer(0.02, event.set_status, [cl.command_execution_status.COMPLETE])
    yield event, timer.start
    timer.join()


@pytest.mark.parametrize("name", CALLS)
def test_calls_on_device_arrays_wait_on_their_queue(here, queue, name, rng):
    working, other = here
    call, steps = CALLS[name], 3
    for _ in range(steps):  # the second one is recorded, if any, and the third one replayed
        data = rng.random((12, 12), np.float32)
        expected = call(data)
        x = cl.array.zeros(working, data.shape, data.dtype)
        x.finish()
        gate = cl.UserEvent(queue.context)
        written = cl.enqueue_copy(other, x.base_data, data, is_blocking=False, wait_for=[gate])
        threading.Timer(0.01, gate.set_status, [cl.command_execution_status.COMPLETE]).start()
        result = call(x, wait_for=[written])
        result.finish()  # it knows the events of the call
        np.testing.assert_allclose(result.get(), expected, rtol=1e-4, atol=1e-4)
        written.wait()


def test_calls_on_host_arrays_wait(queue, rng, held):
    data, x = rng.random(64, np.float32), np.zeros(64, np.float32)
    there = cl.array.to_device(queue, data)
    gate, let_begin = held
    copy = cl.enqueue_copy(queue, x, there.data, is_blocking=False, wait_for=[gate])
    queue.flush()
    let_begin()
    np.testing.assert_array_equal(ol.sort(x, wait_for=copy), np.sort(data))


def test_prepared_calls_wait(here, rng, held):
    working, other = here
    data = rng.random(64, np.float32)
    x = cl.array.zeros(working, 64, np.float32)
    prepared = ol.prepare("sort", x)
    gate, let_begin = held
    x.finish()
    copy = cl.enqueue_copy(other, x.base_data, data, is_blocking=False, wait_for=[gate])
    let_begin()
    np.testing.assert_array_equal(prepared(x, wait_for=copy).get(), np.sort(data))
    with pytest.raises(InvalidProblem, match="wait_for is given to the calls of what is prepared"):
        ol.prepare("sort", x, wait_for=copy)


def test_results_of_size_0_know_the_events(here, held):
    working, _ = here
    gate, let_begin = held
    for _ in range(2):  # recorded, then replayed
        result = ol.sort(cl.array.zeros(working, (3, 0), np.float32), wait_for=gate)
        assert result.shape == (3, 0) and gate in result.events
    let_begin()
    result.finish()
    assert gate.command_execution_status == cl.command_execution_status.COMPLETE


def test_waiting_changes_no_key(queue, rng):
    replay.forget()
    x = cl.array.to_device(queue, rng.random(64, np.float32))
    done = cl.enqueue_marker(queue)
    for how in ({}, {"wait_for": done}, {"wait_for": (done,)}, {"wait_for": []}):
        ol.sort(x, **how)
    assert len(replay._recorded) == 1


@pytest.mark.parametrize("wrong", [3, "event", [None], np.zeros(2)])
def test_what_is_no_event_is_refused(side, wrong):
    with pytest.raises(InvalidProblem, match=r"wait_for must be a pyopencl\.Event or several"):
        ol.sort(side.put(np.ones(4, np.float32)), wait_for=wrong)


def test_events_of_other_contexts(queue, own_queue, rng):
    elsewhere = own_queue(queue.device)
    event = cl.enqueue_marker(elsewhere)
    data = rng.random(64, np.float32)
    np.testing.assert_array_equal(ol.sort(data, wait_for=event), np.sort(data))
    with pytest.raises(InvalidProblem, match="belongs to another context"):
        ol.sort(cl.array.to_device(queue, data), wait_for=event)


def test_failed_events_are_errors(side, queue):
    failed = cl.UserEvent(queue.context)
    failed.set_status(-5)
    keys = side.put(np.ones(4, np.float32))
    with pytest.raises(LaunchError, match="an event of wait_for has failed"):
        ol.sort(keys, wait_for=failed)
    np.testing.assert_array_equal(side.get(ol.sort(keys)), np.ones(4))


def test_calls_on_arrays_of_the_serial_side_wait(serial, rng):
    data = rng.random(64, np.float32)
    keys, results = ol.to_device(data, serial), []
    for _ in range(3):  # results are held, so each takes new memory
        gate = cl.UserEvent(keys.context)
        threading.Timer(0.01, gate.set_status, [cl.command_execution_status.COMPLETE]).start()
        results.append(ol.sort(keys, wait_for=gate))
        assert gate.command_execution_status == cl.command_execution_status.COMPLETE
    for result in results:
        with within_gate(serial.handle):
            np.testing.assert_array_equal(result.get(), np.sort(data))
