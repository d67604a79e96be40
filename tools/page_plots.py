"""The pictures of the pages of figures: throughput by size, and ratios beside a line at 1."""

from __future__ import annotations

import hashlib
import io
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import scaling
from matplotlib.figure import Figure
from page_data import MOST_ROWS, OPERATIONS, OURS, SUMMARY, DeviceRun, Listing, PageData, best_other

from opencl_lab.lab.presentation.drawing import plain_number, plain_scale
from opencl_lab.lab.studies.outcome import StudyOutcome

INK = "#727a85"  # of text: as far from white as from the dark pages of GitHub
_STYLES = {  # colour and marker, all with a contrast of 3 at least on white and on dark pages
    (OURS,): ("#e5484d", "o"),
    ("NumPy", "BLAS", "SciPy", "built-in"): ("#3b82f6", "s"),
    ("C, OpenMP", "launch baseline"): ("#7d8590", "v"),
    ("OpenCV", "FFTW"): ("#2f9e44", "D"),
    ("CLBlast", "PyOpenCL bitonic"): ("#d6409f", "X"),
    ("VkFFT", "PyOpenCL radix"): ("#a0714f", "P"),
    ("CuPy",): ("#0e9594", "D"),
    ("PyTorch",): ("#a855f7", "^"),
    ("by gemv",): ("#c2740c", "o"),
    ("by packed",): ("#6b7f1c", "^"),
    ("by blocked",): ("#7c6cf0", "s"),
}
STYLES = {name: style for names, style in _STYLES.items() for name in names}
OTHERS = (("#c2740c", "o"), ("#6b7f1c", "^"), ("#7c6cf0", "s"), ("#c2497e", "<"))
STUDY_PLOTS = {"dgemm": "dgemm-workers.png"}  # the first one where it is not named
PANEL, WIDE = (3.6, 2.5), (6.4, 3.0)  # inches
TEXTS: Any = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"], "text.parse_math": False}
DATE = re.compile(r"\s*<dc:date>.*?</dc:date>", re.DOTALL)
Styles = Mapping[str, tuple[str, str]]


def styles_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return colours and markers by name, in the order in which they are shown."""
    there = dict.fromkeys(names)
    found = {name: style for name, style in STYLES.items() if name in there}
    more = [name for name in there if name not in found]
    return {**found, **{name: OTHERS[at % len(OTHERS)] for at, name in enumerate(more)}}


def pictures(data: PageData) -> dict[str, Callable[[], str]]:
    """Return by the name of its file what draws each picture."""
    made: dict[str, Callable[[], str]] = {"summary": partial(summary, data)}
    made |= {name: partial(throughput, data, name) for name in OPERATIONS}
    for name, listing in data.listings.items():
        if len(listing.rows) > MOST_ROWS:  # else all of them are in the table
            across = {"takes", "points"} & set(listing.leading)
            made[name] = partial(scattered if across else dots, listing)
    for name, (_, outcome) in data.studies.items():
        made[f"studies/{name}"] = partial(study, outcome)
    return made | {"scaling": efficiencies}


def summary(data: PageData) -> str:
    """Draw how the fastest other library compares, by operation, size and device."""
    panels = [data.runs[name] for name in SUMMARY if name in data.runs]
    styles = styles_of(run.title for runs in panels for run in runs)

    def draw(axis: Any, runs: Sequence[DeviceRun]) -> None:
        for run in runs:
            colour, marker = styles[run.title]
            axis.plot([], [], marker + "-", color=colour, label=run.title, ms=5)
            axis.plot([size for size, _ in run.series], run.ratios, color=colour, lw=1.3)
            for (size, times), ratio in zip(run.series, run.ratios, strict=True):
                face = "none" if best_other(times)[1].is_level_with(times[OURS]) else colour
                axis.plot(size, ratio, marker, color=colour, mfc=face, ms=5)
        plain_scale(axis.xaxis, write=short)
        sweep = runs[0].sweep
        _finish(
            axis, f"{runs[0].name.split('_')[0]}: {sweep.what}", sweep.size, "best other / ours"
        )
        _ratios(axis, axis.yaxis)

    used = [run.results.path for runs in panels for run in runs]
    return _panels("summary", [panels[:3], panels[3:]], draw, styles, used)


def throughput(data: PageData, operation: str) -> str:
    """Draw the throughput of an operation by size, a panel for each device."""
    rows = rows_of_panels([data.runs.get(name, ()) for name in OPERATIONS[operation]])
    used = [run for row in rows for run in row]
    styles = styles_of(name for run in used for _, times in run.series for name in times)

    def draw(axis: Any, run: DeviceRun) -> None:
        for name, (colour, marker) in reversed(styles.items()):
            points = [
                (size, run.sweep.units(size, run.batch) / (times[name].median / 1e3))
                for size, times in run.series
                if name in times
            ]
            if points:
                how: Any = {"color": colour, "label": name, "lw": 2.2 if name == OURS else 1.3}
                axis.plot(*zip(*points, strict=True), marker + "-", ms=4, **how)
        plain_scale(axis.xaxis, write=short)
        plain_scale(axis.yaxis, write=plain_number)
        _finish(axis, f"{run.title}\n{run.sweep.what}", run.sweep.size, run.sweep.unit)

    return _panels(operation, rows, draw, styles, [run.results.path for run in used])


def rows_of_panels(parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return the rows of a picture: one for each sweep; short ones share a row."""
    rows: list[list[Any]] = []
    for panels in filter(None, parts):
        if rows and len(rows[-1]) + len(panels) <= max(map(len, parts)):
            rows[-1] += panels
        else:
            rows.append(list(panels))
    return rows


