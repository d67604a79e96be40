"""Run all probes, each in a worker, and store the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from opencl_lab._version import __version__
from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.core.records import sound_fields
from opencl_lab.drivers.pocl import linker_missing, no_room
from opencl_lab.drivers.processes import default_threads
from opencl_lab.drivers.verdicts import store_found
from opencl_lab.lab.doctor.installation import installation
from opencl_lab.lab.doctor.toolchain import Tool, toolchain
from opencl_lab.lab.measuring.roofline import Peaks
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
    value: bool | int | float | None = None  # a capability, or a peak
    advice: str = ""
    seconds: float = 0.0


NO_PEAK = "results are not compared with this peak; probe again on a machine that is less busy"
NO_RATE = "the rate of copies to the device or back is unknown"
FAULT = "opencl_lab works around it; another version of the driver may not have the fault"
VECTORS = "built-ins take narrower vectors; other vectors are not avoided: check the results"
HOME = "opencl_lab.lab.doctor.probes"
BEHAVIOUR, FEATURES, LIMITS = f"{HOME}.behaviour:", f"{HOME}.features:", f"{HOME}.limits:"
MATRIX, THROUGHPUT, TRANSFERS = f"{HOME}.matrix:", f"{HOME}.throughput:", f"{HOME}.transfers:"
PROBES = (
    Probe(
        BEHAVIOUR + "usable",
        "build and run a kernel",
        "repair the driver, or install another one; for a CPU: "
        'pip install "pyopencl[pocl]", apt install pocl-opencl-icd, '
        "or on x86 pip install 'opencl_lab[intel]'",
        alone=True,
    ),
    Probe(f"{HOME}.vectors:vector_bytes", "vectors of all types and widths", VECTORS),
    Probe(LIMITS + "max_work_group", "work-group sizes", FAULT),
    Probe(LIMITS + "local_memory", "local memory", FAULT),
    Probe(LIMITS + "max_allocation", "both ends of large buffers", FAULT),
    Probe(f"{HOME}.barriers:barriers_in_loops", "barriers in loops", FAULT),
    Probe(
        FEATURES + "fp64",
        "double precision",
        FAULT,
        "products, filters and transforms of float64 need another device",
    ),
    Probe(
        FEATURES + "fp16",
        "half precision",
        FAULT,
        "float16 works all the same: the arithmetic is in float32",
    ),
    Probe(FEATURES + "int64_atomics", "64-bit atomics", FAULT),
    Probe(FEATURES + "inline_ptx", "inline PTX", FAULT),
    Probe(MATRIX + "matrix_units", "matrix units of warps", FAULT),
    Probe(MATRIX + "warpgroup_matrix_units", "matrix units of warpgroups", FAULT),
    Probe(MATRIX + "declared_memory", "local memory beyond the driver's word", FAULT),
    Probe(
        BEHAVIOUR + "event_timing",
        "event times against the host",
        "trust total times only: kernel times of this driver are not plausible",
        alone=True,
    ),
    Probe(BEHAVIOUR + "forward_progress", "progress between work-groups", FAULT, alone=True),
    Probe(BEHAVIOUR + "visible_writes", "writes seen by other work-groups", FAULT, alone=True),
    Probe(BEHAVIOUR + "serial_side", "small calls in the calling thread", FAULT),
    Probe(THROUGHPUT + "flops32", "peak of float32 arithmetic", NO_PEAK, alone=True),
    Probe(THROUGHPUT + "flops64", "peak of float64 arithmetic", NO_PEAK, alone=True),
    Probe(MATRIX + "flops16_matrix", "peak of matrix units in float16", NO_PEAK, alone=True),
    Probe(MATRIX + "flops32_matrix", "peak of matrix units in TF32", NO_PEAK, alone=True),
    Probe(MATRIX + "flops64_matrix", "peak of matrix units in float64", NO_PEAK, alone=True),
    Probe(THROUGHPUT + "copy_bytes", "peak of copying in memory", NO_PEAK, alone=True),
    Probe(THROUGHPUT + "cached_bytes", "peak of copying in caches", NO_PEAK, alone=True),
    Probe(TRANSFERS + "send_bytes", "peak of copying from pinned memory", NO_RATE, alone=True),
    Probe(TRANSFERS + "fetch_bytes", "peak of copying to pinned memory", NO_RATE, alone=True),
    Probe(TRANSFERS + "send_plain_bytes", "peak of copying from plain arrays", NO_RATE, alone=True),
    Probe(TRANSFERS + "fetch_plain_bytes", "peak of copying to plain arrays", NO_RATE, alone=True),
)


def examine(
    device: Device, probes: Sequence[Probe], *, time_limit: float = TIME_LIMIT
) -> Iterator[Finding]:
    """Run probes on a device in workers, and yield their findings as they end.

    Those that must run alone come last. A worker is killed if it reports nothing for `time_limit`
    seconds, or after a fault.
    """
    together = max(TOGETHER, min(default_threads() // 2, MOST_TOGETHER))

    def ask(child: Child, probe: Probe) -> Finding:
        found = child.ask("probe", probe.target)
        advice = {"ok": "", "unknown": "", "no": probe.absent}.get(found.word, probe.advice)
        shown = found.word, found.detail, found.value
        return Finding(probe.name, probe.title, *shown, advice, found.seconds)

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


def values_of(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what was found, by name."""
    return {finding.name: finding.value for finding in findings if finding.value is not None}


