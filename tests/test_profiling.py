"""`opencl_lab.profile`: launches with their times, of calls on host and device arrays."""

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import LaunchError
from opencl_lab.runtime import profiling

KEYS = np.arange(1000, dtype=np.int32)[::-1].copy()


@pytest.fixture
def plain(queue):
    """A queue without profiling."""
    return cl.CommandQueue(queue.context, queue.device)


def kernels_of(*arrays, **how):
    """Return the names of what sorting launches, from the events of its execution."""
    with ol.profile() as profile:
        ol.sort(*arrays, **how)
    return [launch.name for launch in profile]


def test_calls_are_listed_in_order_with_times(side):
    keys, image = side.put(KEYS), side.put(np.ones((50, 60), np.float32))
    for _ in range(3):  # first calls, recorded ones, replays
        with ol.profile() as profile:
            ol.sort(keys)
            ol.fft.rfft2(image)
        names = [launch.name for launch in profile]
        first = kernels_of(keys)
        assert 0 < len(first) < len(names) and names[: len(first)] == first
        for launch in profile:
            times = launch.queued, launch.submitted, launch.start, launch.end
            assert list(times) == sorted(times) and times[0] > 0
            assert launch.ms == (times[3] - times[2]) * 1e-6
        assert profile.ms == pytest.approx(sum(launch.ms for launch in profile))
        table = str(profile).splitlines()
        assert len(table) == 1 + len(profile)
        for line, launch in zip(table[1:], profile, strict=True):
            assert line.endswith(launch.name) and f"{launch.ms:.4f}" in line


def test_what_is_outside_is_not_listed_and_not_on_a_slower_queue(device):
    profile = ol.profile()
    with pytest.raises(ZeroDivisionError), profile, ol.profile() as inner:
        ol.sort(KEYS)
        assert device.queue() == device.queue(profiling=True)
        raise ZeroDivisionError
    count = len(profile)
    assert count == len(inner) > 0
    ol.sort(KEYS)
    assert len(profile) == count and device.queue() != device.queue(profiling=True)


def test_arrays_of_queues_without_profiling_have_no_times(plain):
    with ol.profile() as profile:
        result = ol.sort(cl.array.to_device(plain, KEYS))
    assert result.queue == plain
    assert [launch.name for launch in profile] == kernels_of(result)
    with pytest.raises(LaunchError, match=r"no times where a queue has no profiling: pass queue="):
        assert profile.ms
    assert str(profile).endswith(profiling.UNTIMED)


def test_such_arrays_have_times_on_another_queue(device):
    keys = cl.array.to_device(device.queue(), KEYS)
    with ol.profile() as profile:
        result = ol.sort(keys, queue=device.queue())
    assert profile.ms > 0
    np.testing.assert_array_equal(result.get(), KEYS[::-1])


def test_prepared_calls_have_times():
    prepared = ol.prepare("sort", KEYS)
    for _ in range(2):
        with ol.profile() as profile:
            prepared(KEYS)
        assert profile.ms > 0
    np.testing.assert_array_equal(prepared(KEYS), KEYS[::-1])


def test_copies_are_listed_around_the_kernels(queue):
    memory = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, KEYS.nbytes)
    back = np.empty_like(KEYS)
    copies = [
        cl.enqueue_copy(queue, memory, KEYS, is_blocking=False),
        cl.enqueue_copy(queue, back, memory, is_blocking=False),
    ]
    with ol.profile() as profile:
        profiling.note(queue, [], [], copies)
    assert [launch.name for launch in profile] == ["copy to the device", "copy to the host"]
    assert profile.ms > 0
