"""Probes of units that multiply small matrices, and of the local memory that their kernels need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.device import Device
from opencl_lab.doctor.probes.features import feature
from opencl_lab.doctor.probes.limits import local_arrays
from opencl_lab.doctor.probing import Answers, ProbeSession, check
from opencl_lab.runtime.ptx import is_specific, reloaded
from opencl_lab.template import render

__all__ = ["declared_memory", "matrix_units", "warpgroup_matrix_units"]


def _multiply(device: Device, units: str, element: str) -> None:
    """Multiply small whole numbers, whose sums are exact; raise Wrong if they are not."""
    session = ProbeSession(device)
    source = render("doctor/matrix_units.cl.mako", {"UNITS": units, "TYPE": element}).text
    program = session.build(source)
    if is_specific(source):
        program = reloaded(session.context, device.handle, program)
    rows, k = (16, 8) if units == "warp" else (64, 32)
    dtype: Any = np.float64 if element == "double" else np.float32
    a, b = (session.random.integers(-8, 9, (extent, k)).astype(dtype) for extent in (rows, 8))
    out = np.full((rows, 8), np.nan, dtype)
    items = 32 if units == "warp" else 128
    session.run(program, "multiply_tiles", items, items, a, b, out)
    check(out, a @ b.T)


def matrix_units(device: Device) -> Answers:
    """Probe products of a warp, of TF32 and of float64."""

    def attempt() -> None:
        for element in ("float", "double"):
            _multiply(device, "warp", element)

    works = "mma.sync multiplies TF32 and float64"
    yield from feature(device.capabilities.matrix_units, works, attempt)


def warpgroup_matrix_units(device: Device) -> Answers:
    """Probe a product of a warpgroup, by a program that is loaded again from its PTX."""

    def attempt() -> None:
        _multiply(device, "warpgroup", "float")

    works = "wgmma multiplies TF32, in a program that is loaded again"
    yield from feature(device.capabilities.warpgroup_matrix_units, works, attempt)


def declared_memory(device: Device) -> Answers:
    """Probe arrays in local memory that are larger than what the driver names."""
    claimed = device.capabilities.declared_memory
    if claimed <= device.local_memory:
        detail = "no more than what the driver names"
        yield {"verdict": "no", "value": 0, "detail": detail}
        return
    dedicated = device.handle.local_mem_type == cl.device_local_mem_type.LOCAL
    place = "declared by kernels" + ("" if dedicated else ", in ordinary memory")
    yield from local_arrays(device, claimed, [2 * claimed // 3, claimed], place)
