"""What the pages of figures are made of: the files in docs/data.

A document of the study `peers` gives the sweeps of one device, a document of another study its
page. A CSV file is a listing: its head, lines of ``# key: value``, has device, date, method and
command, and `compared` names the columns of times, ours first.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opencl_lab.lab.engine.stored import Result, Results, read_results
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.outcome import Outcome
from opencl_lab.lab.studies.stored import stored_outcome

TITLES = "titles.json"
MOST_ROWS = 6
OURS = "opencl_lab"
NAMES = {  # of references, without the side on which their data are
    "numpy": "NumPy",
    "numpy:avx2": "NumPy, AVX2",
    "blas": "BLAS",
    "scipy": "SciPy",
    "c:seq": "C",
    "c:blocked": "C, blocked",
    "c:omp": "C, OpenMP",
    "mpi:c": "C, MPI",
    "opencv": "OpenCV",
    "fftw": "FFTW",
    "cupy": "CuPy",
    "torch": "PyTorch",
    "clblast": "CLBlast",
    "vkfft": "VkFFT",
    "pyopencl:radix": "PyOpenCL radix",
    "pyopencl:bitonic": "PyOpenCL bitonic",
}
SAID_APART = ("device", "date")
HEAD = ("device", "date", "method", "command", "compared")


@dataclass(frozen=True)
class Sweep:
    """A part of `peers`: what a size is, and how many units a call of a size and batch handles."""

    name: str
    operation: str
    what: str
    option: str
    size: str
    unit: str
    units: Callable[[int, int], float]


def _product(name: str, kind: str) -> Sweep:
    return Sweep(
        name, "gemm", f"{kind}, N x N", "size", "N", "TFLOP/s", lambda n, _: 2 * n**3 / 1e12
    )


def _transform(name: str, what: str, size: str) -> Sweep:
    def units(n: int, batch: int) -> float:
        return 5 * n * math.log2(n) * batch / 1e9

    return Sweep(name, "fft", f"{what}, complex64", "n", size, "GFLOP/s", units)


_FILTER = "7 x 7 filter, float32, N x N pixels"
_SWEEPS = (
    Sweep("sort", "sort", "random int32 keys", "n", "keys", "10⁹ keys/s", lambda n, _: n / 1e9),
    _product("gemm", "float32"),
    _product("gemm_float64", "float64"),
    _product("gemm_float16", "float16"),
    _product("gemm_tf32", "float32 by tf32"),
    _product("gemm_3xtf32", "float32 by 3xtf32"),
    Sweep("conv2d", "conv2d", _FILTER, "size", "N", "10⁹ pixels/s", lambda n, _: n * n / 1e9),
    _transform("fft", "1,024 rows", "points of a row"),
    _transform("fft_single", "one row", "points"),
)
SWEEPS = {sweep.name: sweep for sweep in _SWEEPS}
SUMMARY = ("sort", "gemm", "gemm_float64", "conv2d", "fft", "fft_single")
PICTURES = {
    operation: [sweep.name for sweep in _SWEEPS if sweep.operation == operation]
    for operation in ("sort", "gemm", "conv2d", "fft")
}
Series = list[tuple[int, dict[str, Times]]]


@dataclass(frozen=True)
class Run:
    """A sweep on a device: sizes with times by the names of implementations."""

    sweep: Sweep
    title: str  # names the device
    results: Results
    series: Series
    batch: int

    @property
    def ratios(self) -> list[float]:
        """The times of the best other library over ours, by size."""
        return [best_other(times)[1].median / times[OURS].median for _, times in self.series]

    @property
    def started(self) -> str:
        """When it began, so that texts compare as times do."""
        return str(self.results.mapping("environment")["started"])

    @property
    def on_gpu(self) -> bool:
        """Whether the data were on the device."""
        return bool(self.results.device["kind"] == "gpu")

    @property
    def rank(self) -> tuple[bool, int]:
        """Where it stands: CPUs first, those with few processors before those with many."""
        return self.on_gpu, self.results.mapping("environment").get("processors", 0)


@dataclass(frozen=True)
class Listing:
    """A CSV file with its head."""

    path: Path
    head: Mapping[str, str]
    rows: Sequence[Mapping[str, str]]

    @property
    def compared(self) -> list[str]:
        """The columns of times that were measured alike, ours first."""
        return self.head["compared"].split("; ")

    @property
    def leading(self) -> list[str]:
        """The columns that say what was measured, which are before those of times."""
        names = list(self.rows[0])
        return names[: names.index(self.compared[0])]

    def label(self, row: Mapping[str, str]) -> str:
        """Return what a row measured, in a few words: equal sizes once."""
        sizes = [f"{int(row[name]):,}" for name in self.leading if name in "mnk"]
        words = [row[name] for name in self.leading if name not in ("m", "n", "k", *SAID_APART)]
        shape = sizes[:1] if len(set(sizes)) == 1 else [" x ".join(sizes)]
        return ", ".join(word for word in (*shape, *words) if word)

    def ratios(self, row: Mapping[str, str]) -> dict[str, float]:
        """Return the times of the others over ours, by column."""
        ours, *others = self.compared
        return {name: float(row[name]) / float(row[ours]) for name in others if row[name]}


@dataclass(frozen=True)
class Data:
    """All that the pages are made of."""

    runs: Mapping[str, Sequence[Run]]  # by the name of the sweep, one for each device
    listings: Mapping[str, Listing]  # by the name of the file
    studies: Mapping[str, tuple[Results, Outcome]]


def read_data(folder: Path) -> Data:
    """Read all of docs/data; a ValueError says what a file lacks."""
    listings = {path.stem: read_listing(path) for path in sorted(folder.glob("*.csv"))}
    studies = {}
    for name in STUDIES:
        path = folder / f"studies/h200/{name}.json"
        if path.is_file():
            results = without_single_calls(read_results(path))
            studies[name] = results, stored_outcome(results)
    return Data(_read_runs(folder), listings, studies)


def read_listing(path: Path) -> Listing:
    """Read a CSV file with its head."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("# ")))
    missing = [name for name in HEAD if not head.get(name)]
    if missing or not rows:
        raise ValueError(f"{path.name} lacks {', '.join(missing) or 'rows'}")
    return Listing(path, head, rows)


