"""Launches without events: results whose events are made once somebody asks for them."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest
from runtime_kernels import SMALL

import opencl_lab as ol
from opencl_lab.runtime import bound, replay
from opencl_lab.runtime.results import PooledArray

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


def test_what_another_queue_writes_is_waited_for(queue, rng, held_back, started, given):
    array, _ = given
    other, new = cl.CommandQueue(queue.context), rng.integers(-(2**30), 2**30, N, np.int32)
    with held_back(other):
        array.add_event(cl.enqueue_copy(other, array.base_data, new, is_blocking=False))
        result = ol.sort(array)
    assert np.array_equal(result.get(), np.sort(new))
