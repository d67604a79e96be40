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
