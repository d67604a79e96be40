"""Building once, checking before a launch, running on arrays of the host and of the device."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import planted
import pyopencl as cl
import pyopencl.array
import pytest

import opencl_lab as ol
from opencl_lab.device import Device
from opencl_lab.errors import BuildError, InvalidConfig, LaunchError
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.plan import Buffer, Launch, LocalMemory, Plan, Table
from opencl_lab.runtime import host
from opencl_lab.runtime import session as session_module
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.pointers import UNASKED, takes_pointers
from opencl_lab.runtime.session import Session, default_queue, session_of
from opencl_lab.template import Source

INT32 = np.dtype(np.int32)
# Small tiles: several launches for small arrays.
SMALL = {"WG_SIZE": 8, "TILE": 64, "WORK_PER_ITEM": 16, "BLOCKED": False, "NARROW": True}
ADD = """
__kernel void add(__global const int *source, __global int *target, const int amount,
                  __local int *tile)
{
    tile[get_local_id(0)] = source[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    target[get_global_id(0)] = tile[get_local_id(0)] + amount;
}
"""
ARGUMENTS = {
    "source": "x",
    "target": "y",
    "amount": np.int32(5),
    "tile": LocalMemory(4 * 8),
}


@pytest.fixture
def fresh(device, own_queue):
    """A queue in a context of its own, whose session has built nothing yet."""
    return own_queue(device.handle, properties=cl.command_queue_properties.PROFILING_ENABLE)


@pytest.fixture
def plan_of(tmp_path):
    """Return a function that plans one launch of a kernel of the test's own."""

    numbers = itertools.count()

    def make(text=ADD, n=64, **changes):
        path = tmp_path / f"kernel{next(numbers)}.cl.mako"
        path.write_text(text)
        launch = Launch(
            **{
                "template": str(path),
                "kernel": "add",
                "params": {},
                "global_size": (n,),
                "local_size": (8,),
                "arguments": ARGUMENTS,
                **changes,
            }
        )
        return Plan((Buffer("x", "in", (n,), INT32), Buffer("y", "out", (n,), INT32)), (launch,))

    return make


@pytest.fixture
def built(monkeypatch):
    """Count what is built: programs and kernels."""
    counts = {"programs": 0, "kernels": 0}
    build, kernel = Session._build, Session.kernel

    def counting_build(self, *args):
        counts["programs"] += 1
        return build(self, *args)

    def counting_kernel(self, *args):
        counts["kernels"] += 1
        return kernel(self, *args)

    monkeypatch.setattr(Session, "_build", counting_build)
    monkeypatch.setattr(Session, "kernel", counting_kernel)
    return counts


def run_plan(plan, queue):
    executable = session_of(queue).executable(object(), lambda: plan)
    given = np.arange(64, dtype=np.int32)
    return execute(executable, {"x": given}, queue).outputs["y"]


# ------------------------------------------------------------------- building


def test_a_second_call_builds_nothing(fresh, built, rng, monkeypatch):
    keys = rng.integers(0, 99, 500, np.int32)
    ol.sort(keys, queue=fresh)
    assert built["programs"] == 1
    kernels = built["kernels"]
    for _ in range(UNASKED + 1):
        takes_pointers(session_of(fresh).device)  # the last time a kernel may be asked
    monkeypatch.setattr(cl, "Program", None)
    monkeypatch.setattr(cl, "Kernel", None)
    np.testing.assert_array_equal(ol.sort(keys[::-1], queue=fresh), np.sort(keys))
    ol.sort(cl.array.to_device(fresh, keys))
    assert built == {"programs": 1, "kernels": kernels}


def test_another_size_shares_the_program(fresh, built, rng):
    ol.sort(rng.integers(0, 99, 500, np.int32), queue=fresh)
    ol.sort(rng.integers(0, 99, 501, np.int32), queue=fresh)
    assert built["programs"] == 1
    assert built["kernels"] >= 2
    ol.sort(rng.integers(0, 99, 500, np.int64), queue=fresh)
    assert built["programs"] == 2


def test_the_context_lives_as_long_as_the_library_s_own_queue(monkeypatch):
    """The queue of Intel's CPU runtime does not keep its context."""
    made = []

    class Context:
        def __init__(self, devices):
            made.append(weakref.ref(self))

    monkeypatch.setattr(cl, "Context", Context)
    monkeypatch.setattr(cl, "CommandQueue", lambda context, properties=None: object())
    default_queue(Device("Paper", "cpu", handle=object()))
    gc.collect()
    assert made[0]() is not None


def test_another_queue_of_the_same_context_shares_everything(fresh, built, rng):
    keys = rng.integers(0, 99, 500, np.int32)
    ol.sort(keys, queue=fresh)
    other = cl.CommandQueue(fresh.context)
    assert session_of(other) is session_of(fresh)
    kernels = built["kernels"]
    np.testing.assert_array_equal(ol.sort(keys, queue=other), np.sort(keys))
    assert built == {"programs": 1, "kernels": kernels}


def test_contexts_share_nothing(fresh, device, own_queue):
    other = own_queue(device.handle)
    assert session_of(other) is not session_of(fresh)
    assert session_of(other).device == session_of(fresh).device == device


def test_a_queue_without_its_context_is_an_error_that_says_why():
    class Lost:
        @property
        def context(self):
            raise cl.LogicError("clRetainContext failed: INVALID_CONTEXT")

    with pytest.raises(ol.LaunchError, match="keep it in a variable") as caught:
        session_of(Lost())
    assert "INVALID_CONTEXT" in str(caught.value)


def test_programs_are_shared_by_text_and_options(fresh, built):
    session = session_of(fresh)
    first = session.program(Source("a", ADD), ())
    assert session.program(Source("b", ADD), ()) is first
    assert built["programs"] == 1
    assert session.program(Source("a", ADD), ("-DX=1",)) is not first
    assert session.program(Source("a", ADD + "\n"), ()) is not first
    assert built["programs"] == 3


def test_options_reach_the_compiler(fresh, plan_of):
    text = ADD.replace("+ amount", "+ AMOUNT")
    plan = plan_of(text, options=("-DAMOUNT=7",))
    np.testing.assert_array_equal(run_plan(plan, fresh), np.arange(64) + 7)


def test_a_program_that_does_not_build(fresh, plan_of):
    text = ADD.replace("+ amount;", "+ undeclared_thing;")
    plan = plan_of(text, options=("-DX=1",))
    with pytest.raises(BuildError, match=r"kernel\d+\.cl\.mako did not build on") as caught:
        run_plan(plan, fresh)
    error = caught.value
    assert "undeclared_thing" in error.log
    assert error.source == text
    assert error.options[0] == "-DX=1"
    number = text.splitlines().index(text.splitlines()[-2]) + 1
    assert f"{number} |     target" in error.details()
    assert error.exit_status == 4


def test_a_failed_build_is_tried_again(fresh, built):
    for _ in range(2):
        with pytest.raises(BuildError):
            session_of(fresh).program(Source("a", "nonsense"), ())
    assert built["programs"] == 2


def test_a_warning_of_the_compiler_is_no_failure(fresh, plan_of):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = plan_of('#warning "only a warning"\n' + ADD)
        np.testing.assert_array_equal(run_plan(plan, fresh), np.arange(64) + 5)


# --------------------------------------------------- checks before the first launch


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(list(ARGUMENTS.items())[:3]), "kernel add takes 4 arguments, the plan gives 3"),
        ({**ARGUMENTS, "more": np.int32(1)}, "kernel add takes 4 arguments, the plan gives 5"),
        (
            {"target": "y", "source": "x", "amount": np.int32(5), "tile": LocalMemory(32)},
            "argument 0 of kernel add is 'source' in the source and 'target' in the plan",
        ),
        (
            {"source": "x", "target": "y", "sum": np.int32(5), "tile": LocalMemory(32)},
            "argument 2 of kernel add is 'amount' in the source and 'sum' in the plan",
        ),
    ],
    ids=["fewer", "more", "swapped", "renamed"],
)
def test_arguments_that_are_not_the_kernels(arguments, message, fresh, plan_of):
    if "in the source" in message and session_of(fresh).device.platform.startswith("Intel"):
        pytest.skip("this driver does not tell the names of arguments")
    with pytest.raises(LaunchError, match=message):
        run_plan(plan_of(arguments=arguments), fresh)


