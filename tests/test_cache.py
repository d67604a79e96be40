"""What is kept for further calls: its bounds, and that it goes where memory runs out."""

from __future__ import annotations

import linecache
import threading
from functools import partial

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import together

import opencl_lab as ol
from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Buffer, Launch, Plan, Table
from opencl_lab.core.template import render
from opencl_lab.ops.conv2d import separable
from opencl_lab.runtime import bound, cache, freeing, replay
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


def test_programs_go_with_the_last_executable_that_needs_them(fresh, plan_of, monkeypatch):
    monkeypatch.setattr(cache, "MOST_PROGRAMS", 2)
    session = session_of(fresh)
    for factor in range(1, 6):
        for key in "ab":
            made = session.executable((key, factor), lambda f=factor: plan_of(f))
            np.testing.assert_array_equal(run(made, fresh), factor + steps(N))
        del made
        assert len(session._programs) == min(factor, 2)
    assert len(session._executables) == 4


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


def test_what_executables_share_counts_once(fresh, plan_of):
    session = session_of(fresh)
    for key in "abc":
        session.executable(key, plan_of)
    assert session._executables.nbytes == (1 + 3) * 4 * N
    session.executable("a", lambda: plan_of(count=2 * N), replan=True)
    assert session._executables.nbytes == (1 + 2 + 2 * 2) * 4 * N
    ol.free_memory()
    assert len(session._executables) == session._executables.nbytes == len(session._tables) == 0


@pytest.mark.usefixtures("nothing_recorded")
def test_recordings_keep_nothing_that_was_dropped(fresh, rng, monkeypatch):
    monkeypatch.setattr(cache, "MOST_EXECUTABLES", 1)
    for n in (100, 200, 300):
        x = cl.array.to_device(fresh, rng.random(n, np.float32))
        for _ in range(2):
            np.testing.assert_array_equal(ol.sort(x).get(), np.sort(x.get()))
    assert len(replay._recorded) == 1


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


def test_a_table_that_finds_no_memory_frees_what_is_kept(fresh, plan_of, monkeypatch):
    session = session_of(fresh)
    session.executable("other", lambda: plan_of(3, 50))
    make, tables = cl.Buffer, []

    def refuse_once(*args, **kwargs):
        tables.append(len(session._tables))
        if len(tables) == 1:
            raise cl.MemoryError("MEM_OBJECT_ALLOCATION_FAILURE")
        return make(*args, **kwargs)

    monkeypatch.setattr(cl, "Buffer", refuse_once)
    made = session.executable("one", plan_of)
    monkeypatch.undo()
    assert tables == [1, 0] and len(session._executables) == 1
    np.testing.assert_array_equal(run(made, fresh), steps(N) + 1)


def test_freeing_does_not_wait_for_a_thread_that_waits_for_it(fresh, plan_of, monkeypatch):
    monkeypatch.setattr(freeing, "LOCK_SECONDS", 0.01)
    session = session_of(fresh)
    session.executable("one", plan_of)
    with session._lock:
        thread = threading.Thread(target=freeing.free_unused, args=(freeing.LOCK_SECONDS,))
        thread.start()
        thread.join(5)
        assert not thread.is_alive() and len(session._executables) == 1


def test_threads_that_drop_what_others_run(fresh, plan_of, monkeypatch):
    monkeypatch.setattr(cache, "MOST_EXECUTABLES", 1)
    session = session_of(fresh)

    def work(factor):
        for _ in range(20):
            made = session.executable(factor, lambda: plan_of(factor, N + factor))
            np.testing.assert_array_equal(run(made, fresh), factor + steps(N))

    together(*(partial(work, factor) for factor in (1, 2, 3)))
    assert len(session._programs) == len(session._executables) == 1


def test_only_small_filters_are_remembered(rng):
    separable._kept_split.cache_clear()
    for size in (5, 200):
        assert separable.split(np.outer(*rng.random((2, size))), FLOAT32) is not None
    assert separable._kept_split.cache_info().currsize == 1


def test_launches_of_a_plan_render_their_template_once(fresh, plan_of, monkeypatch):
    rendered = []
    monkeypatch.setattr(
        "opencl_lab.runtime.programs.render",
        lambda *args: rendered.append(args) or render(*args),
    )
    launch = plan_of().launches[0]
    other = plan_of(2).launches[0]
    first, second, third, _ = session_of(fresh).programs([launch, launch, other, launch])
    assert first is second is not third and len(rendered) == 2


def test_what_is_freed_goes_back_to_the_system(fresh, plan_of, monkeypatch):
    order, session = [], session_of(fresh)
    session.executable("one", plan_of)

    class Library:
        def __init__(self, name):
            pass

        def malloc_trim(self, pad):
            order.append(len(session._executables))

    monkeypatch.setattr(freeing.ctypes, "CDLL", Library)
    ol.free_memory()
    assert order == [0]
    monkeypatch.setattr(freeing.ctypes, "CDLL", object)  # without such a call
    ol.free_memory()


def test_kernels_leave_no_lines_behind(queue):
    before = set(linecache.cache)
    for n in range(300, 303):
        ol.sort(np.arange(n, dtype=np.int32), algorithm="odd-even-merge", queue=queue)
    assert not [name for name in linecache.cache.keys() - before if "generated" in name]
