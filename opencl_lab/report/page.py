"""One self-contained page from documents of earlier runs."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from opencl_lab._version import __version__
from opencl_lab.comparison.stored import Results
from opencl_lab.report.figures import Figure, figures_of
from opencl_lab.report.summary import Trouble, summary_of, troubles_of
from opencl_lab.report.sweeps import Sweep, calls_of, sweeps_of
from opencl_lab.report.tables import PageTable, calls_table, printed_table, table_of
from opencl_lab.template import render
from opencl_lab.wording import counted, size_text

__all__ = ["Section", "page_of", "sections_of"]

HOME = files("opencl_lab.report")
DEVICE = {
    "name": "device",
    "kind": "kind",
    "platform": "platform",
    "driver": "driver",
    "version": "OpenCL",
    "c_version": "OpenCL C",
    "compute_units": "compute units",
    "clock": "clock in MHz",
    "global_memory": "memory",
    "reason": "chosen because",
}


@dataclass(frozen=True)
class Section:
    """What the page says of one sweep, or of what calls cost."""

    anchor: str
    title: str
    subtitle: str
    summary: Sequence[str]
    troubles: Sequence[Trouble]
    figures: Sequence[Figure]
    table: PageTable
    source: str
    command: str


@dataclass(frozen=True)
class _Study:
    """What a study says beside its rows."""

    title: str
    answers: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str]
    printed: PageTable | None


@dataclass
class _Machine:
    """Where documents were measured: what is recorded about it, and which documents."""

    facts: Sequence[tuple[str, str]]
    sources: list[str] = field(default_factory=list)


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
    sections: list[Section] = []
    for index, results in enumerate(documents):
        progress(index, len(documents), _source(results, folder))
        sections += sections_of(results, folder, len(sections))
    script = HOME.joinpath("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = render(
        str(HOME.joinpath("page.html.mako")),
        {
            "title": f"Results in {folder.resolve().name or folder}",
            "lead": _lead(documents, sections),
            "sections": sections,
            "studies": [study for item in documents if (study := _study(item)) is not None],
            "machines": _machines(documents, folder),
            "skipped": skipped,
            "commands": [shlex.join(command)] if command else [],
            "version": __version__,
            # Ours, and no data: a markup is not escaped again.
            "style": Markup(HOME.joinpath("page.css").read_text(encoding="utf-8")),
            "script": Markup(script),
            "digest": digest,
        },
    )
    return source.text


def sections_of(results: Results, folder: Path, before: int = 0) -> list[Section]:
    """Return the sections of a document; `before` is how many the page has already."""
    source, command = _source(results, folder), _command(results)
    found: list[Section] = []
    for sweep in sweeps_of(results):
        anchor = f"s{before + len(found)}"
        found.append(
            Section(
                anchor,
                _title(sweep),
                _options(sweep.fixed),
                summary_of(sweep),
                troubles_of(sweep),
                figures_of(sweep, anchor),
                table_of(sweep),
                source,
                command,
            )
        )
    calls = calls_of(results)
    if calls:
        title = f"{results.operation}: what calls cost"
        anchor = f"s{before + len(found)}"
        options, table = _options(results.options), calls_table(calls)
        found.append(Section(anchor, title, options, [], [], [], table, source, command))
    return found


def _title(sweep: Sweep) -> str:
    sizes = [size for size, _ in sweep.series]
    if not sweep.varied:
        return sweep.title
    return f"{sweep.title}: {sweep.axis} from {sizes[0]:,} to {sizes[-1]:,}"


def _options(options: Mapping[str, Any]) -> str:
    """Return options as text; a flag is its name, and what is off is left out."""
    on = [(name, value) for name, value in options.items() if value is not None]
    words = (n if value is True else f"{n} {value}" for n, value in on if value is not False)
    return ", ".join(words)


def _source(results: Results, folder: Path) -> str:
    """Return the name of a document below the folder."""
    if results.path == folder:
        return results.path.name
    return str(results.path.relative_to(folder))


def _lead(documents: Sequence[Results], sections: Sequence[Section]) -> str:
    rows = sum(len(results.rows) for results in documents)
    devices = dict.fromkeys(str(item.device.get("name") or "") for item in documents)
    where = ", ".join(filter(None, devices))
    failed = sum(not row.measurement.ok for item in documents for row in item.rows)
    absent = sum(row.measurement.status == "unavailable" for item in documents for row in item.rows)
    text = f"{counted(len(sections), 'experiment')} with {counted(rows, 'row')}"
    text += f" on {where}." if where else "."
    if failed - absent:
        text += f" {counted(failed - absent, 'row')} failed."
    elif rows:
        text += " Every result that was measured was right."
    if absent:
        text += f" {counted(absent, 'row')} could not be measured, as the sections say."
    return text


def _study(results: Results) -> _Study | None:
    """Return the answers, notes and printed figures of a study; None of any other document."""
    name = results.content.get("study")
    if not isinstance(name, str):
        return None
    answers = []
    for item in _objects(results.content.get("answers")):
        said = item.get("answer")
        sentences = [str(one) for one in said] if isinstance(said, list) else [str(said or "")]
        answers.append((str(item.get("question") or ""), sentences))
    notes = results.content.get("notes")
    kept = list(dict.fromkeys(map(str, notes))) if isinstance(notes, list) else []
    scale = results.content.get("scale")
    title = f"{name} ({scale})" if isinstance(scale, str) else name
    return _Study(title, answers, kept, printed_table(results))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _command(results: Results) -> str:
    """Return the command that wrote a document; of old ones what is known of it."""
    arguments = results.content.get("arguments")
    if isinstance(arguments, list) and arguments:
        return shlex.join(["oclab", *map(str, arguments)])
    words = ["oclab", results.command]
    sizes = results.mapping("problem").get("sizes")
    if isinstance(sizes, list):
        words += [results.operation, "--sizes", ",".join(map(str, sizes))]
    study, scale = (results.content.get(name) for name in ("study", "scale"))
    if isinstance(study, str):
        words += [study, *(["--scale", scale] if isinstance(scale, str) else [])]
    for name, value in results.options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    if results.command in ("bench", "study"):
        words += ["--out", "DIR"]
    return shlex.join(words)


def _machines(documents: Sequence[Results], folder: Path) -> list[_Machine]:
    """Return the environments as recorded, each once."""
    found: dict[tuple[tuple[str, str], ...], _Machine] = {}
    for results in documents:
        device = results.device
        facts = [
            (text, _fact(name, device[name]))
            for name, text in DEVICE.items()
            if _known(device, name)
        ]
        if results.version:
            facts.append(("opencl_lab", results.version))
        facts += _flat(results.mapping("environment"))
        machine = found.setdefault(tuple(facts), _Machine(facts))
        machine.sources.append(_source(results, folder))
    return list(found.values())


def _known(device: Mapping[str, Any], name: str) -> bool:
    return device.get(name) not in (None, "")


def _fact(name: str, value: Any) -> str:
    if name == "global_memory" and isinstance(value, int):
        return size_text(value)
    return str(value)


def _flat(content: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return what an environment records as lines of a list."""
    found = []
    for name, value in content.items():
        label = f"{prefix}{str(name).replace('_', ' ')}"
        if isinstance(value, dict):
            found += _flat(value, f"{label}: ")
        elif isinstance(value, list):
            found.append((label, ", ".join(map(str, value))))
        elif value not in (None, ""):
            found.append((label, str(value)))
    return found