def test_a_kernel_that_is_not_there(fresh, plan_of):
    with pytest.raises(LaunchError, match="has no kernel 'subtract'; it has: add"):
        run_plan(plan_of(kernel="subtract"), fresh)


def test_a_kernel_that_cannot_be_created(fresh, plan_of, monkeypatch):
    def refuse(program, name):
        raise cl.LogicError("clCreateKernel failed: INVALID_KERNEL_NAME")

    monkeypatch.setattr(cl, "Kernel", refuse)
    with pytest.raises(LaunchError, match=r"kernel 'add' of .* could not be created"):
        run_plan(plan_of(), fresh)


class FakeKernel:
    """A kernel with limits of its own."""

    def __init__(self, limit, required=(0, 0, 0)):
        info = cl.kernel_work_group_info
        self.info = {info.WORK_GROUP_SIZE: limit, info.COMPILE_WORK_GROUP_SIZE: list(required)}

    def get_work_group_info(self, name, handle):
        return self.info[name]


def test_a_work_group_above_the_limit_of_the_kernel(fresh, plan_of):
    (launch,) = plan_of(local_size=(32,)).launches
    session = session_of(fresh)
    session._check_group(FakeKernel(32), launch)
    with pytest.raises(InvalidConfig, match=r"kernel add runs with at most 31 items.*not 32"):
        session._check_group(FakeKernel(31), launch)
    session._check_group(FakeKernel(31, (32, 1, 1)), launch)


