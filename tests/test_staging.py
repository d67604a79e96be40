"""Copies through pinned memory: right for every length, within their limit, and after failures."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

import opencl_lab as ol
from opencl_lab.runtime import staging
from opencl_lab.runtime.session import session_of
from opencl_lab.runtime.staging import Staging

CHUNK = 4096


@pytest.fixture
def context(device):
    return cl.Context([device.handle])


@pytest.fixture
def queue(context):
    return cl.CommandQueue(context)


@pytest.fixture
def make(context, device, monkeypatch):
    """Return a function that makes staging of small chunks."""
    monkeypatch.setattr(staging, "LEAST_CHUNK", 1024)

    def make(slots=4, threads=2):
        return Staging(context, device.handle, chunk=CHUNK, limit=slots * CHUNK, threads=threads)

    return make


def memory(queue, nbytes):
    filled = np.full(nbytes, 0xEE, np.uint8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(queue.context, flags, hostbuf=filled)


def there_and_back(staged, queue, array):
    """Return what comes back, and check that nothing else was written."""
    buffer = memory(queue, array.nbytes + 100)
    staged.send(queue, buffer, array)
    around = np.full(array.nbytes + 200, 0x77, np.uint8)
    back = around[100:-100].view(array.dtype).reshape(array.shape)
    staged.fetch(queue, back, buffer)
    assert (around[:100] == 0x77).all() and (around[-100:] == 0x77).all()
    whole = np.empty(array.nbytes + 100, np.uint8)
    cl.enqueue_copy(queue, whole, buffer)
    assert (whole[array.nbytes :] == 0xEE).all()
    return back


@pytest.mark.parametrize("slots", [0, 1, 2, 20])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("nbytes", [8, 1024, CHUNK, CHUNK + 8, 5 * CHUNK - 8, 40 * CHUNK + 1000])
def test_there_and_back(nbytes, threads, slots, make, queue, rng):
    staged = make(slots, threads)
    array = rng.integers(0, 2**63, nbytes // 8, np.int64)
    kept = array.copy()
    np.testing.assert_array_equal(there_and_back(staged, queue, array), kept)
    assert 0 < staged.pinned_bytes <= max(slots, 1) * CHUNK
    staged.free_held()
    assert staged.pinned_bytes == 0
    array.flags.writeable = False
    np.testing.assert_array_equal(there_and_back(staged, queue, array), kept)


def test_an_array_may_change_once_it_is_sent(make, queue, rng):
    staged = make()
    array = rng.integers(0, 99, 50_000, np.int32)
    kept, buffer = array.copy(), memory(queue, array.nbytes)
    staged.send(queue, buffer, array)
    array[:] = -1
    staged.fetch(queue, array, buffer)
    np.testing.assert_array_equal(array, kept)


@pytest.fixture
def apart(make, queue, monkeypatch):
    """The staging of a session whose device has memory of its own, for arrays of 1000 bytes up."""
    session = session_of(queue)
    session.device = replace(session.device, unified_memory=False)
    session.staging = make()
    monkeypatch.setattr(staging, "LEAST", 1000)
    monkeypatch.setattr(staging, "LEAST_SENT", 1000)
    return session.staging


def test_public_calls(apart, queue, rng, monkeypatch):
    large = rng.integers(0, 2**31, (3, 9_000), np.int32)
    for row in large:
        np.testing.assert_array_equal(ol.sort(row, queue=queue), np.sort(row))
    assert 0 < apart.pinned_bytes <= 4 * CHUNK
    ol.free_memory()
    assert apart.pinned_bytes == 0
    monkeypatch.setattr(apart, "send", None)
    monkeypatch.setattr(apart, "fetch", None)
    small = rng.integers(0, 99, 200, np.int32)
    np.testing.assert_array_equal(ol.sort(small, queue=queue), np.sort(small))


@pytest.mark.parametrize("copy", ["send", "fetch"])
@pytest.mark.parametrize("moment", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, cl.RuntimeError])
def test_nothing_is_in_use_after_an_error(error, moment, copy, make, queue, rng, monkeypatch):
    staged, array = make(), rng.integers(0, 99, 30_000, np.int32)
    buffer = memory(queue, array.nbytes)
    order = {"send": (queue, buffer, array), "fetch": (queue, array, buffer)}[copy]
    running, finished, count, finish = [], [], [0], staging.finish_first

    def slow(target, source):
        running.append(threading.get_ident())
        time.sleep(0.003)
        np_copyto(target, source)
        running.pop()

    def fail(jobs):
        count[0] += 1
        if count[0] == moment:
            assert jobs
            raise error("now")
        finish(jobs)

    np_copyto = np.copyto
    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", slow)
        patch.setattr(staging, "finish_first", fail)
        patch.setattr(cl.CommandQueue, "finish", lambda queue: finished.append(queue))
        with pytest.raises(error):
            getattr(staged, copy)(*order)
        assert not running and finished == [queue]
    assert len(staged._idle) * CHUNK == staged.pinned_bytes
    again = rng.integers(0, 99, 30_000, np.int32)
    np.testing.assert_array_equal(there_and_back(staged, queue, again), again)
