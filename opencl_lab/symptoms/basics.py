"""Kernels that some drivers get wrong without an error, each compared with NumPy.

A check takes a device, runs its kernels in this process and raises `Wrong` with one sentence that
says what is wrong; errors of OpenCL and of its compiler pass through. `BASICS` are the checks
without which hardly any kernel can be trusted. Those that have a work-group take its size, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.symptoms.kernels import Array, KernelRunner, Wrong, check

Check: TypeAlias = Callable[[Device], None]

TURNS, NEST, ITEMS = 200_000, 500, 4
"""Turns of a loop, of both loops of a triangular nest, and items that run them."""
WG_SIZE, GROUPS = 64, 3
FACTOR, SUMMAND = 1664525, 1013904223  # of a generator that repeats after 2**32 turns

ADD = """
__kernel void add(__global const uint *a, __global const uint *b, __global uint *out) {
  out[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)];
}
"""
LOOPS = f"""
#define TURN(v) ((v) * {FACTOR}u + {SUMMAND}u)

__kernel void search(__global const uint *x, __global const uint *last, __global uint *found,
                     const uint most) {{
  const size_t i = get_global_id(0);
  uint v = x[i], turns = 0;
  for (; turns < most && v != last[i]; turns++) v = TURN(v);
  found[i] = turns;
}}

__kernel void nest(__global const uint *x, __global uint *out, const uint size) {{
  const size_t i = get_global_id(0);
  uint v = x[i];
  for (uint outer = 0; outer < size + i; outer++)
    for (uint inner = 0; inner < outer; inner++) v = TURN(v);
  out[i] = v;
}}
"""
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


@cache
def _runner(device: Device) -> KernelRunner:
    """Return a runner for all checks of a device, since making a context may take long."""
    return KernelRunner(device)


def after(values: Array, turns: Array | int) -> Array:
    """Return what `turns` turns of the loops' generator make of 32-bit words."""
    left: Array = np.broadcast_to(np.asarray(turns, np.uint32), values.shape)
    scale, shift = np.ones_like(values), np.zeros_like(values)
    power, offset = np.full_like(values, FACTOR), np.full_like(values, SUMMAND)
    while left.any():  # v -> power * v + offset makes 1, 2, 4, ... turns
        odd = left & 1 == 1
        scale, shift = (
            np.where(odd, scale * power, scale),
            np.where(odd, shift * power + offset, shift),
        )
        offset, power, left = offset * (power + 1), power * power, left >> 1
    result: Array = values * scale + shift
    return result


def plain_kernel(device: Device) -> None:
    """Check an addition of two arrays."""
    runner = _runner(device)
    a, b, out = (runner.words(4096) for _ in range(3))
    runner.run(ADD, "add", 4096, runner.size(WG_SIZE), a, b, out)
    _told("an addition of two arrays is wrong", out, a + b)


def long_loops(device: Device) -> None:
    """Check loops of 200,000 turns, and nests of two loops with 125,000."""
    runner, item = _runner(device), np.arange(ITEMS, dtype=np.uint32)
    x, found, out = (runner.words(ITEMS) for _ in range(3))
    program, wg = runner.build(LOOPS), runner.size(ITEMS)
    turns = TURNS - 1000 * item
    runner.run(program, "search", ITEMS, wg, x, after(x, turns), found, np.uint32(2 * TURNS))
    for made, wanted in zip(found.tolist(), turns.tolist(), strict=True):
        if made != wanted:
            raise Wrong(f"a loop of {wanted:,} turns ends after {made:,}, without an error")
    runner.run(program, "nest", ITEMS, wg, x, out, np.uint32(NEST))
    sizes = NEST + item
    expected = after(x, sizes * (sizes - 1) // 2)
    _told(f"a loop within a loop, {NEST * (NEST - 1) // 2:,} turns in all, is wrong", out, expected)


def barriers_in_branches(device: Device, wg: int = WG_SIZE) -> None:
    """Check barriers in branches that all items of a work-group take."""
    runner = _runner(device)
    wg = runner.size(wg)
    x, out = runner.words(GROUPS * wg), runner.words(GROUPS * wg)
    program = runner.build(BRANCHES, [f"-DWG_SIZE={wg}"])
    runner.run(program, "branches", GROUPS * wg, wg, x, out, np.uint32(GROUPS - 1))
    v = x.reshape(GROUPS, wg)
    expected = v + 3 * v[:, ::-1]
    expected[-1] = v[-1] ^ np.arange(wg, dtype=np.uint32)
    _told("a barrier in a branch that all items take is wrong", out, expected.ravel())


def stores_before_barriers(device: Device, wg: int = WG_SIZE) -> None:
    """Check what items of a work-group read that others stored, under conditions, by barriers."""
    runner = _runner(device)
    wg = runner.size(wg)
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
    _told(what, out, expected.ravel())


def butterflies(device: Device, wg: int = WG_SIZE) -> None:
    """Check exchanges in local memory with item ``l ^ distance``, and pairs around a barrier.

    Where they are wrong, they run again without optimisation, to say whose fault it is.
    """
    runner = _runner(device)
    wg = runner.size(wg)
    wide = device.capabilities.fp64
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
        _told("exchanges of items by local memory are wrong", out, expected.ravel())
        runner.run(program, "pair", GROUPS * wg, wg, numbers, pairs)
        expected = _paired(numbers.reshape(GROUPS, wg, 2))
        what = "a pair of numbers that is updated before and after a barrier is wrong"
        _told(what, pairs, expected.ravel())

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


def _told(what: str, result: Array, expected: Array) -> None:
    """Raise Wrong, with a sentence that begins with `what`, if a result is not as expected."""
    try:
        check(result, expected)
    except Wrong as error:
        raise Wrong(f"{what}: {error}") from None


BARRIERS = frozenset({"barriers in branches", "stores before barriers", "butterflies"})
"""Those of `BASICS` that fail where barriers do: kernels without barriers may be right."""
BASICS: tuple[tuple[str, Check], ...] = (
    ("plain kernel", plain_kernel),
    ("long loops", long_loops),
    ("barriers in branches", barriers_in_branches),
    ("stores before barriers", stores_before_barriers),
    ("butterflies", butterflies),
)
"""The checks that nearly any kernel depends on: with PoCL less than a second, with compiling."""