def test_limits_of_the_device_come_before_any_build(fresh, plan_of, built, device):
    size = 2 * device.max_work_group
    with pytest.raises(InvalidConfig, match=f"work-group of {size} items"):
        run_plan(plan_of(n=size, local_size=(size,)), fresh)
    assert built == {"programs": 0, "kernels": 0}


# -------------------------------------------------------------------- running


def test_arguments_of_every_kind_arrive(fresh, plan_of):
    np.testing.assert_array_equal(run_plan(plan_of(), fresh), np.arange(64) + 5)


def test_zeros_are_kept_for_each_queue(fresh, plan_of):
    """What a launch leaves in them is what the next one of the same queue finds."""
    text = """
__kernel void add(__global const int *x, __global int *y, __global int *count)
{
    y[get_global_id(0)] = count[get_global_id(0)]++;
}
"""
    plan = plan_of(text, arguments={"x": "x", "y": "y", "count": "count"})
    zeros = Buffer("count", "zeros", (64,), INT32)
    plan = replace(plan, buffers=(*plan.buffers, zeros))
    executable = session_of(fresh).executable(object(), lambda: plan)
    other = cl.CommandQueue(fresh.context)
    for queue, seen in ((fresh, 0), (fresh, 1), (other, 0), (fresh, 2), (other, 1)):
        result = execute(executable, {"x": np.zeros(64, INT32)}, queue).outputs["y"]
        assert (result == seen).all()


def test_outputs_of_a_plan_without_launches(fresh):
    plan = Plan((Buffer("x", "in", (0, 3), INT32), Buffer("y", "out", (3, 0), INT32)), ())
    executable = session_of(fresh).executable("nothing", lambda: plan)
    given = np.empty((0, 3), np.int32)
    assert execute(executable, {"x": given}, fresh).outputs["y"].shape == (3, 0)
    result = execute(executable, {"x": cl.array.to_device(fresh, given)}, fresh)
    assert result.outputs["y"].shape == (3, 0)
    assert result.kernel_ms == 0


def test_one_event_a_launch_times_the_kernels(fresh, rng):
    problem = SORT.problem(n=5_000)
    inputs = SORT.generate(problem, 1)
    (algorithm,) = (item for item in SORT.algorithms if item.name == "odd-even-merge")
    device = session_of(fresh).device
    plan = algorithm.plan(problem, algorithm.configure(problem, device, SMALL), device)
    run = SORT.run(problem, inputs, algorithm="odd-even-merge", config=SMALL, queue=fresh)
    assert len(run.kernel_events) == len(plan.launches) == 8
    times = [event.profile.end - event.profile.start for event in run.kernel_events]
    assert run.kernel_ms == pytest.approx(sum(times) * 1e-6)


def test_scratch_memory_is_used_again(fresh, rng):
    keys = rng.integers(0, 99, 5_000, np.int32)
    session = session_of(fresh)
    session.allocate(fresh, 8)
    (pool,) = session._pools.values()
    ol.sort(keys, algorithm="odd-even-merge", config=SMALL, queue=fresh)
    held = pool.managed_bytes
    assert held > 0
    assert pool.active_bytes == 0
    ol.sort(keys, algorithm="odd-even-merge", config=SMALL, queue=fresh)
    assert pool.managed_bytes == held


def test_device_outputs_carry_the_last_event(fresh, rng):
    keys = cl.array.to_device(fresh, rng.integers(0, 99, (1, 500), np.int32))
    run = SORT.run(SortProblem(500, INT32), {"keys": keys}, queue=fresh)
    assert run.outputs["sorted"].events[-1] == run.kernel_events[-1]
    assert run.transfer_events == []


