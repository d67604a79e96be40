"""Compare two runs of the same problems row by row: faster, slower, or within noise."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Literal, TypeAlias

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.stored import Result, Results, times_of
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.presentation.conditions import differences, other_conditions
from opencl_lab.lab.presentation.table import (
    Cell,
    CellTable,
    field,
    finite,
    median_cell,
    ratio_cell,
    spread_cell,
)

THRESHOLD = 1.10
"""Default ratio of medians above which a slower row is a regression.

Two processes on one machine often differ by a few per cent, which the spread within one process
does not show.
"""
CHANCE = 0.05  # largest probability of calling two runs of equal speed different

Verdict: TypeAlias = Literal[
    "faster", "slower", "within noise", "too few runs", "fails now", "works now", "not measured"
]


STYLES = {"faster": "ok", "works now": "ok", "slower": "failed", "fails now": "failed"}


@dataclass(frozen=True)
class Change:
    """A row of both runs."""

    what: Mapping[str, Any]  # the problem, as far as both documents record it
    old: Measurement
    new: Measurement

    @property
    def ratio(self) -> float | None:
        """New over old median of the total times: above 1 is slower."""
        if not (self.old.ok and self.new.ok and self.old.total_ms and self.new.total_ms):
            return None
        return _ratio(self.old.total_ms.median, self.new.total_ms.median)

    @property
    def kernel_ratio(self) -> float | None:
        """New over old kernel time, from other calls; it does not affect the verdict."""
        if not (self.old.ok and self.new.ok):
            return None
        return _ratio(self.old.kernel_ms, self.new.kernel_ms)

    @property
    def verdict(self) -> Verdict:
        """Faster or slower if the times of both runs do not overlap, else within noise.

        If both runs are equally fast, their n and m times do not overlap in 2 of the
        (n + m)! / (n! m!) possible orders. If that is more than one in twenty, as for 3 and 3
        times, the verdict is ``too few runs``.
        """
        old, new = self.old.total_ms, self.new.total_ms
        if self.old.ok and not self.new.ok:
            return "not measured" if self.new.status == "unavailable" else "fails now"
        if not self.old.ok and self.new.ok:
            return "works now" if self.old.status != "unavailable" else "not measured"
        if not self.old.ok or old is None or new is None:
            return "not measured"
        if 2 / math.comb(old.runs + new.runs, old.runs) > CHANCE:
            return "too few runs"
        if old.is_above(new):
            return "faster"
        return "slower" if new.is_above(old) else "within noise"

    @property
    def remarks(self) -> list[str]:
        """Kernel parameters that differ, and why a row was not measured."""
        reasons = [row.reason for row in (self.new, self.old) if row.reason and not row.ok]
        return [*differences(self.old.config, self.new.config), *reasons[:1]]

    def regressed(self, threshold: float) -> bool:
        """Return whether this OpenCL row fails now, or is slower by more than the threshold."""
        if self.new.kind != "opencl":
            return False
        if self.verdict == "slower":
            return self.ratio is not None and self.ratio > threshold
        return self.verdict == "fails now" or (self.verdict == "not measured" and self.old.ok)

    def as_dict(self, threshold: float) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {
            **self.what,
            "implementation": self.new.implementation,
            "kind": self.new.kind,
            "data": self.new.data,
            "verdict": self.verdict,
            "ratio": self.ratio,
            "kernel_ratio": self.kernel_ratio,
            "old_ms": None if self.old.total_ms is None else self.old.total_ms.as_dict(),
            "new_ms": None if self.new.total_ms is None else self.new.total_ms.as_dict(),
            "old_kernel_ms": self.old.kernel_ms,
            "new_kernel_ms": self.new.kernel_ms,
            "remarks": self.remarks,
            "regression": self.regressed(threshold),
        }


@dataclass(frozen=True)
class RunRow:
    """A row of one run with its problem, independent of the names of files."""

    operation: str
    what: Mapping[str, Any]
    measurement: Measurement

    @classmethod
    def of(cls, results: Results, row: Result) -> RunRow:
        """Return a row of a document."""
        size, leading = results.size_name, row.leading
        if size is not None and size in leading:
            leading = {size: leading[size]}
        what = {name: value for name, value in results.options.items() if name != "seed"}
        if "seed" not in results.options and size is None:
            what = dict(results.mapping("problem"))
        what.update(leading)
        return cls(results.operation, what, row.measurement)

    @property
    def config(self) -> str:
        """Its kernel parameters."""
        return json.dumps(dict(self.measurement.config), sort_keys=True)

    def fields(self, names: Collection[str]) -> dict[str, Any]:
        """Return the fields of its problem that have these names."""
        return {name: value for name, value in self.what.items() if name in names}

    def problem(self, names: Collection[str]) -> str:
        """Return a key that all rows with the same values of these fields share."""
        return json.dumps([self.operation, self.fields(names)], sort_keys=True)

    def key(self, names: Collection[str]) -> str:
        """Return a key that this row shares with its counterpart in the other run."""
        item = self.measurement
        who = item.implementation, item.data, item.threads
        return json.dumps([*who, self.problem(names)], sort_keys=True)

    def __str__(self) -> str:
        values = " ".join(f"{name}={value}" for name, value in self.what.items())
        return f"{self.measurement.label} ({self.operation} {values})"


@dataclass(frozen=True)
class Changes:
    """The comparison of all rows of two runs."""

    rows: list[Change]
    only_old: list[RunRow]
    only_new: list[RunRow]
    missing: list[RunRow]
    """The OpenCL rows of `only_old` whose problems the new run has measured."""
    warnings: list[str]
    """Sentences about other differences than the measured code."""
    differing: list[str]
    """Names of the fields in which the problems of either run differ."""

    def regressed(self, threshold: float) -> bool:
        """Return whether an OpenCL row is a regression, or is missing in the new run."""
        return bool(self.missing) or any(row.regressed(threshold) for row in self.rows)

    def in_short(self, rows: Sequence[RunRow]) -> list[str]:
        """Return a line for each problem of some rows, with the fields that distinguish it."""
        labels: dict[str, list[str]] = {}
        for row in rows:
            values = [f"{name}={row.what[name]}" for name in self.differing if name in row.what]
            labels.setdefault(" ".join(values), []).append(row.measurement.label)
        return [", ".join(names) + f" ({at})" * bool(at) for at, names in labels.items()]


def varied(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the fields in which problems differ."""
    names = dict.fromkeys(name for problem in problems for name in problem)
    return [name for name in names if len({json.dumps(item.get(name)) for item in problems}) > 1]