@dataclass(frozen=True)
class Report:
    """The findings of `oclab doctor` about a device and its tools."""

    device: Device  # with the capabilities that were found
    findings: tuple[Finding, ...]
    tools: tuple[Tool, ...]  # linker, compilers, OpenMP and MPI
    stored: Path | None = None  # the file with the findings, if they were stored
    installed: tuple[Tool, ...] = ()  # the ICD loader, its drivers, the files of devices

    def as_dict(self) -> dict[str, Any]:
        """Return the report as the JSON document of the command line."""
        peaks = Peaks.of(values_of(self.findings))
        return {
            "schema": "oclab/1",
            "command": "doctor",
            "version": __version__,
            "device": self.device.as_dict(),
            "peaks": {} if peaks is None else asdict(peaks),
            "probes": [asdict(finding) for finding in self.findings],
            "installation": [asdict(tool) for tool in self.installed],
            "toolchain": [asdict(tool) for tool in self.tools],
            "stored": None if self.stored is None else str(self.stored),
        }


def report(
    device: Device,
    progress: Callable[[Finding], None] | None = None,
    *,
    time_limit: float = TIME_LIMIT,
) -> Report:
    """Probe a device and its tools, and store the findings.

    Nothing is probed or stored if the machine lacks tools that the driver needs to build any
    kernel, since that says nothing about the device. `progress` is called with each finding at
    once. `time_limit` is the timeout in seconds between two reports of a probe.
    """
    found: dict[str, Finding] = {}

    def take(findings: Iterable[Finding]) -> None:
        for finding in findings:
            found[finding.name] = finding
            if progress is not None:
                progress(finding)

    first, *others = PROBES
    version = device.platform_version
    lack = linker_missing(version) or no_room(version)
    if lack is not None:
        take([Finding(first.name, first.title, "broken", lack, False)])
        return Report(device, tuple(found.values()), toolchain(), None, installation())
    take(examine(device, [first], time_limit=time_limit))
    if found[first.name].verdict == "ok":
        take(examine(device, others, time_limit=time_limit))
    findings = tuple(found[probe.name] for probe in PROBES if probe.name in found)
    values = values_of(findings)
    stored = store_found(device.key, values)
    capabilities = replace(device.capabilities, **sound_fields(Capabilities, values))
    corrected = replace(device, capabilities=capabilities)
    return Report(corrected, findings, toolchain(), stored, installation())
