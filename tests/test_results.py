"""Memory of results: used again when only its own queue can know it, and never else."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import block_of, together

import opencl_lab as ol
from opencl_lab.runtime import bound, replay, results
from opencl_lab.runtime import session as session_module
from opencl_lab.runtime.device_call import pending
from opencl_lab.runtime.freeing import call_when_freeing
from opencl_lab.runtime.results import QueuePool
from opencl_lab.runtime.session import session_of

N = 700


@pytest.fixture
def queue(device):
    return cl.CommandQueue(device.queue().context)


@pytest.fixture(params=["events", "no events"])
def make(request, queue, rng, monkeypatch):
    """Return what makes pooled results, with the right values beside."""
    if request.param == "no events":
        if bound._driver_enqueue() is None:
            pytest.skip("pyopencl's library is not found")
        monkeypatch.setattr(bound, "_starter", lambda queue: bound._driver_enqueue())
    else:
        monkeypatch.setattr(bound, "_starter", lambda queue: None)
    replay.forget()

    def made(n=N):
        keys = rng.integers(-(2**30), 2**30, n, np.int32)
        given = cl.array.to_device(queue, keys)
        ol.sort(given)
        return ol.sort(given), np.sort(keys)

    return made


def test_memory_is_used_again_in_the_order_of_the_queue(make):
    result, right = make()
    assert result.is_pooled
    assert np.array_equal(result.get(), right) and result.is_pooled
    block = block_of(result).int_ptr
    kept = block_of(result)  # keeps the address from the driver
    del result
    again, right = make()
    assert block_of(again).int_ptr == block and kept.int_ptr == block
    assert np.array_equal(again.get(), right)


def test_what_goes_to_a_device_takes_memory_of_the_pool(queue, rng):
    keys = rng.integers(-99, 99, (20, 30), np.int32)
    ol.sort(ol.to_device(keys, queue=queue))  # the first call of its kind makes views
    pool = session_of(queue).pool(queue)
    there = ol.to_device(keys.T, queue=queue)
    block, kept = block_of(there), block_of(there).int_ptr
    assert there.is_pooled and there.strides == (4, 120) and not there.events
    del there
    again = ol.to_device(keys, queue=queue)
    assert block_of(again).int_ptr == kept and block is not None
    for right in (keys, -keys):
        given = ol.to_device(right, queue=queue)
        result = ol.sort(given)
        assert given.is_pooled and np.array_equal(result.get(), np.sort(right))
    idle = pool.idle_bytes
    del given, result, again
    assert pool.idle_bytes == idle + 3 * keys.nbytes


def test_first_calls_take_memory_of_the_pool(queue, rng):
    replay.forget()
    matrix = rng.random((37, 53), np.float32)
    given = ol.to_device(matrix, queue=queue)
    first = ol.gemm(given, given, trans_b=True)
    pool, idle = session_of(queue).pool(queue), session_of(queue).pool(queue).idle_bytes
    np.testing.assert_allclose(first.get(), matrix @ matrix.T, rtol=1e-5)
    pooled = first.is_pooled
    del first
    assert pooled and pool.idle_bytes == idle + 37 * 37 * 4


def test_results_outlive_their_calls(make):
    made = [make() for _ in range(20)]
    assert len({block_of(result).int_ptr for result, _ in made}) == 20
    for result, right in made[::3]:
        assert np.array_equal(result.get(), right)
    del made[::2]
    made += [make() for _ in range(20)]
    for result, right in made:
        assert np.array_equal(result.get(), right)


def escape_by_data(result):
    return result.data


def escape_by_view(result):
    return result[3:]


def escape_by_copy(result):
    return copy.copy(result)


def escape_by_queue(result):
    return result.with_queue(cl.CommandQueue(result.context))


def escape_by_event(result):
    result.add_event(result.events[0])


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "escape",
    [escape_by_data, escape_by_view, escape_by_copy, escape_by_queue, escape_by_event],
)
def test_memory_that_others_may_have_is_not_used_again(escape, make):
    result, right = make()
    block, kind = block_of(result), type(result)
    escape(result)
    assert not result.is_pooled and result.base_data is block
    assert type(result) is kind and "Array" in repr(result)
    assert np.array_equal(result.get(), right)
    del result
    gc.collect()
    others = [make()[0] for _ in range(3)]
    assert all(block_of(other).int_ptr != block.int_ptr for other in others)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_result_is_pickled_as_a_plain_array(protocol, make):
    result, right = make()
    shared = []  # what pyopencl cannot pickle

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            if not isinstance(item, (cl.Context, cl.CommandQueue, cl.Buffer, cl.Event)):
                return None
            shared.append(item)
            return len(shared) - 1

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid):
            return shared[int(pid)]

    file = io.BytesIO()
    Pickler(file, protocol).dump(result)
    file.seek(0)
    loaded = Unpickler(file).load()
    assert type(loaded) is cl.array.Array and np.array_equal(loaded.get(), right)
    assert not result.is_pooled and loaded.base_data is result.base_data


def test_another_queue_may_still_read_what_was_dropped(make, queue, held_back):
    other = cl.CommandQueue(queue.context)
    seen = []
    with held_back(other):
        for _ in range(3):
            result, right = make()
            host = np.empty(N, np.int32)
            copied = cl.enqueue_copy(
                other, host, result.data, is_blocking=False, wait_for=result.events
            )
            seen.append((copied, host, right))  # an event that dies would wait
            del result  # while the copy has not begun
            for _ in range(3):
                make()
            queue.finish()
    other.finish()
    assert all(np.array_equal(host, right) for _, host, right in seen)


@pytest.mark.few(1)
def test_an_input_of_another_queue_is_not_used_again(make, queue, device, rng):
    result, right = make()
    other = cl.CommandQueue(queue.context)
    a = cl.array.to_device(other, np.ones((1, N), np.float32))
    b, _ = make()
    del b
    column = ol.fft.fft(cl.array.to_device(queue, np.ones(N, np.complex64)))
    column = ol.fft.fft(cl.array.to_device(queue, np.ones(N, np.complex64)))
    assert column.is_pooled
    ol.gemm(a, cl.array.to_device(queue, np.ones((N, 1), np.float32)))
    matrix = cl.array.to_device(queue, np.ones((N, 2), np.float32))
    ol.sort(matrix)
    pooled = ol.sort(matrix)
    assert pooled.is_pooled
    for _ in range(2):
        product = ol.gemm(a, pooled)  # runs on the queue of a
    assert not pooled.is_pooled
    assert np.array_equal(product.get(), np.full((1, 2), N, np.float32))
    assert np.array_equal(result.get(), right)


def test_a_result_is_an_array_like_any_other(make, queue):
    result, right = make()
    assert isinstance(result, cl.array.Array)
    assert result.shape == (N,) and result.dtype == np.int32 and result.nbytes == 4 * N
    with warnings.catch_warnings():  # of a driver about pyopencl's own kernel
        warnings.simplefilter("ignore")
        doubled = (result + result).get()
    assert np.array_equal(doubled, 2 * right)
    result, right = make()
    host = np.empty(N, np.int32)
    assert result.get(ary=host) is host and np.array_equal(host, right)
    assert result.base_data.size == 4 * N
    result, right = make()
    assert np.array_equal(result.get(cl.CommandQueue(queue.context)), right)
    result.base_data = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4 * N)
    assert not result.is_pooled
    result, right = make()
    assert np.array_equal(ol.sort(result, out=result).get(), right)


def test_an_allocator_of_the_caller_is_asked(queue):
    asked = []
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))

    def allocator(nbytes):
        asked.append(nbytes)
        return pool.allocate(nbytes)

    given = cl.array.to_device(queue, np.arange(N, dtype=np.int32)[::-1].copy(), allocator)
    for _ in range(3):
        asked.clear()
        result = ol.sort(given)
        assert asked == [4 * N] and type(result) is cl.array.Array
        assert np.array_equal(result.get(), np.arange(N))


def test_what_is_kept_is_bounded_and_given_back(queue, monkeypatch):
    pool = QueuePool(queue, 1000, nullcontext())
    blocks = [pool.take(300) for _ in range(5)] + [pool.take(200)]
    for block in blocks:
        pool.give(block.size, block)
    assert pool.idle_bytes == 800  # the first ones went
    assert pool.take(200) is blocks[-1] and pool.take(300) in blocks[3:5]
    pool.free_held()
    assert pool.idle_bytes == 0
    monkeypatch.setattr(results, "MOST_SIZES", 3)
    for nbytes in (16, 32, 48, 64, 80):
        pool.give(nbytes, pool.take(nbytes))
    pool.take(999)
    assert pool.idle_bytes == 48 + 64 + 80


def test_blocks_of_arrays_that_die_count_too(make, queue, monkeypatch):
    monkeypatch.setattr(results, "SMALL", 0)
    session = session_of(queue)
    pool = session.pool(queue)
    kept = [make()[0] for _ in range(4)]
    pool.free_held()  # scratch memory too
    assert pool.idle_bytes == 0
    pool._most_idle = 3 * 4 * N
    del kept
    assert 4 * N <= pool.idle_bytes <= 3 * 4 * N


def test_memory_that_has_run_out_is_asked_for_again(queue):
    freed = []
    call_when_freeing(freed.append)
    pool = QueuePool(queue, 1000, nullcontext())
    new, failures = pool._new, [cl.MemoryError("allocate", -4, "none left")]

    def short(nbytes):
        if failures:
            raise failures.pop()
        return new(nbytes)

    pool._new = short
    assert pool.take(64).size == 64 and len(freed) == 1


def test_free_memory_gives_all_back(make, queue):
    make()
    pool = session_of(queue).pool(queue)
    assert pool.idle_bytes >= 4 * N
    ol.free_memory()
    assert pool.idle_bytes == 0


def test_results_may_die_in_any_thread(make, queue, rng):
    def work(keys):
        given = cl.array.to_device(queue, keys)
        for _ in range(30):
            result = ol.sort(given)
        np.testing.assert_array_equal(result.get(), np.sort(keys))

    together(*(partial(work, keys) for keys in rng.integers(0, 2**30, (8, N), np.int32)))


def test_commands_of_other_queues_are_flushed(make, queue):
    flushed = []

    class Queue:
        properties = 0

        def __init__(self, name):
            self.name = name

        def flush(self):
            flushed.append(self.name)

    class Event:
        def __init__(self, command_queue, status=cl.command_execution_status.QUEUED):
            self.command_queue = command_queue
            self.command_execution_status = status

    own = Queue("own")
    events = [Event(own), Event(Queue("other")), Event(None), Event(own, -5)]

    class Array:
        def __init__(self, events):
            self.events = events

    arrays = [Array(events[:2]), Array(events[2:])]
    assert pending(arrays, own) == events[1:]  # the own queue is in order, but one failed
    assert flushed == ["other"] and arrays[0].events == events[:2]
    own.properties = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    assert pending([Array(events)], own) == events
    done = Array([Event(own, cl.command_execution_status.COMPLETE)])
    assert pending([done], own) == [] and not done.events
    result, right = make()
    other = cl.CommandQueue(queue.context)
    assert np.array_equal(ol.sort(result.with_queue(other)).get(), right)


def test_a_queue_that_was_set_by_hand_is_another_one(make, queue):
    result, right = make()
    pool = session_of(queue).pool(queue)
    other = cl.CommandQueue(queue.context)
    ol.sort(cl.array.to_device(other, right))
    ol.sort(cl.array.to_device(other, right))
    result.queue = other
    again = ol.sort(result)
    assert not result.is_pooled and pool.queue == queue
    assert np.array_equal(again.get(), right)
    assert repr(make()[0]).startswith("cl.Array(")


def test_pools_of_queues_that_went_keep_nothing(queue, rng, monkeypatch):
    session = session_of(queue)
    monkeypatch.setattr(session_module, "MOST_QUEUES", 2)
    pool = session.pool(queue)
    pool.give(64, pool.take(64))
    assert pool.idle_bytes == 64
    queues = [cl.CommandQueue(queue.context) for _ in range(3)]
    for one in queues:
        session.pool(one)
    assert pool.idle_bytes == 0 and len(session._pools) <= 2
    pool.give(64, pool.take(64))
    assert pool.idle_bytes == 0
