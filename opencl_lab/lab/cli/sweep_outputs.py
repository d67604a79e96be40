"""Output of `oclab bench OPERATION`: what it prints, and the files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from opencl_lab.core.records import as_json
from opencl_lab.lab.cli.common import document, settings
from opencl_lab.lab.cli.results import print_and_write, write_json, write_results, write_text
from opencl_lab.lab.engine.crossings import Crossover, crossovers
from opencl_lab.lab.engine.row import Measurement, Series
from opencl_lab.lab.engine.sweep import Sweep
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.presentation.plots import no_roofline, plots_of_sizes
from opencl_lab.lab.presentation.table import (
    OPTIONAL_COLUMNS,
    comparison_table,
    table_text,
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
        return print_and_write(content, self.show, partial(self._write, content))

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
