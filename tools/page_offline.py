"""The tables of the page of runtimes about compilers of GPUs that are not here.

Their data is docs/offline_targets.json, which `offline_targets.py` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opencl_lab.lab.offline import TARGETS

DATA = Path(__file__).parents[1] / "docs/offline_targets.json"
Rows = tuple[list[str], list[list[str]], int]
"""A head, rows, and the number of columns that hold words."""


def read() -> dict[str, Any]:
    """Return the data, which is empty before the tool was run."""
    if not DATA.is_file():
        return {"date": "", "versions": {}, "targets": []}
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def said(found: Mapping[str, Any]) -> str:
    """Return when it was, and with which compilers."""
    packages = ", ".join(f"`{name}` {version}" for name, version in found["versions"].items())
    return f"`python tools/offline_targets.py`, {found['date']}; {packages or 'unknown versions'}."


def targets(found: Mapping[str, Any]) -> Rows:
    """Return a row for each target."""
    rows = []
    for row in found["targets"]:
        spilling = [row["spilling_by_auto"], row["spilling_by_name"]]
        least, middle, most = row["waves"]
        rows.append(
            [
                f"`{row['target']}`",
                f"{TARGETS[row['target']].title}, as `{row['pretend']}`",
                *(f"{row[key]:,}" for key in ("programs", "failures", "kernels")),
                *(f"{sum(some.values()):,}" for some in spilling),
                f"{max(row['most_spilled'].values(), default=0):,}",
                *(f"{row[key]:,}" for key in ("registers", "private_bytes", "local_bytes")),
                f"{least}, {middle} of {most}",
            ]
        )
    head = ["target", "a device, and its limits", "programs", "failures", "kernels"]
    head += ["kernels that spill, of `auto`", "by name", "most spilled", "most registers"]
    return [*head, "most private bytes", "most local bytes", "waves: least, median"], rows, 2


def spills(found: Mapping[str, Any]) -> Rows:
    """Return a row for each algorithm that spills: how many kernels, and the most of one."""
    rows = []
    names = {name for row in found["targets"] for name in row["most_spilled"]}
    for name in sorted(names):
        rows.append([name])
        for row in found["targets"]:
            count = row["spilling_by_auto"].get(name, 0) + row["spilling_by_name"].get(name, 0)
            rows[-1].append(f"{count}: {row['most_spilled'][name]}" if count else "-")
    return ["spilled by", *(f"`{row['target']}`" for row in found["targets"])], rows, 1
