"""Run every probe in a child of its own, and turn whatever happens into findings."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from opencl_lab._version import __version__
from opencl_lab.caches import make_section
from opencl_lab.device import Capabilities, Device, probe_file
from opencl_lab.doctor.installation import installation
from opencl_lab.doctor.peaks import Peaks
from opencl_lab.doctor.toolchain import Tool, toolchain
from opencl_lab.paths import write_json
from opencl_lab.pocl import linker_missing, no_room
from opencl_lab.processes import end, signal_name

__all__ = ["PROBES", "Finding", "Probe", "Report", "examine", "report", "store"]

VERDICTS = ("ok", "no", "limited", "broken", "unknown")
TIME_LIMIT = 20.0
TOGETHER = 2


@dataclass(frozen=True)
class Probe:
    """One question to the device.

    Parameters
    ----------
    name : str
        Name of the finding; where it is a field of `Capabilities` or `Peaks`, the value sets
        that field.
    title : str
        What is probed, in words.
    advice : str
        What a user can do when the verdict is neither ``ok`` nor ``no``.
    absent : str
        What a ``no`` means for the user; empty where it means nothing.
    alone : bool
        Whether other probes must not run meanwhile, because it measures time.
    target : str
        ``module:function`` of the probe; by default the function `name` of `probes`.
    """

    name: str
    title: str
    advice: str
    absent: str = ""
    alone: bool = False
    target: str = ""


@dataclass(frozen=True)
class Finding:
    """What a probe found.

    Parameters
    ----------
    name, title : str
        Those of the probe.
    verdict : str
        ``ok``; ``no`` where an optional feature is absent; ``limited`` where less works
        than is claimed; ``broken`` where it fails; ``unknown`` where the probe itself failed.
    detail : str
        What was seen, in words.
    value : bool, int, float or None
        The finding as a capability, or as a peak.
    advice : str
        What to do about it, or what it means; may be empty.
    seconds : float
        How long the child ran.
    """

    name: str
    title: str
    verdict: str
    detail: str
    value: bool | int | float | None = None
    advice: str = ""
    seconds: float = 0.0


NO_PEAK = "results are not held against this peak; on a machine with less to do it may go better"
UPDATE = "update the OpenCL driver of this device; until then opencl_lab works around it"
PROBES = (
    Probe(
        "usable",
        "build and run a kernel",
        "repair the driver, or install another one; for a CPU: "
        'pip install "pyopencl[pocl]", apt install pocl-opencl-icd, '
        "or on x86 pip install 'opencl_lab[intel]'",
        alone=True,
    ),
    Probe("vector_bytes", "built-ins on wide vectors", UPDATE),
    Probe("max_work_group", "work-group sizes", UPDATE),
    Probe("local_memory", "local memory", UPDATE),
    Probe("barriers_in_loops", "barriers in loops", UPDATE),
    Probe("fp64", "double precision", UPDATE, "float64 problems need another device"),
    Probe("fp16", "half precision", UPDATE, "float16 problems need another device"),
    Probe("subgroups", "sub-groups", UPDATE),
    Probe("int64_atomics", "64-bit atomics", UPDATE),
    Probe("inline_ptx", "inline PTX", UPDATE),
    Probe(
        "event_timing",
        "event times against the host",
        "trust total times only: kernel times of this driver are not plausible",
        alone=True,
    ),
    Probe("forward_progress", "progress between work-groups", UPDATE, alone=True),
    Probe("visible_writes", "writes seen by other work-groups", UPDATE, alone=True),
    Probe("flops32", "peak of float32 arithmetic", NO_PEAK, alone=True),
    Probe("flops64", "peak of float64 arithmetic", NO_PEAK, alone=True),
    Probe("copy_bytes", "peak of copying in memory", NO_PEAK, alone=True),
    Probe("cached_bytes", "peak of copying in caches", NO_PEAK, alone=True),
)


class _Child:
    """A running probe: its process, and the steps it has told so far."""

    def __init__(self, probe: Probe, device: Device, folder: Path, time_limit: float):
        self.probe, self.time_limit = probe, time_limit
        self.step: dict[str, Any] = {}
        self.garbage = False
        self._unread = b""
        private = folder / probe.name
        private.mkdir(mode=0o700)
        self._stderr = private / "stderr"
        target = probe.target or f"opencl_lab.doctor.probes:{probe.name}"
        self.begin = time.monotonic()
        self.deadline = self.begin + time_limit
        with self._stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "opencl_lab.doctor.child", target, device.spec],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(private),
                start_new_session=True,  # a group of its own, to be killed as a whole
            )
        assert self.process.stdout is not None
        self.pipe = self.process.stdout

    def read(self) -> bool:
        """Take in what the child has said; return False when no more can follow."""
        data = os.read(self.pipe.fileno(), 1 << 16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            try:
                step = json.loads(line)
            except ValueError:
                step = None
            if not isinstance(step, dict):
                self.garbage = True
                return False
            self.step = step
            self.deadline = time.monotonic() + self.time_limit
        return bool(data)

    def kill(self) -> None:
        """End the child and whatever it has started."""
        end(self.process, group=True)
        self.pipe.close()

    def finding(self, timed_out: bool) -> Finding:
        """End the child and say what it has found."""
        if not timed_out and not self.garbage:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=2)  # it has closed its pipe: it is about to end
        status = self.process.poll()
        if status is None:
            self.kill()
        self.pipe.close()
        verdict, detail, value = self._conclude(timed_out, status)
        advice = self.probe.absent if verdict == "no" else self.probe.advice
        return Finding(
            self.probe.name,
            self.probe.title,
            verdict,
            detail,
            value,
            "" if verdict in ("ok", "unknown") else advice,
            round(time.monotonic() - self.begin, 3),
        )

    def _conclude(self, timed_out: bool, status: int | None) -> tuple[str, str, Any]:
        step = self.step
        if self.garbage:
            return "unknown", "the probe printed something that is not a finding", None
        if "failed" in step:
            return "unknown", f"the probe failed: {step['failed']}", None
        if step.get("verdict") in VERDICTS:
            return step["verdict"], str(step.get("detail", "")), step.get("value")
        if timed_out:
            reason = f"no answer within {self.time_limit:g} s"
        elif status is not None and status < 0:
            reason = f"the driver crashed ({signal_name(-status)})"
        elif status and "trying" in step:
            reason = f"the driver ended the process with status {status}{self._last_words()}"
        else:
            return "unknown", f"the probe ended without a verdict{self._last_words()}", None
        if "trying" not in step:
            return "broken", f"{reason} before the first kernel", None
        reached, attempt = step.get("value"), step["trying"]
        if reached is None:
            # A feature that nobody promised is merely absent, however its trial ends.
            verdict = "broken" if step.get("claimed", True) else "no"
            return verdict, f"{attempt}: {reason}", False
        detail = f"up to {step.get('reached', reached)}; {attempt}: {reason}"
        return "limited" if reached else "broken", detail, reached

    def _last_words(self) -> str:
        lines = self._stderr.read_text(encoding="utf-8", errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f" ({said[-1][:120]})" if said else ""


def _environment(private: Path) -> dict[str, str]:
    """Return the environment of a child: the driver's own claims, and no kernel cached before."""
    package_root = str(Path(__file__).resolve().parents[2])
    search = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(part for part in search if part),
        "PYTHONSAFEPATH": "1",
        "OCLAB_CACHE_DIR": str(private),
        "PYOPENCL_NO_CACHE": "1",
        "POCL_CACHE_DIR": str(private / "pocl"),
        "CUDA_CACHE_DISABLE": "1",
    }