def scattered(listing: Listing) -> str:
    """Draw the ratios of products by their operations, or those of transforms by their lengths."""
    ours, *others = listing.compared
    products = "takes" in listing.leading
    groups: dict[str, list[tuple[int, float]]] = {}
    for row in listing.rows:
        x = 2 * math.prod(int(row[name]) for name in "mnk") if products else int(row["points"])
        for column, ratio in listing.ratios(row).items():
            name = f"by {row['takes']}" if products else name_of(column)
            groups.setdefault(name, []).append((x, ratio))
    styles = styles_of(groups)

    def draw(axis: Any, device: str) -> None:
        for name, (colour, marker) in styles.items():
            points = zip(*groups[name], strict=True)
            axis.plot(*points, marker, color=colour, label=name, ms=4.5 if products else 4)
        plain_scale(axis.xaxis, write=short)
        below = "operations of a product, 2 m n k" if products else "points of a row"
        beside = f"{name_of(others[0])} / ours"
        _finish(axis, device, below, beside if products else f"times as long as {name_of(ours)}")
        _ratios(axis, axis.yaxis)

    rows = [[listing.head["device"]]]
    return _panels(listing.path.stem, rows, draw, styles, [listing.path], WIDE)


def dots(listing: Listing) -> str:
    """Draw the ratios of the rows of a listing, a panel for each device."""
    groups: dict[str, list[Any]] = {}
    for row in listing.rows:
        groups.setdefault(row.get("device", listing.head["device"]), []).append(row)
    ours, *others = listing.compared
    styles = styles_of(map(name_of, others))
    found = [ratio for row in listing.rows for ratio in (1.0, *listing.ratios(row).values())]

    def draw(axis: Any, device: str) -> None:
        rows = groups[device]
        for column in others:
            colour, marker = styles[name_of(column)]
            ratios = [listing.ratios(row).get(column, math.nan) for row in rows]
            axis.plot(ratios, range(len(rows)), marker, color=colour, label=name_of(column), ms=5)
        axis.set_yticks(range(len(rows)), map(listing.label, rows))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        _finish(axis, device, f"times as long as {name_of(ours)}", "")
        _ratios(axis, axis.xaxis)
        axis.set_xlim(min(found) / 1.05, max(found) * 1.05)  # of all panels, so that they compare

    heights = [0.7 + 0.2 * len(rows) for rows in groups.values()]
    rows = [[device] for device in groups]
    return _panels(listing.path.stem, rows, draw, styles, [listing.path], WIDE, heights)


