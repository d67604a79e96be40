"""The pictures of the page of figures: throughput by size, a panel for each device."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from performance_runs import OPERATIONS, OURS, Run, Sweep, styles_of

from opencl_lab.lab.presentation.drawing import plain_number
from opencl_lab.lab.presentation.ticks import show_sizes, show_values

__all__ = ["INK", "plot", "rows_of_panels"]

INK = "#727a85"  # of text: as far from white as from the dark pages of GitHub
PANEL = (3.6, 2.5)  # inches


def digest(runs: Sequence[Run]) -> str:
    """Return what tells whether a plot is of these documents."""
    paths = dict.fromkeys(run.results.path for run in runs)
    contents = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(contents).hexdigest()[:16]


def rows_of_panels(
    operation: str, runs: Mapping[str, Sequence[Run]]
) -> list[list[tuple[Sweep, Run]]]:
    """Return the panels of a picture: a row for each sweep; short ones share a row."""
    parts = [
        [(sweep, run) for run in runs[sweep.name]]
        for sweep in OPERATIONS[operation]
        if sweep.name in runs
    ]
    rows = [parts[0]]
    for panels in parts[1:]:
        if len(rows[-1]) + len(panels) <= max(map(len, parts)):
            rows[-1] = rows[-1] + panels
        else:
            rows.append(panels)
    return rows


def plot(operation: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the picture of an operation as SVG: throughput by size, a panel for each device."""
    rows = rows_of_panels(operation, runs)
    used = [run for panels in rows for _, run in panels]
    options = {"svg.fonttype": "none", "svg.hashsalt": operation, "font.size": 9}
    with matplotlib.rc_context({**options, "text.color": INK, "font.sans-serif": ["DejaVu Sans"]}):
        columns = max(map(len, rows))
        size = (PANEL[0] * max(columns, 2), PANEL[1] * len(rows) + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False)
        styles = styles_of(name for run in used for name in run.names)
        for line, panels in zip(axes, rows, strict=True):
            for axis in line[len(panels) :]:
                axis.remove()
            for axis, (sweep, run) in zip(line, panels, strict=False):
                _draw(axis, sweep, run, styles)
        handles = {}
        for axis in figure.axes:
            handles.update(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
        names = list(styles_of(handles))
        figure.legend(
            [handles[name] for name in names],
            names,
            loc="outside lower center",
            ncols=len(names),
            frameon=False,
        )
        text = io.StringIO()
        what = {"Date": None, "Creator": f"Matplotlib {matplotlib.__version__}"}
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata={**what, "Title": operation, "Description": digest(used)},
        )
    return "\n".join(line.rstrip() for line in text.getvalue().split("\n"))


def _draw(axis: Any, sweep: Sweep, run: Run, styles: Mapping[str, tuple[str, str]]) -> None:
    for name in reversed(run.names):
        points = [
            (size, sweep.units(size, run.batch) / (row[name].total_ms.median / 1e3))
            for size, row in run.series
            if name in row
        ]
        colour, marker = styles[name]
        width = 2.2 if name == OURS else 1.3
        axis.plot(
            *zip(*points, strict=True), marker + "-", color=colour, label=name, lw=width, ms=4
        )
    show_sizes(axis, [size for size, _ in run.series], short)
    show_values(axis.yaxis, plain_number)
    axis.set_title(f"{run.title}\n{sweep.what.replace('`', '')}", fontsize=9, color=INK)
    axis.set_xlabel(sweep.size, color=INK)
    axis.set_ylabel(sweep.unit, color=INK)
    axis.tick_params(which="both", colors=INK, labelsize=8)
    axis.grid(color=INK, alpha=0.25, lw=0.6)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def short(size: float) -> str:
    """Return a size as it is written below an axis: a power of two or of ten where it is one."""
    for base in (2, 10):
        power = round(math.log(size, base))
        if base**power == size and size > 9999:
            return f"{base}{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return f"{size:,}"
