"""Chapters of the page, one for each document, with a section for each sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.speedups import with_base
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.presentation.changes import changes_table
from opencl_lab.lab.presentation.table import Cell, CellTable, field, measured_columns, number_cell
from opencl_lab.lab.report.changes import (
    changes_figures,
    changes_text,
    changes_troubles,
    compared_rows,
)
from opencl_lab.lab.report.devices import Across
from opencl_lab.lab.report.documents import (
    Sweep,
    calls_of,
    command_of,
    is_comparison,
    is_search,
    objects,
    source_of,
    sweeps_of,
    texts,
)
from opencl_lab.lab.report.environment import busy_text
from opencl_lab.lab.report.figures import Picture, figure_across, figures_of
from opencl_lab.lab.report.ratios import ratios_of
from opencl_lab.lab.report.searches import (
    search_figures,
    search_table,
    search_text,
    search_troubles,
)
from opencl_lab.lab.report.summary import Trouble, summary_of, troubles_of

INCOMPLETE = "This run is incomplete: it ended before everything was measured."
CALL_COLUMNS = {
    "side": "arrays",
    "call_us": "\N{MICRO SIGN}s per call",
    "host_us": "\N{MICRO SIGN}s until it returns",
    "calls": "back-to-back calls",
}


@dataclass(frozen=True)
class Section:
    """A section about one sweep, the cost of calls, a search, or the comparison of two runs."""

    anchor: str
    title: str
    subtitle: str
    summary: Sequence[str]
    troubles: Sequence[Trouble]
    figures: Sequence[Picture]
    table: CellTable
    ratios: CellTable | None = None


@dataclass(frozen=True)
class Chapter:
    """A chapter about one document, or about several devices."""

    anchor: str
    title: str
    subtitle: str
    sections: Sequence[Section]  # at least one
    warnings: Sequence[str] = ()
    """Sentences about reasons to doubt its numbers: an incomplete run, a busy machine."""
    source: str = ""
    command: str = ""
    """The document, and the command that wrote it; empty for a chapter about several documents."""
    answers: Sequence[tuple[str, Sequence[str]]] = ()
    notes: Sequence[str] = ()
    """Of a study: its questions with their answers, and what was left out."""
    device: str = ""  # only on a page about several devices


def chapter_of(results: Results, folder: Path, anchor: str, device: str = "") -> Chapter:
    """Return the chapter of a document; all HTML names in it begin with `anchor`."""
    sections = sections_of(results, anchor)
    title, subtitle = results.operation, ""
    study = isinstance(results.content.get("study"), str)
    if study:
        scale = results.content.get("scale")
        title = f"Study {title}" + (f" ({scale})" if isinstance(scale, str) else "")
    elif len(sections) == 1:
        title, subtitle = sections[0].title, sections[0].subtitle
    warnings = _incomplete(results.content)
    busy = busy_text(results)
    warnings += [f"During the measurement: {busy}"] if busy else []
    source, command = source_of(results, folder), command_of(results, folder)
    answers, notes = _answers(results), texts(results.content.get("notes")) * bool(study)
    return Chapter(
        anchor, title, subtitle, sections, warnings, source, command, answers, notes, device
    )


def _incomplete(content: Mapping[str, Any]) -> list[str]:
    """Return a warning if a run ended early; for a study also why, and what is missing."""
    if content.get("complete") is not False:
        return []
    sentences = [INCOMPLETE]
    stopped, missing = content.get("stopped"), content.get("missing")
    if content.get("study") and isinstance(stopped, str) and stopped:
        sentences.append(f"{stopped[:1].upper()}{stopped[1:]}.")
    points: dict[str, list[str]] = {}
    for point in missing if isinstance(missing, list) else ():
        if isinstance(point, dict):
            where = ", ".join(f"{name}={value}" for name, value in point.items() if name != "part")
            points.setdefault(str(point.get("part")), []).append(where)
    sentences += [f"Not measured: {part} at {'; '.join(where)}." for part, where in points.items()]
    return [" ".join(sentences)]


def chapter_across(across: Sequence[Across], anchor: str) -> Chapter:
    """Return the chapter that compares devices."""
    sections = []
    for index, item in enumerate(across):
        name, sweep = f"{anchor}-{index}", item.sweep
        title, options = f"{_title(sweep)}, on {len(item.sweeps)} devices", _options(sweep.fixed)
        drawn = [figure_across(item.series, sweep.axis)] if sweep.varied and item.series else []
        sections.append(Section(name, title, options, [], [], drawn, item.table))
    return Chapter(anchor, "Across devices", "", sections)


def sections_of(results: Results, anchor: str = "s") -> list[Section]:
    """Return the sections of a document."""
    if is_comparison(results):
        said, troubles = changes_text(results), changes_troubles(results)
        figures, table = changes_figures(results), changes_table(compared_rows(results))
        title = f"Two runs compared: {_compared(results)}"
        return [Section(f"{anchor}-0", title, "", said, troubles, figures, table)]
    if is_search(results):
        return [_search_section(results, f"{anchor}-0")]
    found: list[Section] = []
    peaks = Peaks.of(results.content.get("peaks"))
    for sweep in sweeps_of(results):
        said, troubles = summary_of(sweep), troubles_of(sweep)
        figures, table = figures_of(sweep, peaks), table_of(sweep)
        name, title = f"{anchor}-{len(found)}", _title(sweep)
        ratios, options = ratios_of(sweep.series, sweep.axis), _options(sweep.fixed)
        found.append(Section(name, title, options, said, troubles, figures, table, ratios))
    calls = calls_of(results)
    if calls:
        title = f"{results.operation}: cost of calls"
        name, options = f"{anchor}-{len(found)}", _options(results.options)
        found.append(Section(name, title, options, [], [], [], calls_table(calls)))
    return found


def table_of(sweep: Sweep) -> CellTable:
    """Return the rows of a sweep by size, with the columns that all tables of rows have."""
    series, bases = with_base(sweep.series)
    sizes = {sweep.size_of(row): row.leading for row in sweep.rows}
    items = [(sizes[size], row) for size, rows in series for row in rows]
    columns: dict[str, Callable[[tuple[Mapping[str, Any], Measurement]], Cell]] = {
        name: partial(lambda cell, item: cell(item[0]), field(name)) for name in sweep.varied
    }
    for head, made in measured_columns([row for _, row in items], bases).items():
        columns[head] = partial(lambda cell, item: cell(item[1]), made)
    runs = sorted({row.total_ms.runs for _, row in items if row.total_ms})
    span = " to ".join(str(count) for count in dict.fromkeys((runs[0], runs[-1]))) if runs else ""
    return CellTable.of(items, columns, f"Each time is the median of {span} runs." if runs else "")


def calls_table(calls: Sequence[Mapping[str, Any]]) -> CellTable:
    """Return a table of the cost of calls: sizes, what is called, then the figures."""
    known = ("what", *CALL_COLUMNS)
    sizes = dict.fromkeys(name for call in calls for name in call if name not in known)
    figure = partial(number_cell, digits=3)
    columns: dict[str, Callable[[Mapping[str, Any]], Cell]] = {
        name.replace("_", " "): field(name, figure) for name in sizes
    }
    columns["call"] = lambda call: Cell(str(call.get("what", "")), heads=True)
    columns |= {head: field(name, figure) for name, head in CALL_COLUMNS.items()}
    return CellTable.of(calls, columns)


def _search_section(results: Results, anchor: str) -> Section:
    problem = {name: x for name, x in results.mapping("problem").items() if name != "operation"}
    algorithm = results.content.get("algorithm")
    title = f"Tuning {results.operation}" + (f" by {algorithm}" if algorithm else "")
    said, troubles = search_text(results), search_troubles(results)
    figures, table = search_figures(results), search_table(results)
    return Section(anchor, title, _options(problem), said, troubles, figures, table)


def _compared(results: Results) -> str:
    runs = results.mapping("compared")
    names = [run.get("path") for run in map(runs.get, ("old", "new")) if isinstance(run, dict)]
    return ", then ".join(map(str, names))


def _title(sweep: Sweep) -> str:
    sizes = [size for size, _ in sweep.series]
    if not sweep.varied:
        return sweep.title
    return f"{sweep.title}: {sweep.axis} from {sizes[0]:,} to {sizes[-1]:,}"


def _options(options: Mapping[str, Any]) -> str:
    """Return options as text; a flag is named if it is on."""
    on = [(name, value) for name, value in options.items() if value is not None]
    words = (n if value is True else f"{n} {value}" for n, value in on if value is not False)
    return ", ".join(words)


def _answers(results: Results) -> list[tuple[str, list[str]]]:
    """Return the questions of a study, each with the sentences of its answer."""
    found = []
    for item in objects(results.content.get("answers")):
        said = item.get("answer")
        sentences = [str(one) for one in said] if isinstance(said, list) else [str(said or "")]
        found.append((str(item.get("question") or ""), sentences))
    return found
