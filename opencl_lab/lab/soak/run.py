"""Random calls in several threads until the time is over."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.lab.soak.cases import Drawer
from opencl_lab.lab.soak.memory import Growth, Meter, Sample, growth
from opencl_lab.lab.soak.ways import drawn, perform

REPEATED = 51
"""Kinds of calls that recur, so that all but their first calls are replayed."""
NEW = 2.0
"""How often another kind is drawn: in call i of a thread with the probability NEW / (NEW + i). So
caches are always changing, but the number of programs grows with the logarithm of the calls only,
and what drivers keep of programs does not hide a leak."""
HANG_SECONDS = 300.0
"""Time for a call that is under way when the time is over."""
MOST_REPORTED = 20


@dataclass(frozen=True)
class Fault:
    """A call that went wrong."""

    thread: int
    call: int
    what: str

    def __str__(self) -> str:
        return f"--only {self.thread}:{self.call}: {self.what}"


class Soak:
    """Random calls in threads, which are checked and counted.

    Everything about a call, its data included, follows from the seed, the number of its thread and
    its number in this thread.
    """

    def __init__(self, device: Device, threads: int, seed: int):
        self.device = device
        self.seed = seed
        self.calls: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.samples: list[Sample] = []
        self.seconds = 0.0
        self._threads = threads
        self._meter = Meter(device)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._current: dict[int, tuple[int, str]] = {}  # number and words, by thread

    def run(self, seconds: float, interval: float, say: Callable[[Sample], None]) -> None:
        """Make calls for some time; `say` gets a sample after each interval."""
        begin = time.monotonic()
        workers = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(self._threads)
        ]
        for worker in workers:
            worker.start()
        try:
            while (left := begin + seconds - time.monotonic()) > 0:
                self._over.wait(min(interval, left))
                self.samples.append(self._meter.sample(self.calls.total()))
                say(self.samples[-1])
        finally:
            self._over.set()
            self.seconds = time.monotonic() - begin
            end = time.monotonic() + HANG_SECONDS
            for number, worker in enumerate(workers):
                worker.join(max(0.0, end - time.monotonic()))
                if worker.is_alive():
                    call, what = self._current.get(number, (0, "its first call"))
                    self._note(number, call, "hang", f"does not end: {what}")

    def once(self, thread: int, call: int) -> None:
        """Make one call."""
        self._make(thread, call)

    @property
    def growths(self) -> dict[str, Growth]:
        """The growth of each memory that is known."""
        found = {side: growth(self.samples, side) for side in ("host", "device")}
        return {side: one for side, one in found.items() if one is not None}

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong, and no memory grew."""
        memory = all(one.ok for one in self.growths.values())
        return bool(self.calls) and not self.wrong and memory

    def _work(self, thread: int) -> None:
        for call in count():
            if self._over.is_set():
                return
            self._make(thread, call)

    def _make(self, thread: int, call: int) -> None:
        rng = np.random.default_rng([self.seed, thread, call])
        number = int(rng.integers(REPEATED))
        new = bool(rng.random() < NEW / (NEW + call))
        kind = np.random.default_rng([self.seed, number, *([thread, call] if new else [])])
        way = drawn(kind)
        name, self._current[thread] = "drawing", (call, f"kind {number}")
        try:
            case = Drawer(self.device, kind).draw(number)(int(rng.integers(1 << 31)))
            name = case.function.__name__
            self._current[thread] = call, f"{case}, {way}"
            seen, what = perform(case, way, self.device, rng)
            for results in () if what else seen:
                difference = case.judge(results)
                what = what or ("" if difference.ok else str(difference))
        except Exception as error:  # whatever a call raises is a fault
            what = f"{type(error).__name__}: {error}"
        with self._lock:
            self.calls[name] += 1
        if what:
            self._note(thread, call, name, f"{what} in {self._current[thread][1]}")

    def _note(self, thread: int, call: int, name: str, what: str) -> None:
        with self._lock:
            self.wrong[name] += 1
            if len(self.faults) < MOST_REPORTED:
                self.faults.append(Fault(thread, call, what))

    def as_dict(self) -> dict[str, Any]:
        """Return what was seen as JSON-able values."""
        return {
            "seed": self.seed,
            "threads": self._threads,
            "seconds": self.seconds,
            "calls": dict(self.calls),
            "wrong": dict(self.wrong),
            "faults": list(map(str, self.faults)),
            "samples": [vars(sample) for sample in self.samples],
            "growth": {
                side: {**vars(one), "bytes": one.nbytes, "allowed": one.allowed, "ok": one.ok}
                for side, one in self.growths.items()
            },
            "ok": self.ok,
        }
