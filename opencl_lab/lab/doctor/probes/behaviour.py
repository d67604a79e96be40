"""Probes of behaviour that kernels rely on, always or if the device has the capability."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.lab.measuring.timing_sanity import agree
from opencl_lab.symptoms.basics import (
    FACTOR,
    SUMMAND,
    after,
    barriers_in_branches,
    butterflies,
    long_loops,
    plain_kernel,
    stores_before_barriers,
)
from opencl_lab.symptoms.kernels import Wrong, check, why


def usable(device: Device) -> Answers:
    """Probe whether a simple kernel builds and runs, and long loops run to their end."""
    try:
        yield {"trying": "a vector addition"}
        begin = time.perf_counter()
        plain_kernel(device)
        seconds = time.perf_counter() - begin
        yield {"trying": "loops of many turns"}
        long_loops(device)
    except (cl.Error, Wrong) as error:
        yield {"verdict": "broken", "detail": why(error), "value": False}
        return
    yield {"verdict": "ok", "detail": f"built and run in {seconds * 1e3:.0f} ms", "value": True}


def barriers_in_loops(device: Device) -> Answers:
    """Probe barriers in a scan, a sort, a loop over tiles, branches and butterflies."""
    session = ProbeSession(device)
    groups, tile_count = 4, 5
    for wg in sorted({session.size(64), session.size(256)}):
        try:
            for attempt in (barriers_in_branches, stores_before_barriers, butterflies):
                yield {"trying": f"{attempt.__name__.replace('_', ' ')}, {wg} work-items"}
                attempt(device, wg)
            yield {"trying": f"loops with barriers, {wg} work-items"}
            program = session.built("doctor/barriers.cl.mako", {"WG_SIZE": wg})
            x, out = session.words(groups * wg), session.words(groups * wg)
            session.run(program, "scan", groups * wg, wg, x, out)
            check(out, np.cumsum(x.reshape(groups, wg), axis=1, dtype=np.uint32).ravel())
            x, out = session.words(2 * groups * wg), session.words(2 * groups * wg)
            session.run(program, "sort", groups * wg, wg, x, out)
            check(out, np.sort(x.reshape(groups, 2 * wg), axis=1).ravel())
            x, out = session.words(tile_count * wg), session.words(groups * wg)
            session.run(program, "tiles", groups * wg, wg, x, out, np.uint32(tile_count))
            position = np.arange(wg)
            around = x.reshape(tile_count, wg)[:, (position[:, None] + position) % wg]
            terms = around * (position + 1).astype(np.uint32)
            parts = [terms[:, :, lane::4].sum(axis=(0, 2), dtype=np.uint32) for lane in range(4)]
            check(out, np.tile(parts[0] ^ parts[1] ^ parts[2] ^ parts[3], groups))
        except (cl.Error, Wrong) as error:
            detail = f"work-group of {wg}: {why(error)}"
            yield {"verdict": "broken", "value": False, "detail": detail}
            return
    detail = "loops, branches, butterflies, stores before barriers are right"
    yield {"verdict": "ok", "value": True, "detail": detail}


def event_timing(device: Device) -> Answers:
    """Probe the event times of long launches against the clock of the host."""
    source = f"""
    __kernel void spin(__global uint *x, const uint rounds) {{
      uint v = x[get_global_id(0)];
      for (uint i = 0; i < rounds; i++) v = v * {FACTOR}u + {SUMMAND}u;
      x[get_global_id(0)] = v;
    }}"""
    session = ProbeSession(device)
    program, wg = session.build(source), session.size(64)
    spin = cl.Kernel(program, "spin")
    x = session.words(wg * 2 * device.compute_units)
    buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, x.nbytes)

    def measure(rounds: int) -> tuple[float, float]:
        cl.enqueue_copy(session.queue, buffer, x)
        arguments = session.queue, x.shape, (wg,), buffer, np.uint32(rounds)
        event, host = session.times(lambda: spin(*arguments))
        return host, event

    yield {"trying": "a launch of 20 ms"}
    rounds, host = 64, 0.0
    measure(rounds)  # compiles
    while host < 0.02 and rounds < 1 << 30:
        rounds *= 4
        host, _ = measure(rounds)
    timed = [measure(rounds) for _ in range(5)]
    result = np.empty_like(x)
    cl.enqueue_copy(session.queue, result, buffer)
    seconds, shown = min(timed)  # others may have waited for a busy host
    ratio = shown / seconds
    detail = f"events show {ratio:.2f} of the host's {seconds * 1e3:.1f} ms"
    try:
        check(result, after(x, rounds))
        if not agree(ratio, 1.0):
            raise Wrong(detail)
    except Wrong as error:
        yield {"verdict": "broken", "value": False, "detail": str(error)}
        return
    yield {"verdict": "ok", "value": True, "detail": detail}


def forward_progress(device: Device) -> Answers:
    """Probe whether a work-group may wait for another one of the same launch."""
    session = ProbeSession(device)
    parameters = {"PTX": device.capabilities.inline_ptx}
    program = session.built("doctor/progress.cl.mako", parameters)
    wg = session.size(64)

    def chain(polls: int) -> bool:
        groups = 64 * min(device.compute_units, 64)
        x, sums = session.words(groups), session.words(groups)
        ready, counter, gave_up = (np.zeros(size, np.uint32) for size in (groups, 1, 1))
        arrays = (x, sums, ready, counter, gave_up)
        session.run(program, "chain", groups * wg, wg, *arrays, np.uint32(polls))
        if not gave_up[0]:
            check(sums, np.cumsum(x, dtype=np.uint32))
        return not gave_up[0]

    def rendezvous(polls: int) -> bool:
        groups = max(2, device.compute_units)
        counter, gave_up = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        arrays = (counter, gave_up)
        session.run(program, "rendezvous", groups * wg, wg, *arrays, np.uint32(polls))
        return not gave_up[0]

    def holds(attempt: Callable[[int], bool]) -> bool:
        """Return whether waiting ends well, with ever more polls, up to half a second."""
        polls, seconds = 1 << 10, 0.0
        while seconds < 0.5 and polls < 1 << 30:
            begin = time.perf_counter()
            if attempt(polls):
                return all(attempt(max(polls << 4, 1 << 22)) for _ in range(20))
            seconds = time.perf_counter() - begin
            polls <<= 2
        return False

    try:
        yield {"trying": "waiting for groups that started earlier", "claimed": False}
        started = holds(chain)
        yield {"trying": "waiting for each other", "claimed": False}
        both = started and holds(rendezvous)
    except (cl.Error, Wrong) as error:
        yield {"verdict": "no", "value": False, "detail": why(error)}
        return
    detail = "a group can wait for those started earlier only" if started else "none at all"
    if both:
        groups = max(2, device.compute_units)
        detail = f"{groups} groups can wait for each other, and any for those started earlier"
    yield {"verdict": "ok" if both else "no", "value": both, "detail": detail}


def visible_writes(device: Device) -> Answers:
    """Probe whether groups see writes of others in a launch that precede an atomic operation."""
    claimed = device.capabilities.visible_writes
    yield {"trying": "reading what other groups have written", "claimed": claimed}
    groups, size, rounds = max(2, 2 * device.compute_units), 256, 50
    try:
        session = ProbeSession(device)
        parameters = {"PTX": device.capabilities.inline_ptx}
        program = session.built("doctor/progress.cl.mako", parameters)
        saw = wrong = blind = 0
        for _ in range(rounds):
            cells, sink = np.zeros(groups * size, np.uint32), np.zeros(groups, np.uint32)
            x, counts = session.words(groups * size), np.zeros(3, np.uint32)
            sizes = np.uint32(size), np.uint32(1 << 12)
            session.run(program, "publish", groups, 1, x, cells, sink, counts, *sizes)
            saw, wrong = saw + int(counts[1]), wrong + int(counts[2])
            blind += not counts[1]
        if wrong:
            raise Wrong(f"{wrong} of {saw * groups * size} words seen were old")
        if blind:  # the last group to count itself should have
            raise Wrong(f"in {blind} of {rounds} launches no group saw that all had written")
    except (cl.Error, Wrong) as error:
        verdict = "broken" if claimed else "no"
        yield {"verdict": verdict, "value": False, "detail": why(error)}
        return
    detail = f"{saw} groups saw what all of {groups} had written, in {rounds} launches"
    yield {"verdict": "ok", "value": True, "detail": detail}
