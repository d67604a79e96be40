"""The plots of a comparison as SVG within a page: real text, tooltips, colours of the page."""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.plots import (
    Series,
    group_name,
    plot_comparison,
    plot_speedup,
    plot_throughput,
    plot_times,
)
from opencl_lab.comparison.runner import BASELINE
from opencl_lab.comparison.sweep import crossovers
from opencl_lab.comparison.table import number
from opencl_lab.report.sweeps import Sweep

__all__ = ["Figure", "figures_of"]

STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "oclab",  # the same page for the same data
    "text.parse_math": False,  # names are no formulas
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
COLOURS = {
    "#000000": "currentColor",
    "#333333": "var(--strong)",
    "#7f7f7f": "var(--muted)",
    "#808080": "var(--muted)",
    "#999999": "var(--muted)",
    "#e6e6e6": "var(--grid)",
}
"""Colours of the page for the black and greys of a plot, so that they fit a dark one, too.

The grey of a line is a grey of the page then, too.
"""
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
REACH = "7"  # radius in points within which a mark shows its tooltip
HANDLE = 24  # points from the left of a line in a legend to its name, at 8 points
SHIFTED = re.compile(r"url\(#([^)]*)\)")


@dataclass(frozen=True)
class Figure:
    """A plot: its SVG, safe to be put into a page, what it shows, and its legend.

    The legend has for each line an SVG of its own and a name, so that it flows with the page.
    """

    svg: Markup
    caption: str
    legend: Sequence[tuple[Markup, str]] = ()


def figures_of(sweep: Sweep, prefix: str) -> list[Figure]:
    """Draw a sweep; for a single problem, a bar for each implementation.

    Parameters
    ----------
    sweep : Sweep
    prefix : str
        Begins the names within the SVG, which must differ from all others in the page.
    """
    series = sweep.series
    rows = [row for _, items in series for row in items]
    if not any(row.total_ms and row.total_ms.max > 0 for row in rows):
        return []
    tips = _tips(series, sweep.axis)
    if not sweep.varied:
        draw = partial(plot_comparison, rows=rows, title="")
        return [_figure(draw, f"{prefix}-bars", tips, "Total time of a call")]
    found = crossovers(series)
    wanted: list[tuple[str, str, Callable[[Path], None]]] = [
        (
            "time",
            "Total time of a call; a ring: faster from there on",
            lambda path: plot_times(path, series, sweep.axis, "", found),
        )
    ]
    if any(row.speedup for row in rows):
        wanted.append(
            (
                "speedup",
                f"Speed-up over {BASELINE}",
                lambda path: plot_speedup(path, series, sweep.axis, BASELINE, ""),
            )
        )
    if any(row.throughput for row in rows):
        wanted.append(
            (
                "throughput",
                "Throughput, by the total time",
                lambda path: plot_throughput(path, series, sweep.axis, ""),
            )
        )
    figures = [_figure(draw, f"{prefix}-{name}", tips, text) for name, text, draw in wanted]
    size, last = series[-1]
    workers = _by_workers(last)
    if workers:
        draw = partial(
            plot_speedup, series=workers, size_name="workers", baseline=BASELINE, title=""
        )
        text = f"Speed-up by threads or ranks, {sweep.axis} = {size:,}"
        figures.append(_figure(draw, f"{prefix}-workers", _tips(workers, "workers"), text))
    return figures


def _by_workers(rows: Sequence[Measurement]) -> list[tuple[int, list[Measurement]]]:
    """Return by workers the references that ran with several numbers of them."""
    several = [row for row in rows if row.kind != "opencl" and row.speedup]
    counts: dict[str, set[int]] = {}
    for row in several:
        counts.setdefault(row.algorithm, set()).add(row.workers)
    kept = [
        replace(row, implementation=row.algorithm)
        for row in several
        if len(counts[row.algorithm]) > 1
    ]
    return [
        (count, [row for row in kept if row.workers == count])
        for count in sorted({row.workers for row in kept})
    ]


def _tips(series: Series, axis: str) -> dict[str, str]:
    """Return the tooltips of marks and bars, by implementation and size."""
    found = {}
    for size, rows in series:
        for row in rows:
            if row.total_ms is None:
                continue
            times = row.total_ms
            where = f", {axis} = {size:,}" if axis else ""
            text = f"{row.implementation}{where}: {number(times.median)} ms"
            text += f" ({number(times.min, 3)} to {number(times.max, 3)}, {times.runs} runs)"
            if row.speedup is not None:
                text += f", {number(row.speedup, 3)} times {BASELINE}"
            if row.throughput is not None:
                text += f", {number(row.throughput, 3)} {row.throughput_unit}"
            name = group_name(row.implementation, (size,) if axis else ())
            found[name] = text
    return found


