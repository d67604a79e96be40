"""Plans of the FFT for devices that are not there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fft_checks import EPS, FFT

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.plan import check_plan
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.ops.fft.passes.factors import (
    PRIMES,
    prime_factors,
    radices_of,
)
from opencl_lab.ops.fft.problem import DftProblem

# -------------------------------------------------------- planning, no device


DEVICES = [
    Device(
        "made",
        kind,
        compute_units=units,
        max_allocation=1 << 40,
        global_memory=1 << 42,
        max_work_items=(group,) * 3,
        capabilities=Capabilities(
            fp64=True,
            max_work_group=group,
            local_memory=local,
            vector_bytes=vector,
            visible_writes=group >= 1024,
            forward_progress=group == 1024,
        ),
    )
    for kind, units, group, local, vector in (
        ("gpu", 132, 1024, 48 << 10, 16),
        ("gpu", 8, 64, 8 << 10, 16),
        ("cpu", 2, 4096, 1 << 20, 16),
        ("cpu", 64, 1, 32 << 10, 64),
        ("cpu", 2, 4096, 64 << 10, 16),
    )
]
PROBLEMS = [
    DftProblem(n, np.dtype(dtype), batch, inner)
    for dtype in EPS
    for n, batch, inner in (
        (256, 65_536, 1),
        (4096, 4096, 1),
        (32_768, 512, 1),
        (2**24, 1, 1),
        (2**27, 1, 1),
        (3**10, 300, 1),
        (1009, 7, 1),
        (8_209, 4, 1),
        (100_003, 4, 1),
        (4_000_037, 1, 1),
        (1000, 1, 700),
        (10_000, 2, 100),
    )
]


@pytest.mark.parametrize("made", DEVICES, ids=lambda d: f"{d.kind}-{d.max_work_items[0]}")
def test_plans_fit_their_devices(made):
    for problem in PROBLEMS:
        check_plan(FFT.plan(problem, FFT.configure(problem, made), made), made)


def test_many_transforms_do_not_meet_the_limits_of_a_grid():
    """CUDA devices take 65,535 groups beyond the first dimension."""
    cuda = replace(DEVICES[0], compute_capability=(9, 0))
    for n, batch, inner in ((1000, 100_000, 1), (8192, 100_000, 1), (64, 100_000, 3)):
        problem = DftProblem(n, batch=batch, inner=inner)
        check_plan(FFT.plan(problem, FFT.configure(problem, cuda), cuda), cuda)
    for kind, n in (("r2c", 100), ("c2r", 101), ("c2c", 9001)):
        problem = DftProblem(n, batch=300_000, kind=kind)
        check_plan(FFT.plan(problem, FFT.configure(problem, cuda), cuda), cuda)
    for algorithm in map(DFT.algorithm, ("direct-tiled", "direct-naive")):
        problem = DftProblem(8, batch=100_000)
        check_plan(algorithm.plan(problem, algorithm.configure(problem, cuda), cuda), cuda)


def test_indices_count_64_bits_only_where_they_must():
    for n, index in ((2**20, "uint"), (2**31, "ulong")):
        problem = DftProblem(n)
        plan = FFT.plan(problem, FFT.configure(problem, DEVICES[0]), DEVICES[0])
        assert {launch.params["INDEX_T"] for launch in plan.launches} == {index}


@pytest.mark.parametrize("largest", [4, 8, 16, 32])
def test_radices_multiply_to_the_length(largest):
    for n in range(1, 1500):
        if prime_factors(n) is not None:
            radices = radices_of(n, largest)
            assert math.prod(radices) == n
            assert all(radix <= largest or radix in PRIMES for radix in radices)
        else:
            with pytest.raises(ValueError, match="prime factor"):
                radices_of(n, largest)
