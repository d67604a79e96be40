"""Running on arrays of the host and of the device; failures; executables that are kept."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import planted
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import ADD, INT32, run_plan

from opencl_lab.core.errors import LaunchError
from opencl_lab.core.plan import Buffer
from opencl_lab.runtime import bound
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

# -------------------------------------------------------------------- running


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


COUNT_AND_ADD = """
__kernel void add(__global const int *x, __global int *y, __global int *count, const int last)
{
    const size_t i = get_global_id(0);
    count[i]++;
    if (last) {
        y[i] = x[i] + count[i];
        count[i] = 0;
    }
}
"""


@pytest.fixture
def counting(plan_of):
    """Return a plan of three launches, of which the last one makes the counters zero."""
    arguments = {"x": "x", "y": "y", "count": "count", "last": np.int32(0)}
    plan = plan_of(COUNT_AND_ADD, arguments=arguments)
    (launch,) = plan.launches
    last = replace(launch, arguments=arguments | {"last": np.int32(1)})
    zeros = Buffer("count", "zeros", (64,), INT32)
    return replace(plan, buffers=(*plan.buffers, zeros), launches=(launch, launch, last))


@pytest.fixture
def broken_off(monkeypatch):
    """Return what breaks the next calls off after so many launches, by an error, for a while."""
    enqueue = bound._enqueue

    @contextmanager
    def broken(error, launches):
        left = iter([True] * launches)

        def breaking(*args, **kwargs):
            if not next(left, False):
                raise error
            return enqueue(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(bound, "_starter", lambda queue: None)
            patch.setattr(bound, "_enqueue", breaking)
            yield

    return broken


@pytest.mark.parametrize("in_order", [True, False])
def test_counters_are_zero_after_a_plan_that_was_broken_off(
    in_order, device, own_queue, counting, broken_off
):
    out_of_order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    queue = own_queue(device.handle, properties=0 if in_order else out_of_order)
    executable = session_of(queue).executable(object(), lambda: counting)
    given = {"x": np.arange(64, dtype=INT32)}
    for launches, error in ((1, KeyboardInterrupt()), (2, cl.LogicError("enqueue", -5, ""))):
        with broken_off(error, launches), pytest.raises((KeyboardInterrupt, LaunchError)):
            execute(executable, given, queue)
        assert (execute(executable, given, queue).outputs["y"] == given["x"] + 3).all()


# ------------------------------------------------------------------- failures


def test_a_launch_that_the_device_refuses(fresh, plan_of):
    text = ADD.replace("void add", "__attribute__((reqd_work_group_size(16, 1, 1))) void add")
    with pytest.raises(LaunchError, match=r"the launch failed on .*WORK_GROUP_SIZE"):
        run_plan(plan_of(text), fresh)
    np.testing.assert_array_equal(run_plan(plan_of(), fresh), np.arange(64) + 5)


# ----------------------------------------------------------------- executables


def test_an_edited_kernel_or_plan_runs_as_it_is_now(device, tmp_path, monkeypatch, rng):
    file = tmp_path / "planted.cl.mako"
    text = Path(planted.TEMPLATE).read_text()
    monkeypatch.setattr(planted, "TEMPLATE", str(file))
    file.write_text(text)
    operation = planted.make(("none",))
    problem = operation.problem(n=100)
    arrays = operation.generate(problem, 0)

    def factor(operation):
        queue = device.queue()
        doubled = operation.run(problem, arrays, queue=queue).outputs["doubled"]
        return np.unique((doubled / arrays["source"]).round(3)).tolist()

    assert factor(operation) == [2]
    file.write_text(text.replace("2.0f", "3.0f"))
    assert factor(operation) == [3]
    file.write_text(text)
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
