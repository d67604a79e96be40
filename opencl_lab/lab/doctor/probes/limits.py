"""Probes of the limits that a device claims."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from math import inf

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.memory import host_memory, memory_left
from opencl_lab.core.plan import ARGUMENT_BYTES
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import Array, Wrong, check, why


def short_of(reached: int, detail: str, error: Exception) -> Verdict:
    """Return the last report of a probe that reached only 1, or 0, if even its least try failed."""
    return Verdict("limited" if reached > 1 else "broken", f"{detail}: {why(error)}", reached)


def max_work_group(device: Device) -> Answers:
    """Probe increasing work-groups, up to twice the claim, with a tree reduction."""
    source = """
    __kernel void reduce(__global const uint *x, __global uint *sums, __local uint *tile) {
      const uint l = (uint)get_local_id(0);
      tile[l] = x[get_global_id(0)];
      barrier(CLK_LOCAL_MEM_FENCE);
      for (uint n = (uint)get_local_size(0); n > 1; n = (n + 1) / 2) {
        if (l < n / 2) tile[l] += tile[l + (n + 1) / 2];
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      if (l == 0) sums[get_group_id(0)] = tile[0];
    }"""
    claimed = min(device.max_work_group, device.max_work_items[0])
    session = ProbeSession(device)
    program = session.build(source)
    largest, groups = 1, 4
    # Small sizes are left out, since each size may need a compilation.
    sizes = [1, 64, *(1 << bit for bit in range(8, 31))]
    for size in [*(size for size in sizes if size < claimed), claimed, 2 * claimed]:
        asked = size <= claimed
        yield Trying(f"{size} work-items", largest, asked)
        x, sums = session.words(groups * size), session.words(groups)
        try:
            session.run(program, "reduce", groups * size, size, x, sums, cl.LocalMemory(4 * size))
            check(sums, x.reshape(groups, size).sum(axis=1, dtype=np.uint32))
        except (cl.Error, Wrong) as error:
            if asked:
                yield short_of(largest, f"{largest} of {claimed} work-items claimed; {size}", error)
                return
            break
        largest = size
    yield Verdict("ok", f"up to {largest} work-items", largest)


def _hash(values: Array) -> Array:
    """Return the hash of local_memory.cl.mako."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        values = (values ^ (values >> np.uint32(shift))) * np.uint32(factor)
    mixed: Array = values ^ (values >> np.uint32(16))
    return mixed


def local_memory(device: Device) -> Answers:
    """Probe increasing arrays in local memory, declared and passed, up to the claimed size."""
    claimed = device.local_memory
    dedicated = device.handle.local_mem_type == cl.device_local_mem_type.LOCAL
    place = "memory of its own" if dedicated else "carved out of ordinary memory"
    steps = [claimed // 4, claimed // 2, claimed - 1024, claimed]
    yield from local_arrays(device, claimed, steps, place, (0, ARGUMENT_BYTES))


def local_arrays(
    device: Device, claimed: int, steps: Sequence[int], place: str, passing: Sequence[int] = (0,)
) -> Answers:
    """Probe arrays of several sizes in local memory.

    Each size is declared for a 0 in `passing`; other numbers are the bytes by which an array that
    the host passes is smaller.
    """
    session = ProbeSession(device)
    wg, groups = session.size(64), 4
    largest = 0
    tries = product((size & ~3 for size in steps if size >= 1024), passing)
    for size, less in tries:
        how = ", passed" if less else ""
        yield Trying(f"{size} bytes{how}", largest, size <= claimed)
        words, seed = (size - less) // 4, int(session.random.integers(1 << 31))
        sums = session.words(groups * wg)
        expected = np.zeros((groups, wg), np.uint32)
        position = np.arange(words, dtype=np.uint32)
        for group in range(groups):
            tile = _hash(position ^ np.uint32(seed + group))
            terms = np.roll(tile, -(words // 2)) * (position | np.uint32(1))
            np.add.at(expected[group], position % wg, terms)
        try:
            parameters = {"WG_SIZE": wg, "WORDS": words, "PASSED": bool(less)}
            program = session.built("doctor/local_memory.cl.mako", parameters)
            passed = [cl.LocalMemory(4 * words)] if less else []
            session.run(program, "fill_and_sum", groups * wg, wg, sums, np.uint32(seed), *passed)
            check(sums, expected.ravel())
        except (cl.Error, Wrong) as error:
            if size > claimed:
                break
            detail = f"{largest} of {claimed} bytes claimed, {place}; {size} bytes{how}"
            yield short_of(largest, detail, error)
            return
        if less == passing[-1]:
            largest = size
    yield Verdict("ok", f"{largest} bytes, {place}", largest)


ENDS = """
__kernel void put(__global uint *cells, __global const ulong *places, __global const uint *x) {
  cells[places[get_global_id(0)]] = x[get_global_id(0)];
}

__kernel void get(__global const uint *cells, __global const ulong *places, __global uint *out) {
  out[get_global_id(0)] = cells[places[get_global_id(0)]];
}
"""
MIB, GIB = 1 << 20, 1 << 30


def _free_memory() -> float:
    """Return bytes of host memory that nobody uses, or a guess; infinity if nothing is known."""
    with suppress(OSError, ValueError):
        if hasattr(os, "sysconf"):
            pages = os.sysconf("SC_AVPHYS_PAGES")
            return float(min(memory_left(), pages * os.sysconf("SC_PAGE_SIZE")))
    return host_memory() / 4


def max_allocation(device: Device) -> Answers:
    """Probe words at both ends of increasing buffers, also beyond the claim.

    Addresses of 32 bits would wrap in some.
    """
    claimed, session = device.max_allocation, ProbeSession(device)
    free = _free_memory() / 2 if device.unified_memory else inf
    most = int(min(claimed, free))
    beyond = (device.global_memory * part // 16 for part in (8, 12, 15))
    wanted = {MIB, 256 * MIB, GIB, 2 * GIB, 4 * GIB + MIB, most, *beyond}
    sizes = {min(n, most) for n in wanted if n <= claimed}
    program = session.build(ENDS)
    largest, note = 1, ""  # byte
    for size in sorted(sizes | {n for n in wanted if claimed < n <= free}):
        asked = size <= claimed
        reached = size_text(largest)
        yield Trying(size_text(size), largest, asked, reached)
        try:
            _ends(session, program, size)
        except (cl.Error, Wrong) as error:
            # Others may have the memory, and a call would get this error, too.
            if asked and not isinstance(error, cl.MemoryError):
                tried = f"{reached} of {size_text(claimed)} claimed; {size_text(size)}"
                yield short_of(largest, tried, error)
                return
            note = f"; {size_text(size)} refused: {error}" if asked else ""
            break
        largest = size
    if largest > claimed:
        note = f"; {size_text(claimed)} claimed"
    elif most < claimed and not note:
        note = f", as no more memory is free; {size_text(claimed)} claimed"
    # Else no value: the claim may depend on the memory that a container has now.
    value = largest if largest > claimed else None
    yield Verdict("ok", f"both ends of {size_text(largest)}{note}", value)


def _ends(session: ProbeSession, program: cl.Program, size: int) -> None:
    """Write and read words of a buffer by kernels, and read them by copies."""
    words = size // 4
    bounds = [words // 2, words, *(1 << bit for bit in range(10, words.bit_length()))]
    places = np.unique([0, *(at + side for at in bounds for side in (-1, 0) if at + side < words)])
    places = places.astype(np.uint64)
    x, out = session.words(places.size), session.words(places.size)
    flags = cl.mem_flags.READ_WRITE
    cells = cl.Buffer(session.context, flags, 4 * words)
    session.run(program, "put", places.size, 1, cells, places, x)
    session.run(program, "get", places.size, 1, cells, places, out)
    check(out, x)
    for word, place in zip(x, places, strict=True):
        copied = np.empty(1, np.uint32)
        cl.enqueue_copy(session.queue, copied, cells, src_offset=4 * int(place))
        check(copied, word)
