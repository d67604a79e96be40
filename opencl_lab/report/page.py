"""One self-contained page from documents of earlier runs."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from opencl_lab._version import __version__
from opencl_lab.comparison.stored import Results
from opencl_lab.report.chapters import Chapter, chapter_across, chapter_of
from opencl_lab.report.devices import across_devices
from opencl_lab.report.documents import is_comparison, is_search, source_of
from opencl_lab.report.environment import busy_text, device_text, machines_of
from opencl_lab.template import render
from opencl_lab.wording import counted

__all__ = ["page_of"]

HOME = files("opencl_lab.report")


def page_of(
    documents: Sequence[Results],
    skipped: Sequence[str],
    folder: Path,
    command: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, label: None,
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    documents : sequence of Results
        One at least.
    skipped : sequence of str
        What else was found, a sentence each.
    folder : Path
        Where the documents lie; their names on the page are relative to it.
    command : sequence of str
        What makes this page.
    progress : callable, optional
    """
    chapters: list[Chapter] = []
    several = len(set(filter(None, map(device_text, documents)))) > 1
    for index, results in enumerate(documents):
        progress(index, len(documents), source_of(results, folder))
        chapters.append(chapter_of(results, folder, f"s{index}", device_text(results) * several))
    across = across_devices([item for item in documents if _is_measured(item)])
    if across:
        chapters.insert(0, chapter_across(across, "across"))
    named = [(source_of(item, folder), item) for item in documents]
    script = HOME.joinpath("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    again = dict.fromkeys(chapter.command for chapter in chapters if chapter.command)
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
            "commands": [*again, *([shlex.join(command)] if command else [])],
            "version": __version__,
            # Ours, and no data: a markup is not escaped again.
            "style": Markup(HOME.joinpath("page.css").read_text(encoding="utf-8")),
            "script": Markup(script),
            "digest": digest,
        },
    )
    return source.text


def _is_measured(results: Results) -> bool:
    """Return whether the rows of a document are measured implementations."""
    return not is_comparison(results) and not is_search(results)


def _lead(documents: Sequence[Results], chapters: Sequence[Chapter]) -> str:
    measured = [row.measurement for item in documents if _is_measured(item) for row in item.rows]
    where = ", ".join(dict.fromkeys(filter(None, map(device_text, documents))))
    failed = [row for row in measured if not row.ok]
    absent = [row for row in failed if row.status == "unavailable"]
    experiments = sum(len(chapter.sections) for chapter in chapters)
    text = f"{counted(experiments, 'experiment')} with {counted(len(measured), 'row')}"
    text += f" on {where}." if where else "."
    if len(failed) > len(absent):
        text += f" {counted(len(failed) - len(absent), 'row')} failed."
    elif measured:
        text += " Every result that was measured was right."
    if absent:
        text += f" {counted(len(absent), 'row')} could not be measured, as the sections say."
    busy = sum(bool(busy_text(item)) for item in documents)
    if busy:
        text += f" Others used the machine during {counted(busy, 'run')}."
    partial = sum(item.content.get("complete") is False for item in documents)
    if partial:
        text += f" {counted(partial, 'run')} ended early."
    return text
