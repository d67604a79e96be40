"""Schedules of passes, which templates emit as they are: geometry, without a device."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import default_config, planner_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.local_schedule import GroupSchedule, LocalStep, gap_of, items_of
from opencl_lab.ops.fft.passes.schedule import Schedule
from opencl_lab.ops.fft.passes.steps import steps_of
from opencl_lab.ops.fft.passes.twiddles import local_twiddles, roots_of_unity, strided_twiddles

RADICES = [(1,), (5,), (4, 2), (16, 8, 8), (7, 3, 3, 2), (13, 11)]
GROUPS = [
    GroupSchedule(Schedule.of(radices), transforms, items_of(math.prod(radices), radices, 4), load,
                  store, exchange, gap_of(radices[0], transforms, load, store, exchange))
    for radices in RADICES
    for transforms, load, store in ((1, "rows", "rows"), (8, "rows", "columns"),
                                    (4, "columns", "columns"))
    for exchange in ("interleaved", "split", "two-phase")
]  # fmt: skip


def by_passes(schedule, signal, table):
    """Transform a signal as the documentation of the schedule says, in float64."""
    points = signal.astype(complex)
    for each in schedule.passes:
        R, S = each.radix, each.stride
        result = np.empty_like(points)
        factors = table[each.twiddle_offset : each.twiddle_offset + each.twiddle_count]
        for j in range(each.butterflies):
            taken = points[j + np.arange(R) * each.butterflies]
            if each.index:
                taken[1:] *= factors.reshape(R - 1, S)[:, j % S]
            result[j // S * S * R + j % S + np.arange(R) * S] = np.fft.fft(taken)
        points = result
    return points


@pytest.mark.parametrize("radices", RADICES)
def test_passes_transform_with_the_twiddles_at_their_offsets(radices):
    schedule = Schedule.of(radices)
    table = local_twiddles(radices, np.dtype(np.complex128))
    assert schedule.n == math.prod(radices) and schedule.radices == radices
    assert schedule.twiddle_count == len(table) and schedule.last.radix == radices[-1]
    rng = np.random.default_rng(5)
    signal = rng.standard_normal(schedule.n) + 1j * rng.standard_normal(schedule.n)
    np.testing.assert_allclose(by_passes(schedule, signal, table), np.fft.fft(signal), atol=1e-9)


def test_the_example_of_the_documentation():
    first, second, third = Schedule.of((16, 8, 8)).passes
    assert (first.stride, first.butterflies, first.twiddle_count) == (1, 64, 0)
    assert (second.stride, second.butterflies, second.twiddle_offset) == (16, 128, 0)
    assert (third.stride, third.butterflies, third.twiddle_offset) == (128, 128, 7 * 16)
    assert third.twiddle_count == 7 * 128


@pytest.mark.parametrize("group", GROUPS)
def test_every_butterfly_is_one_items_in_one_round(group):
    for each in group.passes:
        rounds = range(group.rounds(each))
        owned = [j + turn * group.items for j in range(group.items) for turn in rounds]
        assert sorted(j for j in owned if j < each.butterflies) == list(range(each.butterflies))
        assert group.fills_rounds(each) == (max(owned) < each.butterflies)


def padded(group, element):
    return element + (element // group.gap if group.gap else 0)


@pytest.mark.parametrize("group", GROUPS)
def test_places_follow_from_that_of_the_first_point(group):
    """As the definition says, with a gap after so many elements; no two points share a place."""
    n, near = group.n, group.neighbours
    for each in group.passes:
        read = [(j, each.butterflies, each.radix) for j in range(each.butterflies)]
        S, R = each.stride, each.radix
        written = [(j // S * S * R + j % S, S, R) for j in range(each.butterflies)]
        for lane in {0, group.transforms - 1}:
            for points in (read, written):
                found = set()
                for position, step, count in points:
                    start = position * group.transforms + lane if near > 1 else lane * n + position
                    places = group.places(count, step)
                    at = [padded(group, start + place.rest) + place.offset for place in places]
                    assert at == [padded(group, start + i * step * near) for i in range(count)]
                    found.update(at)
                assert len(found) == n and max(found) < group.padded


@pytest.mark.parametrize("group", GROUPS)
def test_local_memory_holds_all_points_or_one_part_of_them(group):
    arrays = {"interleaved": 2, "split": 2, "two-phase": 1}[group.exchange]
    assert group.local_reals == (arrays * group.padded if len(group.passes) > 1 else 0)
    assert [part for parts in group.phases for part in parts] == ["re", "im"]
    assert len(group.phases) == 2 // arrays


def test_rows_become_columns_after_the_first_pass():
    group = GroupSchedule(Schedule.of((4, 4)), 2, 4, "rows", "columns", "split", 0)
    assert [group.order(each) for each in group.passes] == ["rows", "columns"]
    alone = replace(group, schedule=Schedule.of((4,)))
    assert [alone.order(each) for each in alone.passes] == ["columns"]


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


STEP = LocalStep(
    GROUPS[0], "complex", "complex", ("twiddles",), ("lanes",), (("source_lane", 5),), 0, False,
    False, 0, True, True, False,
)  # fmt: skip


def test_steps_are_data_that_keys_and_other_processes_take():
    """Programs are found by them, and the tuner's worker is sent them."""
    copy = pickle.loads(pickle.dumps(STEP))
    assert copy == STEP and hash(copy) == hash(STEP) and repr(copy) == repr(STEP)
    assert replace(STEP, halved=True) != STEP


