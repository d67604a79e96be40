"""Parts that go through a device in turn: all, in order, overlapping; none after an error."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab.core.errors import LaunchError
from opencl_lab.runtime import streams
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.streams import Stream, StreamPart


@pytest.fixture
def queue(either_memory):
    """Of a device with each kind of memory."""
    return either_memory


def parts_of(source, target, length):
    def part(at):
        def read(data, begin):
            np.copyto(data, source[at + begin :][: data.size])

        def write(data, begin):
            target[at + begin :][: data.size] = data

        return StreamPart(read, write)

    return [part(at) for at in range(0, source.size, length)]


def negated(queue):
    def work(given, out):
        if is_device_array(given):
            out.set(~given.get(queue), queue)
        else:
            np.invert(given, out=out)

    return work


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_part_comes_back_to_its_place(queue, count, pinned, rng, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 4096)
    if not pinned:
        monkeypatch.setattr(streams.Staging, "_take", lambda staging, count: [])
    length = 10_000  # no multiple of a chunk
    source = rng.integers(0, 256, count * length, np.uint8)
    target, done = np.zeros_like(source), []
    stream = Stream(queue, (length,), np.dtype(np.uint8))
    stream.run(parts_of(source, target, length), negated(queue), lambda: done.append(0))
    np.testing.assert_array_equal(target, ~source)
    assert len(done) == count
    if count:
        assert all(stream.seconds[stage] > 0 for stage in ("read", "work", "write"))


def test_pinned_memory_is_given_back(queue):
    stream = Stream(queue, (9_000,), np.dtype(np.uint8))
    source = np.arange(18_000, dtype=np.uint8)
    stream.run(parts_of(source, np.zeros_like(source), 9_000), negated(queue))
    assert all(lane.staging.pinned_bytes for lane in stream._lanes)
    stream.close()
    assert not any(lane.staging.pinned_bytes for lane in stream._lanes)


def test_stages_overlap(queue):
    seen, lock, most = set(), threading.Lock(), []

    def stage(name):
        def busy(*unused):
            with lock:
                seen.add(name)
                most.append(len(seen))
            time.sleep(0.02)
            with lock:
                seen.discard(name)

        return busy

    part = StreamPart(stage("read"), stage("write"))
    Stream(queue, (64,), np.dtype(np.uint8)).run([part] * 6, stage("work"))
    assert max(most) == 3


@pytest.mark.parametrize("stage", ["read", "work", "write"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_nothing_goes_on_after_an_error(queue, stage, error):
    calls = {"read": 0, "work": 0, "write": 0}
    running = []

    def counted(name):
        def call(*unused):
            running.append(name)
            calls[name] += 1
            time.sleep(0.005)
            running.remove(name)
            if name == stage and calls[name] == 3:
                raise error("now")

        return call

    part = StreamPart(counted("read"), counted("write"))
    with pytest.raises(error):
        Stream(queue, (64,), np.dtype(np.uint8)).run([part] * 50, counted("work"))
    before = dict(calls)
    time.sleep(0.05)
    assert not running and calls == before and max(calls.values()) < 8


@pytest.mark.parametrize("stage", ["read", "write"])
def test_nothing_is_held_after_an_error(queue, stage):
    def fail(data, begin):
        raise OSError("now")

    part = StreamPart(
        *(fail if name == stage else lambda *given: None for name in ("read", "write"))
    )
    before = set(threading.enumerate())
    gc.disable()  # errors hold frames, and these arrays and threads
    try:
        stream = Stream(queue, (9_000,), np.dtype(np.uint8))
        arrays = list(map(weakref.ref, stream._in + stream._out))
        with pytest.raises(OSError, match="now"):
            stream.run([part] * 5, lambda *given: None)
        stream.close()
        del stream
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
        assert set(threading.enumerate()) <= before
        assert not any(array() for array in arrays)
    finally:
        gc.enable()


def test_parts_without_new_threads(queue, rng, monkeypatch):
    monkeypatch.setattr(ThreadPoolExecutor, "submit", no_threads)
    source = rng.integers(0, 256, 50_000, np.uint8)
    target = np.zeros_like(source)
    stream = Stream(queue, (10_000,), np.dtype(np.uint8))
    stream.run(parts_of(source, target, 10_000), negated(queue))
    np.testing.assert_array_equal(target, ~source)


def no_threads(pool, job):
    raise RuntimeError("cannot schedule new futures after interpreter shutdown")


def test_an_error_of_the_driver_is_one_of_the_package(queue):
    def fail(given, out):
        raise cl.MemoryError("OUT_OF_RESOURCES")

    with pytest.raises(LaunchError, match="out of memory"):
        Stream(queue, (64,), np.dtype(np.uint8)).run(
            [StreamPart(lambda *given: None, lambda *given: None)], fail
        )