def without_single_calls(results: Results) -> Results:
    """Return a document without rows that were timed once, beside others that were repeated."""
    kept = [r for r in results.rows if (times := r.measurement.total_ms) is None or times.runs > 1]
    return replace(results, rows=tuple(kept))


def _read_runs(folder: Path) -> dict[str, list[Run]]:
    """Return the runs of each sweep; of several documents of a device the newest counts."""
    titles = json.loads((folder / TITLES).read_text(encoding="utf-8"))
    found: dict[str, dict[str, Run]] = {name: {} for name in SWEEPS}
    for path in sorted(set(folder.glob("*.json")) - {folder / TITLES}):
        if path.stem not in titles:
            raise ValueError(f"{TITLES} has no title for {path.stem}")
        for run in _runs_of(without_single_calls(read_results(path)), titles[path.stem]):
            there = found[run.sweep.name]
            if run.title not in there or there[run.title].started < run.started:
                there[run.title] = run
    return {n: sorted(runs.values(), key=lambda run: run.rank) for n, runs in found.items() if runs}


def _runs_of(results: Results, title: str) -> Iterable[Run]:
    side = "device" if results.device["kind"] == "gpu" else "host"
    for sweep in SWEEPS.values():
        rows = [
            row
            for row in results.rows
            if row.leading.get("part") == sweep.name and row.measurement.data == side
        ]
        if series := series_of(rows, sweep.option):
            yield Run(sweep, title, results, series, rows[0].leading.get("batch", 1))


def series_of(rows: Sequence[Result], option: str) -> Series:
    """Return right times by size and name; of one library by several threads the fastest."""
    found: dict[int, dict[str, Times]] = {}
    for row in rows:
        item = row.measurement
        if item.status != "correct" or item.total_ms is None:
            continue
        bare = item.implementation.split(" x")[0].removesuffix("@device")
        name = OURS if item.kind == "opencl" else NAMES.get(bare, bare)
        there = found.setdefault(row.leading[option], {})
        if name == OURS and name in there:
            raise ValueError(f"two rows of ours at {option}={row.leading[option]}: which is auto?")
        if name not in there or item.total_ms.median < there[name].median:
            there[name] = item.total_ms
    return sorted(item for item in found.items() if OURS in item[1] and len(item[1]) > 1)


def best_other(times: Mapping[str, Times]) -> tuple[str, Times]:
    """Return the fastest library beside ours."""
    return min(
        ((name, item) for name, item in times.items() if name != OURS),
        key=lambda item: item[1].median,
    )


def few(items: Sequence[Any]) -> list[Any]:
    """Return as many as a table may have, evenly from the first to the last."""
    last, count = len(items) - 1, MOST_ROWS - 1
    if last <= count:
        return list(items)
    return [items[round(place * last / count)] for place in range(MOST_ROWS)]
