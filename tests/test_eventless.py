"""Launches without events: results whose events are made once somebody asks for them."""

from __future__ import annotations

import copy
import ctypes
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest
from runtime_kernels import SMALL

import opencl_lab as ol
from opencl_lab.runtime import bound, replay
from opencl_lab.runtime.results import PooledArray
from opencl_lab.runtime.session import session_of

N = 700
COMPLETE = cl.command_execution_status.COMPLETE

pytestmark = pytest.mark.usefixtures("nothing_recorded")


@pytest.fixture
def queue(device):
    return cl.CommandQueue(device.queue().context)


@pytest.fixture
def started(monkeypatch):
    """Enqueue without events on this device too; return what the driver answered, and answers."""
    driver = bound._driver_enqueue()
    if driver is None:
        pytest.skip("pyopencl's library is not found")
    codes = []

    def start(*given):
        codes.append(driver(*given))
        return codes[-1]

    monkeypatch.setattr(bound, "_starter", lambda queue: start)
    return codes


@pytest.fixture
def given(queue, rng):
    """Return an array whose like was sorted before, and what its sort gives."""
    keys = rng.integers(-(2**30), 2**30, N, np.int32)
    array = cl.array.to_device(queue, keys)
    for _ in range(2):
        ol.sort(array)
    return array, np.sort(keys)


def test_a_result_has_an_event_once_somebody_asks(started, given):
    array, right = given
    assert started and not any(started)
    result = ol.sort(array)
    assert type(result) is PooledArray and "events" not in vars(result)
    assert np.array_equal(result.get(), right) and "events" not in vars(result)
    (event,) = result.events
    assert result.events[0] is event and type(result) is PooledArray
    event.wait()
    result = ol.sort(array)
    assert result.data is not None and len(vars(result)["events"]) == 1  # it is a plain array now
    result = ol.sort(array)
    result.events = []
    assert result.events == [] and np.array_equal(result.get(), right)


def test_its_event_waits_for_the_kernel(queue, held_back, started, given):
    array, right = given
    other = cl.CommandQueue(queue.context)
    host = np.empty(N, np.int32)
    with held_back(queue):
        result = ol.sort(array)
        assert result.events[0].command_execution_status != COMPLETE
        late = result.with_queue(other)
        copied = cl.enqueue_copy(other, host, late.data, is_blocking=False, wait_for=late.events)
        queue.flush()
        other.flush()
        assert copied.command_execution_status != COMPLETE
    copied.wait()
    assert np.array_equal(host, right) and result.events[0].command_execution_status == COMPLETE


def test_other_queues_get_what_is_still_computed(queue, started, given):
    array, right = given
    other = cl.CommandQueue(queue.context)
    for _ in range(5):
        assert np.array_equal(ol.sort(array).get(other), right)
        assert np.array_equal(ol.sort(ol.sort(array).with_queue(other)).get(), right)
        result = ol.sort(array)
        result.queue = other  # by hand
        assert np.array_equal(result.get(), right)


def test_copies_and_views_have_events(started, given):
    array, right = given
    for changed in (copy.copy, lambda result: result[:], lambda result: result.with_queue(None)):
        result = ol.sort(array)
        assert changed(result).events and not result.is_pooled
        assert np.array_equal(result.get(), right)


def test_copies_are_plain_arrays_and_the_result_stays_what_it_is(given):
    array, right = given
    result = ol.sort(array)
    kind = type(result)
    copied = copy.copy(result)
    assert type(copied) is cl.array.Array and type(result) is kind is PooledArray
    assert copied.base_data is result.base_data and np.array_equal(copied.get(), right)
    assert np.array_equal(ol.sort(result).get(), right)  # as an input, too


def test_only_the_last_launch_has_an_event_and_only_for_out(queue, started, given):
    array, right = given
    options = {"algorithm": "odd-even-merge", "config": SMALL}
    out = cl.array.empty(queue, N, np.int32)
    for _ in range(2):
        ol.sort(array, out=out, **options)
        ol.sort(array, **options)
    recorded = list(replay._recorded.values())[-1]
    (executable,) = recorded.executables
    launches = len(executable.plan.launches)
    assert launches > 2
    started.clear()
    assert np.array_equal(ol.sort(array, **options).get(), right) and len(started) == launches
    started.clear()
    assert ol.sort(array, out=out, **options) is out
    assert len(out.events) == 1 and len(started) == launches - 1
    out.events[0].wait()
    assert np.array_equal(out.get(), right)


def test_calls_on_host_arrays_wait_for_the_last_launch(queue, rng, started):
    for _ in range(6):
        keys = rng.integers(-(2**30), 2**30, N, np.int32)
        started.clear()
        result = ol.sort(keys, algorithm="odd-even-merge", config=SMALL, queue=queue)
        assert np.array_equal(result, np.sort(keys))
    launches = len(list(replay._recorded.values())[-1].executables[-1].plan.launches)
    assert len(started) == launches - 1


def test_arguments_are_set_one_by_one_if_need_be(given, monkeypatch):
    array, right = given
    monkeypatch.setattr(bound, "_set_all", None)
    ol.free_memory()
    for _ in range(3):
        assert np.array_equal(ol.sort(array).get(), right)


def test_results_in_memory_of_the_caller_s_have_events(queue, started, given):
    array, right = given
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
    array = cl.array.to_device(queue, array.get(), pool)
    for _ in range(3):
        result = ol.sort(array)
    assert type(result) is cl.array.Array and len(result.events) == 1
    assert np.array_equal(result.get(), right)


def test_what_another_queue_writes_is_waited_for(queue, rng, held_back, started, given):
    array, _ = given
    other, new = cl.CommandQueue(queue.context), rng.integers(-(2**30), 2**30, N, np.int32)
    with held_back(other):
        array.add_event(cl.enqueue_copy(other, array.base_data, new, is_blocking=False))
        result = ol.sort(array)
    assert np.array_equal(result.get(), np.sort(new))


def test_what_the_driver_refuses_is_reported_by_pyopencl(started, given, monkeypatch):
    array, right = given
    recorded = list(replay._recorded.values())[-1]
    refused = []

    def refuse():
        refused.append(True)
        return -5

    def relaunch(launch):
        return launch._replace(start=refuse)

    runs = recorded._bound._runs
    runs[:] = [(lock, list(map(relaunch, launches)), more) for lock, launches, more in runs]
    assert np.array_equal(ol.sort(array).get(), right) and refused  # pyopencl could do it

    def fail(*given):
        raise cl.LogicError("clEnqueueNDRangeKernel", -5, "")

    monkeypatch.setattr(bound, "_enqueue", fail)
    with pytest.raises(ol.LaunchError, match=r"the launch failed on .*: clEnqueueNDRangeKernel"):
        ol.sort(array)


def test_events_stay_where_they_tell_times_or_cost_nothing(device, monkeypatch):
    profiling = device.queue(profiling=True)
    assert bound._starter(profiling) is None
    plain = device.queue()
    assert (bound._starter(plain) is None) == session_of(plain).device.unified_memory
    monkeypatch.setattr(session_of(plain), "device", replace(device, unified_memory=False))
    assert bound._starter(plain) is bound._driver_enqueue()
    assert bound._starter(profiling) is None


def test_without_the_library_of_pyopencl_there_are_events(monkeypatch):
    def missing(path):
        raise OSError(path)

    monkeypatch.setattr(ctypes, "PyDLL", missing)
    assert bound._driver_enqueue.__wrapped__() is None
