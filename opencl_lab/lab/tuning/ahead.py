"""Builder processes: programs are compiled ahead, side by side, while one process measures.

```text
 strategy --[best guess, next, ...]--> Ahead -- one each --> builder, builder, ...
                                         |                        |  the driver's own cache on disk
                                         v                        v
                          the first of them that is built --> worker: check, time
```

On a CPU nothing is compiled while something is measured, as both need the same cores: a batch is
built side by side, and then measured.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from statistics import median
from typing import TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import LaunchError
from opencl_lab.core.records import timestamp
from opencl_lab.core.space import Config
from opencl_lab.drivers.processes import default_threads, host_memory
from opencl_lab.lab.tuning.evaluation import Built, Evaluation
from opencl_lab.lab.workers.link import Frames
from opencl_lab.lab.workers.serving import Failed
from opencl_lab.lab.workers.worker import Died, Worker

GENEROUS = 60.0  # seconds for anything before the first measurement
HOST_SECONDS = 600.0  # inputs and expected results; no configuration is to blame for them
LEAST_BUILD, BUILD_FACTOR = 10.0, 10.0  # seconds, and of the usual time
ROOM = 512 << 20
"""Bytes that a builder may take, of the host's memory and of a device's own."""
SHARE = 0.25
"""Of either memory, for all builders."""
NICENESS = 5  # the measuring process goes first
LEAST_BATCH = 4
FEW = 5
"""Configurations that show whether what was built ahead need not be built again,"""
SAVED = 0.6
"""which then takes at most this share of the time,"""
SLOW_MS = 150.0
"""and which took at least so long ahead: the driver knows what takes less from another size."""
Build: TypeAlias = tuple[Config, bool]
"""A configuration, and whether for all check cases, as the best need it."""
CRASHED = Built(0.0, reason="the builder died")
"""Whoever measures finds out whether that was the configuration's fault."""


