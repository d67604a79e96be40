"""Documents of a folder: their kinds, commands and sweeps; fields that may be damaged."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.stored import Result, Results, parts_of, read_results


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a value that should be a list of objects."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """Return the different texts in a value that should be a list of texts."""
    return list(dict.fromkeys(map(str, value))) if isinstance(value, list) else []


def options_text(options: Mapping[str, Any]) -> str:
    """Return options as text; a flag is named if it is on."""
    on = [(name, value) for name, value in options.items() if value is not None]
    words = (n if value is True else f"{n} {value}" for n, value in on if value is not False)
    return ", ".join(words)


def is_comparison(results: Results) -> bool:
    """Return whether a document compares two runs."""
    return isinstance(results.content.get("compared"), dict)


def is_search(results: Results) -> bool:
    """Return whether a document describes a search for the fastest configuration."""
    return isinstance(results.content.get("evaluations"), list)


def gaps_of(content: Mapping[str, Any]) -> list[str]:
    """Return why a study ended early, and the missing points, a sentence for each part."""
    stopped = content.get("stopped")
    ended = [f"{stopped[:1].upper()}{stopped[1:]}."] if stopped and isinstance(stopped, str) else []
    points: dict[str, list[str]] = {}
    for point in objects(content.get("missing")):
        where = ", ".join(f"{name}={value}" for name, value in point.items() if name != "part")
        points.setdefault(str(point.get("part")), []).append(where)
    return ended + [f"Not measured: {part} at {'; '.join(x)}." for part, x in points.items()]


def source_of(results: Results, folder: Path) -> str:
    """Return the path of a document relative to the folder."""
    if results.path == folder:
        return results.path.name
    return str(results.path.relative_to(folder))


def command_of(results: Results, folder: Path) -> str:
    """Return the command that wrote a document, quoted for a shell; empty if it does not say.

    A command that printed the document gets a redirection to its file in the folder.
    """
    arguments = results.content.get("arguments")
    if not isinstance(arguments, list) or not arguments:
        return ""
    words = list(map(str, arguments))
    file = f" > {shlex.quote(source_of(results, folder))}"
    written = any(word == "--out" or word.startswith("--out=") for word in words)
    return shlex.join(["oclab", *words]) + file * ("--json" in words and not written)


@dataclass(frozen=True)
class ReportedSweep:
    """Rows that differ only in sizes and implementations."""

    title: str
    fixed: Mapping[str, Any]  # options with the same value in all rows
    varied: tuple[str, ...]  # the columns of sizes; empty for a single problem
    rows: tuple[Result, ...]

    @property
    def axis(self) -> str:
        """The name of the sizes, such as ``n``, or ``m x n x k`` for their product."""
        return " x ".join(self.varied)

    @property
    def series(self) -> list[tuple[int, list[Measurement]]]:
        """Rows by size, the smallest first; a single problem has the size 1."""
        found: dict[int, list[Measurement]] = {}
        for row in self.rows:
            found.setdefault(self.size_of(row), []).append(row.measurement)
        return sorted(found.items())

    def size_of(self, row: Result) -> int:
        """Return the product of the sizes of a row."""
        return math.prod(row.leading[name] for name in self.varied)


def find_results(place: Path) -> tuple[list[Results], list[str]]:
    """Return the documents in a folder and its subfolders, and a sentence on each other JSON file.

    Raises InvalidProblem if there is no such folder or file, or no document with results.
    """
    if place.is_dir():
        paths = sorted(path for path in place.rglob("*.json") if path.is_file())
    elif place.exists():
        paths = [place]
    else:
        raise InvalidProblem(f"there is no folder {place}")
    found, skipped = [], []
    for path in paths:
        try:
            parts = parts_of(read_results(path))
        except InvalidProblem as error:
            skipped.append(error.sentence)
            continue
        kept = [x for x in parts if x.rows or calls_of(x) or is_search(x)]
        found += kept
        if not kept:
            skipped.append(f"{path} has no measured rows")
    if not found:
        why = "; ".join(skipped[:3]) + ("; ..." if len(skipped) > 3 else "")
        raise InvalidProblem(
            f"no results found in {place}: {why or 'it has no JSON file'}; "
            "`oclab bench OPERATION --sizes A,B,C --out DIR` writes some"
        )
    return found, skipped


def calls_of(results: Results) -> list[dict[str, Any]]:
    """Return the rows of `oclab bench --calls`, with sizes and figures in one mapping."""
    return [
        {**_sizes(row), **call}
        for row in objects(results.content.get("results"))
        for call in objects(row.get("calls"))
    ]


def _sizes(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the integers of a row that are sizes."""
    numbers = ((name, value) for name, value in row.items() if isinstance(value, int))
    return {n: value for n, value in numbers if not n.endswith("bytes") and n != "launches"}


def sweeps_of(results: Results) -> list[ReportedSweep]:
    """Return the sweeps of a document: one of `oclab bench`, one per part of a study.

    Rows whose leading columns have the same texts belong to one sweep. The integers in which they
    differ are the sizes.
    """
    name = results.size_name
    if name is not None:
        sizes = {row.leading[name] for row in results.rows}
        if len(sizes) > 1:
            return [ReportedSweep(results.operation, results.options, (name,), results.rows)]
        return [
            ReportedSweep(
                results.operation, {**results.options, name: min(sizes)}, (), results.rows
            )
        ]
    parts: dict[tuple[Any, ...], list[Result]] = {}
    for row in results.rows:
        texts = (value for value in row.leading.values() if isinstance(value, str))
        parts.setdefault(tuple(texts), []).append(row)
    return [sweep for rows in parts.values() for sweep in _part(results, rows)]


def _part(results: Results, rows: Sequence[Result]) -> list[ReportedSweep]:
    """Return the sweep of rows that belong together; one per problem if sizes coincide."""
    first = rows[0].leading
    names = [
        name
        for name, value in first.items()
        if isinstance(value, int) and all(isinstance(row.leading.get(name), int) for row in rows)
    ]
    varied = tuple(name for name in names if any(row.leading[name] != first[name] for row in rows))
    problems: dict[tuple[Any, ...], list[Result]] = {}
    for row in rows:
        problems.setdefault(tuple(row.leading[name] for name in varied), []).append(row)
    if len(set(map(math.prod, problems))) < len(problems):
        return [sweep for items in problems.values() for sweep in _part(results, items)]
    fixed = {**results.options, **{k: v for k, v in first.items() if k not in varied}}
    if not fixed and not varied:
        fixed = dict(results.mapping("problem"))
    study = results.content.get("study")
    part = str(fixed.pop("part", ""))
    title = " ".join(dict.fromkeys(filter(None, (str(study or results.operation), part))))
    return [ReportedSweep(title, fixed, varied, tuple(rows))]
