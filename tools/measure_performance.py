"""Measure what docs/performance.md begins with, on one device, within a limit of time.

    python tools/measure_performance.py cpu2 --title "2 cores of an Intel Xeon"
    OCLAB_DEVICE=NVIDIA python tools/measure_performance.py h200 --title "NVIDIA H200"

Each sweep is one `oclab bench`, whose document becomes docs/data/LABEL-SWEEP.json with the title,
the date, the number of processors and the versions of the other libraries put in. On a GPU the data
are on the device (`--resident`), on a CPU they are NumPy arrays. Beside ours there are those of the
references below that are installed. Sweeps share the time that is left evenly; one
that takes longer is interrupted, and keeps what it has. `tools/performance_page.py` makes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opencl_lab.discovery import select_device
from opencl_lab.registry import get_operation

DATA = Path(__file__).parents[1] / "docs/data"
PACKAGES = ("numpy", "scipy", "pyfftw", "opencv-python-headless", "torch", "cupy-cuda12x")
REST = 15.0  # seconds in which an interrupted sweep writes what it has


@dataclass(frozen=True)
class Sweep:
    """One sweep: an operation and its options, its sizes and references on CPUs and GPUs."""

    name: str
    operation: str
    cpu: str
    gpu: str
    against: tuple[str, ...]
    options: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("torch", "cupy")


SWEEPS = (
    Sweep(
        "sort",
        "sort",
        "1000,10000,100000,1000000,10000000",
        "10000,100000,1000000,10000000,33554432",
        ("numpy", "c:omp"),
    ),
    Sweep(
        "gemm",
        "gemm",
        "64,128,256,512,1024,2048",
        "256,512,1024,2048,4096,8192",
        ("blas", "c:omp"),
    ),
    Sweep(
        "conv2d",
        "conv2d",
        "256,512,1024,2048,4096",
        "512,1024,2048,4096,8192",
        ("opencv", "scipy", "c:omp"),
        ("--ksize", "7"),
        ("torch",),
    ),
    Sweep(
        "fft",
        "dft",
        "64,256,1024,4096,16384",
        "64,256,1024,4096,16384",
        ("scipy", "fftw"),
        ("--batch", "1024", "--algorithm", "fft"),
    ),
    Sweep(
        "fft_single",
        "dft",
        "1024,16384,262144,1048576,4194304",
        "1024,16384,262144,1048576,16777216",
        ("scipy", "fftw"),
        ("--algorithm", "fft"),
    ),
)


def command_of(sweep: Sweep, on_gpu: bool) -> list[str]:
    """Return the arguments of `oclab` for a sweep, whose documents go to the folder `sweep`."""
    arguments = ["bench", sweep.operation, "--sizes", sweep.gpu if on_gpu else sweep.cpu]
    arguments += [*sweep.options, "--out", "sweep", "--quiet"]
    if on_gpu:
        peers = [f"{name}@device" for name in sweep.peers if find_spec(name) is not None]
        return [*arguments, "--resident", "--against", ",".join(peers) or "none"]
    references = {item.name: item for item in get_operation(sweep.operation).references}
    there = [
        name
        for name in sweep.against
        if name == "c:omp" or references[name].unavailable() is None  # type: ignore[attr-defined]
    ]
    return [*arguments, "--against", ",".join(there)]


def run(arguments: Sequence[str], folder: Path, limit: float) -> dict[str, Any] | None:
    """Run `oclab` in a folder for `limit` seconds; return its document, None where it has none."""
    process = subprocess.Popen([sys.executable, "-m", "opencl_lab", *arguments], cwd=folder)
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        print(f"interrupted after {limit:.0f} s: {' '.join(arguments)}", flush=True)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(REST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    found = folder / "sweep/results.json"
    if not found.is_file():
        return None
    content: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return content


def versions() -> dict[str, str]:
    """Return the versions of the other libraries that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main() -> int:
    """Measure all sweeps or some; return 1 if one of them has nothing, or a wrong result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("label", help="begins the names of the files, such as h200")
    parser.add_argument("--title", required=True, help="names the device in plots and tables")
    parser.add_argument("--time-limit", type=float, default=150.0, help="seconds for all sweeps")
    parser.add_argument("--sweeps", default=",".join(item.name for item in SWEEPS))
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the documents")
    given = parser.parse_args()
    wanted = [item for item in SWEEPS if item.name in given.sweeps.split(",")]
    on_gpu = select_device().kind == "gpu"
    end = time.monotonic() + given.time_limit
    failed = 0
    for index, sweep in enumerate(wanted):
        limit = (end - time.monotonic()) / (len(wanted) - index)
        with tempfile.TemporaryDirectory() as folder:
            content = run(command_of(sweep, on_gpu), Path(folder), limit)
        rows = [] if content is None else content["results"]
        failed += not rows or any(row["status"] == "correctness" for row in rows)
        print(f"{sweep.name}: {len(rows)} rows, {end - time.monotonic():.0f} s left", flush=True)
        if not rows or content is None:
            continue
        content["measured"] = {
            "title": given.title,
            "sweep": sweep.name,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "processors": len(os.sched_getaffinity(0)),
            "versions": versions(),
        }
        given.data.mkdir(parents=True, exist_ok=True)
        target = given.data / f"{given.label}-{sweep.name}.json"
        target.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
