"""How the FFT on GPUs splits long transforms, and how many columns a group does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from opencl_lab.ops.fft.passes.splits import (
    GroupLimits,
    StepShape,
    columns_of,
    lengths_of,
    middle_rows,
    paired_columns,
    worth_fusing,
)

H200 = GroupLimits(
    word=4,
    max_radix=32,
    points=4,
    longest=16384,
    exchange="two-phase",
    transforms=0,
    last_transforms=0,
    local_memory=48 << 10,
    items=1024,
    units=132,
)
STEP = StepShape(n=256, lanes=65536, times=1, reads_columns=True, pitch=65536)


@pytest.mark.parametrize("limits", [H200, replace(H200, word=8), replace(H200, items=64)])
@pytest.mark.parametrize("n", [1, 4096, 6561, 2**15, 3**10, 5**7, 44100, 13**4 * 7, 2**24])
@pytest.mark.parametrize("inner", [1, 6])
def test_lengths_multiply_to_the_transform_and_fit(n, inner, limits):
    lengths = lengths_of(n, 3, inner, limits)
    assert lengths is not None and math.prod(lengths) == n
    assert all(limits.fits(length, 1) for length in lengths)


def test_one_group_does_what_it_can_hold():
    assert lengths_of(8192, 2048, 1, H200) == (8192,)
    small = replace(H200, local_memory=8 << 10)
    assert math.prod(lengths_of(8192, 2048, 1, small)) == 8192
    assert len(lengths_of(8192, 2048, 1, small)) == 2
    assert lengths_of(2**40, 1, 1, replace(H200, longest=16, items=1)) is None


def test_columns_that_would_be_read_alone_are_split_sooner():
    """A group holds 8,192 points, but few such columns side by side."""
    assert len(lengths_of(8192, 1, 4096, H200)) == 2


def test_more_memory_to_move_is_worth_a_launch():
    assert len(lengths_of(2**22, 1, 1, H200)) == 2
    assert len(lengths_of(2**22, 64, 1, H200)) == 2
    assert len(lengths_of(2**24, 64, 1, H200)) == 3


def test_groups_take_whole_sectors_of_about_4096_points():
    assert columns_of(STEP, H200) == 16
    assert columns_of(replace(STEP, n=128), H200) == 32
    assert columns_of(replace(STEP, n=1024), H200) == 8
    assert columns_of(replace(STEP, n=1024, reads_columns=False), H200) == 4
    assert columns_of(replace(STEP, n=256), replace(H200, word=8)) == 8


def test_columns_that_cross_sectors_are_taken_wider():
    crossing = replace(STEP, n=243, pitch=625)
    assert columns_of(crossing, H200) > columns_of(replace(crossing, pitch=624), H200)


def test_a_small_transform_occupies_more_of_the_device():
    assert columns_of(replace(STEP, lanes=64, n=64), H200) < 16


def test_the_tuner_overrides_the_estimate_as_far_as_it_fits():
    assert columns_of(STEP, replace(H200, transforms=4)) == 4
    assert columns_of(STEP, replace(H200, last_transforms=4)) == 16
    assert columns_of(replace(STEP, reads_columns=False), replace(H200, last_transforms=4)) == 4
    assert columns_of(replace(STEP, n=4096), replace(H200, transforms=16)) == 4
    assert columns_of(replace(STEP, lanes=3), replace(H200, transforms=8)) == 3


def test_steps_share_a_launch_in_groups_of_as_many_items():
    parts = replace(H200, exchange="split")

    def pair(first, second, limits=parts):
        own = replace(STEP, n=first, lanes=second, times=512)
        other = replace(STEP, n=second, lanes=first, times=512, reads_columns=False)
        cost, columns = paired_columns(own, other, limits)
        return columns, math.isfinite(cost) and worth_fusing(own, other, columns, limits)

    assert pair(128, 256) == ((32, 16), True)
    assert pair(256, 256) == ((16, 16), True)
    assert pair(243, 243) == ((16, 16), True)
    assert pair(128, 128, replace(parts, exchange="two-phase")) == ((32, 32), False)
    assert pair(256, 512) == ((8, 8), False)  # less than lines, and items with more points
    assert pair(64, 256)[1] is False  # items with fewer points
    assert pair(1024, 1024) == ((4, 4), False)
    assert not pair(125, 625)[1]
    assert paired_columns(STEP, STEP, replace(parts, items=8))[0] == math.inf


def test_rows_between_steps_are_whole_sectors():
    assert middle_rows(5**7, 1, (125, 625), 4) == ((125, 628),)
    assert middle_rows(5**7, 1, (125, 625), 8) == ((125, 626),)
    assert middle_rows(2**24, 1, (256, 256, 256), 4) == ((256, 65536), (65536, 256))
    assert middle_rows(1000, 3, (10, 10, 10), 4) == ((10, 300), (100, 32))
