"""The environments of documents: each machine once, with a row for each run on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from opencl_lab.core.wording import size_text
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.presentation.table import Cell, CellTable

DEVICE = {
    "name": "device",
    "kind": "kind",
    "platform": "platform",
    "driver": "driver",
    "version": "OpenCL",
    "c_version": "OpenCL C",
    "compute_units": "compute units",
    "clock": "device clock in MHz",
    "global_memory": "device memory",
}
BYTES = ("global_memory", "memory_bytes")
OF_A_RUN = ("started", "load", "busy", "gpu", "gpu_end", "git")
"""Fields of an environment that may differ between runs on one machine."""
GPU = {
    "clock_mhz": "GPU MHz",
    "memory_clock_mhz": "GPU memory MHz",
    "power_w": "GPU W",
    "temperature_c": "GPU °C",
    "performance_state": "GPU state",
    "use_percent": "GPU use in %",
    "throttled": "GPU slowed by",
}
LIMITS = {"max_clock_mhz": "GPU's highest clock in MHz", "power_limit_w": "GPU's power limit in W"}
ARROW = " \N{RIGHTWARDS ARROW} "
Run = tuple[str, Results]
"""A document and its name."""


@dataclass(frozen=True)
class MachineSeen:
    """A device in a machine: its name, recorded facts, and runs."""

    name: str
    facts: Sequence[tuple[str, str]]
    runs: CellTable
    warnings: Sequence[str] = ()


def device_text(results: Results) -> str:
    """Return the name of the device of a document; empty if none is recorded."""
    return str(results.device.get("name") or "")


def device_names(documents: Sequence[Results]) -> list[str]:
    """Return the name of the device of each document; equal names get distinguishing details."""
    names = [device_text(results) for results in documents]
    for field, text in (("compute_units", "{} compute units"), ("driver", "driver {}")):
        values: dict[str, set[str]] = {}
        for name, results in zip(names, documents, strict=True):
            values.setdefault(name, set()).add(str(results.device.get(field) or ""))
        names = [
            f"{name}, {text.format(value)}" if len(values[name]) > 1 and value and name else name
            for name, results in zip(names, documents, strict=True)
            for value in [results.device.get(field)]
        ]
    return names


def busy_text(results: Results) -> str:
    """Return the warning that the machine was busy when a run began; empty if it was not."""
    return str(results.mapping("environment").get("busy") or "")


def machines_of(documents: Sequence[Run]) -> list[MachineSeen]:
    """Return the machines of named documents."""
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for source, results in documents:
        groups.setdefault(tuple(_facts(results)), []).append((source, results))
    found = []
    for facts, runs in groups.items():
        warnings = [f"{source}: {text}" for source, results in runs if (text := busy_text(results))]
        name = device_text(runs[0][1]) or "Unknown machine"
        table = CellTable.of(
            runs,
            {
                "document": lambda run: Cell(run[0]),
                "started": partial(_recorded, "started"),
                "commit": _commit,
                "load": partial(_recorded, "load"),
                **{head: partial(_state, name) for name, head in GPU.items()},
            },
        )
        # Several studies of one document are one run.
        rows = [row for index, row in enumerate(table.rows) if row not in table.rows[:index]]
        shown = CellTable(table.heads, rows)
        found.append(MachineSeen(name, [fact for fact in facts if fact[1]], shown, warnings))
    return found


def _facts(results: Results) -> list[tuple[str, str]]:
    """Return the facts that are the same for all runs on a machine."""
    device, environment = results.device, results.mapping("environment")
    # Drivers report 0 for a clock that they do not know.
    facts = [(text, _text(device.get(name) or None, name)) for name, text in DEVICE.items()]
    facts.append(("opencl_lab", results.version))
    gpu = environment.get("gpu")
    if isinstance(gpu, dict):
        facts += [(text, _text(gpu.get(name))) for name, text in LIMITS.items()]
    return facts + _flat({k: v for k, v in environment.items() if k not in OF_A_RUN})


def _text(value: Any, name: str = "") -> str:
    if name in BYTES and isinstance(value, int):
        return size_text(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _flat(content: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return the fields of an environment as names and texts."""
    found = []
    for name, value in content.items():
        label = f"{prefix}{str(name).removesuffix('_bytes').replace('_', ' ')}"
        if name in ("packages", "variables") and isinstance(value, dict):
            joint = " " if name == "packages" else "="
            found.append((label, ", ".join(f"{key}{joint}{item}" for key, item in value.items())))
        elif isinstance(value, dict):
            found += _flat(value, f"{label} ")
        else:
            found.append((label, _text(value, str(name))))
    return found


def _recorded(name: str, run: Run) -> Cell:
    return Cell(_text(run[1].mapping("environment").get(name)))


def _state(name: str, run: Run) -> Cell:
    """Return a value of the GPU at the start and at the end of a run; once if they are equal."""
    ends = (run[1].mapping("environment").get(when) for when in ("gpu", "gpu_end"))
    known = [_text(end.get(name)) for end in ends if isinstance(end, dict)]
    return Cell(ARROW.join(dict.fromkeys(filter(None, known))))


def _commit(run: Run) -> Cell:
    git = run[1].mapping("environment").get("git")
    if not isinstance(git, dict) or not git.get("commit"):
        return Cell()
    return Cell(str(git["commit"])[:10] + " with changes" * bool(git.get("changed")))
