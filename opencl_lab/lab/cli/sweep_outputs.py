"""Output of `oclab bench OPERATION`, with ``--calls``, too: what it prints, and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rich.table import Table

from opencl_lab.core.records import as_json
from opencl_lab.core.wording import counted, size_text
from opencl_lab.lab.cli.common import document, settings
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import print_and_write, write_json, write_results, write_text
from opencl_lab.lab.engine.calls import OURS, CallReport, measure_calls
from opencl_lab.lab.engine.crossings import Crossover, crossovers
from opencl_lab.lab.engine.explore import Exploration, grid
from opencl_lab.lab.engine.request import check_baseline
from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.engine.sweep import Sweep
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.presentation.plots import no_roofline, plots_of_sizes
from opencl_lab.lab.presentation.table import (
    OPTIONAL_COLUMNS,
    comparison_table,
    number,
    ratio_text,
    table_text,
    titled_table,
    write_csv,
)

RESULT_FILES = ("results.csv", "results.json", "table.txt")
PLOT_FILES = ("time.png", "speedup.png", "efficiency.png", "throughput.png", "roofline.png")


def bench_document(
    sweep: Sweep, results: Sequence[Mapping[str, Any]], sizes: Sequence[Any], **more: Any
) -> dict[str, Any]:
    """Return the JSON document of the measured sizes, with the device's peaks."""
    return document(
        "bench",
        peaks=as_json(stored_peaks(sweep.selection.device)),
        **sweep.about(sizes),
        results=results,
        **more,
    )


@dataclass(frozen=True)
class SweepOutputs:
    """Prints and writes the rows of a sweep, or of its first sizes."""

    sweep: Sweep
    series: Series
    folder: Path
    taken: Sequence[int] = ()  # sizes that an earlier run has measured
    draws: bool = True

    @cached_property
    def crossings(self) -> list[Crossover]:
        """Where one implementation overtakes another."""
        return crossovers(self.series)

    @property
    def title(self) -> str:
        """The title of plots and of tables in files."""
        return f"{self.sweep.title} on {self.sweep.selection.device}"

    @property
    def rows(self) -> Iterator[tuple[dict[str, int], Measurement]]:
        """All rows, each with its size."""
        return ((self.sweep.named(size), row) for size, rows in self.series for row in rows)

    def print_and_write(self) -> int:
        """Print the results, then write the files; return the exit status of these."""
        content = bench_document(
            self.sweep,
            [{**size, **row.as_row()} for size, row in self.rows],
            complete=len(self.series) == len(self.sweep.sizes),
            sizes=[size for size, _ in self.series],
            taken_over=list(self.taken),
            crossovers=[vars(crossover).copy() for crossover in self.crossings],
        )
        return print_and_write(lambda: content, self.show, partial(self._write, content))

    def show(self) -> None:
        """Print tables and sentences."""
        settings().say_device()
        for size, rows in self.series:
            title = f"{self.sweep.chosen.name}: {self.sweep.heading(size)}"
            settings().show(comparison_table(rows, title), OPTIONAL_COLUMNS)
        for crossover in self.crossings:
            settings().say(str(crossover))

    def text(self) -> str:
        """Return the tables for a text file."""
        tables = (comparison_table(rows, self.sweep.heading(size)) for size, rows in self.series)
        return table_text(self.title, *tables, *map(str, self.crossings))

    def _write(self, content: dict[str, Any]) -> int:
        options = self.sweep.options
        flat = (({**size, **options}, row) for size, row in self.rows)
        leading = (*self.sweep.named(self.series[0][0]), *options)
        table, data, text = RESULT_FILES
        drawn = self.draw() if self.draws else {}
        return write_results(
            self.folder,
            {
                table: lambda path: write_csv(path, flat, leading=leading),
                data: lambda path: write_json(path, content),
                text: lambda path: write_text(path, self.text()),
                **drawn,
            },
            plots=PLOT_FILES,
        )

    def draw(self) -> dict[str, Callable[[Path], None]]:
        """Return functions that draw the plots, and print why one is missing."""
        peaks = stored_peaks(self.sweep.selection.device)
        plots = {
            f"{plot.kind}.png": partial(plot.draw, title=self.title)
            for plot in plots_of_sizes(self.series, self.sweep.chosen.size_option, peaks)
        }
        if "speedup.png" not in plots:
            settings().say("no speedup.png: there is nothing to compare with")
        if reason := no_roofline(self.series, peaks):
            settings().say(f"no roofline.png: {reason}")
        return {file: plots[file] for file in PLOT_FILES if file in plots}


