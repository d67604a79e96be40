"""Run probes, each in a worker with a timeout."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.drivers.processes import default_threads
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import ENDED_BY_OTHERS, Died, Worker, opening

TIME_LIMIT = 20.0

TOGETHER, MOST_TOGETHER = 2, 8
"""Bounds of the number of probes that run at once: half as many as processors."""
SPARE = 4
"""Number of processors from which on a worker may start while another one measures a GPU."""


VERDICTS = ("ok", "no", "limited", "broken", "unknown")


@dataclass(frozen=True)
class Probe:
    """The description of a probe."""

    target: str
    """``module:function``; if the function has the name of a field of `Capabilities` or `Peaks`,
    its value sets that field."""
    title: str  # what is probed, in words
    advice: str  # for the user, if the verdict is neither ``ok`` nor ``no``
    absent: str = ""  # what a ``no`` means for the user, if anything
    alone: bool = False  # whether it must run alone, because it measures time

    @property
    def name(self) -> str:
        """The name of the function, and of the finding."""
        return self.target.rpartition(":")[2]


@dataclass(frozen=True)
class Finding:
    """The result of a probe."""

    name: str
    title: str
    verdict: str
    """``ok``; ``no`` if an optional feature is absent; ``limited`` if less works than is claimed;
    ``broken`` if it fails; ``unknown`` if the probe itself failed."""
    detail: str  # what was seen, in words
    value: bool | int | float | dict[str, Any] | None = None  # a capability, a peak, costs
    advice: str = ""  # what to do about it, or what it means
    seconds: float = 0.0  # that the child ran


class _Child(Worker):
    """A worker with a running probe, and its reports so far."""

    def __init__(
        self, probe: Probe, device: Device, folder: Path, time_limit: float, held: bool = False
    ):
        self.probe, self.time_limit = probe, time_limit
        self.step: dict[str, Any] = {}
        self.death: Died | None = None
        self._answers = 0
        private = folder / probe.name
        private.mkdir(mode=0o700)
        run = "opencl_lab.lab.doctor.probing:ProbeRun"
        child = opening(run, probe.target, device)
        # With the driver's own claims, and without cached kernels.
        settings = {
            "OCLAB_CACHE_DIR": str(private),
            "PYOPENCL_NO_CACHE": "1",
            "POCL_CACHE_DIR": str(private / "pocl"),
            "CUDA_CACHE_DISABLE": "1",
        }
        super().__init__(child, settings)
        self.begin, self.deadline = 0.0, math.inf
        if not held:
            self.release()

    def release(self) -> None:
        """Start the probe, and its timeout."""
        self.send("run")
        self.begin = time.monotonic()
        self.deadline = self.begin + self.time_limit

    def read(self) -> bool:
        """Read the next report; return False after the last one."""
        try:
            kind, value = self.receive(self.deadline)
        except TimeoutError:  # in the middle of a message
            return True
        except Failed as error:
            lost = isinstance(error.error, DeviceNotFound)
            self.step = {"lost" if lost else "failed": str(error.error if lost else error)}
            return False
        except Died as death:
            self.death = death
            return False
        if kind == "done":
            self._answers += 1
            return self._answers == 1  # the worker is ready to start
        if not isinstance(value, dict):
            self.step = {"garbage": value}
            return False
        self.step = value
        self.deadline = time.monotonic() + self.time_limit
        return True

    def finding(self, timed_out: bool) -> Finding:
        """End the worker and return its finding."""
        self.kill()
        verdict, detail, value = self._conclude(timed_out)
        advice = self.probe.absent if verdict == "no" else self.probe.advice
        advice = "" if verdict in ("ok", "unknown") else advice
        seconds = round(time.monotonic() - self.begin, 3)
        return Finding(self.probe.name, self.probe.title, verdict, detail, value, advice, seconds)

    def _conclude(self, timed_out: bool) -> tuple[str, str, Any]:
        step, death = self.step, self.death
        if "garbage" in step:
            return "unknown", "the probe yielded something that is not a finding", None
        if "lost" in step:
            return "broken", f"a new process does not find this device: {step['lost']}", None
        if "failed" in step:
            return "unknown", f"the probe failed: {step['failed']}", None
        if step.get("verdict") in VERDICTS:
            return step["verdict"], str(step.get("detail", "")), step.get("value")
        said = f" ({death.said[:120]})" if death and death.said else ""
        if death and death.signal_name in ENDED_BY_OTHERS:
            return "unknown", f"the process was ended by others ({death.signal_name})", None
        if timed_out:
            reason = f"no answer within {self.time_limit:g} s"
        elif death and death.signal_name:
            reason = f"the driver crashed ({death.signal_name})"
        elif death and death.code and "trying" in step:
            reason = f"the driver ended the process with status {death.code}{said}"
        else:
            return "unknown", f"the probe ended without a verdict{said}", None
        if "trying" not in step:
            return "broken", f"{reason} before the first kernel", None
        reached, attempt = step.get("value"), step["trying"]
        if reached is None:
            # A feature that is not claimed is absent, however the attempt ends.
            verdict = "broken" if step.get("claimed", True) else "no"
            return verdict, f"{attempt}: {reason}", False
        detail = f"up to {step.get('reached', reached)}; {attempt}: {reason}"
        if not step.get("claimed", True):
            return "ok", detail, reached
        return "limited" if reached > 1 else "broken", detail, reached


def examine(
    device: Device, probes: Sequence[Probe], *, time_limit: float = TIME_LIMIT
) -> Iterator[Finding]:
    """Run probes on a device, each in a worker, and yield their findings as they end.

    Probes that must run alone should come last. A worker is killed if it reports nothing for
    `time_limit` seconds. The number of processors limits how many run at once.
    """
    waiting = list(probes)
    running: list[_Child] = []
    ahead: list[_Child] = []  # the next probe that runs alone, if its worker is already started
    processors = default_threads()
    together = max(TOGETHER, min(processors // 2, MOST_TOGETHER))
    starts_ahead = device.kind != "cpu" and processors >= SPARE
    with scratch_folder("oclab-doctor-") as folder:
        try:
            while waiting or running:
                while waiting and _may_start(waiting[0], running, together):
                    probe = waiting.pop(0)
                    if ahead:
                        child = ahead.pop()
                        child.release()
                    else:
                        child = _Child(probe, device, folder, time_limit)
                    running.append(child)
                    if starts_ahead and probe.alone and waiting and waiting[0].alone:
                        ahead.append(_Child(waiting[0], device, folder, time_limit, True))
                left = min(child.deadline for child in running) - time.monotonic()
                ready = wait([child.connection for child in running], max(left, 0))
                for child in list(running):
                    ended = child.connection in ready and not child.read()
                    late = not ended and time.monotonic() >= child.deadline
                    if ended or late:
                        running.remove(child)
                        yield child.finding(timed_out=late)
        finally:
            for child in (*running, *ahead):
                child.kill()


def _may_start(probe: Probe, running: Sequence[_Child], together: int) -> bool:
    exclusive = probe.alone or any(child.probe.alone for child in running)
    return len(running) < (1 if exclusive else together)
