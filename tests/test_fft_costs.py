"""The choice between plans of the FFT on CPUs, by estimates alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.problem import DftProblem

FFT = DFT.algorithm("fft")
CPU = Device(
    "made",
    "cpu",
    compute_units=2,
    capabilities=Capabilities(local_memory=256 << 10, visible_writes=True),
)
APART = replace(CPU, capabilities=replace(CPU.capabilities, visible_writes=False))


def launches(n, batch=1, config=None, device=CPU):
    problem = DftProblem(n, batch=batch)
    return FFT.plan(problem, FFT.configure(problem, device, config), device).launches


def steps(n, batch=1, config=None, device=CPU):
    return [
        step for launch in launches(n, batch, config, device) for step in launch.params["STEPS"]
    ]


@pytest.mark.parametrize(
    ("n", "batch", "count"),
    [(1024, 1024, 1), (4096, 256, 1), (4096, 1, 1), (1 << 14, 1, 2), (1 << 14, 64, 1),
     (10_000, 50, 1), (1 << 16, 1, 2), (1 << 16, 16, 2), (1 << 18, 1, 2), (1 << 22, 1, 2),
     (5**6, 1, 2)],
)  # fmt: skip
def test_two_steps_where_they_are_cheaper_than_one(n, batch, count):
    """What was measured to be faster on two cores."""
    assert len(steps(n, batch)) == count


def test_both_steps_share_a_launch_where_units_see_what_others_write():
    (launch,) = launches(1 << 18)
    assert launch.global_size == (CPU.compute_units,) and launch.params["MAX_POLLS"] > 0
    assert [len(launch.params["STEPS"]) for launch in launches(1 << 18, device=APART)] == [1, 1]
    # A launch more is worth more than an idle unit, for a while.
    assert len(steps(1 << 14)) == 2 and len(steps(1 << 14, device=APART)) == 1
    assert len(steps(1 << 16, device=APART)) == 2


def test_a_configuration_overrides_the_estimates():
    assert len(steps(1024, config={"SPLIT": "always"})) == 2
    assert len(steps(1 << 18, config={"SPLIT": "never"})) == 1
    assert len(steps(13, config={"SPLIT": "always"})) == 1
