"""Memory of large results on the host: used again when nobody has the result, and never before."""

from __future__ import annotations

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.runtime import host_results
from opencl_lab.runtime.host_results import HostResults
from opencl_lab.runtime.session import session_of

pytestmark = pytest.mark.usefixtures("nothing_recorded")

INT32 = np.dtype(np.int32)


@pytest.fixture(autouse=True)
def least(monkeypatch):
    monkeypatch.setattr(host_results, "LEAST", 4096)


def address(array):
    return array.ctypes.data


def test_memory_comes_back_when_the_last_view_is_gone():
    pool = HostResults(1 << 30)
    first = pool.empty((20, 1000), INT32)
    there, part = address(first), first[3:5].T
    first[:] = 7
    del first
    second = pool.empty((20, 1000), INT32)
    second[:] = 9
    assert address(second) != there and (part == 7).all() and not pool.idle_bytes
    view = part.base
    del part, view
    assert pool.idle_bytes == 80_000
    third = pool.empty((10_000,), np.dtype(np.int64))  # another shape and type of the same size
    assert address(third) == there and not pool.idle_bytes
    assert third.flags.writeable and third.flags.aligned and third.flags.c_contiguous


def test_large_results_begin_with_a_line_of_a_cache():
    pool = HostResults(8 << 20)
    sizes = (1 << 20, (1 << 20) + 4, 5 << 20, 9 << 20)  # the last one is not kept
    for least in (4096, 32 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host_results, "LEAST", least)
            held = [pool.empty((nbytes // 4,), INT32) for nbytes in sizes]
        for array, nbytes in zip(held, sizes, strict=True):
            array[:] = nbytes
            assert address(array) % 64 == 0 and array.nbytes == nbytes
            assert array.flags.writeable and array.flags.c_contiguous
        assert all((array == nbytes).all() for array, nbytes in zip(held, sizes, strict=True))
    assert pool.empty((1000,), INT32).flags.owndata


def test_results_of_further_calls(device, rng, monkeypatch):
    monkeypatch.setattr(host_results, "ALIGNED", 4096)
    keys = rng.integers(-(2**31), 2**31, (8, 3000)).astype(np.int32)
    queue = device.queue()
    pool = session_of(queue).host_results
    pool.free_held()
    kept = [ol.sort(row, queue=queue) for row in keys[:5]]
    parts = [ol.sort(row, queue=queue)[::7] for row in keys[5:]]
    del kept[-1]
    assert pool.idle_bytes == 12_000
    again = ol.sort(keys[0], queue=queue)
    assert not pool.idle_bytes
    for row, result in zip(keys[:4], kept, strict=True):
        np.testing.assert_array_equal(result, np.sort(row))
    np.testing.assert_array_equal(again, np.sort(keys[0]))
    for row, part in zip(keys[5:], parts, strict=True):
        np.testing.assert_array_equal(part, np.sort(row)[::7])
    del again
    assert pool.idle_bytes
    ol.free_memory()
    assert not pool.idle_bytes
