"""Entries of the tuning database for tests."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import entry_of

TILED = GEMM.algorithm("tiled")
GPU = Device(
    "Paper H100",
    "gpu",
    vendor="Paper Corp",
    platform="Paper CL",
    driver="580.1",
    compute_units=132,
    compute_capability=(9, 0),
    max_work_group=1024,
    max_work_items=(1024, 1024, 64),
    capabilities=Capabilities(fp64=True, max_work_group=1024, local_memory=48 << 10),
)
SISTER = replace(GPU, name="Paper H200")  # same architecture
N1024 = GemmProblem(1024, 1024, 1024)
DEFAULT = TILED.default_config(N1024, GPU)
VERSION = TILED.version


def tuned(number):
    """A configuration of `tiled` that is not the default one, and shows which it is."""
    config = DEFAULT.replace(TILE=32, UNROLL=(1, 2, 4, 16, 32)[number])
    assert config != DEFAULT
    return config


def store(device, number, problem=N1024, **changes):
    entry = entry_of(device, "gemm", "tiled", VERSION, problem, tuned(number), 1.5)
    database.add([structs.replace(entry, **changes)])


def used(device=GPU, problem=N1024, values=None):
    return TILED.configure(problem, device, values)
