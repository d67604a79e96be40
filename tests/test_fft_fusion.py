"""Two steps of a transform in one launch on GPUs, sections, and convolutions of two steps each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fft_checks import FFT, GROUPS, check

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.plan import check_plan
from opencl_lab.ops.fft.axes import AxesProblem
from opencl_lab.ops.fft.passes.splits import GroupLimits
from opencl_lab.ops.fft.problem import DftProblem

GPU = Device(
    "made",
    "gpu",
    compute_units=132,
    max_allocation=1 << 40,
    global_memory=1 << 42,
    max_work_items=(1024,) * 3,
    capabilities=Capabilities(
        fp64=True,
        max_work_group=1024,
        local_memory=48 << 10,
        forward_progress=True,
        visible_writes=True,
        inline_ptx=True,
    ),
)


def planned(problem, config=None, device=GPU):
    plan = FFT.plan(problem, FFT.configure(problem, device, config), device)
    check_plan(plan, device)
    return plan.launches


def lengths(launches):
    return [tuple(step.group.n for step in launch.params["STEPS"]) for launch in launches]


# ------------------------------------------------------------- one launch


@pytest.mark.parametrize(
    ("n", "batch", "steps"),
    [(2**16, 1, (256, 256)), (2**18, 1, (512, 512)), (2**20, 1, (1024, 1024)), (10**6, 1, 2)],
)
def test_few_rows_take_one_launch(n, batch, steps):
    (found,) = lengths(planned(DftProblem(n, batch=batch)))
    assert found == steps if isinstance(steps, tuple) else len(found) == steps
    assert len(lengths(planned(DftProblem(n, batch=batch), {"FUSED": "never"}))) == 2


def test_columns_share_a_launch_strip_by_strip():
    (launch,) = planned(DftProblem(8192, inner=4096))
    first, second = launch.params["STEPS"]
    assert first.group.n * second.group.n == 8192
    parts = int(launch.arguments["parts"])
    for step in (first, second):
        strip = step.tiles.strip * step.group.transforms
        assert strip * parts == 4096 and step.tiles.pitch * step.group.transforms == 4096
    tasks = launch.global_size[0] // launch.local_size[0]
    assert tasks == parts * (first.tiles.groups + second.tiles.groups)
    # Strips of several arrays, and columns that no strips divide, have a launch for each step.
    assert len(planned(DftProblem(8192, batch=2, inner=4096))) == 2
    assert len(planned(DftProblem(8192, inner=4099))) == 2


@pytest.mark.parametrize("lacking", ["forward_progress", "visible_writes"])
def test_no_launch_is_shared_where_groups_may_wait_in_vain(lacking):
    unable = replace(GPU, capabilities=replace(GPU.capabilities, **{lacking: False}))
    assert len(planned(DftProblem(2**16), device=unable)) == 2
    assert len(planned(DftProblem(2**16), {"FUSED": "always"}, unable)) == 2


def planes(*shape, kind="c2c", device=GPU):
    """Return the one plan of transforms along the last two axes, or None."""
    axes = (len(shape) - 1, len(shape) - 2)
    dtype = np.dtype(np.complex64)
    problem = AxesProblem.of(kind, shape, dtype, axes, (None, None), None, False)
    return problem.in_one_launch(device)


@pytest.mark.parametrize("shape", [(1000, 1000), (500, 2000), (4, 256, 256), (640, 480)])
def test_rows_and_columns_of_few_data_share_a_launch(shape):
    plan = planes(*shape)
    check_plan(plan, GPU)
    assert lengths(plan.launches) == [shape[:-3:-1]]
    (launch,) = plan.launches
    rows, columns = launch.params["STEPS"]
    assert rows.group.work_group == columns.group.work_group == launch.local_size[0]
    assert rows.tiles.groups * rows.group.transforms >= shape[-2]
    assert columns.tiles.groups * columns.group.transforms >= shape[-1]
    parts = int(launch.arguments["parts"])
    assert parts == np.prod(shape[:-2])
    tasks = launch.global_size[0] // launch.local_size[0]
    assert tasks == parts * (rows.tiles.groups + columns.tiles.groups)


def test_planes_that_share_no_launch():
    """Much data, lengths that are convolved, real rows, and groups that may wait in vain."""
    assert planes(2000, 2000) is planes(1000, 1009) is planes(1009, 1000) is None
    assert planes(500, 500, kind="r2c") is None
    blind = replace(GPU, capabilities=replace(GPU.capabilities, visible_writes=False))
    assert planes(500, 500, device=blind) is None


# --------------------------------------------------------------- sections


def test_rows_that_local_memory_does_not_hold_go_through_it_in_sections():
    for n, sections in ((8192, 1), (12288, 2), (15625, 2), (16384, 2)):
        ((launch,),) = (planned(DftProblem(n, batch=1024)),)
        (step,) = launch.params["STEPS"]
        assert (step.group.n, step.group.sections) == (n, sections)
        assert launch.local_memory <= GPU.capabilities.local_memory
    # Registers hold no more, and parts of a butterfly have no section of their own.
    double = lengths(planned(DftProblem(16384, np.dtype(np.complex128), 64)))
    assert len([n for steps in double for n in steps]) == 2
    assert all(steps != (13824,) for steps in lengths(planned(DftProblem(13824, batch=64))))


@pytest.fixture
def little_memory(monkeypatch):
    """Let groups have 1,200 bytes of local memory."""
    limits = GroupLimits.of

    def of(*given):
        return replace(limits(*given), local_memory=1200, exchange="two-phase")

    monkeypatch.setattr(GroupLimits, "of", of)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("n", "how"),
    [
        (512, {}),
        (343, {"inverse": True}),
        (480, {"batch": 5}),
        (200, {"batch": 2}),
        (64, {"inner": 9}),
        (1024, {"kind": "r2c"}),
        (1024, {"kind": "c2r"}),
    ],
)
def test_sections_hold_all_points(little_memory, n, how, dtype):
    problem = DftProblem(n, np.dtype(dtype), **{"batch": 3, **how})
    small = {**GROUPS, "EXCHANGE": "two-phase", "TRANSFORMS": 8}
    check(problem, small)


# ----------------------------------------------------------- convolutions


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("how", [{}, {"inverse": True, "scale": 0.5}, {"kind": "r2c"}])
def test_long_rows_are_convolved_by_two_steps_there_and_two_back(how, dtype):
    problem = DftProblem(149, np.dtype(dtype), batch=3, **how)
    check(problem, {**GROUPS, "LOCAL_LIMIT": 32})


def test_large_convolutions_are_not_left_to_a_group():
    for n, batch, whole in ((2999, 300, True), (4099, 200, True), (5342, 49, False)):
        steps = [
            step
            for launch in planned(DftProblem(n, batch=batch))
            for step in launch.params["STEPS"]
        ]
        assert [step.convolution for step in steps] == (
            ["whole"] if whole else ["first", "product", None, "last"]
        )


def test_a_device_without_local_memory_has_plans():
    bare = replace(GPU, capabilities=replace(GPU.capabilities, local_memory=0))
    assert lengths(planned(DftProblem(8, batch=10), device=bare)) == [(8,)]
