"""Make the plots and tables of docs/performance.md from the documents in docs/data.

    python tools/performance_page.py

reads docs/data/LABEL.json, a document of the study `peers` for each device, and titles.json there,
which names the devices; draws docs/plots/OPERATION.svg, and replaces what is between the markers of
each operation in docs/performance.md. Nothing in there is written by hand. Parts that a document
lacks have no panel and no table. A second run changes nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.stored import Results, read_results

DOCS = Path(__file__).parents[1] / "docs"
TITLES = "titles.json"
OURS = "opencl_lab"
INK = "#727a85"  # of text: as far from white as from the dark pages of GitHub
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
PLATFORMS = {"Portable Computing Language": "PoCL", "Intel(R) OpenCL": "Intel's CPU runtime"}
PANEL = (3.6, 2.5)  # inches
APART = 0.09  # of the width of a panel, between labels of sizes


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


def digest(runs: Sequence[Run]) -> str:
    """Return what tells whether a plot is of these documents."""
    paths = dict.fromkeys(run.results.path for run in runs)
    contents = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(contents).hexdigest()[:16]


def rows_of_panels(
    operation: str, runs: Mapping[str, Sequence[Run]]
) -> list[list[tuple[Sweep, Run]]]:
    """Return the panels of a picture: a row for each sweep; short ones share a row."""
    parts = [
        [(sweep, run) for run in runs[sweep.name]]
        for sweep in OPERATIONS[operation]
        if sweep.name in runs
    ]
    rows = [parts[0]]
    for panels in parts[1:]:
        if len(rows[-1]) + len(panels) <= max(map(len, parts)):
            rows[-1] = rows[-1] + panels
        else:
            rows.append(panels)
    return rows


def plot(operation: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the picture of an operation as SVG: throughput by size, a panel for each device."""
    rows = rows_of_panels(operation, runs)
    used = [run for panels in rows for _, run in panels]
    options = {"svg.fonttype": "none", "svg.hashsalt": operation, "font.size": 9}
    with matplotlib.rc_context({**options, "text.color": INK, "font.sans-serif": ["DejaVu Sans"]}):
        columns = max(map(len, rows))
        size = (PANEL[0] * max(columns, 2), PANEL[1] * len(rows) + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False)
        styles = styles_of(name for run in used for name in run.names)
        for line, panels in zip(axes, rows, strict=True):
            for axis in line[len(panels) :]:
                axis.remove()
            for axis, (sweep, run) in zip(line, panels, strict=False):
                _draw(axis, sweep, run, styles)
        handles = {}
        for axis in figure.axes:
            handles.update(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
        names = list(styles_of(handles))
        figure.legend(
            [handles[name] for name in names],
            names,
            loc="outside lower center",
            ncols=len(names),
            frameon=False,
        )
        text = io.StringIO()
        what = {"Date": None, "Creator": f"Matplotlib {matplotlib.__version__}"}
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata={**what, "Title": operation, "Description": digest(used)},
        )
    return "\n".join(line.rstrip() for line in text.getvalue().split("\n"))


def _draw(axis: Any, sweep: Sweep, run: Run, styles: Mapping[str, tuple[str, str]]) -> None:
    for name in reversed(run.names):
        points = [
            (size, sweep.units(size, run.batch) / (row[name].total_ms.median / 1e3))
            for size, row in run.series
            if name in row
        ]
        colour, marker = styles[name]
        width = 2.2 if name == OURS else 1.3
        axis.plot(
            *zip(*points, strict=True), marker + "-", color=colour, label=name, lw=width, ms=4
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    sizes = [size for size, _ in run.series]
    shown = spaced(sizes)
    axis.set_xticks(sizes, [short(size) if size in shown else "" for size in sizes], fontsize=8)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_title(f"{run.title}\n{sweep.what}", fontsize=9, color=INK)
    axis.set_xlabel(sweep.size, color=INK)
    axis.set_ylabel(sweep.unit, color=INK)
    axis.tick_params(which="both", colors=INK)
    axis.grid(color=INK, alpha=0.25, lw=0.6)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def spaced(sizes: Sequence[int]) -> list[int]:
    """Return the sizes, least first, whose labels have room beside each other; the last is one."""
    room = APART * math.log(sizes[-1] / sizes[0])
    shown = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(shown[-1] / size) >= room:
            shown.append(size)
    return shown[::-1]


def short(size: int) -> str:
    """Return a size as it is written below an axis: a power of two or of ten where it is one."""
    for base in (2, 10):
        power = round(math.log(size, base))
        if base**power == size and size > 9999:
            return f"{base}{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return f"{size:,}"


def table(sweep: Sweep, run: Run) -> str:
    """Return the times of a run as Markdown, with the best other library beside ours."""
    names = run.names
    lines = [
        f"**{run.title}**, {sweep.what}; {_where(run)}; milliseconds per call:",
        "",
        f"| {sweep.size} | {' | '.join(names)} | best other / ours |",
        f"|--:|{'--:|' * len(names)}--:|",
    ]
    for size, row in run.series:
        times = [_number(row[name].total_ms.median) if name in row else "-" for name in names]
        lines.append(f"| {size:,} | {' | '.join(times)} | {_ratio(row)} |")
    return "\n".join(lines)


def _where(run: Run) -> str:
    device = run.results.device
    platform = PLATFORMS.get(device["platform"], device["platform"])
    places = "data on the device" if run.on_gpu else "NumPy arrays"
    return f"{platform}, driver {device['driver']}; {places}; {run.started[:10]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ratio(row: Mapping[str, Measurement]) -> str:
    """Return how the best other library compares; in brackets where the intervals overlap."""
    others = [item for name, item in row.items() if name != OURS]
    if OURS not in row or not others:
        return "-"
    ours = row[OURS].total_ms
    best = min((item.total_ms for item in others), key=lambda times: times.median)
    text = f"{best.median / ours.median:.2f}x"
    return f"({text})" if best.is_level_with(ours) else text


def section(operation: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return what stands between the markers of an operation."""
    picture = f"![Throughput of {operation} by size, one panel per device](plots/{operation}.svg)"
    tables = [
        table(sweep, run) for sweep in OPERATIONS[operation] for run in runs.get(sweep.name, ())
    ]
    return "\n\n".join([picture, *tables]) if tables else "Not measured yet."


def page(text: str, runs: Mapping[str, Sequence[Run]]) -> str:
    """Return the page with everything between markers made anew.

    Raises
    ------
    ValueError
        If the markers of an operation are missing.
    """
    for operation in OPERATIONS:
        begin, end = f"<!-- made from docs/data: {operation} -->", f"<!-- end of {operation} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"the page needs one {begin} with its end")
        made = f"{begin}\n{section(operation, runs)}\n{end}"
        text = pattern.sub(lambda _, made=made: made, text)  # type: ignore[misc]
    return text


def main(docs: Path = DOCS) -> int:
    """Write the page and the plots; those that would not change are left alone."""
    runs = read_runs(docs / "data")
    target = docs / "performance.md"
    made = {target: page(target.read_text(encoding="utf-8"), runs)}
    for operation, sweeps in OPERATIONS.items():
        if not any(sweep.name in runs for sweep in sweeps):
            continue
        made[docs / "plots" / f"{operation}.svg"] = plot(operation, runs)
    for path, text in made.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(docs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
