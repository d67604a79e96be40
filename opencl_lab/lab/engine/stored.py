"""Documents of earlier runs (schema ``oclab/1``), read back into measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.core.records import Finite, parsed, typed
from opencl_lab.core.wording import visible
from opencl_lab.lab.engine.row import COLUMNS, Measurement
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times

SCHEMA = "oclab/1"
LARGEST = 1 << 28  # bytes of a document; larger files were not written by opencl_lab
LARGEST_SIZE = 1 << 63

APART = ("status", "config", "work", "difference", "peak", "data")
"""Fields of a `Measurement` that are not in documents as they are."""


@dataclass(frozen=True)
class _Recorded:
    """What a row of a document has instead of these fields, by the names of `as_row`."""

    status: str | None = None
    data: Any = None
    config: Any = None
    ok: Any = None
    gflops: Finite | None = None
    gbps: Finite | None = None
    peak_fraction: Finite | None = None
    max_abs_diff: Finite | None = None
    max_rel_diff: Finite | None = None
    rel_l2_diff: Finite | None = None
    error_over_bound: Finite | None = None


@dataclass(frozen=True)
class _Rows:
    """The rows of a document, of any command."""

    results: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """A row: its measurement, and its leading columns, such as ``{"n": 1000}``."""

    leading: Mapping[str, Any]
    measurement: Measurement


@dataclass(frozen=True)
class Results:
    """The content of a document."""

    path: Path  # the file
    content: Mapping[str, Any]
    rows: tuple[Result, ...]  # empty if no implementation was measured

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return an object in the document; an empty one if it is missing."""
        found = self.content.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def command(self) -> str:
        """The command that wrote it, such as ``bench`` or ``sort``."""
        return str(self.content.get("command") or "")

    @property
    def version(self) -> str:
        """The version of opencl_lab that wrote it."""
        return str(self.content.get("version") or "")

    @property
    def device(self) -> Mapping[str, Any]:
        """The recorded device."""
        return self.mapping("device")

    @property
    def options(self) -> Mapping[str, Any]:
        """The recorded options of the problem."""
        return self.mapping("options")

    @property
    def operation(self) -> str:
        """The operation that was measured, or the study."""
        named = self.mapping("problem").get("operation") or self.content.get("study")
        return str(named or self.command)

    @property
    def size_name(self) -> str | None:
        """The column of sizes of a sweep; None for other documents."""
        sizes = self.mapping("problem").get("sizes")
        if not isinstance(sizes, list) or not self.rows:
            return None
        names = self.rows[0].leading
        fit = (n for n in names if all(row.leading.get(n) in sizes for row in self.rows))
        return next(fit, None)

    def series(self) -> list[tuple[int, list[Measurement]]]:
        """Return the rows of a sweep by size, in order; empty for other documents."""
        name = self.size_name
        found: dict[int, list[Measurement]] = {}
        for row in self.rows:
            size = None if name is None else row.leading[name]
            if isinstance(size, int):
                found.setdefault(size, []).append(row.measurement)
        return sorted(found.items())


def read_results(path: Path) -> Results:
    """Read a document; InvalidProblem if it cannot be read, or is not one of opencl_lab."""
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidProblem(f"{path} is too large for a document of opencl_lab")
        content = _clean(parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidProblem(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidProblem(f"{path} is damaged: it is not JSON ({error})") from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, str) or not schema.startswith("oclab/"):
        raise InvalidProblem(f"{path} is not a document of opencl_lab: it names no schema oclab/1")
    if schema != SCHEMA:
        raise InvalidProblem(
            f"{path} has the schema {schema}, this opencl_lab reads {SCHEMA}: take a newer one"
        )
    return _results_of(path, content)


def parts_of(results: Results) -> list[Results]:
    """Return the studies in a document of `oclab study all --json`; of others the document."""
    studies = results.content.get("studies")
    if not isinstance(studies, list):
        return [results]
    common = {name: value for name, value in results.content.items() if name != "studies"}
    found = [study for study in studies if isinstance(study, dict) and "results" in study]
    return [_results_of(results.path, {**common, **study}) for study in found] or [results]


def _results_of(path: Path, content: Mapping[str, Any]) -> Results:
    """Return a document with its rows of implementations; documents of --calls have none."""
    found, place = [], ""
    try:
        for index, row in enumerate(typed(_Rows, content).results):
            if "implementation" in row:
                place = f"results[{index}]: "
                leading = {name: value for name, value in row.items() if _leads(name, value)}
                found.append(Result(leading, measurement_of(row)))
    except ValueError as error:
        raise InvalidProblem(f"{path} is damaged: {place}{error}") from error
    return Results(path, content, tuple(found))


def times_of(row: Mapping[str, Any], name: str) -> Times | None:
    """Return the times of this name in a row of any document; None if they are damaged."""
    try:
        found: Times | None = typed(Times | None, row.get(name))
        return found
    except ValueError:
        return None


def _clean(value: Any) -> Any:
    """Return JSON-able values without control characters in their texts."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _leads(name: str, value: Any) -> bool:
    """Return whether a column describes the problem: text or whole numbers that we do not write."""
    if name in COLUMNS or isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int) and abs(value) < LARGEST_SIZE)


def measurement_of(row: Mapping[str, Any]) -> Measurement:
    """Return a row of a document as a measurement; ValueError if it is damaged."""
    read = typed(_Recorded, row)
    given = dict.fromkeys(("implementation", "kind", "algorithm"), "")
    names = [item.name for item in fields(Measurement) if item.name not in APART]
    given |= {name: row[name] for name in names if row.get(name) is not None}
    found = typed(Measurement, given)
    status = read.status or ("correct" if read.ok else "runtime")
    return replace(
        found,
        status=status,  # type: ignore[arg-type]
        config=read.config if isinstance(read.config, dict) else {},
        work=_work(read, found.total_ms),
        difference=_difference(read, status),
        peak=read.peak_fraction,
        data="device" if read.data == "device" else "host",
    )


def _difference(read: _Recorded, status: str) -> Difference | None:
    """Return the recorded errors; infinite ones are null in JSON."""
    share = read.error_over_bound
    if read.max_abs_diff is None:  # unless it was checked otherwise, see `Difference.checked`
        return None if share is None else Difference(math.nan, math.nan, error_over_bound=share)
    max_rel = math.inf if read.max_rel_diff is None else read.max_rel_diff
    if share is None and status == "correctness":
        share = math.inf
    elif share is None and read.max_abs_diff == 0:  # documents of earlier versions do not record it
        share = 0.0
    return Difference(read.max_abs_diff, max_rel, error_over_bound=share, rel_l2=read.rel_l2_diff)


def _work(read: _Recorded, total: Times | None) -> Work | None:
    """Return the work, computed from the recorded rates."""
    flops, nbytes = read.gflops or 0.0, read.gbps or 0.0
    if total is None or not (flops or nbytes):
        return None
    return Work(flops * total.median * 1e6, nbytes * total.median * 1e6)
