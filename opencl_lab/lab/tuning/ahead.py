"""Builders: processes that compile programs ahead, in parallel, while a worker measures.

```text
 strategy --[best guess, next, ...]--> Ahead -- one each --> builder, builder, ...
                                         |                        |  the driver's own cache on disk
                                         v                        v
                          the first of them that is built --> measuring worker: check, time
```

On a CPU, compiling and measuring need the same cores, so they alternate: a batch is built in
parallel, and then measured.
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
from opencl_lab.core.memory import host_memory
from opencl_lab.core.records import timestamp
from opencl_lab.core.space import Config
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.tuning.evaluation import Built, Evaluation
from opencl_lab.workers.link import Frames
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import Died, Worker

GENEROUS_SECONDS = 60.0  # timeout of a phase before there are times to compare with
HOST_SECONDS = 600.0  # timeout for inputs and expected results, which depend on no configuration
LEAST_BUILD_SECONDS, BUILD_FACTOR = 10.0, 10.0  # timeout of a build; multiple of the median time
ROOM = 512 << 20
"""Bytes of host and device memory reserved for a builder."""
SHARE = 0.25
"""Largest share of either memory for all builders."""
NICENESS = 5  # so that the measuring worker has priority
LEAST_BATCH = 4
FEW = 5
"""Number of builds after which building ahead is given up if the driver does not reuse them."""
SAVED = 0.6
"""A reused build takes at most this share of the time of the build ahead."""
SLOW_MS = 150.0
"""Only builds that took so long count: faster ones were cached from another size."""
Build: TypeAlias = tuple[Config, bool]
"""A configuration, and whether to build it for all check cases, which the best ones need."""
CRASHED = Built(0.0, reason="the builder died")
"""The measuring worker finds out whether the configuration caused that."""


def builders_for(device: Device) -> int:
    """Return the number of builders for a device: one per core, without the measuring worker's."""
    cores, memory = default_threads(), host_memory()
    if device.kind != "cpu":
        cores, memory = cores - 1, min(memory, device.global_memory or math.inf)
    elif cores == 1:
        return 0  # a builder would only alternate with the measuring worker
    return int(min(cores, memory * SHARE // ROOM))


class Ahead:
    """Builds configurations in builders, each with a thread that talks to it.

    There are at most `count` builders. They start with the first request, and read `opening`
    first. With `alternate` nothing is built during a measurement. A build may take `timeout`
    seconds, by default ten times the median, and at most `longest`.
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
        # `with` on a Condition runs Python code, where Ctrl-C would leave the lock taken forever.
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._working = 0  # threads that have a builder or may still start one
        self._up: set[Worker] = set()  # builders that have started
        self._queued: list[Build] = []
        self._best: list[Build] = []
        self._building: set[Build] = set()
        self._answers: dict[Build, Built] = {}
        self._ratios: list[float] = []
        self._processes: set[Worker] = set()
        self.trouble = ""

    @property
    def built(self) -> int:
        """Number of configurations that were built ahead or failed to build."""
        return len({config for config, _ in list(self._answers)})

    def choose(self, configs: Sequence[Config], seconds: float, whole: bool = False) -> Config:
        """Return which of these to measure now: the first one that is built, waiting if necessary.

        The others are built meanwhile, in this order, instead of earlier requests. With `whole`
        they are built for all check cases.
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
                    break  # no builder has started: the measuring worker builds this one
                self._change.wait(left)
                if not self._alternate or not (self._building or self._pending()):
                    chosen = self._ready(builds)
            if chosen is None:
                chosen = configs[0]
                self._queued = [item for item in self._queued if item[0] != chosen]
            return chosen

    def want(self, configs: Sequence[Config]) -> None:
        """Build these instead of earlier requests, unless building would disturb measurements."""
        if configs and not self._alternate:
            self._start()
        with self._lock:
            self._best = []
            self._queued = [] if self._alternate else [(config, False) for config in configs]
            self._change.notify_all()

    def complete(self, config: Config) -> bool:
        """Return whether `config` is built for all check cases, or will not be built ahead.

        If not, it is built before all others; on a CPU, with the next batch.
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
        """Return why a configuration cannot be built; None if no builder has failed on it."""
        return next((item for item in self.refused() if item.config == config), None)

    def refused(self) -> list[Evaluation]:
        """Return the configurations that builders failed to build."""
        return [
            Evaluation(config, answer.refusal, answer.reason, (), answer.build_ms, 0.0, timestamp())
            for (config, whole), answer in list(self._answers.items())
            if answer.refusal is not None and not whole
        ]

    def learn(self, evaluation: Evaluation) -> None:
        """Compare build times ahead and in the measuring worker; stop if nothing was saved."""
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
            self.trouble = "programs are not built ahead: this driver does not reuse builds"
            self.close()

    def close(self) -> None:
        """End all builders, even during a build."""
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
        # On a CPU the best one waits for the next batch.
        best = self._best if self._queued or not self._alternate else []
        return [
            item
            for item in (*best, *self._queued)
            if item not in self._answers and item not in self._building
        ]

    # ------------------------------------------------------------ in each thread

    def _work(self) -> None:
        """Keep one builder busy, and replace it when it dies."""
        process: Worker | None = None
        try:
            while True:
                process = process or self._new_process()
                item = self._next() if process is not None else None
                if item is None or process is None:
                    return
                answer = self._build(process, *item)
                if answer.refusal == "timeout" or answer is CRASHED:
                    self._end(process)
                    process = None
                with self._lock:
                    self._building.discard(item)
                    self._answers[item] = answer
                    self._change.notify_all()
        finally:
            if process is not None:
                self._end(process)
            with self._lock:
                self._working -= 1
                self._change.notify_all()

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
        """Return a builder that waits for requests; None if it cannot be started."""
        try:
            with self._lock:
                if self._closed:
                    return None
                process = Worker(self._opening, nice=NICENESS)
                self._processes.add(process)
        except LaunchError as error:  # no more processes can be started
            self.trouble = str(error)
            return None
        try:
            process.answer(time.monotonic() + HOST_SECONDS)
            with self._lock:
                self._up.add(process)
            return process
        except TimeoutError:
            reason = f"no answer within {HOST_SECONDS:g} s"
        except Failed as error:
            reason = error.error.sentence if error.error else str(error)
        except Died as death:
            reason = str(death)
        self._end(process)
        if not self._closed:
            self.trouble = f"a builder process could not start: {reason}"
        return None

    def _end(self, process: Worker) -> None:
        with self._lock:
            self._processes.discard(process)
            self._up.discard(process)
        process.kill()

    def _build(self, process: Worker, config: Config, whole: bool) -> Built:
        """Return the answer of a builder, or that it died or timed out."""
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
            return Built(spent, "timeout", f"timed out after {limit:.3g} s, while {phase}")
        except (Died, Failed):
            return CRASHED

    def _limit(self) -> float:
        if self._timeout is not None:
            return self._timeout
        times = [item.build_ms / 1e3 for item in list(self._answers.values()) if not item.reason]
        if not times:
            return min(GENEROUS_SECONDS, self._longest)
        return min(max(LEAST_BUILD_SECONDS, BUILD_FACTOR * median(times)), self._longest)
