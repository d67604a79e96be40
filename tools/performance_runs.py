"""What the page of figures shows: sweeps of the study `peers`, read from its documents."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.stored import Results, read_results

__all__ = [
    "OPERATIONS",
    "OTHERS",
    "OURS",
    "STYLES",
    "TITLES",
    "Run",
    "Sweep",
    "read_runs",
    "styles_of",
]

TITLES = "titles.json"
OURS = "opencl_lab"
STYLES = {  # colour and marker, all with a contrast of 3 at least on white and on dark pages
    OURS: ("#e5484d", "o"),
    "NumPy": ("#3b82f6", "s"),
    "BLAS": ("#3b82f6", "s"),
    "SciPy": ("#3b82f6", "s"),
    "C, OpenMP": ("#7d8590", "v"),
    "OpenCV": ("#2f9e44", "D"),
    "FFTW": ("#2f9e44", "D"),
    "CLBlast": ("#d6409f", "X"),
    "VkFFT": ("#a0714f", "P"),
    "CuPy": ("#0e9594", "D"),
    "PyTorch": ("#a855f7", "^"),
    "PyOpenCL radix": ("#a0714f", "P"),
    "PyOpenCL bitonic": ("#d6409f", "X"),
}
OTHERS = tuple(  # of libraries that are not named above, in turn
    (colour, marker) for marker in "<>ph" for colour in ("#c2740c", "#6b7f1c", "#7c6cf0", "#c2497e")
)
NAMES = {  # of references, without the side on which their data are
    "numpy": "NumPy",
    "numpy:avx2": "NumPy, AVX2",
    "blas": "BLAS",
    "scipy": "SciPy",
    "c:seq": "C",
    "c:omp": "C, OpenMP",
    "opencv": "OpenCV",
    "fftw": "FFTW",
    "cupy": "CuPy",
    "torch": "PyTorch",
    "clblast": "CLBlast",
    "vkfft": "VkFFT",
    "pyopencl:radix": "PyOpenCL radix",
    "pyopencl:bitonic": "PyOpenCL bitonic",
}


@dataclass(frozen=True)
class Sweep:
    """What one part of the study shows: what a size is, and how many units a call handles."""

    name: str
    what: str
    option: str
    size: str
    unit: str
    units: Callable[[int, int], float]
    """Units of 10^6 of a call from its size and its batch."""


def _transform(n: int, batch: int) -> float:
    return 5 * n * math.log2(n) * batch / 1e9


OPERATIONS = {
    "sort": (Sweep("sort", "random int32 keys", "n", "keys", "10⁹ keys/s", lambda n, _: n / 1e9),),
    "gemm": tuple(
        Sweep(name, f"{what}, N x N", "size", "N", "TFLOP/s", lambda n, _: 2 * n**3 / 1e12)
        for name, what in (
            ("gemm", "float32"),
            ("gemm_float64", "float64"),
            ("gemm_float16", "float16"),
            ("gemm_tf32", "float32 by `tf32`"),
            ("gemm_3xtf32", "float32 by `3xtf32`"),
        )
    ),
    "conv2d": (
        Sweep(
            "conv2d",
            "7 x 7 filter, float32, N x N pixels",
            "size",
            "N",
            "10⁹ pixels/s",
            lambda n, _: n * n / 1e9,
        ),
    ),
    "fft": (
        Sweep("fft", "1,024 rows, complex64", "n", "points of a row", "GFLOP/s", _transform),
        Sweep("fft_single", "one row, complex64", "n", "points", "GFLOP/s", _transform),
    ),
}


@dataclass(frozen=True)
class Run:
    """One part of one document: a sweep on a device.

    Parameters
    ----------
    results : Results
    title : str
        Names the device.
    series : sequence of tuple
        Sizes with the rows by the names of implementations, the smallest first.
    batch : int
        Of transforms.
    """

    results: Results
    title: str
    series: Sequence[tuple[int, Mapping[str, Measurement]]]
    batch: int = 1

    @property
    def environment(self) -> Mapping[str, Any]:
        """When and on what it was measured."""
        return self.results.mapping("environment")

    @property
    def started(self) -> str:
        """When it began, so that texts compare as times do."""
        return str(self.environment["started"])

    @property
    def on_gpu(self) -> bool:
        """Whether the data were on the device."""
        return self.results.device["kind"] == "gpu"

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Where it stands: CPUs first, those with few processors before those with many."""
        return self.on_gpu, self.environment.get("processors", 0), self.title

    @property
    def names(self) -> list[str]:
        """The implementations that have a time, ours first, then as in `STYLES`."""
        return list(styles_of(name for _, row in self.series for name in row))


def styles_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return colours and markers by name, in the order in which they are shown."""
    there = set(names)
    found = {name: style for name, style in STYLES.items() if name in there}
    return {**found, **dict(zip(sorted(there - found.keys()), cycle(OTHERS), strict=False))}


def read_runs(folder: Path) -> dict[str, list[Run]]:
    """Return the runs in a folder by the name of their part.

    Each document of `oclab study peers` there has its title in titles.json, by its name. Several
    may have the same title: of a part that more than one has, the newest is taken.

    Raises
    ------
    ValueError
        If a document has no title, or several of our algorithms for one problem.
    """
    titles = json.loads((folder / TITLES).read_text(encoding="utf-8"))
    found: dict[str, dict[str, Run]] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == TITLES:
            continue
        if path.stem not in titles:
            raise ValueError(f"{folder / TITLES} has no title for {path.stem}")
        results = read_results(path)
        for sweep in (sweep for sweeps in OPERATIONS.values() for sweep in sweeps):
            run = _run(results, titles[path.stem], sweep)
            there = found.setdefault(sweep.name, {})
            if run.series and (run.title not in there or there[run.title].started < run.started):
                there[run.title] = run
    return {
        name: sorted(runs.values(), key=lambda run: run.rank)
        for name, runs in found.items()
        if runs
    }


def _run(results: Results, title: str, sweep: Sweep) -> Run:
    """Return a part of a document; without any series where it is missing."""
    side = "device" if results.device["kind"] == "gpu" else "host"
    rows = [
        row
        for row in results.rows
        if row.leading.get("part") == sweep.name and row.measurement.data == side
    ]
    series: dict[int, dict[str, Measurement]] = {}
    for row in rows:
        _put(series.setdefault(row.leading[sweep.option], {}), row.measurement)
    batch = rows[0].leading.get("batch", 1) if rows else 1
    return Run(results, title, [item for item in sorted(series.items()) if item[1]], batch)


def _put(found: dict[str, Measurement], row: Measurement) -> None:
    """Put a row with a right result to its name; of several numbers of threads the fastest."""
    if row.status != "correct" or row.total_ms is None:
        return
    bare = row.implementation.split(" x")[0].removesuffix("@device")
    name = OURS if row.kind == "opencl" else NAMES.get(bare, bare)
    if name == OURS and name in found:
        raise ValueError(f"{row.implementation} and {found[name].implementation}: which is ours?")
    if name not in found or row.total_ms.median < found[name].total_ms.median:
        found[name] = row
