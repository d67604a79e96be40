"""Tuning runs in the formats of other tuners: Kernel Tuner's cache files and T4 results 1.0.0.

Both are read and written. Values that a format has no field for are written in additional fields,
which other programs ignore, so that our runs can be read back completely.
`opencl_lab.lab.tuning.adopt` detects the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.records import Finite, parsed, typed
from opencl_lab.core.space import Config, Value
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.tuning.evaluation import Evaluation

T4_VERSION = "1.0.0"
MILLISECONDS = {"s": 1e3, "seconds": 1e3, "ms": 1.0, "milliseconds": 1.0, "us": 1e-3, "ns": 1e-6}
MILLISECONDS |= {"microseconds": 1e-3, "nanoseconds": 1e-6}
KERNEL_TUNER_ERRORS: dict[Status, str] = {
    "constraints": "InvalidConfig",
    "compile": "CompilationFailedConfig",
    "runtime": "RuntimeFailedConfig",
    "timeout": "RuntimeFailedConfig",
    "correctness": "RuntimeFailedConfig",
}
STATUS_OF_ERROR: dict[str, Status] = {
    "InvalidConfig": "constraints",
    "CompilationFailedConfig": "compile",
    "RuntimeFailedConfig": "runtime",
    "ErrorConfig": "runtime",
}


@dataclass(frozen=True)
class Recording:
    """A tuning run: the configurations that were tried, on which problem and device."""

    device: str
    kernel: str
    """Both are names for display."""
    problem_size: tuple[int, ...]
    parameters: Mapping[str, tuple[Value, ...]]
    """The values of each parameter, in order."""
    evaluations: list[Evaluation]
    about: Mapping[str, Any] = field(default_factory=dict)
    """Operation, algorithm and problem as in `Problem.as_dict`, as far as known."""
    notes: tuple[str, ...] = ()
    """What could not be read from a file."""


def values_of(
    evaluations: list[Evaluation], listed: Mapping[str, Sequence[Value]] = MappingProxyType({})
) -> dict[str, tuple[Value, ...]]:
    """Return the values of each parameter: the `listed` ones, then others that were tried."""
    found = {name: list(values) for name, values in listed.items()}
    for evaluation in evaluations:
        for name, value in evaluation.config.items():
            tried = found.setdefault(name, [])
            if (type(value), value) not in [(type(old), old) for old in tried]:
                tried.append(value)
    return {name: tuple(values) for name, values in found.items()}


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Convert errors from reading a file to InvalidProblem; a context manager and decorator."""
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else repr(error)
        raise InvalidProblem(f"this is no {kind} that can be read: {why}") from error


# ------------------------------------------------------------- Kernel Tuner


def to_kernel_tuner(recording: Recording) -> str:
    """Return a run as a cache file of Kernel Tuner.

    The layout of the lines is part of the format, since Kernel Tuner inserts more lines before the
    last characters.
    """
    names = list(recording.parameters)
    header = {
        "device_name": recording.device,
        "kernel_name": recording.kernel,
        "problem_size": list(recording.problem_size),
        "tune_params_keys": names,
        "tune_params": {name: list(values) for name, values in recording.parameters.items()},
        "objective": "time",
        "opencl_lab": dict(recording.about),
    }
    lines = [
        f"{json.dumps(','.join(str(evaluation.config[name]) for name in names))}: "
        f"{json.dumps(_kernel_tuner_entry(names, evaluation))}"
        for evaluation in recording.evaluations
    ]
    start = json.dumps(header, indent=0)[:-2]  # without its last line
    return f'{start},\n"cache": {{\n' + ",\n".join(lines) + "}\n}"


def _kernel_tuner_entry(names: list[str], evaluation: Evaluation) -> dict[str, Any]:
    entry: dict[str, Any] = {name: evaluation.config[name] for name in names}
    if evaluation.times_ms:
        entry.update(time=evaluation.time_ms, times=list(evaluation.times_ms))
    entry.update(
        compile_time=evaluation.build_ms,
        verification_time=evaluation.check_ms,
        benchmark_time=sum(evaluation.times_ms),
        timestamp=evaluation.timestamp,
    )
    if evaluation.status != "correct":
        entry["__error__"] = KERNEL_TUNER_ERRORS[evaluation.status]
        entry.update(oclab_status=evaluation.status, oclab_reason=evaluation.reason)
    return entry


class _Cache(Struct):
    """A cache file of Kernel Tuner; an entry has parameters and times in one object."""

    device_name: str
    kernel_name: str
    tune_params_keys: list[str]
    tune_params: dict[str, list[Any]]
    cache: dict[str, dict[str, Any]]
    problem_size: float | str | list[float] = ""
    opencl_lab: dict[str, Any] = {}


@reading("cache file of Kernel Tuner")
def from_kernel_tuner(text: str) -> Recording:
    """Return the run in a cache file of Kernel Tuner, which may be truncated."""
    content = typed(_Cache, _closed(text))
    names, size = content.tune_params_keys, content.problem_size
    sizes = [] if isinstance(size, str) else size if isinstance(size, list) else [size]
    return Recording(
        content.device_name,
        content.kernel_name,
        tuple(map(int, sizes)),
        {name: tuple(map(_value, content.tune_params.get(name, ()))) for name in names},
        [_kernel_tuner_evaluation(names, entry) for entry in content.cache.values()],
        content.opencl_lab,
    )


def _kernel_tuner_evaluation(names: list[str], entry: dict[str, Any]) -> Evaluation:
    errors = [value for value in entry.values() if value in list(STATUS_OF_ERROR)]
    status = entry.get("oclab_status", STATUS_OF_ERROR[errors[0]] if errors else "correct")
    return _evaluation(
        Config({name: _value(entry[name]) for name in names}),
        typed(Status, status),
        str(entry.get("oclab_reason") or ""),
        entry.get("times") or [entry.get("time")],
        entry.get("compile_time"),
        entry.get("verification_time"),
        str(entry.get("timestamp", "")),
    )


