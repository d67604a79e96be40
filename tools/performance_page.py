"""Make the plots and tables of docs/performance.md from the documents in docs/data.

    python tools/performance_page.py

reads docs/data/LABEL.json, a document of the study `peers` for each device, and titles.json there,
which names the devices; draws docs/plots/OPERATION.svg, and replaces what is between the markers of
each operation in docs/performance.md. Nothing in there is written by hand. Parts that a document
lacks have no panel and no table. A second run changes nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from performance_plots import plot
from performance_runs import OPERATIONS, OURS, Run, Sweep, read_runs

from opencl_lab.lab.engine.row import Measurement

DOCS = Path(__file__).parents[1] / "docs"
PLATFORMS = {"Portable Computing Language": "PoCL", "Intel(R) OpenCL": "Intel's CPU runtime"}


def table(sweep: Sweep, run: Run) -> str:
    """Return the times of a run as Markdown, with the best other library beside ours."""
    names = run.names
    lines = [
        f"**{run.title}**, {sweep.what}; {_where(run)}; milliseconds per call:",
        "",
        f"| {sweep.size} | {' | '.join(names)} | best other / ours |",
        f"|--:|{'--:|' * len(names)}--:|",
    ]
    for size, row in run.series:
        times = [_number(row[name].total_ms.median) if name in row else "-" for name in names]
        lines.append(f"| {size:,} | {' | '.join(times)} | {_ratio(row)} |")
    return "\n".join(lines)


def _where(run: Run) -> str:
    device = run.results.device
    platform = PLATFORMS.get(device["platform"], device["platform"])
    places = "data on the device" if run.on_gpu else "NumPy arrays"
    return f"{platform}, driver {device['driver']}; {places}; {run.started[:10]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ratio(row: Mapping[str, Measurement]) -> str:
    """Return how the best other library compares; in brackets where the intervals overlap."""
    others = [item for name, item in row.items() if name != OURS]
    if OURS not in row or not others:
        return "-"
    ours = row[OURS].total_ms
    best = min((item.total_ms for item in others), key=lambda times: times.median)
    text = f"{best.median / ours.median:.2f}x"
    return f"({text})" if best.is_level_with(ours) else text


def section(operation: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return what stands between the markers of an operation."""
    picture = f"![Throughput of {operation} by size, one panel per device](plots/{operation}.svg)"
    tables = [
        table(sweep, run) for sweep in OPERATIONS[operation] for run in runs.get(sweep.name, ())
    ]
    return "\n\n".join([picture, *tables]) if tables else "Not measured yet."


def page(text: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the page with everything between markers made anew.

    Raises
    ------
    ValueError
        If the markers of an operation are missing.
    """
    for operation in OPERATIONS:
        begin, end = f"<!-- made from docs/data: {operation} -->", f"<!-- end of {operation} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"the page needs one {begin} with its end")
        made = f"{begin}\n{section(operation, runs)}\n{end}"
        text = pattern.sub(lambda _, made=made: made, text)  # type: ignore[misc]
    return text


def main(docs: Path = DOCS) -> int:
    """Write the page and the plots; those that would not change are left alone."""
    runs = read_runs(docs / "data")
    target = docs / "performance.md"
    made = {target: page(target.read_text(encoding="utf-8"), runs)}
    for operation, sweeps in OPERATIONS.items():
        if not any(sweep.name in runs for sweep in sweeps):
            continue
        made[docs / "plots" / f"{operation}.svg"] = plot(operation, runs)
    for path, text in made.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(docs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
