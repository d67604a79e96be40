"""Memory of calls that are replayed."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.tools
import pytest
from runtime_kernels import SMALL

import opencl_lab as ol
from opencl_lab.runtime import replay
from opencl_lab.runtime.session import session_of

pytestmark = pytest.mark.usefixtures("nothing_recorded")


# ---------------------------------------------------------------------- memory


def test_free_memory_gives_scratch_memory_back(fresh, rng):
    keys = cl.array.to_device(fresh, rng.integers(0, 99, 5_000, np.int32))
    ol.sort(keys, algorithm="odd-even-merge", config=SMALL)
    fresh.finish()
    pool = session_of(fresh).pool(fresh)
    assert pool.idle_bytes
    ol.free_memory()
    assert not pool.idle_bytes and not replay._recorded


@pytest.mark.full
def test_memory_that_another_queue_uses_is_not_handed_out(fresh, rng, held_back):
    other = cl.CommandQueue(fresh.context)
    for _ in range(2):  # the first road, and a replay
        x = rng.integers(0, 1000, 3000, np.int32)
        result = ol.sort(cl.array.to_device(fresh, x))
        fresh.finish()
        with held_back(other):
            back = ol.sort(result.with_queue(other), descending=True)
            del result
            zeros = cl.array.to_device(fresh, np.zeros(3000, np.int32))
            overwriting = [ol.sort(zeros) for _ in range(5)]
            fresh.finish()
        np.testing.assert_array_equal(back.get(), np.sort(x)[::-1])
        del overwriting


def test_options_of_numpy_and_configurations_belong_to_the_kind(rng, runs):
    a, b = (rng.standard_normal((20, 20), dtype=np.float32) for _ in "ab")
    for alpha in (np.float32(2), np.float64(2.5), np.float32(3), np.int64(3)):
        for _ in range(2):
            np.testing.assert_allclose(ol.gemm(a, b, alpha=alpha), alpha * (a @ b), atol=1e-4)
    assert len(runs) == 4
    keys = rng.integers(0, 99, 500, np.int32)
    for size in (8, 16, 8):
        config = {"WG_SIZE": size}
        result = ol.sort(keys, algorithm="odd-even-merge", config=config)
        assert np.array_equal(result, np.sort(keys))
    assert len(runs) == 5
    for _ in range(2):
        with pytest.raises(ol.InvalidConfig):
            ol.sort(keys, algorithm="odd-even-merge", config={"WG_SIZE": 7})


def test_out_is_returned_though_the_input_is_the_same_memory(side, rng):
    keys = rng.integers(0, 99, 300, np.int32)
    given = side.put(keys)
    view = given[:]
    for _ in range(2):
        assert ol.sort(given, out=given) is given
        assert ol.sort(given, out=view) is view
    np.testing.assert_array_equal(side.get(view), np.sort(keys))


def test_what_is_replayed_counts_as_used(device, rng, monkeypatch):
    queue = device.queue()
    session = session_of(queue)
    keys = cl.array.to_device(queue, rng.integers(0, 99, 300, np.int32))
    for _ in range(2):
        ol.sort(keys)
    recorded = list(replay._recorded.values())[-1]
    executable = recorded.executables[0]
    ol.gemm(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), queue=queue)
    assert list(session._executables._entries.values())[-1] is not executable
    monkeypatch.setattr(replay, "TOUCH_SECONDS", -1)
    ol.sort(keys)
    assert list(session._executables._entries.values())[-1] is executable
    ol.free_memory()
    assert not replay._recorded and executable.dropped
    assert np.array_equal(ol.sort(keys).get(), np.sort(keys.get()))
