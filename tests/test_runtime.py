"""Building once, and checking before the first launch."""

from __future__ import annotations

import gc
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import ADD, ARGUMENTS, run_plan

import opencl_lab as ol
from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError, InvalidConfig, LaunchError
from opencl_lab.core.plan import LocalMemory
from opencl_lab.core.template import Source
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.pointers import UNTESTED_CALLS, takes_pointers
from opencl_lab.runtime.rows import Rows
from opencl_lab.runtime.session import session_of

# ------------------------------------------------------------------- building


def test_a_second_call_builds_nothing(fresh, built, rng, monkeypatch):
    keys = rng.integers(0, 99, 500, np.int32)
    ol.sort(keys, queue=fresh)
    assert built["programs"] == 1
    kernels = built["kernels"]
    for _ in range(UNTESTED_CALLS + 1):
        takes_pointers(session_of(fresh).device)  # the last time a kernel may be asked
    monkeypatch.setattr(cl, "Program", None)
    monkeypatch.setattr(cl, "Kernel", None)
    np.testing.assert_array_equal(ol.sort(keys[::-1], queue=fresh), np.sort(keys))
    ol.sort(cl.array.to_device(fresh, keys))
    assert built == {"programs": 1, "kernels": kernels}


@pytest.mark.full
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
    monkeypatch.setattr(cl, "CommandQueue", lambda *args: object())
    Device("Paper", "cpu", handle=object()).queue()
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
        (
            {"source": "x", "target": "y", "get_local_id": np.int32(5), "tile": LocalMemory(32)},
            "argument 2 of kernel add is 'amount' in the source and 'get_local_id' in the plan",
        ),
    ],
    ids=["fewer", "more", "swapped", "renamed", "another word of the source"],
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


def test_a_work_group_above_the_limit_of_the_kernel(fresh, plan_of, monkeypatch):
    (launch,) = plan_of(local_size=(32,)).launches
    session = session_of(fresh)
    session._check_group(FakeKernel(32), launch)
    with pytest.raises(InvalidConfig, match=r"kernel add runs with at most 31 items.*not 32"):
        session._check_group(FakeKernel(31), launch)
    session._check_group(FakeKernel(31, (32, 1, 1)), launch)
    nvidia = replace(session.device, compute_capability=(9, 0))
    monkeypatch.setattr(session, "device", nvidia)  # whose driver says 256 of each kernel
    session._check_group(FakeKernel(31), launch)


def test_limits_of_the_device_come_before_any_build(fresh, plan_of, built, device):
    size = 2 * device.max_work_group
    with pytest.raises(InvalidConfig, match=f"work-group of {size} items"):
        run_plan(plan_of(n=size, local_size=(size,)), fresh)
    assert built == {"programs": 0, "kernels": 0}


@pytest.mark.parametrize(
    ("shape", "axis", "copies"), [((3, 4), 1, False), ((3, 4, 1), 1, False), ((3, 4, 2), 1, True)]
)
def test_rows_that_lie_in_place_are_not_copied_back(shape, axis, copies, queue):
    array = cl.array.to_device(queue, np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    rows = Rows.of(array, axis, Call(queue))
    back = rows.restore(rows.data, None, Call(queue))
    assert (rows.data.base_data is not array.base_data) == copies
    assert (back.base_data is not rows.data.base_data) == copies
    np.testing.assert_array_equal(back.get(), array.get())
