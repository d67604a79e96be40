"""Kernels without which nothing works, compared with NumPy: additions and long loops.

A check takes a device, runs its kernels in this process and raises `Wrong` with one sentence that
says what is wrong; errors of OpenCL and of its compiler pass through. Drivers under suspicion crash
and hang, so the self-test and the doctor run checks in a child process.
"""

from __future__ import annotations

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.selftest.kernels import Array, KernelRunner, Wrong, check

TURNS, NEST, ITEMS = 200_000, 500, 4
"""Turns of a loop, of both loops of a triangular nest, and items that run them."""
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
    runner = KernelRunner(device)
    a, b, out = (runner.words(4096) for _ in range(3))
    runner.run(ADD, "add", 4096, runner.size(64), a, b, out)
    check(out, a + b, what="an addition of two arrays is wrong")


def long_loops(device: Device) -> None:
    """Check loops of 200,000 turns, and nests of two loops with 125,000."""
    runner, item = KernelRunner(device), np.arange(ITEMS, dtype=np.uint32)
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
    what = f"a loop within a loop, {NEST * (NEST - 1) // 2:,} turns in all, is wrong"
    check(out, expected, what=what)


CHECKS = {"plain kernel": plain_kernel, "long loops": long_loops}
