"""Tune what the package ships entries for, and print each winner beside the built-in.

    python tools/tune_shipped.py [--device SPEC] [--only TEXT] [--seconds FACTOR]
    oclab tuning export EXPORT.json

The winners go to the user's database, as with `oclab tune`; `tools/merge_tuning.py` merges the
export into what is shipped. "gain" is the built-in configuration's kernel time over the winner's,
both from the finals, where they take turns.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import opencl_lab as ol
from opencl_lab.comparison.table import number

Task = tuple[str, str, float, dict[str, Any]]
"""Operation, algorithm, seconds, options of the problem."""


def _square(size: int, dtype: str) -> dict[str, Any]:
    return {"m": size, "n": size, "k": size, "dtype": dtype}


TASKS: tuple[Task, ...] = (
    *(("gemm", "naive", 8.0, _square(size, "float32")) for size in (512, 1024, 2048)),
    *(("gemm", "tiled", 10.0, _square(size, "float32")) for size in (512, 1024, 2048)),
    *(("gemm", "blocked", 35.0, _square(size, "float32")) for size in (512, 1024, 2048)),
    *(("gemm", "blocked", 25.0, _square(size, "float64")) for size in (512, 2048)),
    *(
        ("sort", "odd-even-merge", 15.0, {"n": size, "dtype": dtype})
        for dtype in ("int32", "float64")
        for size in (50_000, 1_000_000)
    ),
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
    ("gemm", "blocked", 35.0, _square(4096, "float32")),
    ("sort", "odd-even-merge", 20.0, {"n": 16_000_000, "dtype": "int32"}),
    *(("conv2d", "register", 20.0, {"size": 8192, "ksize": ksize}) for ksize in (3, 7, 15)),
    *(
        ("dft", "fft", 30.0, {"n": n, "batch": max(1, (1 << 24) // n)})
        for n in (256, 1024, 4096, 32_768, 3**10, 5**7, 1000, 1009, 1 << 20, 1 << 24)
    ),
)
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


def main() -> None:
    """Tune everything on one device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--only", default="", help="part of 'OPERATION ALGORITHM SIZES'")
    parser.add_argument("--seconds", type=float, default=1.0, help="factor for the time limits")
    arguments = parser.parse_args()
    device = ol.select_device(arguments.device)
    print(f"{device}, {time.strftime('%Y-%m-%d')}\n\n{HEADER}", flush=True)
    print("|---|---" + "|--:" * 8 + "|", flush=True)
    tasks = (*TASKS, *LARGE) if device.kind == "gpu" else TASKS
    for operation, algorithm, seconds, problem in tasks:
        size = ", ".join(f"{name}={value}" for name, value in problem.items())
        if arguments.only not in f"{operation} {algorithm} {size}":
            continue
        result = ol.tune(
            operation,
            algorithm=algorithm,
            time_limit=seconds * arguments.seconds,
            device=device,
            **problem,
        )
        print(row(operation, algorithm, result, size), flush=True)
        for note in result.notes:
            print(f"note: {note}")


if __name__ == "__main__":
    main()