def test_device_arrays_with_an_offset_are_refused(fresh):
    keys = cl.array.to_device(fresh, np.arange(100, dtype=np.int32))[50:]
    with pytest.raises(ol.InvalidProblem, match="offset"):
        SORT.run(SortProblem(50, INT32), {"keys": keys}, queue=fresh)


@pytest.mark.parametrize("in_order", [False, True])
def test_launches_run_one_after_the_other(in_order, device, own_queue, rng, monkeypatch):
    """Out of order each waits for the one before, the first for all that used scratch memory."""
    queue = own_queue(
        device.handle,
        properties=0 if in_order else cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE,
    )
    waits, barriers = [], []
    enqueue, barrier = cl.enqueue_nd_range_kernel, cl.enqueue_barrier

    def recording_enqueue(*args, wait_for=None):
        waits.append(list(wait_for or ()))
        return enqueue(*args, wait_for=wait_for)

    def recording_barrier(*args):
        barriers.append(barrier(*args))
        return barriers[-1]

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", recording_enqueue)
    monkeypatch.setattr(cl, "enqueue_barrier", recording_barrier)
    keys = rng.integers(0, 99, (1, 500), np.int32)
    events = SORT.run(
        SortProblem(500, INT32),
        {"keys": keys},
        algorithm="odd-even-merge",
        config=SMALL,
        queue=queue,
    )
    events = events.kernel_events
    assert len(events) == len(waits) == 4
    if in_order:
        assert waits[1:] == [[], [], []]
    else:
        assert barriers
        assert barriers[0] in waits[0]
        assert waits[1:] == [[event] for event in events[:-1]]


def test_default_queue_is_one_and_in_order(device):
    queue, timing = default_queue(device), default_queue(device, profiling=True)
    assert default_queue(device) is queue and queue.context == timing.context
    assert queue.device == device.handle
    assert not queue.properties & cl.command_queue_properties.PROFILING_ENABLE
    assert timing.properties & cl.command_queue_properties.PROFILING_ENABLE
    assert not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


def test_what_the_device_says_of_each_launch(fresh, plan_of, device):
    executable = session_of(fresh).executable("key", plan_of)
    (info,) = executable.kernel_info()
    assert (info.kernel, info.global_size, info.local_size) == ("add", (64,), (8,))
    assert 8 <= info.max_work_group <= device.max_work_group
    assert info.preferred_multiple >= 1
    assert f"group at most {info.max_work_group}" in str(info)


# ------------------------------------------------------------------- failures


def test_a_launch_that_the_device_refuses(fresh, plan_of):
    text = ADD.replace("void add", "__attribute__((reqd_work_group_size(16, 1, 1))) void add")
    with pytest.raises(LaunchError, match=r"the launch failed on .*WORK_GROUP_SIZE"):
        run_plan(plan_of(text), fresh)
    np.testing.assert_array_equal(run_plan(plan_of(), fresh), np.arange(64) + 5)


@pytest.mark.parametrize("shared", [False, True])
def test_running_out_of_memory(shared, fresh, rng, monkeypatch):
    session = session_of(fresh)
    session.device = replace(session.device, unified_memory=shared)
    monkeypatch.setattr(host, "takes_pointers", lambda device: False)  # they need no memory
    keys = rng.integers(0, 99, 500, np.int32)
    before = keys.copy()

    def refuse(*args, **kwargs):
        raise cl.MemoryError("MEM_OBJECT_ALLOCATION_FAILURE")

    with monkeypatch.context() as patch:
        patch.setattr(cl, "Buffer", refuse)
        patch.setattr(cl.tools.MemoryPool, "allocate", refuse)
        with pytest.raises(LaunchError, match="ran out of memory"):
            ol.sort(keys, queue=fresh)
    np.testing.assert_array_equal(ol.sort(keys, queue=fresh), np.sort(before))
    np.testing.assert_array_equal(keys, before)


def test_a_device_that_fails_while_it_runs(fresh, rng, monkeypatch):
    def fail(*args, **kwargs):
        raise cl.RuntimeError("OUT_OF_RESOURCES")

    keys = rng.integers(0, 99, 500, np.int32)
    with monkeypatch.context() as patch:
        patch.setattr(cl, "enqueue_nd_range_kernel", fail)
        for given in (keys, cl.array.to_device(fresh, keys)):
            with pytest.raises(LaunchError, match=r"the launch failed on .*OUT_OF_RESOURCES"):
                ol.sort(given, queue=fresh)
    np.testing.assert_array_equal(ol.sort(keys, queue=fresh), np.sort(keys))


