"""A self-contained HTML page made from documents of earlier runs."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from opencl_lab._version import __version__
from opencl_lab.core.template import render
from opencl_lab.core.wording import counted
from opencl_lab.lab.engine.stored import Results
from opencl_lab.lab.report.chapters import Chapter, chapter_across, chapter_of
from opencl_lab.lab.report.devices import across_devices
from opencl_lab.lab.report.documents import (
    command_of,
    is_comparison,
    is_search,
    source_of,
    sweeps_of,
)
from opencl_lab.lab.report.environment import busy_text, device_names, device_text, machines_of
from opencl_lab.lab.report.summary import standings_of

HOME = files("opencl_lab.lab.report")


def page_of(
    documents: Sequence[Results],
    skipped: Sequence[str],
    folder: Path,
    command: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, label: None,
) -> str:
    """Return the page of one or more documents as HTML.

    `skipped` are sentences about other files of the folder. `command` is the command that makes
    the page.
    """
    chapters: list[Chapter] = []
    devices = device_names(documents)
    several = len(set(filter(None, devices))) > 1
    for index, (results, device) in enumerate(zip(documents, devices, strict=True)):
        progress(index, len(documents), source_of(results, folder))
        chapters.append(chapter_of(results, folder, f"s{index}", device * several))
    measured = [pair for pair in zip(documents, devices, strict=True) if _is_measured(pair[0])]
    across = across_devices([item for item, _ in measured], [name for _, name in measured])
    if across:
        chapters.insert(0, chapter_across(across, "across"))
    named = [(source_of(item, folder), item) for item in documents]
    script = HOME.joinpath("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    again = dict.fromkeys(command_of(item, folder) for item in sorted(documents, key=_order))
    source = render(
        str(HOME.joinpath("page.html.mako")),
        {
            "title": f"Results in {folder.resolve().name or folder}",
            "lead": _lead(documents, chapters),
            "chapters": chapters,
            "machines": machines_of(
                [(name, item) for name, item in named if not is_comparison(item)]
            ),
            "skipped": skipped,
            "commands": [*filter(None, again), *([shlex.join(command)] if command else [])],
            "version": __version__,
            # Files of the package, which must not be escaped.
            "style": Markup(HOME.joinpath("page.css").read_text(encoding="utf-8")),
            "script": Markup(script),
            "digest": digest,
        },
    )
    return source.text


def _order(results: Results) -> tuple[bool, str]:
    """Return a key that orders documents by start; comparisons come after the runs they read."""
    return is_comparison(results), str(results.mapping("environment").get("started") or "")


def _is_measured(results: Results) -> bool:
    """Return whether the rows of a document are measured implementations."""
    return not is_comparison(results) and not is_search(results)


def _lead(documents: Sequence[Results], chapters: Sequence[Chapter]) -> str:
    of_rows = [item for item in documents if _is_measured(item)]
    measured = [row.measurement for item in of_rows for row in item.rows]
    where = ", ".join(dict.fromkeys(filter(None, map(device_text, documents))))
    failed = [row for row in measured if not row.ok]
    absent = [row for row in failed if row.status == "unavailable"]
    experiments = sum(len(chapter.sections) for chapter in chapters)
    text = f"{counted(experiments, 'experiment')} with {counted(len(measured), 'row')}"
    text += f" on {where}." if where else "."
    if len(failed) > len(absent):
        text += f" {counted(len(failed) - len(absent), 'row')} failed."
    elif measured:
        text += " Every measured result was correct."
    text += _standings(of_rows)
    if absent:
        text += f" {counted(len(absent), 'row')} could not be measured, for reasons given below."
    busy = sum(bool(busy_text(item)) for item in documents)
    if busy:
        text += f" The machine was busy with other work during {counted(busy, 'run')}."
    partial = sum(item.content.get("complete") is False for item in documents)
    if partial:
        text += f" {counted(partial, 'run')} ended early."
    return text


def _standings(documents: Sequence[Results]) -> str:
    """Return how often OpenCL is fastest at the largest size, in words; empty without others."""
    found = [standing for item in documents for sweep in sweeps_of(item)
             for standing in standings_of(sweep)]  # fmt: skip
    if not found:
        return ""
    counts = Counter(found)
    text = f" At the largest size, OpenCL is fastest in {counts['faster']}"
    text += f" of {counted(len(found), 'comparison')} with others"
    level = f", and level within noise in {counts['level']}" if counts["level"] else ""
    return f"{text}{level}."
