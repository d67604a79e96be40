"""A self-contained HTML page made from documents of earlier runs."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from opencl_lab._version import __version__
from opencl_lab.core.template import render
from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.presentation.conditions import facts_of
from opencl_lab.lab.report.documents import (
    calls_of,
    command_of,
    gaps_of,
    is_comparison,
    is_search,
    objects,
    source_of,
    sweeps_of,
    texts,
)
from opencl_lab.lab.report.outcomes import calls_section, comparison_section, search_section
from opencl_lab.lab.report.sweeps import Section, sweep_section

HOME = files("opencl_lab.lab.report")
INCOMPLETE = "This run is incomplete: it ended before everything was measured."


@dataclass(frozen=True)
class Chapter:
    """A chapter about one document."""

    anchor: str
    title: str
    subtitle: str
    sections: Sequence[Section]  # at least one
    warnings: Sequence[str]
    """Sentences about reasons to doubt its numbers: an incomplete run, a busy machine."""
    source: str
    command: str
    """The document, and the command that wrote it."""
    answers: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str]
    """Of a study: its questions with their answers, and what was left out."""
    device: str  # only on a page about several devices


def page_of(
    documents: Sequence[Results],
    skipped: Sequence[str],
    folder: Path,
    command: Sequence[str],
    progress: Callable[[int, int, str], None],
) -> str:
    """Return the page of one or more documents as HTML.

    `skipped` are sentences about other files of the folder. `command` is the command that makes
    the page.
    """
    chapters: list[Chapter] = []
    several = len(set(filter(None, map(_device_of, documents)))) > 1
    for index, results in enumerate(documents):
        progress(index, len(documents), source_of(results, folder))
        chapters.append(_chapter(results, folder, f"s{index}", several))
    script = HOME.joinpath("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    again = dict.fromkeys(command_of(item, folder) for item in sorted(documents, key=_order))
    source = render(
        str(HOME.joinpath("page.html.mako")),
        {
            "title": f"Results in {folder.resolve().name or folder}",
            "lead": _lead(documents, chapters),
            "chapters": chapters,
            "machines": machines_of([x for x in documents if not is_comparison(x)]),
            "skipped": skipped,
            "commands": [*filter(None, again), shlex.join(command)],
            "version": __version__,
            # Files of the package, which must not be escaped.
            "style": Markup(HOME.joinpath("page.css").read_text(encoding="utf-8")),
            "script": Markup(script),
            "digest": digest,
        },
    )
    return source.text


def sections_of(results: Results, anchor: str = "s") -> list[Section]:
    """Return the sections of a document; all HTML names in them begin with `anchor`."""
    if is_comparison(results):
        return [comparison_section(results, f"{anchor}-0")]
    if is_search(results):
        return [search_section(results, f"{anchor}-0")]
    peaks = Peaks.of(results.content.get("peaks"))
    found = [
        sweep_section(sweep, peaks, f"{anchor}-{index}")
        for index, sweep in enumerate(sweeps_of(results))
    ]
    calls = calls_of(results)
    return found + [calls_section(results, calls, f"{anchor}-{len(found)}")] * bool(calls)


def _chapter(results: Results, folder: Path, anchor: str, several: bool) -> Chapter:
    sections, content = sections_of(results, anchor), results.content
    title, subtitle, notes = results.operation, "", list[str]()
    if isinstance(content.get("study"), str):
        scale, notes = content.get("scale"), texts(content.get("notes"))
        title = f"Study {title}" + (f" ({scale})" if isinstance(scale, str) else "")
    elif len(sections) == 1:
        title, subtitle = sections[0].title, sections[0].subtitle
    ended_early = content.get("complete") is False
    warnings = [" ".join([INCOMPLETE, *gaps_of(content)])] * ended_early
    if busy := _busy(results):
        warnings.append(f"During the measurement: {busy}")
    answers = [
        (str(x.get("question") or ""), said if isinstance(said, list) else [str(said or "")])
        for x in objects(content.get("answers"))
        for said in [x.get("answer")]
    ]
    source, command = source_of(results, folder), command_of(results, folder)
    device = _device_of(results) * several
    return Chapter(
        anchor, title, subtitle, sections, warnings, source, command, answers, notes, device
    )


def _device_of(results: Results) -> str:
    """Return the name of the device of a document; empty if none is recorded."""
    return str(results.device.get("name") or "")


def _busy(results: Results) -> str:
    """Return the warning that the machine was busy when a run began; empty if it was not."""
    return str(results.mapping("environment").get("busy") or "")


def machines_of(documents: Sequence[Results]) -> dict[str, dict[str, str]]:
    """Return the facts of each machine by its name; where its runs differ, all that they say."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for results in documents:
        facts = facts_of(results)
        names = _device_of(results) or "Unknown machine", facts.get("cpu", "")
        machine = found.setdefault(", ".join(filter(None, names)), {})
        for label, value in facts.items():
            machine.setdefault(label, {})[value] = None
    return {
        name: {label: "; ".join(values) for label, values in machine.items()}
        for name, machine in found.items()
    }


def _order(results: Results) -> tuple[bool, str]:
    """Return a key that orders documents by start; comparisons come after the runs they read."""
    return is_comparison(results), str(results.mapping("environment").get("started") or "")


def _lead(documents: Sequence[Results], chapters: Sequence[Chapter]) -> str:
    """Return the sentences below the title."""
    measured = [
        row.measurement
        for item in documents
        if not (is_comparison(item) or is_search(item))
        for row in item.rows
    ]
    where = ", ".join(dict.fromkeys(filter(None, map(_device_of, documents))))
    failed = [row for row in measured if not row.ok]
    absent = [row for row in failed if row.status == "unavailable"]
    experiments = sum(len(chapter.sections) for chapter in chapters)
    text = f"{counted(experiments, 'experiment')} with {counted(len(measured), 'row')}"
    text += f" on {where}." if where else "."
    if len(failed) > len(absent):
        text += f" {counted(len(failed) - len(absent), 'row')} failed."
    elif measured:
        text += " Every measured result was correct."
    if absent:
        text += f" {counted(len(absent), 'row')} could not be measured, for reasons given below."
    if busy := sum(bool(_busy(item)) for item in documents):
        text += f" The machine was busy with other work during {counted(busy, 'run')}."
    if partial_runs := sum(item.content.get("complete") is False for item in documents):
        text += f" {counted(partial_runs, 'run')} ended early."
    return text