def _closed(text: str) -> Any:
    """Parse JSON that may be truncated: Kernel Tuner completes a file only when it reads it."""
    body = text.rstrip()
    whole_lines = body[: body.rfind("\n")].rstrip()  # the last one may be truncated
    endings = (body, body.rstrip(",") + "}\n}", whole_lines.rstrip(",") + "}\n}")
    for ending in endings[:-1]:
        try:
            return parsed(ending)
        except ValueError:
            continue
    return parsed(endings[-1])


# ----------------------------------------------------------------------- T4


def to_t4(recording: Recording) -> str:
    """Return a run as T4 results 1.0.0."""
    results = []
    for evaluation in recording.evaluations:
        result: dict[str, Any] = {
            "timestamp": evaluation.timestamp,
            "configuration": dict(evaluation.config),
            "objectives": ["time"],
            "measurements": [],
            "times": {
                "compilation_time": evaluation.build_ms,
                "runtimes": list(evaluation.times_ms),
                "framework": 0.0,
                "search_algorithm": 0.0,
                "validation": evaluation.check_ms,
            },
            "invalidity": evaluation.status,
            "correctness": 1 if evaluation.status == "correct" else 0,
        }
        if evaluation.times_ms:
            measurement = {"name": "time", "value": evaluation.time_ms, "unit": "ms"}
            result["measurements"] = [measurement]
        if evaluation.reason:
            result["oclab_reason"] = evaluation.reason
        results.append(result)
    about = {
        **recording.about,
        "device_name": recording.device,
        "kernel_name": recording.kernel,
        "problem_size": list(recording.problem_size),
        "tune_params": {name: list(values) for name, values in recording.parameters.items()},
    }
    metadata = {"timeunit": "milliseconds", "opencl_lab": about}
    content = {"schema_version": T4_VERSION, "metadata": metadata, "results": results}
    return json.dumps(content, indent=1, allow_nan=False)


class _Times(Struct):
    runtimes: list[float] | None = None
    compilation_time: Any = None
    compilation: Any = None
    validation: Any = None


class _Measured(Struct):
    name: str
    value: Any
    unit: str | None = None


class _Result(Struct):
    configuration: dict[str, Any]
    times: _Times
    invalidity: Status
    measurements: list[_Measured] | None = None
    oclab_reason: str | None = None
    timestamp: str | None = None


class _Metadata(Struct):
    timeunit: str = "milliseconds"
    opencl_lab: dict[str, Any] = {}


class _T4(Struct):
    """T4 results 1.0.0."""

    schema_version: Any
    results: list[_Result]
    metadata: _Metadata | None = None


class _Ours(Struct):
    """Values that T4 has no field for."""

    device_name: str = ""
    kernel_name: str = ""
    problem_size: list[int] = []
    tune_params: dict[str, list[Any]] = {}


@reading("file of T4 results")
def from_t4(text: str) -> Recording:
    """Return the run in T4 results, with either spelling of the compilation time."""
    content = typed(_T4, parsed(text))
    if str(content.schema_version).split(".")[0] != T4_VERSION.split(".")[0]:
        raise ValueError(f"version {content.schema_version}, not {T4_VERSION}")
    metadata = content.metadata or _Metadata()
    scale = _milliseconds(metadata.timeunit)
    evaluations = [_t4_evaluation(result, scale) for result in content.results]
    ours, about = typed(_Ours, metadata.opencl_lab), metadata.opencl_lab
    parameters = {name: tuple(map(_value, values)) for name, values in ours.tune_params.items()}
    return Recording(
        ours.device_name,
        ours.kernel_name,
        tuple(ours.problem_size),
        parameters or values_of(evaluations),
        evaluations,
        {name: value for name, value in about.items() if name not in _Ours.__struct_fields__},
    )


def _t4_evaluation(result: _Result, scale: float) -> Evaluation:
    times = result.times
    measured = [
        _number(item.value, _milliseconds(item.unit or "ms"))
        for item in result.measurements or ()
        if item.name == "time"
    ]
    build = times.compilation if times.compilation_time is None else times.compilation_time
    return _evaluation(
        Config({name: _value(value) for name, value in result.configuration.items()}),
        result.invalidity,
        result.oclab_reason or "",
        [time * scale for time in times.runtimes or ()] or measured[:1],
        _number(build, scale),
        _number(times.validation, scale),
        result.timestamp or "",
    )


# ---------------------------------------------------------- values of files


def _value(value: Any) -> Value:
    """Return the value of a parameter; some tuners write whole numbers as floats."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    found: Value = typed(Value, whole)
    return found


def _number(value: Any, scale: float = 1.0) -> float:
    """Return a finite number, scaled; 0 for anything else."""
    try:
        return typed(Finite, value) * scale
    except ValueError:
        return 0.0


def _milliseconds(unit: str) -> float:
    if unit not in MILLISECONDS:
        raise ValueError(f"unknown unit of time {unit!r}")
    return MILLISECONDS[unit]


def _evaluation(
    config: Config,
    status: Status,
    reason: str,
    times: list[Any],
    build: Any,
    check: Any,
    timestamp: str,
) -> Evaluation:
    """Return an evaluation; a success without a time counts as a failure."""
    usable = tuple(time for time in map(_number, times) if time > 0)
    if status == "correct" and not usable:
        status, reason = "runtime", "the file has no time for it"
    if status != "correct":
        usable = ()
    return Evaluation(config, status, reason, usable, _number(build), _number(check), timestamp)
