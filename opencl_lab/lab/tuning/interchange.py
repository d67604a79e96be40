"""Runs of tuning in the formats of other tuners: Kernel Tuner's cache files and T4 results 1.0.0.

Both are read as well as written. What they have no field for goes into fields
of their own that other programs skip, so that a run of ours comes back whole.
`opencl_lab.lab.tuning.adopt` tells formats apart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.space import Config, SearchSpace, Value
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.tuning.evaluation import Evaluation

__all__ = [
    "Recording",
    "from_kernel_tuner",
    "from_t4",
    "parse_json",
    "to_kernel_tuner",
    "to_t4",
    "values_of",
]

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
    """A run of tuning: what was tried, on what.

    Parameters
    ----------
    device, kernel : str
        Names for people.
    problem_size : tuple of int
    parameters : mapping
        The values of each parameter, in order.
    evaluations : list of Evaluation
    about : mapping
        Operation, algorithm and problem as in `Problem.as_dict`, as far as they are known.
    notes : tuple of str
        What of a file could not be taken over.
    """

    device: str
    kernel: str
    problem_size: tuple[int, ...]
    parameters: Mapping[str, tuple[Value, ...]]
    evaluations: list[Evaluation]
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def values_of(
    evaluations: list[Evaluation], space: SearchSpace | None = None
) -> dict[str, tuple[Value, ...]]:
    """Return the values of each parameter: those of `space`, then what else was tried."""
    found: dict[str, list[Value]] = {}
    if space is not None:
        found = {parameter.name: list(parameter.values) for parameter in space.parameters}
    for evaluation in evaluations:
        for name, value in evaluation.config.items():
            tried = found.setdefault(name, [])
            if (type(value), value) not in [(type(old), old) for old in tried]:
                tried.append(value)
    return {name: tuple(values) for name, values in found.items()}


# ------------------------------------------------------------- Kernel Tuner


def to_kernel_tuner(recording: Recording) -> str:
    """Return the cache file of Kernel Tuner that holds a run.

    Kernel Tuner looks at the last characters and puts more lines before them:
    the layout of the lines is part of the format.
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


def from_kernel_tuner(text: str) -> Recording:
    """Return the run in a cache file of Kernel Tuner, also of one that was cut off.

    Raises
    ------
    InvalidProblem
        If it is no such file.
    """
    return _reading("cache file of Kernel Tuner", _kernel_tuner_recording, text)


def _kernel_tuner_recording(text: str) -> Recording:
    content = _closed(text)
    names = list(content["tune_params_keys"])
    evaluations = []
    for entry in content["cache"].values():
        found = [value for value in entry.values() if value in list(STATUS_OF_ERROR)]
        status: Status = STATUS_OF_ERROR[found[0]] if found else "correct"
        status = _status(entry.get("oclab_status", status))
        times = entry.get("times") or [entry.get("time")]
        config = Config({name: _value(entry[name]) for name in names})
        record = _evaluation(config, status, entry.get("oclab_reason"), times)
        evaluations.append(_timed(record, entry, "compile_time", "verification_time"))
    size = content.get("problem_size", ())
    size = [size] if isinstance(size, (int, float)) else size
    return Recording(
        str(content["device_name"]),
        str(content["kernel_name"]),
        tuple(int(part) for part in size) if not isinstance(size, str) else (),
        {
            name: tuple(_value(value) for value in content["tune_params"].get(name, ()))
            for name in names
        },
        evaluations,
        _about(content.get("opencl_lab")),
    )


def _closed(text: str) -> Any:
    """Parse JSON that may end too early: Kernel Tuner closes a file only when it is read."""
    body = text.rstrip()
    whole_lines = body[: body.rfind("\n")].rstrip()  # the last one may have been cut
    endings = (body, body.rstrip(",") + "}\n}", whole_lines.rstrip(",") + "}\n}")
    for ending in endings[:-1]:
        try:
            return json.loads(ending)
        except ValueError:
            continue
    return json.loads(endings[-1])


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


