"""What the pages of figures are made of: the files in docs/data.

A document of the study `peers` gives the sweeps of one device, a document of another study its
page. A CSV file is a listing: its head, lines of ``# key: value``, has device, date, method and
command, and `compared` names the columns of times, ours first.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from opencl_lab.core.device import Device
from opencl_lab.lab.engine.stored import Result, Results, read_results
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.registry import operations
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.descriptor import PartResult
from opencl_lab.lab.studies.outcome import StudyOutcome

TITLES = "titles.json"
MOST_ROWS = 6
OURS = "opencl_lab"
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
SAID_APART = ("device", "date")
HEAD = ("device", "date", "method", "command", "compared")


UNITS: dict[str, Callable[[int, int], float]] = {  # that a call of a size and a batch handles
    "10⁹ keys/s": lambda n, _: n / 1e9,
    "TFLOP/s": lambda n, _: 2 * n**3 / 1e12,
    "10⁹ pixels/s": lambda n, _: n * n / 1e9,
    "GFLOP/s": lambda n, batch: 5 * n * math.log2(n) * batch / 1e9,
}


class PeerSweep(NamedTuple):
    """A part of `peers`."""

    what: str
    option: str  # that holds the size
    size: str  # what that is
    unit: str

    def units(self, size: int, batch: int) -> float:
        """Return how many units a call handles."""
        return UNITS[self.unit](size, batch)


SQUARE = ("size", "N", "TFLOP/s")
SWEEPS = {
    "sort": PeerSweep("random int32 keys", "n", "keys", "10⁹ keys/s"),
    "gemm": PeerSweep("float32, N x N", *SQUARE),
    "gemm_float64": PeerSweep("float64, N x N", *SQUARE),
    "gemm_float16": PeerSweep("float16, N x N", *SQUARE),
    "gemm_tf32": PeerSweep("float32 by tf32, N x N", *SQUARE),
    "gemm_3xtf32": PeerSweep("float32 by 3xtf32, N x N", *SQUARE),
    "conv2d": PeerSweep("7 x 7 filter, float32, N x N pixels", "size", "N", "10⁹ pixels/s"),
    "fft": PeerSweep("1,024 rows, complex64", "n", "points of a row", "GFLOP/s"),
    "fft_single": PeerSweep("one row, complex64", "n", "points", "GFLOP/s"),
}
SUMMARY = ("sort", "gemm", "gemm_float64", "conv2d", "fft", "fft_single")
OPERATIONS = {  # the sweeps of one picture
    operation: [name for name in SWEEPS if name.split("_")[0] == operation]
    for operation in ("sort", "gemm", "conv2d", "fft")
}
Series = list[tuple[int, dict[str, Times]]]


@dataclass(frozen=True)
class DeviceRun:
    """A sweep on a device: sizes with times by the names of implementations."""

    name: str  # of the sweep
    title: str  # names the device
    results: Results
    series: Series
    batch: int

    @property
    def sweep(self) -> PeerSweep:
        """What was measured."""
        return SWEEPS[self.name]

    @property
    def ratios(self) -> list[float]:
        """The times of the best other library over ours, by size."""
        return [best_other(times)[1].median / times[OURS].median for _, times in self.series]

    @property
    def on_gpu(self) -> bool:
        """Whether the data were on the device."""
        return bool(self.results.device["kind"] == "gpu")

    def environment(self, name: str) -> Any:
        """Return something about where and when it was measured."""
        return self.results.mapping("environment").get(name)


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
        """Return what a row measured, in a few words."""
        cells = {name: row[name] for name in self.leading if name not in SAID_APART}
        numbers = [f"{int(text):,}" for text in cells.values() if text.isdigit()]
        words = [text for text in cells.values() if text and not text.isdigit()]
        return ", ".join([" x ".join(numbers)] * bool(numbers) + words)

    def ratios(self, row: Mapping[str, str]) -> dict[str, float]:
        """Return the times of the others over ours, by column."""
        ours, *others = self.compared
        return {name: float(row[name]) / float(row[ours]) for name in others if row[name]}


@dataclass(frozen=True)
class PageData:
    """All that the pages are made of."""

    runs: Mapping[str, Sequence[DeviceRun]]  # by the name of the sweep, one for each device
    listings: Mapping[str, Listing]  # by the name of the file
    studies: Mapping[str, tuple[Results, StudyOutcome]]


def read_data(folder: Path) -> PageData:
    """Read all of docs/data; a ValueError says what a file lacks."""
    listings = {path.stem: read_listing(path) for path in sorted(folder.glob("*.csv"))}
    studies = {}
    for name in STUDIES:
        path = folder / f"studies/h200/{name}.json"
        if path.is_file():
            results = without_single_calls(read_results(path))
            studies[name] = results, stored_outcome(results)
    return PageData(_read_runs(folder), listings, studies)


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


def stored_outcome(results: Results) -> StudyOutcome:
    """Return the outcome in a document of `oclab study`, whose questions are answered again."""
    content, known = results.content, results.device
    study, scale = STUDIES[content["study"]], content["scale"]
    device = Device(
        known["name"], known["kind"], platform=known["platform"], driver=known["driver"]
    )
    parts = [PartResult(part) for part in study.parts_on(device)]
    for found in parts:
        for point in found.part.points_at(scale):
            wanted = {"part": found.part.name, **point.options}.items()
            rows = [row.measurement for row in results.rows if wanted <= row.leading.items()]
            found.rows += [(point, rows)] * bool(rows)
    parts[0].notes += content["notes"]
    return StudyOutcome(study, scale, 0, device, parts, 0.0)


def _read_runs(folder: Path) -> dict[str, list[DeviceRun]]:
    """Return the runs of each sweep, those on CPUs first; of a device the newest counts."""
    titles = json.loads((folder / TITLES).read_text(encoding="utf-8"))
    found: dict[str, dict[str, DeviceRun]] = {}
    for path in sorted(set(folder.glob("*.json")) - {folder / TITLES}):
        if path.stem not in titles:
            raise ValueError(f"{TITLES} has no title for {path.stem}")
        for run in _runs_of(without_single_calls(read_results(path)), titles[path.stem]):
            runs = found.setdefault(run.name, {})
            newest = max(run, runs.get(run.title, run), key=lambda run: run.environment("started"))
            runs[run.title] = newest
    return {
        name: sorted(runs.values(), key=lambda run: (run.on_gpu, run.environment("processors")))
        for name, runs in found.items()
    }


def _runs_of(results: Results, title: str) -> Iterable[DeviceRun]:
    side = "device" if results.device["kind"] == "gpu" else "host"
    there = [row for row in results.rows if row.measurement.data == side]
    for name, sweep in SWEEPS.items():
        rows = [row for row in there if row.leading.get("part") == name]
        if series := series_of(rows, sweep.option):
            yield DeviceRun(name, title, results, series, rows[0].leading.get("batch", 1))


def series_of(rows: Sequence[Result], option: str) -> Series:
    """Return right times by size and name; of one library by several threads the fastest."""
    found: dict[int, dict[str, Times]] = {}
    for row in rows:
        item = row.measurement
        if item.status != "correct" or item.total_ms is None:
            continue
        reference = item.implementation.split(" x")[0].removesuffix("@device")
        name = OURS if item.kind == "opencl" else NAMES.get(reference, reference)
        there = found.setdefault(row.leading[option], {})
        if name == OURS and name in there:
            raise ValueError(f"two rows of ours at {option}={row.leading[option]}: which is auto?")
        if name not in there or item.total_ms.median < there[name].median:
            there[name] = item.total_ms
    return sorted(item for item in found.items() if OURS in item[1] and len(item[1]) > 1)


def best_other(times: Mapping[str, Times]) -> tuple[str, Times]:
    """Return the fastest library beside ours."""
    name = min((name for name in times if name != OURS), key=lambda name: times[name].median)
    return name, times[name]


def few(items: Sequence[Any]) -> list[Any]:
    """Return as many as a table may have, evenly from the first to the last."""
    count = min(len(items), MOST_ROWS)
    return [items[round(at * (len(items) - 1) / max(count - 1, 1))] for at in range(count)]


FOR_GPUS = ", for GPUs"
"""What the name of an algorithm ends in that has a form of its own for GPUs, and ran there."""


def cells_today(cells: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of algorithms that there still are, by their names of today.

    One that had a form of its own for GPUs may have that form alone.
    """
    places = {(cell["operation"], cell["algorithm"]) for cell in cells}
    for cell in cells:
        operation, name = cell["operation"], cell["algorithm"].removesuffix(FOR_GPUS)
        known = operations().get(operation)
        if known is None or name not in [algorithm.name for algorithm in known.algorithms]:
            continue
        named = known.algorithm(name)
        if named.on("cpu") is not named.on("gpu"):
            yield cell
        elif cell["algorithm"] != name or (operation, name + FOR_GPUS) not in places:
            yield {**cell, "algorithm": name}


def matrix_cell(cell: Mapping[str, Any] | None) -> str:
    """Return what came out of an algorithm on a runtime."""
    if cell is None:
        return ""
    limited, failed = sum(cell["limited"].values()), sum(map(len, cell["failed"].values()))
    if failed:
        return f"**{failed} wrong** of {failed + cell['passed']}"
    more = f" + {limited}" if limited else ""
    return f"{cell['passed']}{more}" if cell["passed"] else "-"
