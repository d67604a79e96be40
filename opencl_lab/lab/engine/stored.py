"""Documents of earlier runs (schema ``oclab/1``), read back into measurements."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.lab.engine.row import BASELINE, COLUMNS, Measurement
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.tuned.renamed import renamed_config

__all__ = ["Result", "Results", "measurement_of", "parts_of", "read_results", "times_of"]

SCHEMA = "oclab/1"
LARGEST = 1 << 28  # bytes of a document; what is larger was not written by us
LARGEST_SIZE = 1 << 63
UNWRITABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CLOSE = 1e-9  # relative: a median of two floats may lie beyond both


@dataclass(frozen=True)
class Result:
    """A row: its measurement, and the columns that stand before it, such as ``{"n": 1000}``."""

    leading: Mapping[str, Any]
    measurement: Measurement


@dataclass(frozen=True)
class Results:
    """What one document says.

    Parameters
    ----------
    path : Path
        Where it was read.
    content : mapping
        The whole document.
    rows : tuple of Result
        Empty where it has no row of a measured implementation.
    """

    path: Path
    content: Mapping[str, Any]
    rows: tuple[Result, ...]

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return an object of the document; an empty one where there is none."""
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
        """The device as it was recorded."""
        return self.mapping("device")

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the problem as they were recorded."""
        return self.mapping("options")

    @property
    def operation(self) -> str:
        """The operation that was measured, or the study."""
        named = self.mapping("problem").get("operation") or self.content.get("study")
        return str(named or self.command)

    @property
    def size_name(self) -> str | None:
        """The column of sizes of a sweep; None where it is none."""
        sizes = self.mapping("problem").get("sizes")
        if not isinstance(sizes, list) or not self.rows:
            return None
        for name in self.rows[0].leading:
            if all(row.leading.get(name) in sizes for row in self.rows):
                return name
        return None

    def series(self) -> list[tuple[int, list[Measurement]]]:
        """Return the rows of a sweep by size, the smallest first; empty where it is none."""
        name = self.size_name
        found: dict[int, list[Measurement]] = {}
        for row in self.rows if name is not None else ():
            size = row.leading[name] if name is not None else None
            if isinstance(size, int):
                found.setdefault(size, []).append(row.measurement)
        return sorted(found.items())


def read_results(path: Path) -> Results:
    """Read a document.

    Raises
    ------
    InvalidProblem
        If it cannot be read, is damaged, is none of opencl_lab, or was written by a newer one.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidProblem(f"{path} is too large for a document of opencl_lab")
        content = _clean(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidProblem(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidProblem(f"{path} is damaged: it is not JSON ({error})") from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, str) or not schema.startswith("oclab/"):
        raise InvalidProblem(f"{path} is no document of opencl_lab: it names no schema oclab/1")
    if schema != SCHEMA:
        raise InvalidProblem(
            f"{path} has the schema {schema}, this opencl_lab reads {SCHEMA}: take a newer one"
        )
    return _results_of(path, content)


def parts_of(results: Results) -> list[Results]:
    """Return the studies in what `oclab study all --json` printed; of other documents itself.

    Raises
    ------
    InvalidProblem
        If a study is damaged.
    """
    studies = results.content.get("studies")
    if not isinstance(studies, list):
        return [results]
    common = {name: value for name, value in results.content.items() if name != "studies"}
    found = [study for study in studies if isinstance(study, dict) and "results" in study]
    return [_results_of(results.path, {**common, **study}) for study in found] or [results]


def _results_of(path: Path, content: Mapping[str, Any]) -> Results:
    rows = content.get("results", [])
    try:
        if not isinstance(rows, list):
            raise ValueError("its results are no list")
        return Results(path, content, tuple(_results(rows, Results(path, content, ()).operation)))
    except (ValueError, OverflowError) as error:
        raise InvalidProblem(f"{path} is damaged: {error}") from error


def times_of(row: Mapping[str, Any], name: str) -> Times | None:
    """Return the times that a row of any document has by this name; None where it has none.

    Raises
    ------
    ValueError
        If they are damaged.
    """
    return _times(row, name)


def _clean(value: Any) -> Any:
    """Return JSON-able values whose texts have no characters that no file of text may have."""
    if isinstance(value, str):
        return UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _results(rows: Iterable[Any], operation: str) -> Iterable[Result]:
    """Yield the rows of implementations; those of documents of calls are left out."""
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"results[{index}] is no object")
        if "implementation" not in row:
            continue
        try:
            leading = {name: value for name, value in row.items() if _leads(name, value)}
            yield Result(leading, measurement_of(row, operation))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"results[{index}]: {error}") from error


