"""What schedules of passes are chosen for speed alone; that they are right is seen by results."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import default_config, planner_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.local_schedule import gap_of


@pytest.mark.parametrize("radix", [4, 8, 9, 16, 25, 32])
@pytest.mark.parametrize("transforms", [4, 8, 16])
def test_gaps_spread_what_a_row_writes_over_the_banks(radix, transforms):
    gap = gap_of(radix, transforms, "rows", "columns", "split")
    places = [item * radix * transforms for item in range(32)]
    banks = {(place + place // gap) % 32 for place in places}
    assert len(banks) > len({place % 32 for place in places})
    assert len(banks) == 32 or radix not in (4, 8, 16, 32)
    assert gap_of(radix, transforms, "columns", "columns", "split") == 0
    assert gap_of(2, 1, "rows", "rows", "split") == 0


# ------------------------------------- what the documentation of the package says


SHARED = Capabilities(fp64=True, visible_writes=True)
GPU = Device(
    "GPU", "gpu", compute_units=132, local_memory=48 << 10, max_work_group=1024,
    max_allocation=1 << 38, global_memory=1 << 40, max_work_items=(1024,) * 3,
    capabilities=replace(SHARED, max_work_group=1024, local_memory=48 << 10, inline_ptx=True),
)  # fmt: skip
CPU = Device(
    "CPU", "cpu", compute_units=2, local_memory=256 << 10, max_work_group=4096,
    max_allocation=1 << 38, global_memory=1 << 40, max_work_items=(4096,) * 3,
    capabilities=replace(SHARED, max_work_group=4096, local_memory=256 << 10),
)  # fmt: skip


def launches(n, device):
    builder = PlanBuilder(np.dtype(np.complex64))
    layout = BatchedLayout.rows(n, 1, builder.add("a", "in", (n,)), builder.add("b", "out", (n,)))
    config = default_config(n, builder.real, device)
    any_length(planner_of(config, device), builder, layout)
    return builder.finish().launches


def test_a_thousand_points_on_a_cpu():
    (launch,) = launches(1024, CPU)
    (step,) = launch.params["STEPS"]
    assert step.vectors.over == "points" and step.schedule.radices == (8, 8, 4, 4)
    assert [(one.reads, one.writes) for one in step.passes] == [
        (None, 0),
        (0, 1),
        (1, 0),
        (0, None),
    ]
    assert [one.spacing for one in step.passes] == [16, 16, 32, 32]
    assert [(one.run, one.runs) for one in step.passes[1:]] == [(1, 16), (8, 4), (32, 1)]
    assert [one.twiddle_offset for one in step.passes[1:]] == [0, 56, 248]
    assert not step.has_twiddles(step.passes[0]) and step.has_twiddles(step.passes[1])


def test_a_thousand_points_on_a_gpu():
    (launch,) = launches(1024, GPU)
    (step,) = launch.params["STEPS"]
    group = step.group
    assert group.schedule.radices == (16, 8, 8) and group.items == 64 == launch.local_size[0]
    assert [group.rounds(each) for each in group.passes] == [1, 2, 2]
    assert [group.numbering(each) for each in group.passes] == ["load", "store", "store"]
    assert group.gap == 32 and group.padded == 1056 and launch.local_bytes == 8448


def test_a_million_points_on_a_gpu():
    columns, rows = launches(1 << 20, GPU)
    (first,), (second,) = columns.params["STEPS"], rows.params["STEPS"]
    for step, transforms in ((first, 8), (second, 4)):
        group = step.group
        assert group.schedule.radices == (32, 32) and group.exchange == "two-phase"
        assert group.transforms == transforms and group.items == 32
        assert [group.rounds(each) for each in group.passes] == [1, 1]
    assert columns.local_size == (256,) and columns.local_bytes == 32 << 10
    assert rows.local_size == (128,) and second.group.gap == 128
    assert first.step_twiddle_bits == 10 and not second.step_twiddle_bits
    assert (first.group.load, first.group.store) == ("columns", "columns")
    assert (second.group.load, second.group.store) == ("rows", "columns")


def test_a_million_points_on_a_cpu():
    large = replace(CPU.capabilities, local_memory=1 << 20)
    (launch,) = launches(1 << 20, replace(CPU, capabilities=large))
    assert launch.kernel == "fft_vector" and len(launch.params["STEPS"]) == 2
    assert launch.params["VECTOR_WIDTH"] == 8
    assert launch.arguments["lanes_0"] == 512 and launch.arguments["lanes_1"] == 2048
    first, second = launch.params["STEPS"]
    assert first.schedule.radices == (8, 8, 8, 4) and second.schedule.radices == (8, 8, 8)
    assert launch.arguments["source_1"] == launch.arguments["target_1"] == "b"
    assert [512 // first.vectors.transforms, 2048 // second.vectors.transforms] == [16, 64]


def test_a_prime_length_is_a_convolution():
    (launch,) = launches(1009, GPU)
    (step,) = launch.params["STEPS"]
    assert step.convolved == 1009 and step.group.schedule.radices == (16, 16, 8)
    assert launch.local_size == (128,)
    assert [launch.kernel for launch in launches(1009, CPU)] == [
        "chirp_in", "fft_vector", "chirp_multiply", "fft_vector", "chirp_out",
    ]  # fmt: skip


def test_steps_are_data_that_keys_and_other_processes_take():
    """Programs are found by them, and the tuner's worker is sent them."""
    (step,) = launches(1009, GPU)[0].params["STEPS"]
    copy = pickle.loads(pickle.dumps(step))
    assert copy == step and hash(copy) == hash(step) and repr(copy) == repr(step)
    assert replace(step, halved=True) != step