def test_lengths_that_are_read_and_written():
    assert (STEP.loaded, STEP.stored, STEP.length) == (0, 0, STEP.group.n)
    convolved = replace(STEP, convolved=47)
    assert (convolved.loaded, convolved.stored, convolved.length) == (47, 47, 47)
    real = replace(convolved, load_fragment="r2c-full")
    assert (real.loaded, real.stored) == (47, 24)
    assert [STEP.twiddle_spacing(radix) for radix in (2, 3, 4, 16, 32)] == [1, 1, 2, 4, 6]
    assert replace(STEP, few_twiddles=False).twiddle_spacing(32) == 1


def run(step, arrays):
    """Do what a step says, in float64, element by element."""
    layout, grid = step.layout, step.grid
    source, target = arrays[layout.source], arrays[layout.target]
    for b in range(grid.count):
        for o in range(layout.outer):
            for c in range(layout.lanes):
                base = grid.source_offset + b * grid.source_stride
                first = base + o * layout.source_strides.outer + c * layout.source_strides.lane
                read = first + np.arange(layout.n) * layout.source_strides.position
                result = step.scale * np.fft.fft(source[read] * (0.5 if step.halved else 1))
                if step.twiddles is not None:
                    order, lanes = step.twiddles
                    result *= roots_of_unity(np.arange(layout.n) * (c // lanes), order)
                base = grid.target_offset + b * grid.target_stride
                first = base + o * layout.target_strides.outer + c * layout.target_strides.lane
                written = first + np.arange(layout.n) * layout.target_strides.position
                assert np.isnan(target[written]).all()
                target[written] = result


@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("lengths", [(4, 6), (3, 4, 5), (2, 3, 4, 2), (2, 2, 3, 2, 3)])
def test_steps_transform_each_axis_once(lengths, inner):
    """Each number is written once by each step, and the last ones leave the transform."""
    n, batch = math.prod(lengths), 2
    layout = BatchedLayout.columns(n, batch, inner, "source", "target")
    steps = steps_of(layout, lengths, ["one", "two"][: len(lengths) - 1], 0.25, 4, True)
    rng = np.random.default_rng(7)
    signal = rng.standard_normal((batch, n, inner)) + 1j * rng.standard_normal((batch, n, inner))
    arrays = {"source": signal.reshape(-1).copy()}
    for step in steps:
        if step.layout.target != "target" or "target" not in arrays:
            arrays[step.layout.target] = np.full(batch * n * inner * 4, np.nan, complex)
        run(step, arrays)
    result = arrays["target"][: signal.size].reshape(signal.shape)
    np.testing.assert_allclose(result, np.fft.fft(signal, axis=1) / 8, atol=1e-10)
    assert steps[-1].orders == ("rows" if inner == 1 else "columns", "columns")


def test_layouts_are_those_of_rows_and_columns():
    rows = BatchedLayout.rows(8, 3, "a", "b", (8, 5))
    assert rows.source_strides == Strides(24, 1, 8) and rows.target_strides == Strides(15, 1, 5)
    assert rows.reads_rows and rows.writes_rows and rows.count == 3
    columns = BatchedLayout.columns(8, 2, 3, "a", "b")
    assert columns.source_strides == columns.target_strides == Strides(24, 3, 1)
    assert not columns.reads_rows and columns.count == 6


def test_tables_between_steps_multiply_to_every_power():
    """A power of the root is one of the coarse table times one of the fine one."""
    order, bits, dtype = 1000, 5, np.dtype(np.complex128)
    high = strided_twiddles(-(-order // 32), 32, order, dtype)
    low = strided_twiddles(32, 1, order, dtype)
    powers = np.arange(order)
    np.testing.assert_allclose(
        high[powers >> bits] * low[powers & 31], roots_of_unity(powers, order), atol=1e-14
    )


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


def test_a_million_points_on_a_cpu():
    (launch,) = launches(1 << 20, CPU)
    assert launch.kernel == "fft_vector" and len(launch.params["STEPS"]) == 2
    assert launch.params["VECTOR_WIDTH"] == 8
    assert launch.arguments["lanes_0"] == 512 and launch.arguments["lanes_1"] == 2048


def test_a_prime_length_is_a_convolution():
    (launch,) = launches(1009, GPU)
    (step,) = launch.params["STEPS"]
    assert step.convolved == 1009 and step.group.schedule.radices == (16, 16, 8)
    assert launch.local_size == (128,)
    assert [launch.kernel for launch in launches(1009, CPU)] == [
        "chirp_in", "fft_vector", "chirp_multiply", "fft_vector", "chirp_out",
    ]  # fmt: skip