def examine(
    device: Device,
    probes: Sequence[Probe] = PROBES,
    *,
    time_limit: float = TIME_LIMIT,
    together: int = TOGETHER,
) -> Iterator[Finding]:
    """Run probes on a device, each in a child process, and yield findings as they come.

    Parameters
    ----------
    device : Device
        The device to probe.
    probes : sequence of Probe, optional
        What to probe. Those that must run alone are best put last.
    time_limit : float, optional
        Seconds of silence after which a child is killed. It starts anew with
        every step that the child reports.
    together : int, optional
        How many children may run at once.

    Yields
    ------
    Finding
        One for each probe, in the order in which they end.
    """
    waiting = list(probes)
    running: list[_Child] = []
    with (
        tempfile.TemporaryDirectory(prefix="oclab-doctor-", ignore_cleanup_errors=True) as folder,
        selectors.DefaultSelector() as selector,
    ):
        try:
            while waiting or running:
                while waiting and _may_start(waiting[0], running, together):
                    child = _Child(waiting.pop(0), device, Path(folder), time_limit)
                    running.append(child)
                    selector.register(child.pipe, selectors.EVENT_READ)
                patience = min(child.deadline for child in running) - time.monotonic()
                ready = {key.fileobj for key, _ in selector.select(max(patience, 0))}
                for child in list(running):
                    ended = child.pipe in ready and not child.read()
                    late = not ended and time.monotonic() >= child.deadline
                    if ended or late:
                        running.remove(child)
                        selector.unregister(child.pipe)
                        yield child.finding(timed_out=late)
        finally:
            for child in running:
                child.kill()


