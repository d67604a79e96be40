"""Probes of behaviour that kernels rely on, always or if the device has the capability."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.drivers.pocl_builds import unknown_build
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.lab.measuring.timing_sanity import agree
from opencl_lab.selftest.basics import FACTOR, SUMMAND, after, long_loops, plain_kernel
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import Wrong, check, why


def usable(device: Device) -> Answers:
    """Probe whether a simple kernel builds and runs, and long loops run to their end."""
    try:
        yield Trying("a vector addition")
        begin = time.perf_counter()
        plain_kernel(device)
        seconds = time.perf_counter() - begin
        yield Trying("loops of many turns")
        long_loops(device)
    except (cl.Error, Wrong) as error:
        yield Verdict("broken", why(error), False)
        return
    yield Verdict("ok", f"built and run in {seconds * 1e3:.0f} ms", True)


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

    yield Trying("a launch of 20 ms")
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
        yield Verdict("broken", str(error), False)
        return
    yield Verdict("ok", detail, True)


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
        yield Trying("waiting for groups that started earlier", claimed=False)
        started = holds(chain)
        yield Trying("waiting for each other", claimed=False)
        both = started and holds(rendezvous)
    except (cl.Error, Wrong) as error:
        yield Verdict("no", why(error), False)
        return
    detail = "a group can wait for those started earlier only" if started else "none at all"
    if both:
        groups = max(2, device.compute_units)
        detail = f"{groups} groups can wait for each other, and any for those started earlier"
    yield Verdict("ok" if both else "no", detail, both)


def serial_side(device: Device) -> Answers:
    """Say whether small calls can run in the calling thread, and else why not."""
    if device.serial_side is not None:
        yield Verdict("ok", "it has a serial side")
        return
    build = unknown_build(device)
    why = f": the places for that, and its target, are not known in {build}" if build else ""
    yield Verdict("no", f"it has no serial side{why}")


def visible_writes(device: Device) -> Answers:
    """Probe whether groups see writes of others in a launch that precede an atomic operation."""
    claimed = device.capabilities.visible_writes
    yield Trying("reading what other groups have written", claimed=claimed)
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
        yield Verdict("broken" if claimed else "no", why(error), False)
        return
    detail = f"{saw} groups saw what all of {groups} had written, in {rounds} launches"
    yield Verdict("ok", detail, True)