def study(outcome: StudyOutcome) -> str:
    """Return the picture that the command draws of a study."""
    draws, name = outcome.plots, outcome.study.name
    draw = draws.get(STUDY_PLOTS.get(name, "")) or next(iter(draws.values()))
    with tempfile.TemporaryDirectory(prefix="oclab-") as folder:
        path = Path(folder, "plot.svg")
        with matplotlib.rc_context({**TEXTS, "svg.hashsalt": name}):
            draw(path)
        return _trimmed(DATE.sub("", path.read_text(encoding="utf-8")))


SCALED = {
    "gemm": ("#e5484d", "o"),
    "sort": ("#3b82f6", "s"),
    "fft": ("#2f9e44", "D"),
    "conv2d": ("#a855f7", "^"),
}


def efficiencies() -> str:
    """Draw efficiency by ranks: as it is, and with all changes."""

    def draw(axis: Any, item: tuple[str, bool]) -> None:
        machine, weak = item
        for name, (colour, marker) in SCALED.items():
            for how, line in ((scaling.NOW, "-"), (scaling.changed(name), "--")):
                values = [scaling.outcome(machine, name, p, weak, how)[1] for p in scaling.CURVE]
                more: Any = {"label": name, "marker": marker} if line == "-" else {}
                axis.plot(scaling.CURVE, values, line, color=colour, lw=1.4, ms=4, **more)
        axis.set_xscale("log")
        axis.set_ylim(0, 1.08)
        axis.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
        kind = "weak: alike for each rank" if weak else "strong: one problem"
        _finish(axis, f"{machine}, {kind}", "ranks", "efficiency")

    rows = [[(machine, weak) for weak in (True, False)] for machine in scaling.machines()]
    return _panels("scaling", rows, draw, SCALED, sorted(scaling.DATA.glob("*.json")))


def name_of(column: str) -> str:
    """Return the name of a column of times without its unit."""
    return column.rsplit(" ", 1)[0]


def short(size: float) -> str:
    """Return a size as it is written below an axis: a power of two or of ten where it is one."""
    for base in (2, 10):
        power = round(math.log(size, base))
        if base**power == size and size > 9999:
            return f"{base}{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return plain_number(size)


def _ratios(axis: Any, scale: Any) -> None:
    """Make an axis of ratios logarithmic, with a line at 1."""
    plain_scale(scale, write=lambda value: f"{value:g}x")
    draw = axis.axhline if scale is axis.yaxis else axis.axvline
    draw(1.0, color=INK, lw=1.4)


def _finish(axis: Any, title: str, x_label: str, y_label: str) -> None:
    axis.set_title(title, fontsize=9, color=INK)
    axis.set_xlabel(x_label, color=INK)
    axis.set_ylabel(y_label, color=INK)
    axis.tick_params(which="both", colors=INK, labelsize=8)
    axis.grid(color=INK, alpha=0.25, lw=0.6)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def _panels(
    name: str,
    rows: Sequence[Sequence[Any]],
    draw: Callable[[Any, Any], None],
    styles: Styles,
    used: Iterable[Path],
    panel: tuple[float, float] = PANEL,
    heights: Sequence[float] = (),
) -> str:
    """Return a picture of panels with one legend below, which says of what files it is."""
    options = {**TEXTS, "svg.hashsalt": name, "font.size": 9, "text.color": INK}
    with matplotlib.rc_context(options):
        columns, ratios = max(map(len, rows)), list(heights) or [panel[1]] * len(rows)
        figure = Figure(figsize=(panel[0] * columns, sum(ratios) + 0.4), layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=ratios)
        handles: dict[str, Any] = {}
        for line, items in zip(axes, rows, strict=True):
            for axis in line[len(items) :]:
                axis.remove()
            for axis, item in zip(line, items, strict=False):
                draw(axis, item)
                handles.update(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
        where: Any = {"loc": "outside lower center", "ncols": len(styles), "frameon": False}
        figure.legend([handles[label] for label in styles], list(styles), **where)
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in dict.fromkeys(used)))
        says = {"Title": name, "Description": digest.hexdigest()[:16], "Date": None}
        says["Creator"] = f"Matplotlib {matplotlib.__version__}"
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata=says)
    return _trimmed(text.getvalue())


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))
