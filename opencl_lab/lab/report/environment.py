"""The environments of documents: each machine once, with a row for each run on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from opencl_lab.core.wording import size_text
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.presentation.table import Cell, CellTable

DEVICE = (
    *("name", "kind", "platform", "driver", "version", "c_version", "compute_units", "clock"),
    "global_memory",
)
OF_A_RUN = ("started", "load", "busy", "gpu", "gpu_end", "git")
"""Fields of an environment that may differ between runs on one machine."""
LIMITS = ("max_clock_mhz", "power_limit_w")
"""Fields of a GPU that do not."""
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
        environments = [results.mapping("environment") for _, results in runs]
        states = (item.get("gpu") for item in environments)
        fields = dict.fromkeys(x for gpu in states if isinstance(gpu, dict) for x in gpu)
        columns: dict[str, Callable[[Run], Cell]] = {
            "document": lambda run: Cell(run[0]),
            "started": partial(_recorded, "started"),
            "commit": _commit,
            "load": partial(_recorded, "load"),
        }
        columns |= {f"GPU {_plain(x)}": partial(_state, x) for x in fields if x not in LIMITS}
        table = CellTable.of(runs, columns)
        # Several studies of one document are one run.
        rows = [row for index, row in enumerate(table.rows) if row not in table.rows[:index]]
        shown = CellTable(table.heads, rows)
        found.append(MachineSeen(name, [fact for fact in facts if fact[1]], shown, warnings))
    return found


def _facts(results: Results) -> list[tuple[str, str]]:
    """Return the facts that are the same for all runs on a machine."""
    device, environment = results.device, results.mapping("environment")
    gpu = environment.get("gpu")
    return _flat(
        {
            # Drivers report 0 for a clock that they do not know.
            "device": {name: device.get(name) or None for name in DEVICE},
            "opencl_lab": results.version,
            "GPU": {name: gpu.get(name) for name in LIMITS} if isinstance(gpu, dict) else None,
            **{name: value for name, value in environment.items() if name not in OF_A_RUN},
        }
    )


def _plain(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _text(value: Any, name: str = "") -> str:
    if name.endswith(("memory", "_bytes")) and isinstance(value, int):
        return size_text(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _flat(content: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return the fields of an environment as names and texts."""
    found = []
    for name, value in content.items():
        label = prefix + _plain(name)
        if name in ("packages", "variables") and isinstance(value, dict):
            found.append((label, ", ".join(f"{key} {item}" for key, item in value.items())))
        elif isinstance(value, dict):
            found += _flat(value, f"{label} ")
        else:
            found.append((label, _text(value, name)))
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