def from_t4(text: str) -> Recording:
    """Return the run in T4 results; both spellings of the time of compilation are read.

    Raises
    ------
    InvalidProblem
        If they are no such results, or of another major version.
    """
    return _reading("file of T4 results", _t4_recording, text)


def _t4_recording(text: str) -> Recording:
    content = json.loads(text)
    version = content["schema_version"]
    if str(version).split(".")[0] != T4_VERSION.split(".")[0]:
        raise ValueError(f"version {version}, not {T4_VERSION}")
    metadata = content.get("metadata") or {}
    scale = MILLISECONDS[metadata.get("timeunit", "milliseconds")]
    evaluations = []
    for result in content["results"]:
        times = result["times"]
        config = Config({name: _value(value) for name, value in result["configuration"].items()})
        runtimes = [time * scale for time in times.get("runtimes") or ()]
        record = _evaluation(
            config,
            _status(result["invalidity"]),
            result.get("oclab_reason"),
            runtimes or [_measured(result.get("measurements") or ())],
        )
        record["timestamp"] = result.get("timestamp", "")
        if "compilation_time" not in times and "compilation" in times:
            times = {**times, "compilation_time": times["compilation"]}
        evaluations.append(_timed(record, times, "compilation_time", "validation", scale))
    about = dict(_about(metadata.get("opencl_lab")))
    parameters = {
        name: tuple(_value(value) for value in values)
        for name, values in about.pop("tune_params", {}).items()
    }
    return Recording(
        about.pop("device_name", ""),
        about.pop("kernel_name", ""),
        tuple(about.pop("problem_size", ())),
        parameters or values_of(evaluations),
        evaluations,
        about,
    )


def _measured(measurements: Any) -> float | None:
    """Return the measurement called time in milliseconds."""
    for measurement in measurements:
        if measurement["name"] == "time" and isinstance(measurement["value"], (int, float)):
            value: float = measurement["value"]
            return value * MILLISECONDS[measurement.get("unit") or "ms"]
    return None


# ------------------------------------------------------------------ reading


def parse_json(kind: str, parse: Callable[[Any], Recording], text: str) -> Recording:
    """Return what `parse` makes of a JSON document; InvalidProblem if it is no such thing."""
    return _reading(kind, lambda body: parse(json.loads(body)), text)


def _reading(kind: str, parse: Callable[[str], Recording], text: str) -> Recording:
    try:
        return parse(text)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise InvalidProblem(
            f"this is no {kind} that can be read: {type(error).__name__}: {error}"
        ) from error


def _value(value: Any) -> Value:
    """Return the value of a parameter; some tuners write whole numbers as floats."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (bool, int, str)):
        return value
    raise ValueError(f"a parameter cannot be {value!r}")


def _status(value: Any) -> Status:
    if value not in get_args(Status):
        raise ValueError(f"unknown status {value!r}")
    return cast(Status, value)


def _about(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _evaluation(
    config: Config, status: Status, reason: str | None, times: list[Any]
) -> dict[str, Any]:
    """Return the first fields of an evaluation; a success without a time is a failure."""
    usable = tuple(
        float(time) for time in times if isinstance(time, (int, float)) and 0 < time < math.inf
    )
    if status == "correct" and not usable:
        status, reason = "runtime", "the file has no time for it"
    if status != "correct":
        usable = ()
    return {"config": config, "status": status, "reason": reason or "", "times_ms": usable}


def _timed(
    record: dict[str, Any], source: Mapping[str, Any], build: str, check: str, scale: float = 1.0
) -> Evaluation:
    def number(name: str) -> float:
        value = source.get(name)
        return float(value) * scale if isinstance(value, (int, float)) else 0.0

    record.setdefault("timestamp", str(source.get("timestamp", "")))
    return Evaluation(build_ms=number(build), check_ms=number(check), **record)