def test_no_context(device, monkeypatch):
    def fail(*args, **kwargs):
        raise cl.RuntimeError("DEVICE_NOT_AVAILABLE")

    monkeypatch.setattr(cl, "Context", fail)
    with pytest.raises(LaunchError, match="no context on"):
        session_module._default_context.__wrapped__(device.handle)


# ----------------------------------------------------------------- executables


def test_executables_are_planned_once_and_failures_not_kept(fresh, plan_of):
    session = session_of(fresh)

    def broken():
        raise InvalidConfig("not yet")

    with pytest.raises(InvalidConfig):
        session.executable("key", broken)
    made = session.executable("key", plan_of)
    assert session.executable("key", broken) is made


def test_an_edited_kernel_or_plan_runs_as_it_is_now(device, tmp_path, monkeypatch, rng):
    template = tmp_path / "planted.cl.mako"
    text = Path(planted.TEMPLATE).read_text()
    monkeypatch.setattr(planted, "TEMPLATE", str(template))
    template.write_text(text)
    operation = planted.make(("none",))
    problem = operation.problem(n=100)
    arrays = operation.generate(problem, 0)

    def factor(operation):
        queue = default_queue(device)
        doubled = operation.run(problem, arrays, queue=queue).outputs["doubled"]
        return np.unique((doubled / arrays["source"]).round(3)).tolist()

    assert factor(operation) == [2]
    template.write_text(text.replace("2.0f", "3.0f"))
    assert factor(operation) == [3]
    template.write_text(text)
    assert factor(operation) == [2]

    def wrong_plan(problem, config, device):
        made = right_plan(problem, config, device)
        launch = replace(made.launches[0], params={**made.launches[0].params, "FAULT": "wrong"})
        return replace(made, launches=(launch,))

    # What a user's function calls may change too, as in a notebook.
    right_plan = planted.plan
    operation.algorithms[0]._plan = lambda *given: plan(*given)
    plan = right_plan
    assert factor(operation) == [2]
    plan = wrong_plan
    assert factor(operation) == [3]


def test_a_method_plan_that_is_defined_anew_is_asked(device, rng, monkeypatch):
    keys = rng.integers(0, 99, 500, np.int32)
    queue = default_queue(device)
    ol.sort(keys, queue=queue)

    def broken(text):
        def plan(self, problem, config, device):
            raise InvalidConfig(text)

        return plan

    algorithm = type(SORT.choose(SortProblem(500, INT32), device))
    right = algorithm.plan
    for text in ("asked", "asked again"):  # of the same code
        with monkeypatch.context() as patch:
            patch.setattr(algorithm, "plan", broken(text))
            with pytest.raises(InvalidConfig, match=f"^{text}$"):
                ol.sort(keys, queue=queue)

    def counted(calls):
        def plan(self, problem, config, device):
            calls.append(problem)
            return right(self, problem, config, device)

        return plan

    for calls in ([], []):
        monkeypatch.setattr(algorithm, "plan", counted(calls))
        ol.sort(keys, queue=queue)
        ol.sort(keys, queue=queue)
        assert len(calls) == 1


# --------------------------------------------------------------------- threads


@pytest.fixture
def eager_threads():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(*works):
    """Call functions in threads of their own at the same time; return their results."""
    start = threading.Barrier(len(works))

    def call(work):
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(call, works))


@pytest.mark.parametrize("side", ["host", "device"])
def test_threads_that_sort_at_once(side, fresh, rng, eager_threads):
    data = [rng.integers(0, 2**31, (10, n), np.int32) for n in (3_000, 3_000, 3_000, 2_999)]
    alone = session_of(fresh).alone(fresh)  # NVIDIA's driver needs it for copies of pyopencl too

    def work(mine):
        if side == "device":
            with alone:
                mine = [cl.array.to_device(fresh, row) for row in mine]
        done = [ol.sort(row, algorithm="odd-even-merge", config=SMALL, queue=fresh) for row in mine]
        if side == "host":
            return done
        with alone:
            return [row.get() for row in done]

    results = together(*(partial(work, mine) for mine in data))
    for given, result in zip(data, results, strict=True):
        np.testing.assert_array_equal(result, np.sort(given))


