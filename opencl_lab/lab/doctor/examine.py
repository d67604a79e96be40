"""Run probes in workers, several at once or alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.drivers.processes import default_threads
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.selftest.child import Child, spread

TIME_LIMIT = 20.0
TOGETHER, MOST_TOGETHER = 2, 8
"""Bounds of the number of probes that run at once: half as many as processors."""


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
        """The name of the function, and of what it finds."""
        return self.target.rpartition(":")[2]


@dataclass(frozen=True)
class Finding:
    """A row of the doctor's report: what was tried, the verdict, and what to do about it."""

    name: str
    title: str
    verdict: str  # a word; see `Verdict`
    detail: str
    value: bool | int | float | dict[str, Any] | None = None  # a capability, a peak, costs
    advice: str = ""
    seconds: float = 0.0


def finding(probe: Probe, found: Verdict) -> Finding:
    """Return the row of a probe."""
    advice = probe.absent if found.word == "no" else probe.advice
    advice = "" if found.word in ("ok", "unknown") else advice
    shown = found.word, found.detail, found.value
    return Finding(probe.name, probe.title, *shown, advice, found.seconds)


def examine(
    device: Device, probes: Sequence[Probe], *, time_limit: float = TIME_LIMIT
) -> Iterator[Finding]:
    """Run probes on a device in workers, and yield their findings as they end.

    Those that must run alone come last. A worker is killed if it reports nothing for `time_limit`
    seconds, or after a fault.
    """
    together = max(TOGETHER, min(default_threads() // 2, MOST_TOGETHER))

    def ask(child: Child, probe: Probe) -> Finding:
        return finding(probe, child.ask("probe", probe.target))

    with scratch_folder("oclab-doctor-") as folder:
        children = [_child(device, folder / str(n), time_limit) for n in range(together)]
        for alone in (False, True):
            chosen = [probe for probe in probes if probe.alone == alone]
            yield from spread(ask, chosen, children[:1] if alone else children)


def _child(device: Device, folder: Path, time_limit: float) -> Child:
    """Return a worker with the driver's own claims, and without cached kernels."""
    folder.mkdir(mode=0o700)
    settings = {
        "OCLAB_CACHE_DIR": str(folder),
        "PYOPENCL_NO_CACHE": "1",
        "POCL_CACHE_DIR": str(folder / "pocl"),
        "CUDA_CACHE_DISABLE": "1",
    }
    return Child("opencl_lab.lab.doctor.probing:Probing", (device,), settings, (time_limit,))
