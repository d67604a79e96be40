"""`oclab bench OPERATION`: a sweep over sizes into a folder of CSV, JSON, table and plots."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import click
from rich.console import Console

from opencl_lab.cli.calls import CALL_RESULTS, bench_calls
from opencl_lab.cli.common import global_options, print_json, settings, write_files
from opencl_lab.cli.options import (
    RunOptions,
    given_of,
    problem_options,
    run_options,
    used_options,
)
from opencl_lab.cli.points import Sweep, SweepPoint
from opencl_lab.cli.progress import progress_bar, progress_of_part
from opencl_lab.cli.results import results_folder, write_json, write_text
from opencl_lab.cli.values import whole_numbers
from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.plots import plot_speedup, plot_throughput, plot_times
from opencl_lab.comparison.request import check_comparison
from opencl_lab.comparison.runner import BASELINE, run_comparison
from opencl_lab.comparison.sweep import crossovers
from opencl_lab.comparison.table import OPTIONAL_COLUMNS, comparison_table, write_csv
from opencl_lab.operation import Operation

__all__ = ["sweep_command"]

RESULTS = ("results.csv", "results.json", "table.txt")
FILE_WIDTH = 140  # of tables in text files
PLOTS = ("time.png", "speedup.png", "throughput.png")

Series: TypeAlias = Sequence[tuple[int, list[Measurement]]]
"""Sizes with the rows of each."""


def sweep_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that sweeps one operation."""

    @click.command(chosen.name, help=f"Sweep {chosen.name} over {chosen.size_option}.")
    @click.option(
        "--sizes", required=True, metavar="A,B,C", help=f"Values of {chosen.size_option}."
    )
    @click.option("--out", metavar="DIR", help="Folder for the results.")
    @click.option(
        "--calls", is_flag=True, help="Measure what public calls cost, in rows, beside peers."
    )
    @problem_options(chosen, without=(chosen.size_option,))
    @run_options
    @global_options
    def command(sizes: str, out: str | None, calls: bool, **given: Any) -> int:
        run = RunOptions.taken_from(given)
        if calls:
            _check_calls(run)
        elif out is None:
            raise click.UsageError("--out is needed: the folder for tables and plots")
        sweep = _sweep(chosen, sorted(set(whole_numbers(sizes))), given_of(given), run)
        if calls:
            with nullcontext() if out is None else results_folder(out, CALL_RESULTS) as folder:
                return bench_calls(sweep, folder)
        assert out is not None
        with results_folder(out, (*RESULTS, *PLOTS)) as folder:
            return _bench(sweep, folder)

    return command


def _check_calls(run: RunOptions) -> None:
    """Refuse options that ``--calls`` has no use for."""
    if run.algorithm != "auto" or run.vary:
        raise click.UsageError("--calls measures public calls, which choose by themselves")
    for option, value in (("--against", run.against), ("--threads", run.threads)):
        if value is not None:
            raise click.UsageError(f"--calls takes no {option}: it measures all peers as they are")
    if run.resident:
        raise click.UsageError("--calls takes no --resident: it measures both sides")


def _sweep(
    chosen: Operation[Any], sizes: Sequence[int], options: Mapping[str, Any], run: RunOptions
) -> Sweep:
    """Return the problems of all sizes, checked before the first one costs time."""
    selection = settings().begin()
    request = run.request()
    points = []
    for size in sizes:
        complete = chosen.with_defaults({**options, chosen.size_option: size})
        problem = chosen.problem(**complete)
        check_comparison(chosen, problem, request, selection.device)
        points.append(SweepPoint(size, problem, complete))
    used = {**used_options(chosen, options), "seed": run.seed}
    del used[chosen.size_option]
    return Sweep(chosen, selection, points, used, request)


def _bench(sweep: Sweep, folder: Path) -> int:
    """Compare implementations at every size, then print and write; return the exit status.

    What was measured before an interrupt is printed and written all the same.
    """
    chosen = sweep.chosen
    series: list[tuple[int, list[Measurement]]] = []
    status = failed = 0
    interrupt: KeyboardInterrupt | None = None
    with progress_bar(chosen.name) as progress:
        for index, point in enumerate(sweep.points):
            label = f"{chosen.size_option}={point.size}"
            try:
                comparison = run_comparison(
                    chosen,
                    point.problem,
                    partial(sweep.data, point),
                    sweep.request,
                    device=sweep.selection.device,
                    progress=progress_of_part(progress, index, len(sweep.points), label),
                )
            except KeyboardInterrupt as error:
                interrupt = error
                break
            status = status or comparison.exit_status
            series.append((point.size, comparison.measurements))
    if series:
        failed = _print_and_write(sweep, series, folder)
    if interrupt is not None:
        raise interrupt
    return failed or status


def _print_and_write(sweep: Sweep, series: Series, folder: Path) -> int:
    """Print the results, then write the files; return the exit status of these."""
    name, options = sweep.chosen.size_option, sweep.options
    found = crossovers(series)
    content = sweep.document(
        [{name: size, **row.as_row()} for size, rows in series for row in rows],
        sizes=[size for size, _ in series],
        crossovers=[vars(crossover).copy() for crossover in found],
    )
    title = f"{sweep.chosen.name} on {sweep.selection.device}"
    flat = (({name: size, **options}, row) for size, rows in series for row in rows)
    table, data, text = (folder / item for item in RESULTS)
    time, speedup, throughput = (folder / item for item in PLOTS)
    try:
        if settings().json:
            print_json(content)
        else:
            _print(sweep, series)
    finally:  # also where nobody reads what is printed
        failed = write_files(
            lambda: write_csv(table, flat, leading=(name, *options)),
            lambda: write_json(data, content),
            lambda: write_text(text, _tables(name, series, title)),
            lambda: plot_times(time, series, name, title, found),
            lambda: plot_speedup(speedup, series, name, BASELINE, title),
            lambda: plot_throughput(throughput, series, name, title, found),
        )
    if not failed:
        settings().say(f"written to {folder}: {' '.join((*RESULTS, *PLOTS))}")
    return failed


def _print(sweep: Sweep, series: Series) -> None:
    settings().say_device()
    for size, rows in series:
        title = f"{sweep.chosen.name}: {sweep.chosen.size_option}={size}"
        settings().show(comparison_table(rows, title), OPTIONAL_COLUMNS)
    for crossover in crossovers(series):
        settings().say(str(crossover))


def _tables(size_option: str, series: Series, title: str) -> str:
    """Return the tables as a text file has them."""
    console = Console(file=io.StringIO(), width=FILE_WIDTH)
    console.print(title, markup=False)
    for size, rows in series:
        console.print(comparison_table(rows, f"{size_option}={size}"))
    for crossover in crossovers(series):
        console.print(str(crossover), markup=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
