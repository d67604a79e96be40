"""Tune the problems with shipped entries, and print each winner beside the built-in configuration.

    python tools/tune_shipped.py [--device SPEC] [--only TEXT] [--seconds FACTOR]
        [--total SECONDS] [--export EXPORT.json]

The most valuable problems come first, so that `--total` leaves out the least valuable. The
export, which is rewritten after each, has the winners that are faster than the built-in
configuration beyond noise; `tools/merge_tuning.py` merges it into the shipped entries. "gain" is
the built-in configuration's kernel time over the winner's, both from the finals, where they take
turns. As with `oclab tune`, the user's database is used: set an empty `OCLAB_DATA_DIR`.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import opencl_lab as ol
from opencl_lab.core.paths import write_json
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.presentation.table import number
from opencl_lab.tuned.entry import Entry, document, entry_of

Task = tuple[str, str, float, dict[str, Any]]
"""Operation, algorithm, seconds, options of the problem."""


def _product(m: int, n: int, k: int, **more: Any) -> dict[str, Any]:
    return {"m": m, "n": n, "k": k, **more}


def _square(size: int, **more: Any) -> dict[str, Any]:
    return _product(size, size, size, **more)


GEMM_OF_GPUS: tuple[Task, ...] = (
    ("gemm", "blocked", 22.0, _square(4096)),
    ("gemm", "blocked", 20.0, _square(1024)),
    ("gemm", "tensor", 20.0, _square(4096, dtype="float64")),
    ("gemm", "tensor", 20.0, _square(4096, precision="3xtf32")),
    ("gemm", "blocked", 20.0, _square(2048)),
    ("gemm", "tensor", 18.0, _square(4096, dtype="float16")),
    ("gemm", "blocked", 18.0, _square(512)),
    ("gemm", "blocked", 22.0, _square(8192)),
    ("gemm", "blocked", 18.0, _square(3000)),
    ("gemm", "tensor", 18.0, _square(4096, precision="tf32")),
    ("gemm", "gemv", 14.0, _product(1, 4096, 4096)),
    ("gemm", "blocked", 18.0, _product(64, 4096, 4096)),
    ("gemm", "tensor", 18.0, _square(2048, dtype="float64")),
    ("gemm", "blocked", 18.0, _product(8192, 1024, 1024)),
    ("gemm", "gemv", 14.0, _product(4096, 1, 4096)),
    ("gemm", "tensor", 18.0, _square(2048, precision="3xtf32")),
    ("gemm", "tensor", 18.0, _square(8192, dtype="float16")),
    ("gemm", "blocked", 18.0, _square(1000)),
)
GEMM_OF_CPUS: tuple[Task, ...] = (
    ("gemm", "packed", 24.0, _square(1024)),
    ("gemm", "packed", 30.0, _square(2048)),
    ("gemm", "packed", 20.0, _square(512)),
    ("gemm", "packed", 20.0, _square(256)),
    ("gemm", "packed", 24.0, _square(1000)),
    ("gemm", "gemv", 16.0, _product(1, 4096, 4096)),
    ("gemm", "packed", 40.0, _square(4096)),
    ("gemm", "packed", 24.0, _square(1024, dtype="float64")),
    ("gemm", "packed", 30.0, _square(3000)),
    ("gemm", "gemv", 16.0, _product(4096, 1, 4096)),
    ("gemm", "packed", 24.0, _product(64, 4096, 4096)),
    ("gemm", "packed", 30.0, _square(2048, dtype="float64")),
    ("gemm", "gemv", 12.0, _product(1, 1000, 1000)),
)
TASKS: tuple[Task, ...] = tuple(
    ("sort", "odd-even-merge", 15.0, {"n": size, "dtype": dtype})
    for dtype in ("int32", "float64")
    for size in (50_000, 1_000_000)
)
TASKS += tuple(
    ("conv2d", "register", 18.0, {"size": size, "ksize": ksize})
    for size in (1024, 4096)
    for ksize in (3, 7, 15)
)
TASKS += tuple(
    ("dft", "fft", 20.0, {"n": n, "batch": batch})
    for n, batch in (
        (1024, 1024), (4096, 256), (256, 4096), (1000, 1024), (1009, 256),
        (1 << 14, 1), (1 << 16, 1), (1 << 18, 1), (1 << 20, 1), (1 << 22, 1),
    )
)  # fmt: skip
LARGE: tuple[Task, ...] = (  # what a GPU needs to be busy
    ("sort", "odd-even-merge", 20.0, {"n": 16_000_000, "dtype": "int32"}),
    *(("conv2d", "register", 20.0, {"size": 8192, "ksize": ksize}) for ksize in (3, 7, 15)),
    *(
        ("dft", "fft", 30.0, {"n": n, "batch": max(1, (1 << 24) // n)})
        for n in (256, 1024, 4096, 32_768, 3**10, 5**7, 1000, 1009, 1 << 20, 1 << 24)
    ),
)
ENDING = 2.0
"""Seconds that a run takes beside its limit: processes that start and end."""
HEADER = (
    "| operation | problem | built-in ms | tuned ms | gain | rate | "
    "evaluations | per minute | failed | s |"
)


def rate(row: dict[str, Any]) -> str:
    """Return the rate of a row: of arithmetic, or of memory where there is none."""
    return f"{row['gflops']:.4g} GFLOP/s" if row["gflops"] else f"{row['gbps']:.3g} GB/s"


def row(operation: str, algorithm: str, result: ol.TuneResult, size: str) -> str:
    """Return a row of the table in Markdown."""
    best, default = result.best, result.default
    made = len(result.evaluations) - result.resumed
    cells = (
        f"{operation} {algorithm}",
        size,
        "-" if default is None or not default.times_ms else number(default.time_ms),
        "-" if best is None else number(best.time_ms),
        "-" if result.speedup is None else f"{result.speedup:.2f}x",
        "-" if best is None else rate(result.as_row(best)),
        str(made),
        f"{60 * made / result.seconds:.0f}",
        ", ".join(f"{count} {status}" for status, count in result.failures.items()) or "-",
        f"{result.seconds:.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def wanted(device: ol.Device, only: str) -> list[tuple[Task, str]]:
    """Return the problems for a kind of device, each with its sizes as a text."""
    gpu = device.kind == "gpu"
    tasks = (*GEMM_OF_GPUS, *TASKS, *LARGE) if gpu else (*GEMM_OF_CPUS, *TASKS)
    named = [
        (task, ", ".join(f"{name}={value}" for name, value in task[3].items())) for task in tasks
    ]
    return [(task, size) for task, size in named if only in f"{task[0]} {task[1]} {size}"]


def gains(result: ol.TuneResult) -> bool:
    """Return whether the winner is another one than the built-in, faster beyond the noise."""
    best, default = result.best, result.default
    return bool(
        result.stored and best and default and default.times_ms and best.config != default.config
    )


def entry(result: ol.TuneResult) -> Entry:
    """Return what is shipped of a winner."""
    task, best = result.task, result.best
    assert best is not None
    digest = kernel_digest(task.algorithm.templates)
    about = (task.device, task.operation.name, task.algorithm_name, digest, task.problem)
    return entry_of(*about, best.config, best.time_ms)


def main() -> None:
    """Tune everything on one device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--only", default="", help="part of 'OPERATION ALGORITHM SIZES'")
    parser.add_argument("--seconds", type=float, default=1.0, help="factor for the time limits")
    parser.add_argument("--total", type=float, default=math.inf, help="seconds for all together")
    parser.add_argument("--export", type=Path, help="where the winners that gain go")
    arguments = parser.parse_args()
    device, begin = ol.select_device(arguments.device), time.monotonic()
    print(f"{device}, {time.strftime('%Y-%m-%d')}\n\n{HEADER}", flush=True)
    print("|---|---" + "|--:" * 8 + "|", flush=True)
    winners: list[Entry] = []
    for (operation, algorithm, seconds, problem), size in wanted(device, arguments.only):
        left = arguments.total - (time.monotonic() - begin) - ENDING
        limit = min(seconds * arguments.seconds, left)
        if limit < seconds * arguments.seconds / 2:
            print(f"not tuned, no time left: {operation} {algorithm} {size}", flush=True)
            continue
        try:
            result = ol.tune(
                operation, algorithm=algorithm, time_limit=limit, device=device, **problem
            )
        except ol.OclabError as error:
            print(f"not tuned: {operation} {algorithm} {size}: {error}", flush=True)
            continue
        print(row(operation, algorithm, result, size), flush=True)
        for note in result.notes:
            print(f"note: {note}")
        winners += [entry(result)] if gains(result) else []
        if arguments.export is not None:
            write_json(arguments.export, document(winners))
    print(f"{len(winners)} winners are faster than the built-in configurations beyond the noise")


if __name__ == "__main__":
    main()