def _figure(
    draw: Callable[[Path], None], prefix: str, tips: Mapping[str, str], caption: str
) -> Figure:
    """Return what `draw` writes to a file as SVG, made a part of a page."""
    import matplotlib

    with tempfile.TemporaryDirectory(prefix="oclab-") as folder:
        path = Path(folder, "plot.svg")
        with matplotlib.rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # letters that its fonts lack; the browser has others
            draw(path)
        root = ElementTree.parse(path).getroot()
    for item in root.findall(f"{SVG}metadata"):
        root.remove(item)
    for item in root.findall(f"{SVG}defs"):
        for style in item.findall(f"{SVG}style"):  # which would be the whole page's
            item.remove(style)
    for item in list(root.iter(f"{SVG}g")):
        if item.get("id", "").startswith("marks|"):
            _add_tips(item, tips)
    legend = _take_legend(root)
    for item in root.iter():
        _adapt(item, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", f"{caption}: the table has its numbers")
    samples = []
    for sample, name in legend:
        for item in sample.iter():
            _adapt(item, prefix)
        samples.append((_markup(sample), name))
    return Figure(_markup(root), caption, samples)


def _markup(root: ElementTree.Element) -> Markup:
    """Return an element as it stands in a page: serialized, which escapes all that is in it."""
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _take_legend(root: ElementTree.Element) -> list[tuple[ElementTree.Element, str]]:
    """Cut the legend off at the right, and return a sample of each line with its name."""
    found: list[tuple[ElementTree.Element, str]] = []
    for parent in list(root.iter(f"{SVG}g")):
        for group in parent.findall(f"{SVG}g"):
            if not group.get("id", "").startswith("legend"):
                continue
            left = math.inf
            handles: list[ElementTree.Element] = []
            for item in group.findall(f"{SVG}g"):
                text = item.find(f".//{SVG}text")
                if text is None:
                    handles.append(item)
                    continue
                x, y = float(text.get("x", "0")), float(text.get("y", "0"))
                left = min(left, x - HANDLE)
                box = f"{x - HANDLE:g} {y - 8:g} {HANDLE - 4:g} 10"
                sample = ElementTree.Element(f"{SVG}svg", {"viewBox": box, "aria-hidden": "true"})
                sample.extend(handles)
                found.append((sample, "".join(text.itertext())))
                handles = []
            if found:
                parent.remove(group)
                height = root.get("viewBox", "").split()[-1]
                root.set("viewBox", f"0 0 {left:g} {height}")
    return found


def _add_tips(group: ElementTree.Element, tips: Mapping[str, str]) -> None:
    """Give the marks of a line, or a bar, their tooltips."""
    _, rest = group.get("id", "").split("|", 1)
    implementation, _, sizes = rest.rpartition("|")
    if not sizes:
        title = ElementTree.Element(f"{SVG}title")
        title.text = tips.get(group_name(implementation), implementation)
        group.insert(0, title)
        return
    texts = [tips.get(group_name(implementation, (int(size),))) for size in sizes.split(",")]
    for parent in list(group.iter(f"{SVG}g")):
        marks = parent.findall(f"{SVG}use")
        if len(marks) == len(texts):
            _wrap(parent, marks, texts)


def _wrap(
    parent: ElementTree.Element,
    marks: Sequence[ElementTree.Element],
    texts: Sequence[str | None],
) -> None:
    for mark, text in zip(marks, texts, strict=True):
        place = list(parent).index(mark)
        parent.remove(mark)
        around = ElementTree.Element(f"{SVG}g", {"class": "mark"})
        ElementTree.SubElement(around, f"{SVG}title").text = text
        where = {"cx": mark.get("x", "0"), "cy": mark.get("y", "0"), "r": REACH}
        ElementTree.SubElement(around, f"{SVG}circle", where)
        around.append(mark)
        parent.insert(place, around)


def _adapt(item: ElementTree.Element, prefix: str) -> None:
    """Make the names of an element the page's own, its fonts and its greys those of the page."""
    item.tag = item.tag.removeprefix(SVG)
    item.tail = (item.tail or "").strip()
    if item.tag not in ("text", "tspan", "title"):
        item.text = (item.text or "").strip()
    name = item.attrib.pop("id", None)
    if name is not None and item.tag != "g":  # those of groups are not referred to
        item.set("id", f"{prefix}-{name}")
    link = item.attrib.pop(LINK, None)
    if link is not None:
        item.set("href", f"#{prefix}-{link.removeprefix('#')}")
    if "clip-path" in item.attrib:
        item.set("clip-path", SHIFTED.sub(rf"url(#{prefix}-\1)", item.attrib["clip-path"]))
    style = item.get("style")
    if style is not None:
        item.set("style", _style(style))


def _style(style: str) -> str:
    kept = []
    for part in style.split(";"):
        name, _, value = (word.strip() for word in part.partition(":"))
        if name == "font":  # older versions of Matplotlib: size and family at once
            size = re.search(r"[\d.]+px", value)
            name, value = "font-size", size.group() if size else "10px"
        if name and name != "font-family":
            kept.append(f"{name}:{COLOURS.get(value, value)}")
    return ";".join(kept)
