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


def test_out_is_returned_though_the_input_is_the_same_memory(side, rng):
    keys = rng.integers(0, 99, 300, np.int32)
    given = side.put(keys)
    view = given[:]
    for _ in range(2):
        assert ol.sort(given, out=given) is given
        assert ol.sort(given, out=view) is view
    np.testing.assert_array_equal(side.get(view), np.sort(keys))