CALL_RESULTS = ("calls.json",)

EXPLAINED = (
    "launches: only enqueueing them, with memory from a pool; memory: allocating the result by the "
    "driver; python: the remaining time until the call returns; waiting: the time from then until "
    "the device is done"
)

EVENTS = (
    "that is more than the call takes: the events are of a few earlier calls, while the calls "
    "above are repeated until all is warm; compare events with each other only"
)


def bench_calls(sweep: Sweep, base: str, folder: Path | None) -> int:
    """Measure calls of several sizes, print a table of each or JSON, and write that to `folder`.

    Speed-ups are over the calls named `base`. Results from before an interrupt are kept.
    """
    check_baseline(base, (OURS, *sweep.chosen.calls.peers))
    with progress_bar(sweep.chosen.name) as progress:

        def measure(size: int) -> CallReport:
            progress(len(run.seen), len(sweep.sizes), sweep.label(size))
            return measure_calls(sweep.point(size), sweep.selection.device)

        run = Exploration(measure)
        stopped = run.run(grid(sweep.sizes))
    failed = _print_and_write(sweep, run.seen, base, folder) if run.seen else 0
    if stopped == "interrupted":
        raise KeyboardInterrupt
    return failed


def _print_and_write(
    sweep: Sweep, reports: Mapping[int, CallReport], base: str, folder: Path | None
) -> int:
    """Print the results, then write the files; return the exit status of these."""
    rows = [{**sweep.named(size), **report.as_dict()} for size, report in reports.items()]
    content = bench_document(sweep, rows, list(reports))
    files = {file: partial(write_json, content=content) for file in CALL_RESULTS}

    def show() -> None:
        settings().say_device()
        for size, report in reports.items():
            title = f"{sweep.chosen.name}: {sweep.heading(size)}"
            settings().show(_table(title, report, base))
            _say_shares(report)
        settings().say(EXPLAINED)

    return print_and_write(lambda: content, show, lambda: write_results(folder, files))


def _table(title: str, report: CallReport, base: str) -> Table:
    """Return a row for each kind of call, with its speed-up over the `base` on the same side."""
    numbers = ("µs per call", "host time", f"speed-up\nover {base}")
    table = titled_table(title, ("back-to-back calls", "arrays"), numbers)
    bases = {item.side: item.call_us for item in report.costs if item.what == base}
    for item in report.costs:
        times = (number(item.call_us, 3), number(item.host_us, 3))
        ratio = bases[item.side] / item.call_us if item.side in bases else None
        table.add_row(item.what, item.side or "-", *times, ratio_text(ratio))
    return table


def _say_shares(report: CallReport) -> None:
    """Print where the time of a call goes, and why kernels may seem to take longer than calls."""
    launches = counted(report.launches, "launch", "launches")
    settings().say(
        f"its {launches}: {number(report.kernel_us, 3)} µs in kernels by their events; "
        f"its result: {size_text(report.result_bytes)}"
    )
    if report.in_caller:
        settings().say("calls on host arrays run in the calling thread")
    if report.kernel_us > report.cost(OURS, "device").call_us:
        settings().say(EVENTS)
    shares = ", ".join(f"{name} {number(value, 3)}" for name, value in report.shares().items())
    settings().say(f"µs of a call on device arrays: {shares}")
    for name, reason in report.left_out.items():
        settings().say(f"{name} is left out: {reason}")
