"""Probes of matrix units, and of the local memory that their kernels need."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.template import render
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probes.features import feature
from opencl_lab.lab.doctor.probes.limits import local_arrays
from opencl_lab.lab.doctor.probes.throughput import MAX_TERMS, Candidate, race
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.runtime.ptx import is_specific, reloaded
from opencl_lab.selftest.kernels import check

STEPS = 4  # of each chain in a round of peak_matrix.cl.mako
WG_SIZE = 128


def _built(session: ProbeSession, template: str, units: str, element: str) -> cl.Program:
    """Build the program of a probe, and load it again if its instructions need that."""
    source = render(template, {"UNITS": units, "TYPE": element}).text
    program = session.build(source)
    if is_specific(source):
        program = reloaded(session.context, session.device.handle, program)
    return program


def _multiply(session: ProbeSession, units: str, element: str) -> None:
    """Multiply small whole numbers, whose sums are exact; raise Wrong if they are not."""
    program = _built(session, "doctor/matrix_units.cl.mako", units, element)
    rows, k = (16, 8) if units == "warp" else (64, 32)
    dtype: Any = np.float64 if element == "double" else np.float32
    a, b = (session.random.integers(-8, 9, (extent, k)).astype(dtype) for extent in (rows, 8))
    out = np.full((rows, 8), np.nan, dtype)
    items = 32 if units == "warp" else 128
    session.run(program, "multiply_tiles", items, items, a, b, out)
    check(out, a @ b.T)


@feature("mma.sync multiplies TF32 and float64")
def matrix_units(session: ProbeSession) -> None:
    """Probe products of a warp, of TF32 and of float64."""
    for element in ("float", "double"):
        _multiply(session, "warp", element)


@feature("wgmma multiplies TF32, in a program that is loaded again")
def warpgroup_matrix_units(session: ProbeSession) -> None:
    """Probe a product of a warpgroup, by a program that is loaded again from its PTX."""
    _multiply(session, "warpgroup", "float")


class _Products(Candidate):
    """Chains of products by matrix units."""

    def __init__(self, session: ProbeSession, units: str, element: str):
        self.units, self.element, self.wg = units, element, WG_SIZE
        self.k = 16 if element == "half" else 8
        self.items = session.device.compute_units * 16 * self.wg
        # Sums of an item times 128 items: 8 chains of 16 x 8 in each of 4 warps, or 64 x 256.
        sums = 4 * 8 * 16 * 8 if units == "warp" else 64 * 256
        amount = 2.0 * self.items // self.wg * sums * self.k * STEPS
        label = f"products of a {units}"
        super().__init__(session, label, amount, MAX_TERMS // (STEPS * self.k))

    def build(self) -> None:
        program = _built(self.session, "doctor/peak_matrix.cl.mako", self.units, self.element)
        self.kernel = cl.Kernel(program, "multiply_tiles")
        self.out = np.full(self.items, np.nan, "f8" if self.element == "double" else "f4")
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.buffer = cl.Buffer(self.session.context, flags, hostbuf=self.out)
        self.kernel.set_arg(0, self.buffer)

    def verify(self) -> None:
        cl.enqueue_copy(self.session.queue, self.out, self.buffer)
        check(self.out, np.full_like(self.out, self.rounds * STEPS * self.k))


def _peak(device: Device, element: str) -> Answers:
    """Probe the peak of products of one type, by each kind of matrix unit."""
    limits = device.capabilities
    if not limits.matrix_units:
        return iter([Verdict("no", "no matrix units that OpenCL reaches")])
    groups = limits.warpgroup_matrix_units and element != "double"
    units = ("warp", "warpgroup") if groups else ("warp",)
    return race(device, "FLOP/s", lambda session: (_Products(session, u, element) for u in units))


flops16_matrix = partial(_peak, element="half")  # with sums in float32
flops32_matrix = partial(_peak, element="float")  # TF32, with sums in float32
flops64_matrix = partial(_peak, element="double")


def declared_memory(device: Device) -> Answers:
    """Probe arrays in local memory that are larger than the limit of the driver."""
    known, said = device.capabilities.declared_memory, device.local_memory
    dedicated = device.handle.local_mem_type == cl.device_local_mem_type.LOCAL
    place = "declared by kernels" + ("" if dedicated else ", in ordinary memory")
    if known > said:
        yield from local_arrays(device, known, [2 * known // 3, known], place)
        return
    steps = [said * quarters // 4 for quarters in (5, 6, 8, 12, 16)] if dedicated else []
    for answer in local_arrays(device, said, steps, place):
        short = isinstance(answer, Verdict) and not answer.value
        yield Verdict("no", "no more than the limit of the driver", 0) if short else answer
