"""Plots by Matplotlib as SVG for a page: with text, tooltips and the page's colours."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from opencl_lab.core.trust import temporary_place
from opencl_lab.lab.presentation.drawing import LEGEND_ROOM, drawn_for_page
from opencl_lab.lab.presentation.lines import group_name

INCHES = 5.8  # width of plots; they are about as wide on a phone, and 1.5 times on a large screen
LEAST_FONT = 11.0  # points; smaller text cannot be read

STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "oclab",  # equal data give equal pages
    "text.parse_math": False,  # names are not formulas
    "font.size": LEAST_FONT,
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
"""Colours of the page that replace black and greys of a plot, so that they suit a dark page."""
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
REACH = "7"  # radius in points within which a mark shows its tooltip
HANDLE = 24  # points from the left end of a handle in a legend to its name
SHIFTED = re.compile(r"url\(#([^)]*)\)")


@dataclass(frozen=True)
class Figure:
    """A plot: its SVG, which is safe in a page, its caption, and its legend.

    The legend has an SVG and a name for each line, so that the page can wrap it.
    """

    svg: Markup
    caption: str
    legend: Sequence[tuple[Markup, str]] = ()


def figure_of(
    draw: Callable[[Path], None], prefix: str, tips: Mapping[str, str], caption: str
) -> Figure:
    """Return the SVG that `draw` writes to a file, adapted to a page."""
    import matplotlib

    with tempfile.TemporaryDirectory(prefix="oclab-", dir=temporary_place()) as folder:
        path = Path(folder, "plot.svg")
        with matplotlib.rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its fonts lack letters; browsers do not
            with drawn_for_page(INCHES, LEAST_FONT):
                draw(path)
        root = ElementTree.parse(path).getroot()
    for item in root.findall(f"{SVG}metadata"):
        root.remove(item)
    for item in root.findall(f"{SVG}defs"):
        for style in item.findall(f"{SVG}style"):  # since it would apply to the whole page
            item.remove(style)
    for item in list(root.iter(f"{SVG}g")):
        if item.get("id", "").startswith("marks|"):
            _add_tips(item, tips)
    legend = _take_legend(root)
    *_, height = map(float, root.get("viewBox", "").split())
    root.set("viewBox", f"0 0 {72 * INCHES:g} {height - 72 * LEGEND_ROOM:g}")
    for item in root.iter():
        _adapt(item, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", f"{caption}: the table has its numbers")
    handles = []
    for handle, name in legend:
        for item in handle.iter():
            _adapt(item, prefix)
        handles.append((_markup(handle), name))
    return Figure(_markup(root), caption, handles)


def _markup(root: ElementTree.Element) -> Markup:
    """Return an element as markup; its text is escaped."""
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _take_legend(root: ElementTree.Element) -> list[tuple[ElementTree.Element, str]]:
    """Cut out the legend, and return the handle of each line with its name."""
    found: list[tuple[ElementTree.Element, str]] = []
    for parent in list(root.iter(f"{SVG}g")):
        for group in parent.findall(f"{SVG}g"):
            if not group.get("id", "").startswith("legend"):
                continue
            handles: list[ElementTree.Element] = []
            for item in group.findall(f"{SVG}g"):
                text = item.find(f".//{SVG}text")
                if text is None:
                    handles.append(item)
                    continue
                x, y = float(text.get("x", "0")), float(text.get("y", "0"))
                box = f"{x - HANDLE:g} {y - 8:g} {HANDLE - 4:g} 10"
                handle = ElementTree.Element(f"{SVG}svg", {"viewBox": box, "aria-hidden": "true"})
                handle.extend(handles)
                found.append((handle, "".join(text.itertext())))
                handles = []
            if found:
                parent.remove(group)
    return found


def _add_tips(group: ElementTree.Element, tips: Mapping[str, str]) -> None:
    """Add tooltips to the marks of a line, or to a bar."""
    _, rest = group.get("id", "").split("|", 1)
    implementation, _, sizes = rest.rpartition("|")
    if not sizes:
        group.set("class", "mark")
        title = ElementTree.Element(f"{SVG}title")
        title.text = tips.get(group_name(implementation), implementation)
        group.insert(0, title)
        return
    texts = [tips.get(group_name(implementation, (int(size),))) for size in sizes.split(",")]
    # Marks of equal form are uses of one path; in a scatter plot, each may be a path.
    for tag in ("use", "path"):
        marks = [
            (parent, mark)
            for parent in group.iter()
            if parent.tag != f"{SVG}defs"
            for mark in parent.findall(f"{SVG}{tag}")
        ]
        if len(marks) == len(texts):
            for (parent, mark), text in zip(marks, texts, strict=True):
                _wrap(parent, mark, text)
            return


def _wrap(parent: ElementTree.Element, mark: ElementTree.Element, text: str | None) -> None:
    """Put a mark and its tooltip into a group, with a circle that is easier to point at."""
    place = list(parent).index(mark)
    parent.remove(mark)
    around = ElementTree.Element(f"{SVG}g", {"class": "mark"})
    ElementTree.SubElement(around, f"{SVG}title").text = text
    if mark.tag == f"{SVG}use":
        where = {"cx": mark.get("x", "0"), "cy": mark.get("y", "0"), "r": REACH}
        ElementTree.SubElement(around, f"{SVG}circle", where)
    around.append(mark)
    parent.insert(place, around)


def _adapt(item: ElementTree.Element, prefix: str) -> None:
    """Prefix the names of an element, and use the fonts and greys of the page."""
    item.tag = item.tag.removeprefix(SVG)
    item.tail = (item.tail or "").strip()
    if item.tag not in ("text", "tspan", "title"):
        item.text = (item.text or "").strip()
    name = item.attrib.pop("id", None)
    if name is not None and item.tag != "g":  # nothing refers to groups
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
        if name == "font":  # older versions of Matplotlib write size and family together
            size = re.search(r"[\d.]+px", value)
            name, value = "font-size", size.group() if size else "10px"
        if name == "font-size":
            value = f"{max(float(value.removesuffix('px')), LEAST_FONT):g}px"
        if name and name != "font-family":
            kept.append(f"{name}:{COLOURS.get(value, value)}")
    return ";".join(kept)
