"""The choice between plans of the FFT on CPUs, by estimates alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.passes.costs import worth_fetching
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


def test_steps_share_a_launch_where_its_fence_reaches_other_groups():
    fenced = replace(CPU, capabilities=replace(CPU.capabilities, inline_ptx=True))
    for device, count in ((CPU, 1), (APART, 2), (fenced, 2)):
        assert (
            len(launches(2**16, config={"FORM": "vector", "SPLIT": "always"}, device=device))
            == count
        )


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


def test_the_second_step_is_in_place_where_no_vectors_overlap():
    for n, in_place in ((1 << 18, True), (5**8, False)):
        (launch,) = launches(n)
        arguments, second = launch.arguments, launch.params["STEPS"][1]
        assert arguments["target_0"] == arguments["source_1"]
        same = arguments["source_1"] == arguments["target_1"] == "spectrum"
        assert same == in_place
        if same:
            assert second.vectors.tail == "none" and second.load == second.store == "columns"
            for axis in ("outer", "position", "lane"):
                assert arguments[f"source_{axis}_1"] == arguments[f"target_{axis}_1"]


def test_memory_is_fetched_ahead_where_no_cache_holds_it():
    def fetched(n, batch=1, inner=1, device=CPU):
        problem = DftProblem(n, batch=batch, inner=inner)
        plan = FFT.plan(problem, FFT.configure(problem, device, {"FORM": "vector"}), device)
        return {step.fetch for launch in plan.launches for step in launch.params["STEPS"]}

    assert fetched(1024, 64) == fetched(1 << 14) == fetched(1 << 18) == {"none"}
    assert fetched(1024, 1024) == fetched(1000, 1024) == fetched(945, 1024) == {"both"}
    assert fetched(1024, 1024, device=replace(CPU, compute_units=16)) == {"none"}
    for other in ({"kind": "gpu"}, {"simulated": True}):
        assert fetched(1024, 1024, device=replace(CPU, **other)) == {"none"}
    # Columns that are written fight for lines of the cache where they are many.
    assert fetched(64, 16, 1024) == {"both"} and fetched(1024, 1, 1024) == {"source"}
    assert fetched(1 << 20) == {"both", "source"}
    assert worth_fetching(1 << 40, 1 << 40, False, 2) == "both"


def test_tuned_entries_serve_lengths_with_the_same_largest_prime():
    lengths = {1024: 2, 1000: 5, 3**10: 3, 1001: 13, 1009: 0, 1: 1, 0: 0}
    assert {n: DftProblem(n).largest_prime for n in lengths} == lengths
    values = DftProblem(1000).as_dict()
    assert [values[name] for name in DftProblem.layout] == ["complex64", "c2c", 5]
