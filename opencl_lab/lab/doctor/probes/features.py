"""Probes of the optional features of OpenCL C."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import Wrong, check, why

Attempt: TypeAlias = Callable[[ProbeSession], str | None]
"""Tries a feature; raises an error, or returns an observation in words."""


def feature(works: str = "") -> Callable[[Attempt], Callable[[Device], Answers]]:
    """Return a decorator that makes a probe from an attempt named after its capability."""

    def probe_of(attempt: Attempt) -> Callable[[Device], Answers]:
        @wraps(attempt)
        def probe(device: Device) -> Answers:
            claimed = getattr(device.capabilities, attempt.__name__)
            yield Trying("a small kernel", claimed=claimed)
            try:
                detail = attempt(ProbeSession(device)) or works
            except (cl.Error, Wrong) as error:
                claim = "claimed by the driver" if claimed else "not claimed by the driver"
                detail = f"{claim}; {why(error)}"
                yield Verdict("broken" if claimed else "no", detail, False)
                return
            unlisted = "" if claimed else ", although the driver does not list it"
            yield Verdict("ok", f"{detail}{unlisted}", True)

        return probe

    return probe_of


@feature("double precision is right to 1e-14")
def fp64(session: ProbeSession) -> None:
    """Probe arithmetic in double precision."""
    a, b, c = (session.reals(1024, np.float64) for _ in range(3))
    out = session.reals(1024, np.float64)
    source = """
    #pragma OPENCL EXTENSION cl_khr_fp64 : enable
    __kernel void evaluate(__global const double *a, __global const double *b,
                           __global const double *c, __global double *out) {
      const size_t i = get_global_id(0);
      out[i] = fma(a[i], b[i], c[i]) / (2.0 + fabs(c[i])) + sqrt(fabs(a[i]));
    }"""
    session.run(source, "evaluate", 1024, session.size(64), a, b, c, out)
    check(out, (a * b + c) / (2 + np.abs(c)) + np.sqrt(np.abs(a)), 1e-14)


@feature("half precision is right to 4e-3")
def fp16(session: ProbeSession) -> None:
    """Probe arithmetic in half precision."""
    a, b, out = (session.reals(1024, np.float16) for _ in range(3))
    source = """
    #pragma OPENCL EXTENSION cl_khr_fp16 : enable
    __kernel void evaluate(__global const half *a, __global const half *b,
                           __global half *out) {
      const size_t i = get_global_id(0);
      const half product = a[i] * b[i];
      out[i] = product + a[i];
    }"""
    session.run(source, "evaluate", 1024, session.size(64), a, b, out)
    wide, expected = out.astype(np.float64), a.astype(np.float64) * b + a
    check(wide, expected, 4e-3)


@feature("add, xchg and cmpxchg are right")
def int64_atomics(session: ProbeSession) -> None:
    """Probe atomic addition, exchange and compare-and-exchange on 64 bits."""
    n = 4096
    x = session.random.integers(0, 1 << 63, n, dtype=np.uint64)
    total, largest = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
    taken, last = np.zeros(n, np.uint64), np.zeros(1, np.uint64)
    source = """
    #pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
    __kernel void gather(__global const ulong *x, volatile __global ulong *total,
                         volatile __global ulong *largest, __global ulong *taken,
                         volatile __global ulong *last) {
      const ulong mine = x[get_global_id(0)];
      atom_add(total, mine);
      ulong seen = atom_add(largest, 0ul);
      while (seen < mine) {
        const ulong before = atom_cmpxchg(largest, seen, mine);
        if (before == seen) break;
        seen = before;
      }
      taken[get_global_id(0)] = atom_xchg(last, mine);
    }"""
    session.run(source, "gather", n, session.size(64), x, total, largest, taken, last)
    check(total, x.sum(dtype=np.uint64, keepdims=True))
    check(largest, x.max(keepdims=True))
    # Each number is put once, and taken once but for the last.
    check(np.sort(np.append(taken, last)), np.sort(np.append(x, np.uint64(0))))


@feature("inline PTX runs")
def inline_ptx(session: ProbeSession) -> None:
    """Probe inline NVIDIA assembly."""
    a, b, out = (session.words(1024) for _ in range(3))
    source = """
    __kernel void merge(__global const uint *a, __global const uint *b, __global uint *out) {
      const size_t i = get_global_id(0);
      uint merged;
      asm volatile("lop3.b32 %0, %1, %2, %1, 0x3c;" : "=r"(merged) : "r"(a[i]), "r"(b[i]));
      out[i] = merged;
    }"""
    session.run(source, "merge", 1024, session.size(64), a, b, out)
    check(out, a ^ b)  # 0x3c is the truth table of the first operand xor the second
