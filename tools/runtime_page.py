"""The page of results of `runtime_matrix`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

INTRODUCTION = """# Runtimes

Where the kernels were run, and what came out: the cases of `tests/test_matrix.py`, by built-in
configurations, for each operation, algorithm and runtime. A case is right if the result on arrays
of the host and on arrays of the device is, and if nothing beside it was written.
`tools/runtime_matrix.py` ran them and wrote this page; the [data](runtimes.json) has the names
of the cases that were not right.
"""
LEGEND = """
A number is that of cases, all of which are right; `+ n` are problems that the algorithm does not
take on this device, for the reasons below; **n wrong** are wrong results, crashes, or cases that
did not end. `-`: it takes none of them. Empty: not run. CPUs run the forms for GPUs, too.
"""


def _cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    limited = sum(cell["limited"].values())
    failed = sum(map(len, cell["failed"].values()))
    if failed:
        return f"**{failed} wrong** of {failed + cell['passed']}"
    if not cell["passed"]:
        return "-"
    return f"{cell['passed']}" + (f" + {limited}" if limited else "")


def page(known: Mapping[str, Any]) -> str:
    """Return the page of results."""
    lines = [INTRODUCTION]
    lines += ["| | runtime | version | where | cases | result |", "|---|---|---|---|--:|---|"]
    for name, result in known.items():
        passed = sum(cell["passed"] for cell in result["cells"])
        failed = sum(len(c) for cell in result["cells"] for c in cell["failed"].values())
        said = "all right" if not failed else f"**{failed} wrong**"
        said += "" if result["complete"] else ", not all run"
        said += f"; {result['note']}" if result["note"] else ""
        told = (result["processor"], f"{result['cores']} cores", result["date"])
        where = ", ".join(filter(None, told))
        version = " ".join(re.split(r"  |, ", result["platform_version"])[:1])
        version += f", {result['driver']}"
        lines.append(
            f"| `{name}` | {result['title']} | {version} | {where} | {passed + failed} | {said} |"
        )
    lines.append(LEGEND)
    shares: dict[str, list[str]] = defaultdict(list)
    for name, result in known.items():
        if result["share"]:
            shares[result["share"]].append(f"`{name}`")
    for share, names in shares.items():
        lines += [f"{', '.join(names)} ran a share of the cases: `{share}`.", ""]
    by_place = {
        (cell["operation"], cell["algorithm"], name): cell
        for name, result in known.items()
        for cell in result["cells"]
    }
    rows = sorted({place[:2] for place in by_place})
    lines.append("| operation | algorithm | " + " | ".join(f"`{name}`" for name in known) + " |")
    lines.append("|---|---|" + "--:|" * len(known))
    for operation, algorithm in rows:
        texts = (_cell(by_place.get((operation, algorithm, name))) for name in known)
        lines.append(f"| {operation} | {algorithm} | {' | '.join(texts)} |")
    lines += ["", "## What is wrong", ""]
    wrong = [
        f"- `{name}`: {cell['operation']} by {cell['algorithm']}, {len(cases)} cases: {why}"
        for name, result in known.items()
        for cell in result["cells"]
        for why, cases in cell["failed"].items()
    ]
    lines += wrong or ["Nothing."]
    lines += ["", "## What is not supported, and why", ""]
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for result in known.values():
        for cell in result["cells"]:
            for reason in cell["limited"]:
                reasons[reason][f"{cell['operation']} {cell['algorithm']}"] = None
    lines += [f"- {reason}: {', '.join(names)}" for reason, names in sorted(reasons.items())]
    return "\n".join(lines) + "\n"