def builders_for(device: Device) -> int:
    """Return how many processes shall build for a device: one a core, but for who measures."""
    cores, memory = default_threads(), host_memory()
    if device.kind != "cpu":
        cores, memory = cores - 1, min(memory, device.global_memory or math.inf)
    elif cores == 1:
        return 0  # it would take turns with itself
    return int(min(cores, memory * SHARE // ROOM))


class Ahead:
    """Builds configurations in processes of their own, one thread to speak with each.

    There are `count` at most. They start when the first configurations are named, and read
    `opening` first. With `alternate` nothing is built while something is measured. A build may take
    `timeout` seconds, by default ten times as long as usual, but never more than `longest`.
    """

    def __init__(
        self,
        opening: Frames,
        count: int,
        *,
        alternate: bool,
        timeout: float | None = None,
        longest: float = math.inf,
    ):
        self._opening, self._count = opening, count
        self._alternate, self._timeout, self._longest = alternate, timeout, longest
        # A Condition's own `with` runs Python, in which Ctrl-C would leave the lock taken for ever.
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._working = 0  # threads whose process has started, or may
        self._up = 0  # of these, whose process has started
        self._queued: list[Build] = []
        self._best: list[Build] = []
        self._building: set[Build] = set()
        self._answers: dict[Build, Built] = {}
        self._ratios: list[float] = []
        self._processes: set[Worker] = set()
        self.trouble = ""

    @property
    def built(self) -> int:
        """How many configurations were built ahead, or refused."""
        return len({config for config, _ in list(self._answers)})

    def choose(self, configs: Sequence[Config], seconds: float, whole: bool = False) -> Config:
        """Return which of these to measure now: the first that is built, when one is.

        The others are built meanwhile, in this order; what was named before is given up. With
        `whole` they are built for all check cases.
        """
        if len(configs) > 1:
            self._start()
        builds = [(config, whole) for config in configs]
        deadline = time.monotonic() + min(seconds, HOST_SECONDS)
        with self._lock:
            chosen = self._ready(builds)
            if chosen is None or not self._alternate:
                batch = max(1 if whole else LEAST_BATCH, self._count)
                self._queued = builds[:batch] if self._alternate else builds
                self._change.notify_all()
            while chosen is None:
                left = deadline - time.monotonic()
                if left <= 0 or not self._working:
                    break
                if not (self._alternate or self._building or self._up or whole):
                    break  # none has started: whoever measures builds this one itself
                self._change.wait(left)
                if not self._alternate or not (self._building or self._pending()):
                    chosen = self._ready(builds)
            if chosen is None:
                chosen = configs[0]
                self._queued = [item for item in self._queued if item[0] != chosen]
            return chosen

    def want(self, configs: Sequence[Config]) -> None:
        """Begin to build these, where that disturbs nothing, and nothing else."""
        if configs and not self._alternate:
            self._start()
        with self._lock:
            self._best = []
            self._queued = [] if self._alternate else [(config, False) for config in configs]
            self._change.notify_all()

    def complete(self, config: Config) -> bool:
        """Return whether there is nothing to wait for before all check cases are tried.

        If there is, it is built before all others, on a CPU with the next batch.
        """
        with self._lock:
            if (config, True) in self._answers or not self._working:
                return True
            if self._best != [(config, True)]:
                self._best = [(config, True)]
                if not self._alternate:
                    self._change.notify_all()
            return False

    def verdict(self, config: Config) -> Evaluation | None:
        """Return why a configuration cannot be built, if a builder has found that."""
        return next((item for item in self.refused() if item.config == config), None)

    def refused(self) -> list[Evaluation]:
        """Return what builders have found that cannot be built."""
        return [
            Evaluation(config, answer.refusal, answer.reason, (), answer.build_ms, 0.0, timestamp())
            for (config, whole), answer in list(self._answers.items())
            if answer.refusal is not None and not whole
        ]

    def learn(self, evaluation: Evaluation) -> None:
        """Compare how long a build took where it was measured, and stop if nothing was saved."""
        ahead = self._answers.get((evaluation.config, False))
        if (
            self._closed
            or not ahead
            or ahead.reason
            or not evaluation.build_ms
            or ahead.build_ms < SLOW_MS
        ):
            return
        self._ratios.append(evaluation.build_ms / ahead.build_ms)
        if len(self._ratios) >= FEW and median(self._ratios) > SAVED:
            self.trouble = "programs are not built ahead: this driver builds them again"
            self.close()

    def close(self) -> None:
        """End all processes, also in the middle of a build."""
        with self._lock:
            self._closed = True
            self._queued = self._best = []
            for process in self._processes:
                process.stop()
            self._change.notify_all()
        for thread in self._threads:
            if thread.ident is not None:  # Ctrl-C may come before all are started
                thread.join()
        self._threads = []

    def _start(self) -> None:
        with self._lock:
            if self._threads or self._closed or self.trouble:
                return
            self._working = self._count
            for _ in range(self._count):
                thread = threading.Thread(target=self._work, daemon=True)
                self._threads.append(thread)
        for thread in self._threads:
            thread.start()

    def _ready(self, builds: Sequence[Build]) -> Config | None:
        return next((item[0] for item in builds if item in self._answers), None)

    def _pending(self) -> list[Build]:
        # On a CPU the best is no reason to build anything: it goes with the next batch.
        best = self._best if self._queued or not self._alternate else []
        return [
            item
            for item in (*best, *self._queued)
            if item not in self._answers and item not in self._building
        ]

    # ------------------------------------------------------------ in each thread

    def _work(self) -> None:
        """Keep one process busy, and replace it when it dies."""
        process: Worker | None = None
        try:
            while True:
                if process is None:
                    process = self._new_process()
                    self._count_up(1 if process is not None else 0)
                item = self._next() if process is not None else None
                if item is None or process is None:
                    return
                answer = self._build(process, *item)
                if answer.refusal == "timeout" or answer is CRASHED:
                    self._end(process)
                    process = None
                    self._count_up(-1)
                with self._lock:
                    self._building.discard(item)
                    self._answers[item] = answer
                    self._change.notify_all()
        finally:
            if process is not None:
                self._end(process)
                self._count_up(-1)
            with self._lock:
                self._working -= 1
                self._change.notify_all()

    def _count_up(self, more: int) -> None:
        with self._lock:
            self._up += more

    def _next(self) -> Build | None:
        """Wait for a configuration to build; None at the end."""
        with self._lock:
            while not self._closed:
                pending = self._pending()
                if pending:
                    self._building.add(pending[0])
                    return pending[0]
                self._change.wait()
        return None

    def _new_process(self) -> Worker | None:
        """Return a process that waits for requests; None if there is none to be had."""
        try:
            with self._lock:
                if self._closed:
                    return None
                process = Worker(self._opening, nice=NICENESS)
                self._processes.add(process)
        except LaunchError as error:  # there can be no more processes
            self.trouble = str(error)
            return None
        try:
            process.answer(time.monotonic() + HOST_SECONDS)
            return process
        except TimeoutError:
            reason = f"no answer within {HOST_SECONDS:g} s"
        except Failed as error:
            reason = error.error.sentence if error.error else str(error)
        except Died as death:
            reason = str(death)
        self._end(process)
        if not self._closed:
            self.trouble = f"a builder of programs could not start: {reason}"
        return None

    def _end(self, process: Worker) -> None:
        with self._lock:
            self._processes.discard(process)
        process.kill()

    def _build(self, process: Worker, config: Config, whole: bool) -> Built:
        """Return what a builder says, or that it died or takes too long."""
        limit = self._limit()
        process.send("build", config, whole)
        begin, phase = time.monotonic(), "starting"
        try:
            while True:
                kind, value = process.receive(begin + limit)
                if kind == "done":
                    built: Built = value
                    return built
                phase = value
        except TimeoutError:
            spent = (time.monotonic() - begin) * 1e3
            return Built(spent, "timeout", f"no end within {limit:.3g} s, while {phase}")
        except (Died, Failed):
            return CRASHED

    def _limit(self) -> float:
        if self._timeout is not None:
            return self._timeout
        times = [item.build_ms / 1e3 for item in list(self._answers.values()) if not item.reason]
        usual = max(LEAST_BUILD, BUILD_FACTOR * median(times)) if times else GENEROUS
        return min(usual, self._longest)