def _leads(name: str, value: Any) -> bool:
    """Return whether a column says what was run: words and whole numbers that are not ours."""
    if name in COLUMNS or isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int) and abs(value) < LARGEST_SIZE)


def measurement_of(row: Mapping[str, Any], operation: str) -> Measurement:
    """Return a row of a document as the measurement that it was.

    Raises
    ------
    ValueError, OverflowError
        If it is damaged.
    """
    times = _times(row, "total_ms")
    status = _text(row, "status") or ("correct" if row.get("ok") else "runtime")
    algorithm, config = _text(row, "algorithm"), row.get("config")
    return Measurement(
        implementation=_text(row, "implementation"),
        kind=_text(row, "kind"),
        algorithm=algorithm,
        status=status,  # type: ignore[arg-type]
        reason=_text(row, "reason"),
        config=renamed_config(operation, algorithm, config) if isinstance(config, dict) else {},
        threads=_count(row, "threads"),
        workers=_count(row, "workers"),
        kernel_ms=_number(row, "kernel_ms"),
        kernel_times=_times(row, "kernel_times"),
        transfer_ms=_number(row, "transfer_ms"),
        total_ms=times,
        build_ms=_number(row, "build_ms"),
        work=_work(row, times),
        speedup=_number(row, "speedup"),
        baseline=_text(row, "baseline") or BASELINE,
        difference=_difference(row, status),
        peak=_number(row, "peak_fraction"),
        peak_note=_text(row, "peak_note"),
        data="device" if row.get("data") == "device" else "host",
        calls=_count(row, "calls"),
        note=_text(row, "note"),
    )


def _difference(row: Mapping[str, Any], status: str) -> Difference | None:
    """Return what is known of an error; JSON has none that are infinite."""
    error = {name: _number(row, f"{name}_diff") for name in ("max_abs", "max_rel", "rel_l2")}
    share = _number(row, "error_over_bound")
    if error["max_abs"] is None:  # unless it was found in another way, see `Difference.checked`
        return None if share is None else Difference(math.nan, math.nan, error_over_bound=share)
    max_rel = math.inf if error["max_rel"] is None else error["max_rel"]
    if share is None and status == "correctness":
        share = math.inf
    elif share is None and error["max_abs"] == 0:  # so it was, though nobody kept it
        share = 0.0
    return Difference(error["max_abs"], max_rel, error_over_bound=share, rel_l2=error["rel_l2"])


def _times(row: Mapping[str, Any], name: str) -> Times | None:
    """Return times of runs; without a recorded interval this is from min to max."""
    found = row.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ValueError(f"{name} is no object")
    values = [_number(found, key) for key in ("min", "median", "max")]
    low, middle, high = (math.nan if value is None else value for value in values)
    if not _ordered(0.0, low, middle, high):
        raise ValueError(f"{name} has no min, median and max in this order")
    runs = _count(found, "runs")
    interval = found.get("interval")
    if interval is None:
        return Times(middle, low, high, runs)
    if not isinstance(interval, list) or len(interval) != 2:
        raise ValueError(f"the interval of {name} is no pair")
    first, last = (_number({"interval": end}, "interval") for end in interval)
    if first is None or last is None:
        raise ValueError(f"the interval of {name} is no pair of numbers")
    if not _ordered(low, first, middle, last, high):
        raise ValueError(f"the interval of {name} does not lie between min and max, around median")
    return Times(middle, low, high, runs, (first, last))


def _ordered(*values: float) -> bool:
    """Return whether no value is greater than the next, but for rounding."""
    return all(one <= two * (1 + CLOSE) for one, two in pairwise(values))


def _work(row: Mapping[str, Any], times: Times | None) -> Work | None:
    """Return the work that the recorded rates are of."""
    flops, nbytes = _number(row, "gflops") or 0.0, _number(row, "gbps") or 0.0
    if times is None or not (flops or nbytes):
        return None
    return Work(flops * times.median * 1e6, nbytes * times.median * 1e6)


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} is no number")
    return float(value)


def _count(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is no whole number")
    return value


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value or ""
