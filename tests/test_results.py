"""Memory of results: used again when only its own queue can know it, and never else."""

from __future__ import annotations

import copy
import gc
import warnings

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import block_of

import opencl_lab as ol
from opencl_lab.runtime import bound, replay
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


def test_memory_that_others_had_is_released_together(make, queue, held_back):
    """On devices with memory of their own; NVIDIA's driver waits there for all queues."""
    make()  # the first call makes views
    pool = session_of(queue).pool(queue)
    pool._release_left()
    pool._most_left = pool._bytes_to_look = 10 * 4 * N
    other = cl.CommandQueue(queue.context)
    kept, right = make()
    view = kept[3:]
    del kept
    with held_back(other):
        for count in range(2, 11):
            result, _ = make()
            escape_by_data(result)
            del result
            assert len(pool._left) == count
        # None is used again, as another queue may use it.
        assert len({block.int_ptr for _, block in pool._left}) == 10
        result, _ = make()
        escape_by_data(result)  # the eleventh is too many
        assert len(pool._left) == 2  # those in use: the view, and this one
        with warnings.catch_warnings():  # of a driver about pyopencl's own kernel
            warnings.simplefilter("ignore")
            derived = (result + 1) * 2
        assert len(pool._left) == 4 and pool._left[-1][1] is derived.base_data
    assert np.array_equal(view.get(), right[3:])
    del view, result, derived
    ol.free_memory()
    assert not pool._left
    escape_by_data(make()[0])
    pool.retire()
    escape_by_data(make()[0])
    assert not pool._left


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
    assert np.array_equal(result._new_like_me().shape, right.shape)
