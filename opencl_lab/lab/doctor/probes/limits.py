"""Probes of the limits that a device claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.lab.doctor.probing import Answer, Answers, ProbeSession
from opencl_lab.selftest.trial import Array, Wrong, check, why


def _short(reached: int, detail: str, error: Exception) -> Answer:
    """Return the last report of a probe that did not reach the claimed limit."""
    verdict = "limited" if reached else "broken"
    return {"verdict": verdict, "value": reached, "detail": f"{detail}: {why(error)}"}


def max_work_group(device: Device) -> Answers:
    """Probe increasing work-groups with a tree reduction in local memory."""
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
    largest, groups = 0, 4
    # Small sizes are left out, since each size may need a compilation.
    sizes = [1, 64, *(1 << bit for bit in range(8, 31))]
    for size in [*(size for size in sizes if size < claimed), claimed]:
        yield {"trying": f"{size} work-items", "value": largest}
        x, sums = session.words(groups * size), session.words(groups)
        try:
            session.run(program, "reduce", groups * size, size, x, sums, cl.LocalMemory(4 * size))
            check(sums, x.reshape(groups, size).sum(axis=1, dtype=np.uint32))
        except (cl.Error, Wrong) as error:
            yield _short(largest, f"{largest} of {claimed} work-items claimed; {size}", error)
            return
        largest = size
    yield {"verdict": "ok", "value": largest, "detail": f"up to {largest} work-items"}


def _hash(values: Array) -> Array:
    """Return the hash of local_memory.cl.mako."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        values = (values ^ (values >> np.uint32(shift))) * np.uint32(factor)
    mixed: Array = values ^ (values >> np.uint32(16))
    return mixed


def local_memory(device: Device) -> Answers:
    """Probe increasing arrays in local memory, up to the claimed size."""
    claimed = device.local_memory
    dedicated = device.handle.local_mem_type == cl.device_local_mem_type.LOCAL
    place = "memory of its own" if dedicated else "carved out of ordinary memory"
    steps = [claimed // 4, claimed // 2, claimed - 1024, claimed]
    yield from local_arrays(device, claimed, steps, place)


def local_arrays(device: Device, claimed: int, steps: Sequence[int], place: str) -> Answers:
    """Probe arrays of several sizes in local memory, at last of `claimed` bytes."""
    session = ProbeSession(device)
    wg, groups = session.size(64), 4
    largest = 0
    for size in (size & ~3 for size in steps if size >= 1024):
        yield {"trying": f"{size} bytes", "value": largest}
        words, seed = size // 4, int(session.random.integers(1 << 31))
        sums = session.words(groups * wg)
        expected = np.zeros((groups, wg), np.uint32)
        position = np.arange(words, dtype=np.uint32)
        for group in range(groups):
            tile = _hash(position ^ np.uint32(seed + group))
            terms = np.roll(tile, -(words // 2)) * (position | np.uint32(1))
            np.add.at(expected[group], position % wg, terms)
        try:
            parameters = {"WG_SIZE": wg, "WORDS": words}
            program = session.built("doctor/local_memory.cl.mako", parameters)
            session.run(program, "fill_and_sum", groups * wg, wg, sums, np.uint32(seed))
            check(sums, expected.ravel())
        except (cl.Error, Wrong) as error:
            detail = f"{largest} of {claimed} bytes claimed, {place}; {size} bytes"
            yield _short(largest, detail, error)
            return
        largest = size
    yield {"verdict": "ok", "value": largest, "detail": f"{largest} bytes, {place}"}


def vector_bytes(device: Device) -> Answers:
    """Probe built-in functions on increasingly wide vectors."""
    session = ProbeSession(device)
    types: dict[str, Any] = {"float": np.float32, "uint": np.uint32}
    if device.capabilities.fp64:
        types["double"] = np.float64
    elements = [(name, np.dtype(dtype).itemsize) for name, dtype in types.items()]
    items, wg = 64, session.size(16)
    widest = 0
    for size in (16, 32, 64):
        attempt = f"a program with vectors of {size} bytes"
        try:
            yield {"trying": attempt, "value": widest}
            parameters = {"elements": elements, "size": size}
            program = session.built("doctor/vectors.cl.mako", parameters)
            # Loads come last: if they fail, the compiler hangs; others fail at once.
            for way in ("combine", "load"):
                for element, dtype in types.items():
                    width = size // np.dtype(dtype).itemsize
                    builtins = f"vload{width}" if way == "load" else "min, max, clamp, fma"
                    attempt = f"{builtins} on {element}{width}"
                    yield {"trying": attempt, "value": widest}
                    a, b, c, out = (
                        session.words(items * width)
                        if dtype is np.uint32
                        else session.reals(items * width, dtype)
                        for _ in range(4)
                    )
                    session.run(program, f"{way}_{element}", items, wg, a, b, c, out)
                    expected = a + b * c
                    if way == "combine":
                        low, high = np.minimum(a, b), np.maximum(a, b)
                        added = low if dtype is np.uint32 else np.abs(low)
                        expected = high * np.clip(c, low, high) + added
                    check(out, expected, 0.0 if dtype is np.uint32 else 1e-5)
        except (cl.Error, Wrong) as error:
            yield _short(widest, f"up to {widest} bytes; {attempt}", error)
            return
        widest = size
    yield {"verdict": "ok", "value": widest, "detail": "up to 64 bytes, the widest tried"}
