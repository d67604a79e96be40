"""What is kept for further calls: its bounds, and that it goes where memory runs out."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Buffer, Launch, Plan, Table
from opencl_lab.runtime import bound, cache
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

FLOAT32 = np.dtype(np.float32)
KERNEL = """<%page args="FACTOR"/>
__kernel void scale(__global const float *source, __global float *target,
                    __global const float *values, __global float *counters)
{
    const int i = get_global_id(0);
    target[i] = ${FACTOR} * source[i] + values[i];
}
"""
N = 16


def steps(n):
    return np.arange(n, dtype=np.float32)


@pytest.fixture
def plan_of(tmp_path):
    """Return a function that plans a kernel with a table of so many values."""
    template = tmp_path / "scale.cl.mako"
    template.write_text(KERNEL)

    def make(factor=1, count=N):
        buffers = (
            Buffer("x", "in", (N,), FLOAT32),
            Buffer("y", "out", (N,), FLOAT32),
            Buffer("t", "table", (count,), FLOAT32, Table(steps, (count,))),
            Buffer("c", "zeros", (count,), FLOAT32),
        )
        arguments = {"source": "x", "target": "y", "values": "t", "counters": "c"}
        params = {"FACTOR": factor}
        return Plan(buffers, (Launch(str(template), "scale", params, (N,), (N,), arguments),))

    return make


def run(executable, queue):
    return execute(executable, {"x": np.ones(N, np.float32)}, queue).outputs["y"]


def test_the_executables_used_least_recently_go_first(fresh, plan_of, monkeypatch):
    monkeypatch.setattr(cache, "MOST_EXECUTABLES", 2)
    session = session_of(fresh)
    a, b = (session.executable(key, plan_of) for key in "ab")
    assert session.executable("a", plan_of) is a
    session.executable("c", plan_of)
    assert session.executable("a", plan_of) is a
    assert b.dropped and not b.current
    assert session.executable("b", plan_of) is not b
    np.testing.assert_array_equal(run(b, fresh), steps(N) + 1)  # who has it can still run it


def test_tables_and_counters_are_bounded_by_bytes(device, plan_of, monkeypatch):
    limit = 3 * 8 * 1000  # a table and counters of 1,000 values thrice
    monkeypatch.setenv("OCLAB_KEPT_BYTES", str(limit))
    queue = cl.CommandQueue(cl.Context([device.handle]))
    session = session_of(queue)
    for count in range(1000, 1020):
        run(session.executable(count, lambda n=count: plan_of(count=n)), queue)
        held = sum(table.memory.size for table in session._tables.values())
        assert session._executables.nbytes == 2 * held <= limit
    assert len(session._executables) == 2
    run(session.executable("large", lambda: plan_of(count=10_000)), queue)
    assert len(session._executables) == 1  # the one that was asked for last stays
    assert session._executables.nbytes == 8 * 10_000 and len(session._tables) == 1


@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_call_that_runs_out_of_memory_is_tried_once_more(
    fresh, plan_of, monkeypatch, side, times
):
    session = session_of(fresh)
    other = session.executable("other", lambda: plan_of(3))
    executable = session.executable("one", plan_of)
    x = np.ones(N, np.float32)
    x = x if side == "host" else cl.array.to_device(fresh, x)
    enqueue, failed = bound._enqueue, []

    def refuse(*args):
        if len(failed) < times:
            failed.append(other.dropped)
            raise cl.MemoryError("MEM_OBJECT_ALLOCATION_FAILURE")
        return enqueue(*args)

    monkeypatch.setattr(bound, "_enqueue", refuse)
    if times == 1:
        result = execute(executable, {"x": x}, fresh).outputs["y"]
        np.testing.assert_array_equal(result if side == "host" else result.get(), steps(N) + 1)
    else:
        with pytest.raises(LaunchError, match="ran out of memory"):
            execute(executable, {"x": x}, fresh)
    assert failed == [False, True][:times] and other.dropped
    assert not session._executables
