"""Tuning runs as T4 results 1.0.0, the exchange format of auto-tuners."""

from __future__ import annotations

import json
from typing import Any

from opencl_lab.drivers.discovery import devices
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.journal import JournalRun


def to_t4(run: JournalRun) -> str:
    """Return a run as T4 results; values that T4 has no field for are in additional ones."""
    names = {device.key: device.name for device in devices()}
    operation = operations().get(run.operation)
    sizes = operation.problem().sizes if operation else ()
    about = {
        "operation": run.operation,
        "algorithm": run.algorithm,
        "problem": dict(run.problem),
        "device": run.device,
        "device_name": names.get(run.device, run.device),
        "kernel_name": f"{run.operation}_{run.algorithm}",
        "problem_size": [run.problem[name] for name in sizes if name in run.problem],
        "tune_params": {name: list(values) for name, values in run.parameters.items()},
    }
    metadata = {"timeunit": "milliseconds", "opencl_lab": about}
    results = [_result(evaluation) for evaluation in run.evaluations]
    content = {"schema_version": "1.0.0", "metadata": metadata, "results": results}
    return json.dumps(content, indent=1, allow_nan=False)


def _result(evaluation: Evaluation) -> dict[str, Any]:
    measurement = {"name": "time", "value": evaluation.time_ms, "unit": "ms"}
    return {
        "timestamp": evaluation.timestamp,
        "configuration": dict(evaluation.config),
        "objectives": ["time"],
        "measurements": [measurement] if evaluation.times_ms else [],
        "times": {
            "compilation_time": evaluation.build_ms,
            "runtimes": list(evaluation.times_ms),
            "framework": 0.0,
            "search_algorithm": 0.0,
            "validation": evaluation.check_ms,
        },
        "invalidity": evaluation.status,
        "correctness": int(evaluation.status == "correct"),
        **({"oclab_reason": evaluation.reason} if evaluation.reason else {}),
    }