def _may_start(probe: Probe, running: Sequence[_Child], together: int) -> bool:
    exclusive = probe.alone or any(child.probe.alone for child in running)
    return len(running) < (1 if exclusive else together)


def _capabilities(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings that are capabilities; what stayed unknown is left out."""
    kinds = {item.name: type(getattr(Capabilities(), item.name)) for item in fields(Capabilities)}
    return {
        finding.name: finding.value
        for finding in findings
        if finding.value is not None and type(finding.value) is kinds.get(finding.name)
    }


def _peaks(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings that are peaks."""
    peaks = Peaks.of({finding.name: finding.value for finding in findings})
    return {} if peaks is None else asdict(peaks)


@dataclass(frozen=True)
class Report:
    """All that `oclab doctor` has to say about a device and the tools around it.

    Parameters
    ----------
    device : Device
        The device, with the capabilities that were found.
    findings : tuple of Finding
        One for each probe.
    tools : tuple of Tool
        Linker, compilers, OpenMP and MPI.
    stored : Path or None
        The file that holds the findings, None where they are not kept.
    installed : tuple of Tool
        The ICD loader, the drivers that it is told of, and the files of devices.
    """

    device: Device
    findings: tuple[Finding, ...]
    tools: tuple[Tool, ...]
    stored: Path | None = None
    installed: tuple[Tool, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as the JSON document of the command line."""
        return {
            "schema": "oclab/1",
            "command": "doctor",
            "version": __version__,
            "device": self.device.as_dict(),
            "peaks": _peaks(self.findings),
            "probes": [asdict(finding) for finding in self.findings],
            "installation": [asdict(tool) for tool in self.installed],
            "toolchain": [asdict(tool) for tool in self.tools],
            "stored": None if self.stored is None else str(self.stored),
        }


def store(device: Device, findings: Sequence[Finding]) -> Path:
    """Write findings where `opencl_lab.device` and `stored_peaks` read those about `device`."""
    make_section("doctor")
    path = probe_file(device.key)
    write_json(
        path,
        {
            "key": device.key,
            "version": __version__,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "capabilities": _capabilities(findings),
            "peaks": _peaks(findings),
            "probes": [asdict(finding) for finding in findings],
        },
    )
    return path


def report(
    device: Device,
    progress: Callable[[Finding], None] | None = None,
    *,
    time_limit: float = TIME_LIMIT,
) -> Report:
    """Probe a device and the tools around it, and store what was found.

    Nothing is probed, and nothing stored, where the machine lacks what the driver needs to
    build any kernel: that says nothing about the device.

    Parameters
    ----------
    device : Device
        The device to probe.
    progress : callable, optional
        Called with each `Finding` as soon as it is there.
    time_limit : float, optional
        Seconds that one step of a probe may take.

    Returns
    -------
    Report
    """
    found: dict[str, Finding] = {}

    def take(probes: Sequence[Probe]) -> None:
        for finding in examine(device, probes, time_limit=time_limit):
            found[finding.name] = finding
            if progress is not None:
                progress(finding)

    first, *others = PROBES
    version = device.platform_version
    lack = linker_missing(version) or no_room(version)
    if lack is not None:
        finding = Finding(first.name, first.title, "broken", lack, False)
        if progress is not None:
            progress(finding)
        return Report(device, (finding,), toolchain(), None, installation())
    take([first])
    if found[first.name].verdict == "ok":
        take(others)
    findings = tuple(found[probe.name] for probe in PROBES if probe.name in found)
    stored = None
    with suppress(OSError):  # a full or read-only disk must not hide the findings
        stored = store(device, findings)
    capabilities = replace(device.capabilities, **_capabilities(findings))
    probed = replace(device, capabilities=capabilities)
    return Report(probed, findings, toolchain(), stored, installation())
