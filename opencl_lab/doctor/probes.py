"""The probes: one function each, run in a child process by `opencl_lab.doctor.child`.

A probe is a generator of steps, plain JSON-able dicts. A step with a
``trying`` says what is attempted next and what holds so far; when the driver
takes the process down there, that is the finding. The last step has a
``verdict`` and ends the probe:

``ok``
    It works.
``no``
    The device does not claim it and it does not work either.
``limited``
    It works, up to less than the device claims; ``value`` says how far.
``broken``
    The device claims it and it fails.

Everything is checked by running: several drivers compile at the first launch
only, and several build what they then compute wrongly.
"""

# Besides device.py and runtime.py the only importer of pyopencl: probes run in a
# child that may die, outside of the flow that every other kernel goes through.
from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.device import Device
from opencl_lab.template import render

__all__ = [
    "barriers_in_loops",
    "event_timing",
    "forward_progress",
    "fp16",
    "fp64",
    "inline_ptx",
    "int64_atomics",
    "local_memory",
    "max_work_group",
    "subgroups",
    "usable",
    "vector_bytes",
]

Step = dict[str, Any]
Steps = Iterator[Step]
Array = np.ndarray[Any, Any]


class _Wrong(Exception):
    """The kernel ran and its result is not what it should be."""


class _Bench:
    """A queue on the device under test, and fresh random data."""

    def __init__(self, device: Device):
        self.device = device
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(
            self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        self.random = np.random.default_rng()

    def build(self, source: str, options: Sequence[str] = ()) -> cl.Program:
        program = cl.Program(self.context, source)
        program.build(list(options))
        return program

    def run(
        self,
        program: cl.Program | str,
        name: str,
        global_size: int,
        local_size: int,
        *arguments: Any,
    ) -> float:
        """Run a kernel, bring every array argument back, return the seconds the event reports."""
        if isinstance(program, str):
            program = self.build(program)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = {
            index: cl.Buffer(self.context, flags, hostbuf=argument)
            for index, argument in enumerate(arguments)
            if isinstance(argument, np.ndarray)
        }
        passed = [buffers.get(index, argument) for index, argument in enumerate(arguments)]
        launched = cl.Kernel(program, name)
        event = launched(self.queue, (global_size,), (local_size,), *passed)
        event.wait()
        for index, buffer in buffers.items():
            cl.enqueue_copy(self.queue, arguments[index], buffer)
        self.queue.finish()
        return float(event.profile.end - event.profile.start) * 1e-9

    def words(self, count: int) -> Array:
        return self.random.integers(0, 1 << 32, count, dtype=np.uint32)

    def reals(self, count: int, dtype: Any = np.float32) -> Array:
        return self.random.uniform(-2, 2, count).astype(dtype)

    def size(self, wanted: int) -> int:
        """Return a power of two that is a legal work-group size, `wanted` if it is one."""
        limit = min(wanted, self.device.max_work_group, self.device.max_work_items[0])
        return 1 << (limit.bit_length() - 1)


def _check(result: Array, expected: Array, tolerance: float = 0.0) -> None:
    error = np.abs(result - expected) if tolerance else result != expected
    wrong = ~(error <= tolerance * np.maximum(np.abs(expected), 1)) if tolerance else error
    if np.any(wrong):
        raise _Wrong(f"{np.count_nonzero(wrong)} of {result.size} results are wrong")


def _why(error: Exception) -> str:
    """Return the first telling line of a failure."""
    if isinstance(error, _Wrong):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Some compilers name a temporary file after the word, some before it.
    told = [
        re.sub(r"^.*?error:(\s\S+:\d+:\d+:)?", "error:", line)
        for line in lines
        if re.search("error|fatal", line, re.IGNORECASE)
    ]
    return (told or lines or [repr(error)])[0][:160]


def _short(reached: int, said: str, error: Exception) -> Step:
    """Return the last step of a search that ended before what the device claims."""
    verdict = "limited" if reached else "broken"
    return {"verdict": verdict, "value": reached, "detail": f"{said}: {_why(error)}"}


def _feature(claimed: bool, works: str, attempt: Callable[[], str | None]) -> Steps:
    """Yield the steps of an optional feature that `attempt` tries out."""
    yield {"trying": "a small kernel", "claimed": claimed}
    try:
        detail = attempt() or works
    except (cl.Error, _Wrong) as error:
        told = "claimed by the driver" if claimed else "not claimed by the driver"
        detail = f"{told}; {_why(error)}"
        yield {"verdict": "broken" if claimed else "no", "value": False, "detail": detail}
        return
    yield {
        "verdict": "ok",
        "value": True,
        "detail": detail if claimed else f"{detail}, although the driver does not list it",
    }


def usable(device: Device) -> Steps:
    """Probe whether anything at all builds, runs and gives the right result."""
    yield {"trying": "a vector addition"}
    source = """
    __kernel void add(__global const uint *a, __global const uint *b, __global uint *out) {
      out[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)];
    }"""
    try:
        bench = _Bench(device)
        a, b, out = (bench.words(4096) for _ in range(3))
        begin = time.perf_counter()
        bench.run(source, "add", 4096, bench.size(64), a, b, out)
        seconds = time.perf_counter() - begin
        _check(out, a + b)
    except (cl.Error, _Wrong) as error:
        yield {"verdict": "broken", "detail": _why(error), "value": False}
        return
    yield {"verdict": "ok", "detail": f"built and run in {seconds * 1e3:.0f} ms", "value": True}


def fp64(device: Device) -> Steps:
    """Probe arithmetic in double precision."""

    def attempt() -> None:
        bench = _Bench(device)
        a, b, c = (bench.reals(1024, np.float64) for _ in range(3))
        out = bench.reals(1024, np.float64)
        source = """
        #pragma OPENCL EXTENSION cl_khr_fp64 : enable
        __kernel void evaluate(__global const double *a, __global const double *b,
                               __global const double *c, __global double *out) {
          const size_t i = get_global_id(0);
          out[i] = fma(a[i], b[i], c[i]) / (2.0 + fabs(c[i])) + sqrt(fabs(a[i]));
        }"""
        bench.run(source, "evaluate", 1024, bench.size(64), a, b, c, out)
        _check(out, (a * b + c) / (2 + np.abs(c)) + np.sqrt(np.abs(a)), 1e-14)

    yield from _feature(device.capabilities.fp64, "double precision is right to 1e-14", attempt)


def fp16(device: Device) -> Steps:
    """Probe arithmetic in half precision."""

    def attempt() -> None:
        bench = _Bench(device)
        a, b, out = (bench.reals(1024, np.float16) for _ in range(3))
        source = """
        #pragma OPENCL EXTENSION cl_khr_fp16 : enable
        __kernel void evaluate(__global const half *a, __global const half *b,
                               __global half *out) {
          const size_t i = get_global_id(0);
          const half product = a[i] * b[i];
          out[i] = product + a[i];
        }"""
        bench.run(source, "evaluate", 1024, bench.size(64), a, b, out)
        wide, expected = out.astype(np.float64), a.astype(np.float64) * b + a
        _check(wide, expected, 4e-3)

    yield from _feature(device.capabilities.fp16, "half precision is right to 4e-3", attempt)


def subgroups(device: Device) -> Steps:
    """Probe the reduction and the broadcast of a sub-group."""
    source = """
    #ifdef cl_khr_subgroups
    #pragma OPENCL EXTENSION cl_khr_subgroups : enable
    #endif
    __kernel void reduce(__global const uint *x, __global uint *group, __global uint *lane,
                         __global uint *sum, __global uint *first) {
      const size_t i = get_global_id(0);
      group[i] = get_sub_group_id();
      lane[i] = get_sub_group_local_id();
      sum[i] = sub_group_reduce_add(x[i]);
      first[i] = sub_group_broadcast(x[i], 0);
    }"""

    def attempt() -> str:
        bench = _Bench(device)
        wg = bench.size(64)
        x, group, lane, total, first = (bench.words(4 * wg) for _ in range(5))
        failure: cl.Error | None = None
        for option in ("", "-cl-std=CL3.0", "-cl-std=CL2.0"):
            try:
                program = bench.build(source, [option] if option else [])
                bench.run(program, "reduce", 4 * wg, wg, x, group, lane, total, first)
                break
            except cl.Error as error:
                failure = failure or error
        else:
            assert failure is not None
            raise failure
        where = group.astype(np.int64) + np.arange(4 * wg) // wg * wg
        for name in np.unique(where):
            members = where == name
            _check(np.sort(lane[members]), np.arange(np.count_nonzero(members), dtype=np.uint32))
            expected = x[members].sum(dtype=np.uint32)
            _check(total[members], np.full(np.count_nonzero(members), expected))
            _check(first[members], np.full_like(x[members], x[members][lane[members] == 0][0]))
        width = int(np.count_nonzero(where == where[0]))
        return f"sub-groups of {width}" + (f", with {option}" if option else "")

    yield from _feature(device.capabilities.subgroups, "", attempt)


def int64_atomics(device: Device) -> Steps:
    """Probe atomic addition and compare-and-exchange on 64 bits."""

    def attempt() -> None:
        bench = _Bench(device)
        n = 4096
        x = bench.random.integers(0, 1 << 63, n, dtype=np.uint64)
        total, largest = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
        source = """
        #pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
        __kernel void gather(__global const ulong *x, volatile __global ulong *total,
                             volatile __global ulong *largest) {
          const ulong mine = x[get_global_id(0)];
          atom_add(total, mine);
          ulong seen = atom_add(largest, 0ul);
          while (seen < mine) {
            const ulong before = atom_cmpxchg(largest, seen, mine);
            if (before == seen) break;
            seen = before;
          }
        }"""
        bench.run(source, "gather", n, bench.size(64), x, total, largest)
        _check(total, x.sum(dtype=np.uint64, keepdims=True))
        _check(largest, x.max(keepdims=True))

    yield from _feature(device.capabilities.int64_atomics, "add and cmpxchg are right", attempt)


def inline_ptx(device: Device) -> Steps:
    """Probe inline NVIDIA assembly."""

    def attempt() -> None:
        bench = _Bench(device)
        a, b, out = (bench.words(1024) for _ in range(3))
        source = """
        __kernel void merge(__global const uint *a, __global const uint *b, __global uint *out) {
          const size_t i = get_global_id(0);
          uint merged;
          asm volatile("lop3.b32 %0, %1, %2, %1, 0x3c;" : "=r"(merged) : "r"(a[i]), "r"(b[i]));
          out[i] = merged;
        }"""
        bench.run(source, "merge", 1024, bench.size(64), a, b, out)
        _check(out, a ^ b)  # 0x3c is the truth table of the first operand xor the second

    yield from _feature(device.capabilities.inline_ptx, "inline PTX runs", attempt)


def max_work_group(device: Device) -> Steps:
    """Probe ever larger work-groups with a tree reduction in local memory."""
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
    bench = _Bench(device)
    program = bench.build(source)
    largest, groups = 0, 4
    # Small sizes are left out: every launch of another size may be a compilation.
    sizes = [1, 64, *(1 << bit for bit in range(8, 31))]
    for size in [*(size for size in sizes if size < claimed), claimed]:
        yield {"trying": f"{size} work-items", "value": largest}
        x, sums = bench.words(groups * size), bench.words(groups)
        try:
            bench.run(program, "reduce", groups * size, size, x, sums, cl.LocalMemory(4 * size))
            _check(sums, x.reshape(groups, size).sum(axis=1, dtype=np.uint32))
        except (cl.Error, _Wrong) as error:
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


def local_memory(device: Device) -> Steps:
    """Probe ever larger arrays in local memory, up to what the device claims."""
    bench = _Bench(device)
    wg, groups, claimed = bench.size(64), 4, device.local_memory
    dedicated = device.handle.local_mem_type == cl.device_local_mem_type.LOCAL
    place = "memory of its own" if dedicated else "carved out of ordinary memory"
    steps = [claimed // 4, claimed // 2, claimed - 1024, claimed]
    largest = 0
    for size in (size & ~3 for size in steps if size >= 1024):
        yield {"trying": f"{size} bytes", "value": largest}
        words, seed = size // 4, int(bench.random.integers(1 << 31))
        sums = bench.words(groups * wg)
        source = render("doctor/local_memory.cl.mako", {"WG_SIZE": wg, "WORDS": words})
        expected = np.zeros((groups, wg), np.uint32)
        position = np.arange(words, dtype=np.uint32)
        for group in range(groups):
            tile = _hash(position ^ np.uint32(seed + group))
            terms = np.roll(tile, -(words // 2)) * (position | np.uint32(1))
            np.add.at(expected[group], position % wg, terms)
        try:
            bench.run(source.text, "fill_and_sum", groups * wg, wg, sums, np.uint32(seed))
            _check(sums, expected.ravel())
        except (cl.Error, _Wrong) as error:
            said = f"{largest} of {claimed} bytes claimed, {place}; {size} bytes"
            yield _short(largest, said, error)
            return
        largest = size
    yield {"verdict": "ok", "value": largest, "detail": f"{largest} bytes, {place}"}


def vector_bytes(device: Device) -> Steps:
    """Probe built-in functions on ever wider vectors."""
    bench = _Bench(device)
    types: dict[str, Any] = {"float": np.float32, "uint": np.uint32}
    if device.capabilities.fp64:
        types["double"] = np.float64
    elements = [(name, np.dtype(dtype).itemsize) for name, dtype in types.items()]
    items, wg = 64, bench.size(16)
    widest = 0
    for size in (16, 32, 64):
        attempt = f"a program with vectors of {size} bytes"
        try:
            yield {"trying": attempt, "value": widest}
            arguments = {"elements": elements, "size": size}
            program = bench.build(render("doctor/vectors.cl.mako", arguments).text)
            # Loads come last: where they fail the compiler hangs, the others end at once.
            for way in ("combine", "load"):
                for element, dtype in types.items():
                    width = size // np.dtype(dtype).itemsize
                    builtins = f"vload{width}" if way == "load" else "min, max, clamp, fma"
                    attempt = f"{builtins} on {element}{width}"
                    yield {"trying": attempt, "value": widest}
                    a, b, c, out = (
                        bench.words(items * width)
                        if dtype is np.uint32
                        else bench.reals(items * width, dtype)
                        for _ in range(4)
                    )
                    bench.run(program, f"{way}_{element}", items, wg, a, b, c, out)
                    expected = a + b * c
                    if way == "combine":
                        low, high = np.minimum(a, b), np.maximum(a, b)
                        added = low if dtype is np.uint32 else np.abs(low)
                        expected = high * np.clip(c, low, high) + added
                    _check(out, expected, 0.0 if dtype is np.uint32 else 1e-5)
        except (cl.Error, _Wrong) as error:
            yield _short(widest, f"up to {widest} bytes; {attempt}", error)
            return
        widest = size
    yield {"verdict": "ok", "value": widest, "detail": "up to 64 bytes, the widest tried"}


def barriers_in_loops(device: Device) -> Steps:
    """Probe a scan, a sort and a tile loop, each with barriers inside a loop."""
    bench = _Bench(device)
    groups, tile_count = 4, 5
    for wg in sorted({bench.size(64), bench.size(256)}):
        yield {"trying": f"loops with barriers, {wg} work-items"}
        try:
            program = bench.build(render("doctor/barriers.cl.mako", {"WG_SIZE": wg}).text)
            x, out = bench.words(groups * wg), bench.words(groups * wg)
            bench.run(program, "scan", groups * wg, wg, x, out)
            _check(out, np.cumsum(x.reshape(groups, wg), axis=1, dtype=np.uint32).ravel())
            x, out = bench.words(2 * groups * wg), bench.words(2 * groups * wg)
            bench.run(program, "sort", groups * wg, wg, x, out)
            _check(out, np.sort(x.reshape(groups, 2 * wg), axis=1).ravel())
            x, out = bench.words(tile_count * wg), bench.words(groups * wg)
            bench.run(program, "tiles", groups * wg, wg, x, out, np.uint32(tile_count))
            position = np.arange(wg)
            around = x.reshape(tile_count, wg)[:, (position[:, None] + position) % wg]
            terms = around * (position + 1).astype(np.uint32)
            parts = [terms[:, :, lane::4].sum(axis=(0, 2), dtype=np.uint32) for lane in range(4)]
            _check(out, np.tile(parts[0] ^ parts[1] ^ parts[2] ^ parts[3], groups))
        except (cl.Error, _Wrong) as error:
            detail = f"work-group of {wg}: {_why(error)}"
            yield {"verdict": "broken", "value": False, "detail": detail}
            return
    yield {"verdict": "ok", "value": True, "detail": "scan, sort and tile loops are right"}


def event_timing(device: Device) -> Steps:
    """Probe the event times of long launches against the clock of the host."""
    source = """
    __kernel void spin(__global uint *x, const uint rounds) {
      uint v = x[get_global_id(0)];
      for (uint i = 0; i < rounds; i++) v = v * 1664525u + 1013904223u;
      x[get_global_id(0)] = v;
    }"""
    bench = _Bench(device)
    program, wg = bench.build(source), bench.size(64)
    spin = cl.Kernel(program, "spin")
    x = bench.words(wg * 2 * device.compute_units)
    buffer = cl.Buffer(bench.context, cl.mem_flags.READ_WRITE, x.nbytes)

    def measure(rounds: int) -> tuple[float, float]:
        cl.enqueue_copy(bench.queue, buffer, x)
        bench.queue.finish()
        begin = time.perf_counter()
        event = spin(bench.queue, x.shape, (wg,), buffer, np.uint32(rounds))
        event.wait()
        return time.perf_counter() - begin, (event.profile.end - event.profile.start) * 1e-9

    yield {"trying": "a launch of 20 ms"}
    rounds, host = 64, 0.0
    measure(rounds)  # compiles
    while host < 0.02 and rounds < 1 << 30:
        rounds *= 4
        host, _ = measure(rounds)
    timed = [measure(rounds) for _ in range(5)]
    result = np.empty_like(x)
    cl.enqueue_copy(bench.queue, result, buffer)
    # The same recurrence in one step: v -> a**rounds * v + c * (1 + a + ... + a**(rounds-1)).
    scale, shift, power, offset, left = 1, 0, 1664525, 1013904223, rounds
    while left:
        if left & 1:
            scale, shift = scale * power % 2**32, (shift * power + offset) % 2**32
        power, offset, left = power * power % 2**32, offset * (power + 1) % 2**32, left >> 1
    ratio = float(np.median([event / host for host, event in timed]))
    milliseconds = float(np.median([host for host, _ in timed])) * 1e3
    detail = f"events show {ratio:.2f} of the host's {milliseconds:.1f} ms"
    try:
        _check(result, x * np.uint32(scale) + np.uint32(shift))
        if not 0.5 <= ratio <= 1.02:
            raise _Wrong(detail)
    except _Wrong as error:
        yield {"verdict": "broken", "value": False, "detail": str(error)}
        return
    yield {"verdict": "ok", "value": True, "detail": detail}


def forward_progress(device: Device) -> Steps:
    """Probe whether a work-group may wait for another one of the same launch."""
    bench = _Bench(device)
    program = bench.build(render("doctor/progress.cl.mako", {}).text)
    wg = bench.size(64)

    def chain(patience: int) -> bool:
        groups = 64 * min(device.compute_units, 64)
        x, sums = bench.words(groups), bench.words(groups)
        ready, counter, gave_up = (np.zeros(size, np.uint32) for size in (groups, 1, 1))
        arrays = (x, sums, ready, counter, gave_up)
        bench.run(program, "chain", groups * wg, wg, *arrays, np.uint32(patience))
        if not gave_up[0]:
            _check(sums, np.cumsum(x, dtype=np.uint32))
        return not gave_up[0]

    def rendezvous(patience: int) -> bool:
        groups = max(2, device.compute_units)
        counter, gave_up = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        arrays = (counter, gave_up)
        bench.run(program, "rendezvous", groups * wg, wg, *arrays, np.uint32(patience))
        return not gave_up[0]

    def holds(attempt: Callable[[int], bool]) -> bool:
        """Return whether waiting ends well, with ever more patience up to half a second."""
        patience, seconds = 1 << 10, 0.0
        while seconds < 0.5 and patience < 1 << 30:
            begin = time.perf_counter()
            if attempt(patience):
                return all(attempt(max(patience << 4, 1 << 22)) for _ in range(20))
            seconds = time.perf_counter() - begin
            patience <<= 2
        return False

    try:
        yield {"trying": "waiting for groups that started earlier", "claimed": False}
        started = holds(chain)
        yield {"trying": "waiting for each other", "claimed": False}
        both = started and holds(rendezvous)
    except (cl.Error, _Wrong) as error:
        yield {"verdict": "no", "value": False, "detail": _why(error)}
        return
    if both:
        groups = max(2, device.compute_units)
        detail = f"{groups} groups can wait for each other, and any for those started earlier"
        yield {"verdict": "ok", "value": True, "detail": detail}
    else:
        detail = "a group can wait for those started earlier only" if started else "none at all"
        yield {"verdict": "no", "value": False, "detail": detail}
