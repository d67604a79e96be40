"""The probe of barriers: kernels that some drivers get wrong without an error."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import Array, Wrong, check, why

GROUPS, TILES = 3, 5

GROUP = "__kernel __attribute__((reqd_work_group_size(WG_SIZE, 1, 1)))"
BRANCHES = f"""
{GROUP} void branches(__global const uint *x, __global uint *out, const uint taken) {{
  __local uint tile[WG_SIZE];
  const uint l = (uint)get_local_id(0);
  uint v = x[get_global_id(0)];
  if (get_group_id(0) < taken) {{
    tile[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v += 3 * tile[WG_SIZE - 1 - l];
  }} else
    v ^= l;
  out[get_global_id(0)] = v;
}}
"""
STORES = f"""
{GROUP} void stores(__global const uint *x, __global uint *cells, __global uint *out) {{
  __local uint tile[WG_SIZE], kept[WG_SIZE];
  const uint l = (uint)get_local_id(0);
  const size_t i = get_global_id(0), base = i - l;
  const uint v = x[i];
  uint seen = 0;
  kept[l] = v;
  if (l % 3 == 1) cells[base + (l * 5 + 2) % WG_SIZE] = v;
  tile[l] = v;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (uint n = WG_SIZE / 2; n > 0; n >>= 1) {{
    if (l < n) tile[l] += tile[l + n];
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  if (l == WG_SIZE - 1)
    for (uint k = 0; k < WG_SIZE; k++) seen = seen * 31 + kept[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  // What one item has read already.
  if (l < WG_SIZE - 1) kept[l] = 0;
  out[i] = tile[0] + cells[base + WG_SIZE - 1 - l] + seen;
}}
"""
BUTTERFLIES = f"""
#ifdef WIDE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real_t;
#else
typedef float real_t;
#endif

{GROUP} void exchange(__global const uint *x, __global uint *out) {{
  __local uint tile[WG_SIZE];
  const uint l = (uint)get_local_id(0);
  uint v = x[get_global_id(0)];
  for (uint distance = 1; distance < WG_SIZE; distance <<= 1) {{
    tile[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint other = tile[l ^ distance];
    barrier(CLK_LOCAL_MEM_FENCE);
    v = l & distance ? other - v : v + other;
  }}
  out[get_global_id(0)] = v;
}}

{GROUP} void pair(__global const real_t *x, __global real_t *out) {{
  __local real_t tile[WG_SIZE];
  const uint l = (uint)get_local_id(0);
  const size_t i = get_global_id(0);
  const real_t c = (real_t)(l % 4 + 1);
  real_t a = x[2 * i], b = x[2 * i + 1], t = a;
  a = fma(c, b, t);
  b = fma(-c, b, t);
  tile[l] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  t = tile[l ^ (WG_SIZE / 2)];
  a = fma(c, b, t);
  b = fma(-c, b, t);
  out[2 * i] = a;
  out[2 * i + 1] = b;
}}
"""


def barriers_in_branches(runner: ProbeSession, wg: int) -> None:
    """Check barriers in branches that all items of a work-group take."""
    x, out = runner.words(GROUPS * wg), runner.words(GROUPS * wg)
    program = runner.build(BRANCHES, [f"-DWG_SIZE={wg}"])
    runner.run(program, "branches", GROUPS * wg, wg, x, out, np.uint32(GROUPS - 1))
    v = x.reshape(GROUPS, wg)
    expected = v + 3 * v[:, ::-1]
    expected[-1] = v[-1] ^ np.arange(wg, dtype=np.uint32)
    check(out, expected.ravel(), what="a barrier in a branch that all items take is wrong")


def stores_before_barriers(runner: ProbeSession, wg: int) -> None:
    """Check what items of a work-group read that others stored, under conditions, by barriers."""
    x, cells, out = (runner.words(GROUPS * wg) for _ in range(3))
    stored, v, item = cells.reshape(GROUPS, wg).copy(), x.reshape(GROUPS, wg), np.arange(wg)
    storing = item[item % 3 == 1]
    stored[:, (storing * 5 + 2) % wg] = v[:, storing]
    expected = stored[:, ::-1] + v.sum(axis=1, dtype=np.uint32, keepdims=True)
    powers = np.multiply.accumulate(np.full(wg, 31, np.uint32)) * np.uint32(pow(31, -1, 1 << 32))
    expected[:, -1] += (v[:, ::-1] * powers).sum(axis=1, dtype=np.uint32)
    program = runner.build(STORES, [f"-DWG_SIZE={wg}"])
    runner.run(program, "stores", GROUPS * wg, wg, x, cells, out)
    what = "what items store under a condition is not what others read after a barrier"
    check(out, expected.ravel(), what=what)


def butterflies(runner: ProbeSession, wg: int) -> None:
    """Check exchanges in local memory with item ``l ^ distance``, and pairs around a barrier.

    Where they are wrong, they run again without optimisation, to say whose fault it is.
    """
    wide = runner.device.capabilities.fp64
    options = [f"-DWG_SIZE={wg}", *(["-DWIDE"] if wide else [])]
    real = np.float64 if wide else np.float32
    x = runner.words(GROUPS * wg)
    # Small whole numbers, so that all results are exact.
    numbers = runner.random.integers(-64, 64, 2 * GROUPS * wg).astype(real)

    def attempt(*more: str) -> None:
        program = runner.build(BUTTERFLIES, [*options, *more])
        out, pairs = np.zeros_like(x), np.zeros_like(numbers)
        runner.run(program, "exchange", GROUPS * wg, wg, x, out)
        expected = _exchanged(x.reshape(GROUPS, wg))
        check(out, expected.ravel(), what="exchanges of items by local memory are wrong")
        runner.run(program, "pair", GROUPS * wg, wg, numbers, pairs)
        expected = _paired(numbers.reshape(GROUPS, wg, 2))
        what = "a pair of numbers that is updated before and after a barrier is wrong"
        check(pairs, expected.ravel(), what=what)

    try:
        attempt()
    except Wrong as error:
        try:
            attempt("-cl-opt-disable")
        except Wrong:
            raise error from None
        raise Wrong(f"{error}; without optimisation it is right") from None


def _exchanged(v: Array) -> Array:
    item = np.arange(v.shape[1])
    for bit in range(len(item).bit_length() - 1):
        other = v[:, item ^ 1 << bit]
        v = np.where(item >> bit & 1, other - v, v + other)
    return v


def _paired(v: Array) -> Array:
    a, b, item = v[..., 0], v[..., 1], np.arange(v.shape[1])
    c = (item % 4 + 1).astype(v.dtype)
    a, b = a + c * b, a - c * b
    t = a[:, item ^ len(item) // 2]
    return np.stack([t + c * b, t - c * b], axis=-1)


def loops_with_barriers(runner: ProbeSession, wg: int) -> None:
    """Check a scan, a sort, and a loop over tiles."""
    program = runner.built("doctor/barriers.cl.mako", {"WG_SIZE": wg})
    x, out = runner.words(GROUPS * wg), runner.words(GROUPS * wg)
    runner.run(program, "scan", GROUPS * wg, wg, x, out)
    check(out, np.cumsum(x.reshape(GROUPS, wg), axis=1, dtype=np.uint32).ravel())
    x, out = runner.words(2 * GROUPS * wg), runner.words(2 * GROUPS * wg)
    runner.run(program, "sort", GROUPS * wg, wg, x, out)
    check(out, np.sort(x.reshape(GROUPS, 2 * wg), axis=1).ravel())
    x, out = runner.words(TILES * wg), runner.words(GROUPS * wg)
    runner.run(program, "tiles", GROUPS * wg, wg, x, out, np.uint32(TILES))
    position = np.arange(wg)
    around = x.reshape(TILES, wg)[:, (position[:, None] + position) % wg]
    terms = around * (position + 1).astype(np.uint32)
    parts = [terms[:, :, lane::4].sum(axis=(0, 2), dtype=np.uint32) for lane in range(4)]
    check(out, np.tile(parts[0] ^ parts[1] ^ parts[2] ^ parts[3], GROUPS))


CHECKS = (barriers_in_branches, stores_before_barriers, butterflies, loops_with_barriers)


def barriers_in_loops(device: Device) -> Answers:
    """Probe barriers in a scan, a sort, a loop over tiles, branches and butterflies."""
    session = ProbeSession(device)
    for wg in sorted({session.size(64), session.size(256)}):
        for attempt in CHECKS:
            yield Trying(f"{attempt.__name__.replace('_', ' ')}, {wg} work-items")
            try:
                attempt(session, wg)
            except (cl.Error, Wrong) as error:
                yield Verdict("broken", f"work-group of {wg}: {why(error)}", False)
                return
    detail = "loops, branches, butterflies, stores before barriers are right"
    yield Verdict("ok", detail, True)