def test_threads_wait_for_a_queue_one_at_a_time(fresh, rng, eager_threads, monkeypatch):
    keys = rng.integers(0, 99, 500, np.int32)
    ol.sort(keys, queue=fresh)
    waiting, most = [], []

    def counting(end):
        def count(of):
            waiting.append(of)
            most.append(len(waiting))
            time.sleep(0.01)
            end(of)
            waiting.pop()

        return count

    # A call ends by either.
    monkeypatch.setattr(cl.CommandQueue, "finish", counting(cl.CommandQueue.finish))
    monkeypatch.setattr(cl.Event, "wait", counting(cl.Event.wait))
    together(*[lambda: ol.sort(keys, queue=fresh)] * 4)
    assert len(most) == 4 and max(most) == 1


def test_threads_build_a_program_once(fresh, built, rng, eager_threads):
    keys = rng.integers(0, 99, 500, np.int32)
    session_of(fresh)
    together(*[lambda: ol.sort(keys, queue=fresh)] * 4)
    assert built["programs"] == 1


@pytest.mark.parametrize("function", ["device_of", "Context"])
def test_threads_share_one_session_and_one_queue(function, fresh, device, monkeypatch):
    where = session_module if function == "device_of" else cl
    meet, original = threading.Barrier(2), getattr(where, function)

    def slow(*args):
        with suppress(threading.BrokenBarrierError):
            meet.wait(0.5)  # for a second thread in here, if there can be one
        return original(*args)

    monkeypatch.setattr(where, function, slow)
    if function == "device_of":
        made = together(*[lambda: session_of(fresh)] * 2)
    else:
        uncached = session_module._default_queue.__wrapped__
        monkeypatch.setattr(session_module, "_default_queue", cache(uncached))
        made = together(*[lambda: default_queue(device)] * 2)
    assert made[0] is made[1]


# -------------------------------------------------------------------- tables

LOOK_UP = """
__kernel void look_up(__global const int *source, __global int *target,
                      __global const int *squares)
{
    target[get_global_id(0)] = squares[source[get_global_id(0)]];
}
"""
made_tables = []


def squares(n):
    made_tables.append(n)
    return np.arange(n, dtype=np.int32) ** 2


def plan_with_table(plan_of, table, shape):
    arguments = {"source": "x", "target": "y", "squares": "t"}
    plan = plan_of(LOOK_UP, kernel="look_up", arguments=arguments)
    return Plan((*plan.buffers, Buffer("t", "table", shape, INT32, table)), plan.launches)


def test_equal_tables_are_made_once_and_live_as_long_as_their_plans(fresh, plan_of, rng):
    session = session_of(fresh)
    made_tables.clear()
    x = rng.integers(0, 100, 64, dtype=np.int32)
    for name in "ab":
        plan = plan_with_table(plan_of, Table(squares, (100,)), (100,))
        run = execute(session.executable(name, lambda plan=plan: plan), {"x": x}, fresh)
        np.testing.assert_array_equal(run.outputs["y"], x**2)
    assert made_tables == [100]
    assert len(session._tables) == 1
    session._executables.clear()
    del run
    assert len(session._tables) == 0


@pytest.mark.parametrize(
    ("table", "message"),
    [(Table(squares, (99,)), r"has shape \(99,\), not \(100,\)"), (None, "has no table")],
)
def test_a_table_that_is_not_what_the_plan_says(fresh, plan_of, table, message):
    plan = plan_with_table(plan_of, table, (100,))
    with pytest.raises(LaunchError, match=message):
        session_of(fresh).executable("wrong", lambda: plan)


# --------------------------------------------------------------------- forking

FORKING = """
import multiprocessing, threading, warnings
import numpy as np
import pyopencl as cl
import opencl_lab as ol

keys = np.array([2, 1])
warnings.simplefilter("ignore")

def use(queue):
    try:
        queue.put(ol.sort(keys).tolist())
    except ol.LaunchError as error:
        queue.put(str(error))

def forked():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=use, args=(queue,), daemon=True)
    process.start()
    return queue.get(timeout=30)

assert forked() == [1, 2]  # before the first use
discover, waiting, going = cl.get_platforms, threading.Event(), threading.Event()

def slow():
    waiting.set()
    going.wait()
    return discover()

cl.get_platforms = slow
first = threading.Thread(target=ol.devices)
first.start()
waiting.wait()
assert "forked after OpenCL had started" in forked()  # in the middle of it
going.set()
first.join()
assert "forked after OpenCL had started" in forked()
for _ in range(3):  # from the second one on they are replayed
    assert ol.sort(keys).tolist() == [1, 2]
assert "start processes by multiprocessing's 'spawn'" in forked()
"""


def test_a_forked_process_works_or_says_why_not():
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
