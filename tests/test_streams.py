"""Parts that go through a device in turn: all, in order, overlapping; none after an error."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab.runtime import streams
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.tiles import Part, run_parts

BYTE = np.dtype(np.uint8)


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

        return Part(read, write)

    return [part(at) for at in range(0, source.size, length)]


def negated(queue):
    def work(given, out):
        if is_device_array(given):
            out.set(~given.get(queue), queue)
        else:
            np.invert(given, out=out)

    return work


def refuse(*args, **more):
    raise cl.MemoryError("OUT_OF_HOST_MEMORY")


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_part_comes_back_to_its_place(queue, count, pinned, rng, monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 4096)
    if not pinned:
        monkeypatch.setattr(cl, "enqueue_map_buffer", refuse)
    length = 10_000  # no multiple of a chunk
    source = rng.integers(0, 256, count * length, np.uint8)
    target, done = np.zeros_like(source), []
    parts = parts_of(source, target, length)
    seconds = run_parts(parts, (length,), BYTE, negated(queue), queue, lambda: done.append(0))
    np.testing.assert_array_equal(target, ~source)
    assert len(done) == count
    if count:
        assert all(seconds[stage] > 0 for stage in ("read", "work", "write"))


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

    part = Part(stage("read"), stage("write"))
    run_parts([part] * 6, (64,), BYTE, stage("work"), queue)
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

    part = Part(counted("read"), counted("write"))
    with pytest.raises(error):
        run_parts([part] * 50, (64,), BYTE, counted("work"), queue)
    before = dict(calls)
    time.sleep(0.05)
    assert not running and calls == before and max(calls.values()) < 8