COLUMNS = frozenset(
    (
        *("implementation", "kind", "data", "verdict", "ratio", "kernel_ratio", "remarks"),
        *("old_ms", "new_ms", "old_kernel_ms", "new_kernel_ms", "regression"),
    )
)
"""The fields of `Change.as_dict` besides those of the problem."""


def problem_fields(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the fields in which the problems of rows differ, and the other fields."""
    problems = [{k: v for k, v in row.items() if k not in COLUMNS} for row in rows]
    names = varied(problems)
    shared = problems[0] if problems else {}
    return names, {k: v for k, v in shared.items() if k not in names and v is not None}


def changes_table(rows: Sequence[Mapping[str, Any]]) -> CellTable:
    """Return a table of rows as of `Change.as_dict`; what their problems share is the caption."""
    names, shared = problem_fields(rows)

    def verdict(row: Mapping[str, Any]) -> Cell:
        said, remarks = str(row.get("verdict")), row.get("remarks")
        text = said + ", a regression" * (row.get("regression") is True)
        if isinstance(remarks, list) and remarks:
            text += f" ({'; '.join(map(str, remarks))})"
        return Cell(text, style=STYLES.get(said, ""))

    def runs(row: Mapping[str, Any]) -> Cell:
        times = (times_of(row, name) for name in ("old_ms", "new_ms"))
        return Cell(", ".join(str(item.runs) for item in times if item))

    columns: dict[str, Callable[[Mapping[str, Any]], Cell]] = {name: field(name) for name in names}
    columns["implementation"] = lambda row: Cell(
        str(row.get("implementation") or ""), style=str(row.get("kind") or ""), heads=True
    )
    for side in ("old", "new"):
        columns[f"{side} ms"] = partial(_times, f"{side}_ms", median_cell)
        columns[f"{side} min..max"] = partial(_times, f"{side}_ms", spread_cell)
    columns |= {
        "runs": runs,
        "new/old": field("ratio", lambda value: ratio_cell(finite(value))),
        "kernel ratio": field("kernel_ratio", lambda value: ratio_cell(finite(value))),
        "verdict": verdict,
    }
    caption = ", ".join(f"{name}={value}" for name, value in shared.items())
    return CellTable.of(rows, columns, caption)


def _times(name: str, cell: Callable[[Times | None], Cell], row: Mapping[str, Any]) -> Cell:
    return cell(times_of(row, name))


def counted_verdicts(verdicts: Iterable[str]) -> str:
    """Return how many rows have each verdict, such as ``2 faster, 1 within noise``."""
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).items())


def compare_results(old: Results, new: Results) -> Changes:
    """Compare the rows of two documents.

    Rows belong together if implementation, threads and side of the data are equal, and all fields
    of the problem that both documents record. Kernel parameters decide only between several such
    rows, since tuning changes them. Raises InvalidProblem if no rows belong together.
    """
    for results in (old, new):
        if not results.rows:
            raise InvalidProblem(f"{results.path} has no rows of measured implementations")
    before = [RunRow.of(old, row) for row in old.rows]
    after = [RunRow.of(new, row) for row in new.rows]
    names_before, names_after = ({n for row in rows for n in row.what} for rows in (before, after))
    recorded = names_before & names_after  # fields of problems that both documents record
    waiting: dict[str, list[RunRow]] = {}
    for row in before:
        waiting.setdefault(row.key(recorded), []).append(row)
    changes: list[Change] = []
    added: list[RunRow] = []
    for row in after:
        candidates = waiting.get(row.key(recorded), [])
        if not candidates:
            added.append(row)
            continue
        same = [item for item in candidates if item.config == row.config]
        partner = (same or candidates)[0]
        candidates.remove(partner)
        changes.append(Change(row.fields(recorded), partner.measurement, row.measurement))
    if not changes:
        raise InvalidProblem(
            f"no row is in both {old.path} and {new.path}: they have {before[0]} and {after[0]}"
        )
    left = [row for rows in waiting.values() for row in rows]
    measured = {row.problem(recorded) for row in after}
    missing = [
        row
        for row in left
        if row.measurement.kind == "opencl"
        and (row.problem(recorded) in measured or _lists(new, row))
    ]
    warnings = [*other_conditions(old, new), *_changed_references(changes)]
    differing = varied([row.what for row in (*before, *after)])
    return Changes(changes, left, added, missing, warnings, differing)


def _lists(results: Results, row: RunRow) -> bool:
    """Return whether the size of a row is among the sizes of a sweep."""
    sizes = results.mapping("problem").get("sizes")
    name = results.size_name
    return isinstance(sizes, list) and name is not None and row.what.get(name) in sizes


def _ratio(old: float | None, new: float | None) -> float | None:
    return new / old if old and new is not None else None


def _changed_references(changes: Sequence[Change]) -> list[str]:
    """Return a warning if the references, whose code is the same, changed as well.

    Most of them must have changed beyond noise, and in the same direction.
    """
    rows = [item for item in changes if item.new.kind != "opencl" and item.ratio]
    for verdict in ("slower", "faster"):
        found = [item.ratio for item in rows if item.verdict == verdict and item.ratio]
        if len(found) < 2 or 2 * len(found) <= len(rows):
            continue
        middle = median(item.ratio for item in rows if item.ratio)
        if not 1 / THRESHOLD <= middle <= THRESHOLD:
            return [
                f"the references took {middle:.2f} times as long, too (median of "
                f"{len(rows)} rows, {len(found)} of them beyond noise): the machine was "
                f"{verdict} in the second run"
            ]
    return []
