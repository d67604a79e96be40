"""Building once, and checking before the first launch."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import ADD, ARGUMENTS, run_plan

import opencl_lab as ol
from opencl_lab.core.errors import BuildError, InvalidConfig, LaunchError
from opencl_lab.core.plan import LocalMemory
from opencl_lab.runtime.session import session_of

# ------------------------------------------------------------------- building


def test_a_second_call_builds_nothing(fresh, built, rng, monkeypatch):
    keys = rng.integers(0, 99, 500, np.int32)
    ol.sort(keys, queue=fresh)
    assert built["programs"] == 1
    kernels = built["kernels"]
    monkeypatch.setattr(cl, "Program", None)
    monkeypatch.setattr(cl, "Kernel", None)
    np.testing.assert_array_equal(ol.sort(keys[::-1], queue=fresh), np.sort(keys))
    ol.sort(cl.array.to_device(fresh, keys))
    assert built == {"programs": 1, "kernels": kernels}


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


def test_limits_of_the_device_come_before_any_build(fresh, plan_of, built, device):
    size = 2 * device.max_work_group
    with pytest.raises(InvalidConfig, match=f"work-group of {size} items"):
        run_plan(plan_of(n=size, local_size=(size,)), fresh)
    assert built == {"programs": 0, "kernels": 0}
