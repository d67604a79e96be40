"""Probes of the peak rates of arithmetic and copies.

A peak is the best of many short launches of several kernels, since disturbances can only make a
launch slower.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_type
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.probing import Answers, ProbeSession
from opencl_lab.lab.measuring.roofline import rate_text
from opencl_lab.lab.measuring.rounds import shuffled
from opencl_lab.selftest.child import Trying
from opencl_lab.selftest.kernels import Array, Wrong, check, why

LAUNCHES = 6  # of each candidate, before the finals
LONG_SECONDS = 0.25  # after so long two launches are enough
FINALISTS = 3
STALL_SECONDS, LONGEST_SECONDS = 1.0, 5.0  # without a better result, and in all, until they end
MAX_ROUNDS = 1 << 20
MAX_TERMS = 1 << 23  # of a chain, which counts them in float32
SAMPLES, SAMPLE_WORDS = 8, 1 << 14  # pieces of a copy that are checked
TASKS = 16  # work-items per compute unit of a CPU that copy; several even out disturbances
KIB, MIB = 1 << 10, 1 << 20


class Candidate(ABC):
    """A candidate for a peak: a kernel in one shape, or copies, launched repeatedly.

    `label` describes it, and `amount` is the number of operations or bytes in one round.
    """

    kernel: cl.Kernel
    items: int
    wg: int

    def __init__(
        self, session: ProbeSession, label: str, amount: float, max_rounds: int = MAX_ROUNDS
    ):
        self.session, self.label, self.amount, self.max_rounds = session, label, amount, max_rounds
        self.rounds, self.best = 1, 0.0

    @abstractmethod
    def build(self) -> None:
        """Build the kernel and set all arguments but the last, the number of rounds."""

    @abstractmethod
    def verify(self) -> None:
        """Check the results of the last launch; raise Wrong if they are wrong."""

    @property
    def rate(self) -> float:
        """The best rate, to four digits."""
        return float(f"{self.best:.4g}")

    def run(self) -> float:
        """Run `rounds` rounds and return the seconds."""
        self.kernel.set_arg(self.kernel.num_args - 1, np.uint32(self.rounds))
        return self.session.clock(
            lambda: cl.enqueue_nd_range_kernel(
                self.session.queue, self.kernel, (self.items,), (self.wg,)
            )
        )

    def launch(self) -> float:
        """Run `rounds` rounds, update the best rate, and return the seconds."""
        seconds = self.run()
        self.best = max(self.best, self.amount * self.rounds / seconds)
        return seconds

    def start(self, seconds: float) -> None:
        """Build, check one round, and choose the number of rounds for about `seconds`."""
        self.build()
        self.launch()  # compiles
        self.verify()
        while self.rounds < self.max_rounds:
            # The minimum, so that disturbances do not count as work.
            took = min(self.launch() for _ in range(3))
            if took >= seconds / 2:
                break
            grown = int(self.rounds * min(16.0, seconds / took))
            self.rounds = min(max(grown, 2 * self.rounds), self.max_rounds)
        self.best = 0.0  # shorter launches are too inaccurate


def race(
    device: Device, unit: str, candidates: Callable[[ProbeSession], Iterator[Candidate]]
) -> Answers:
    """Yield the reports of a search for the fastest of several candidates."""
    if device.simulated:
        yield Verdict("no", "a simulator has no speed of its own")
        return
    # On a busy CPU a short launch fits between time slices of other processes.
    seconds = 1.5e-3 if device.kind == "cpu" else 4e-3
    finished: list[Candidate] = []
    failure = ""
    best: float | None = None
    for candidate in candidates(ProbeSession(device)):
        step = Trying(candidate.label, best, reached=rate_text(best or 0.0, unit))
        yield step
        try:
            candidate.start(seconds)
            yield step  # built: restarts the timeout
            _warm(candidate)
            candidate.verify()
        except (cl.Error, Wrong) as error:
            failure = failure or f"{candidate.label}: {why(error)}"
            continue
        finished.append(candidate)
        finished.sort(key=lambda candidate: -candidate.best)
        best = finished[0].rate
    if not finished:
        yield Verdict("broken", failure)
        return
    # Only a CPU is shared with other processes.
    stall_seconds = STALL_SECONDS if device.kind == "cpu" else STALL_SECONDS / 2
    fastest = _final(finished[:FINALISTS], stall_seconds)
    yield Verdict("ok", f"{rate_text(fastest.best, unit)}: {fastest.label}", fastest.rate)


def _warm(candidate: Candidate) -> None:
    """Launch a candidate several times, fewer if it takes long."""
    spent = 0.0
    for number in range(LAUNCHES):
        if number < 2 or spent < LONG_SECONDS:
            spent += candidate.launch()


def _final(candidates: Sequence[Candidate], stall_seconds: float) -> Candidate:
    """Launch the best candidates in turns until none gets faster; return the fastest."""
    begin = improved = now = time.perf_counter()
    best = max(candidate.best for candidate in candidates)
    order = random.Random(0)
    while now < min(improved + stall_seconds, begin + LONGEST_SECONDS):
        for candidate in shuffled(candidates, order):
            candidate.launch()
            now = time.perf_counter()
            if candidate.best > 1.005 * best:
                best, improved = candidate.best, now
    return max(candidates, key=lambda candidate: candidate.best)


class _Arithmetic(Candidate):
    """Chains of multiply-adds on vectors."""

    def __init__(self, session: ProbeSession, dtype: Any, width: int, chains: int):
        self.dtype, self.width, self.chains = np.dtype(dtype), width, chains
        cpu = session.device.kind == "cpu"
        self.unroll, self.wg = (4, 1) if cpu else (8, session.size(256))
        # Several tasks per core even out disturbances; a GPU needs many waves.
        self.items = session.device.compute_units * (8 if cpu else 4096)
        self.real = "float" if self.dtype.itemsize == 4 else "double"
        vector = f"{self.real}{width if width > 1 else ''}"
        amount = 2.0 * self.items * width * chains * self.unroll
        super().__init__(session, f"{chains} chains of {vector}", amount, MAX_TERMS // self.unroll)

    def build(self) -> None:
        parameters = {
            "REAL_T": self.real,
            "VECTOR_WIDTH": self.width,
            "CHAINS": self.chains,
            "UNROLL": self.unroll,
            "WG_SIZE": self.wg,
        }
        program = self.session.built("doctor/peak_arithmetic.cl.mako", parameters)
        self.kernel = cl.Kernel(program, "multiply_add")
        shape = (self.chains, self.width)
        self.start_values = self.session.random.integers(0, 256, shape).astype(self.dtype)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.sums = np.full((self.items, self.width), np.nan, self.dtype)
        self.buffers = [
            cl.Buffer(self.session.context, flags, hostbuf=array)
            for array in (self.start_values, self.sums)
        ]
        one = self.dtype.type(1)
        for index, argument in enumerate((*self.buffers, one, one)):
            self.kernel.set_arg(index, argument)

    def verify(self) -> None:
        cl.enqueue_copy(self.session.queue, self.sums, self.buffers[1])
        own = (np.arange(self.items) & 15)[:, None] + self.rounds * self.unroll
        check(self.sums, self.start_values.sum(axis=0) + self.chains * own, 1e-5)


class _Copy(Candidate):
    """Copies between sections of two buffers."""

    def __init__(
        self,
        session: ProbeSession,
        buffers: tuple[cl.Buffer, cl.Buffer],
        size: int,
        width: int,
        items: int,
    ):
        self.buffers, self.size, self.width = buffers, size, width
        self.chunked = session.device.kind == "cpu"
        self.wg = 1 if self.chunked else session.size(256)
        self.items = items
        self.per_item = size // (4 * width * self.items)
        self.unroll = min(8 if self.chunked else 4, self.per_item)
        each = f"{size_text(size // self.items)} an item, " if self.chunked else ""
        vector = f"uint{width if width > 1 else ''}"
        label = f"{size_text(size)} in {vector}, {each}{self.items} items"
        super().__init__(session, label, 2.0 * size)

    def build(self) -> None:
        parameters = {
            "VECTOR_WIDTH": self.width,
            "CHUNKED": self.chunked,
            "UNROLL": self.unroll,
            "WG_SIZE": self.wg,
        }
        program = self.session.built("doctor/peak_copy.cl.mako", parameters)
        fill = cl.Kernel(program, "fill")
        per_item = np.uint32(self.per_item)
        fill(self.session.queue, (self.items,), (self.wg,), *self.buffers, per_item).wait()
        self.kernel = cl.Kernel(program, "copy")
        # A different position in each round, at the start of a block.
        block = self.unroll if self.chunked else self.wg
        blocks = (self.per_item if self.chunked else self.items * self.per_item) // block
        rotation = np.uint64(block * (int(blocks * 0.382) | 1))
        arguments: tuple[Any, ...] = (*self.buffers, per_item, rotation)
        for index, argument in enumerate(arguments):
            self.kernel.set_arg(index, argument)

    def verify(self) -> None:
        words = self.size // 4
        count = min(words, SAMPLE_WORDS)
        starts = self.session.random.integers(0, words - count + 1, SAMPLES)
        for start in (0, words - count, *map(int, starts)):
            sample = np.empty(count, np.uint32)
            cl.enqueue_copy(self.session.queue, sample, self.buffers[1], src_offset=4 * start)
            check(sample, _word_at(np.arange(start, start + count, dtype=np.uint64)))


def _word_at(position: Array) -> Array:
    """Return the values of `word_at` in peak_copy.cl.mako."""
    v = position.astype(np.uint32) * np.uint32(0x9E3779B9) + (position >> 32).astype(np.uint32)
    v = (v ^ (v >> np.uint32(16))) * np.uint32(0x7FEB352D)
    mixed: Array = v ^ (v >> np.uint32(15))
    return mixed


def _power_of_two(limit: int) -> int:
    """Return the greatest power of two up to `limit`."""
    return 1 << (limit.bit_length() - 1)


def _arithmetic(session: ProbeSession, dtype: Any) -> Iterator[Candidate]:
    """Yield chains of all vector widths, with various numbers of vectors in registers."""
    if session.device.kind != "cpu":
        for width, chains in ((1, 16), (2, 8), (4, 4), (4, 8)):
            yield _Arithmetic(session, dtype, width, chains)
        return
    for size, chains in ((16, 12), (16, 24), (32, 8), (32, 12), (64, 6), (64, 12), (64, 20)):
        yield _Arithmetic(session, dtype, size // np.dtype(dtype).itemsize, chains)


def _copies(session: ProbeSession, sizes: Sequence[int]) -> Iterator[Candidate]:
    """Yield copies of several sizes, as far as the device can allocate them, in several shapes."""
    device = session.device
    limit = min(device.largest_buffer, device.global_memory // 8)
    sizes = sorted({min(size, _power_of_two(limit)) for size in sizes})
    first, second = (
        cl.Buffer(session.context, cl.mem_flags.READ_WRITE, sizes[-1]) for _ in range(2)
    )
    units = _power_of_two(2 * device.compute_units - 1)
    if device.kind == "cpu":
        shapes = [(width, TASKS * units) for width in (4, 8, 16)]
    else:  # as many items as the device runs at once, or one for each vector
        shapes = [(width, items) for width in (1, 2, 4) for items in (2048 * units, 1 << 62)]
    for size in sizes:
        for width, items in dict.fromkeys((w, min(i, size // (4 * w))) for w, i in shapes):
            yield _Copy(session, (first, second), size, width, items)


def _flops(device: Device, dtype: Any) -> Answers:
    """Probe the peak of multiply-adds."""
    lacking = lacks_type(device, dtype)
    if lacking is not None:
        return iter([Verdict("no", lacking)])
    return race(device, "FLOP/s", lambda session: _arithmetic(session, dtype))


flops32 = partial(_flops, dtype=np.float32)
flops64 = partial(_flops, dtype=np.float64)


def copy_bytes(device: Device) -> Answers:
    """Probe the peak of copying within memory, in buffers much larger than any cache."""
    least = 256 * MIB if device.kind == "cpu" else 1024 * MIB
    size = _power_of_two(max(least, 8 * int(device.handle.global_mem_cache_size)))
    return race(device, "B/s", lambda session: _copies(session, [size]))


def cached_bytes(device: Device) -> Answers:
    """Probe the peak of copying from cache to cache.

    Cores of a CPU keep data in their own caches between launches; a GPU keeps them in the cache
    that its cores share.
    """
    if device.kind == "cpu":
        tasks = TASKS * _power_of_two(2 * device.compute_units - 1)
        sizes = [tasks * each for each in (4 * KIB, 8 * KIB, 64 * KIB)]
    else:
        sizes = [4 * MIB, 16 * MIB]
    return race(device, "B/s", lambda session: _copies(session, sizes))
