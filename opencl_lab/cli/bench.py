"""`oclab bench OPERATION`: a sweep over sizes into a folder of CSV, JSON, table and plots."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from opencl_lab.cli.calls import CALL_RESULTS, bench_calls
from opencl_lab.cli.changes import compare_runs
from opencl_lab.cli.common import (
    document,
    global_options,
    print_json,
    progress_bar,
    settings,
    variants,
    whole_numbers,
    write_files,
)
from opencl_lab.cli.lazy import LazyGroup
from opencl_lab.cli.operation import REPEATS, problem_options, run_options, used_options
from opencl_lab.comparison.changes import THRESHOLD
from opencl_lab.comparison.drawing import check_plot
from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.plots import plot_speedup, plot_throughput, plot_times
from opencl_lab.comparison.runner import BASELINE, check_comparison, run_comparison
from opencl_lab.comparison.sweep import Crossover, crossovers
from opencl_lab.comparison.table import OPTIONAL_COLUMNS, comparison_table, write_csv
from opencl_lab.discovery import Selection
from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Operation
from opencl_lab.paths import check_target, write_target

__all__ = ["bench_command", "results_folder", "write_text"]

RESULTS = ("results.csv", "results.json", "table.txt")
PLOTS = ("time.png", "speedup.png", "throughput.png")


def _number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):  # neither below nor above a range
        raise click.BadParameter("nan is no number", context, option)
    return value


@click.group(
    "bench",
    cls=LazyGroup,
    operation_home="opencl_lab.cli.bench:sweep_command",
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option(
    "--compare",
    nargs=2,
    metavar="OLD NEW",
    help="Compare two runs row by row: JSON documents, or folders of `oclab bench`. Exit status 1 "
    "if a row of OpenCL became slower beyond noise and past the threshold, or fails now.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(1.0, 1e6),
    callback=_number,
    help="With --compare: the ratio of medians from which on slower is a regression.  "
    f"[default: {THRESHOLD:.2f}]",
)
@global_options
@click.pass_context
def bench_command(
    context: click.Context, compare: tuple[str, str] | None, threshold: float | None
) -> int | None:
    """Sweep an operation over sizes and write CSV, JSON, a table and plots."""
    if compare is None and threshold is not None:
        raise click.UsageError("--threshold is for --compare OLD NEW")
    if compare is not None and context.invoked_subcommand is not None:
        raise click.UsageError("--compare takes two runs that are there, and no operation")
    if compare is not None:
        old, new = map(Path, compare)
        return compare_runs(old, new, THRESHOLD if threshold is None else threshold)
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.")
    return None


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
    def command(
        sizes: str,
        out: str | None,
        calls: bool,
        algorithm: str,
        vary: tuple[str, ...],
        against: str | None,
        repeats: int | None,
        seed: int,
        threads: int | None,
        resident: bool,
        **given: Any,
    ) -> int:
        if calls and (algorithm != "auto" or vary):
            raise click.UsageError("--calls measures public calls, which choose by themselves")
        for option, value in (("--against", against), ("--threads", threads)):
            if calls and value is not None:
                raise click.UsageError(
                    f"--calls takes no {option}: it measures all peers as they are"
                )
        if calls and resident:
            raise click.UsageError("--calls takes no --resident: it measures both sides")
        if not calls and out is None:
            raise click.UsageError("--out is needed: the folder for tables and plots")
        repeats = REPEATS if repeats is None else repeats
        values = sorted(set(whole_numbers(sizes)))
        selection = settings().select()
        series: list[tuple[int, list[Measurement]]] = []
        problems = []
        options = {name: v for name, v in given.items() if v is not None}
        for value in values:  # all of them, so that a bad one costs no time
            complete = chosen.with_defaults({**options, chosen.size_option: value})
            problem = chosen.problem(**complete)
            check_comparison(
                chosen,
                problem,
                device=selection.device,
                algorithms=algorithm,
                variants=variants(vary),
                against=against,
                repeats=repeats,
                threads=threads,
                resident=resident,
            )
            problems.append((value, problem, complete))
        used = {**used_options(chosen, options), "seed": seed}
        del used[chosen.size_option]
        if calls:
            with nullcontext() if out is None else results_folder(out, CALL_RESULTS) as target:
                return bench_calls(chosen, selection, used, problems, repeats, target)
        assert out is not None
        with results_folder(out, (*RESULTS, *PLOTS)) as folder:
            status = 0
            interrupt: KeyboardInterrupt | None = None
            with progress_bar(chosen.name) as progress:
                for index, (value, problem, complete) in enumerate(problems):
                    label = f"{chosen.size_option}={value}"
                    try:
                        comparison = run_comparison(
                            chosen,
                            problem,
                            partial(chosen.generate, problem, seed, **complete),
                            device=selection.device,
                            algorithms=algorithm,
                            variants=variants(vary),
                            against=against,
                            repeats=repeats,
                            threads=threads,
                            resident=resident,
                            progress=_part(progress, index, len(problems), label),
                        )
                    except KeyboardInterrupt as error:  # what was measured is written all the same
                        interrupt = error
                        break
                    status = status or comparison.exit_status
                    series.append((value, comparison.measurements))
            failed = 0
            if series:
                failed = _print_and_write(chosen, selection, used, series, folder)
            if interrupt is not None:
                raise interrupt
            return failed or status

    return command


@contextmanager
def results_folder(out: str, files: Sequence[str]) -> Iterator[Path]:
    """Make the folder of the results, and check early that these can be written there.

    If it was made here and nothing is written, it is removed again.
    """
    folder = Path(out)
    there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidProblem(f"cannot make the folder {out}: {error.strerror or error}") from error
    try:
        for name in files:
            check = check_plot if name in PLOTS else check_target
            check(folder / name)
        yield folder
    finally:
        if not there:
            with suppress(OSError):  # there are results
                folder.rmdir()


def _part(
    progress: Callable[[int, int, str], None], index: int, parts: int, label: str
) -> Callable[[int, int, str], None]:
    """Return a progress report for one of several parts of about the same length."""
    return lambda done, total, step: progress(
        index * 100 + done * 100 // max(total, 1), parts * 100, f"{label}, {step}"
    )


def _print_and_write(
    chosen: Operation[Any],
    selection: Selection,
    options: dict[str, Any],
    series: list[tuple[int, list[Measurement]]],
    folder: Path,
) -> int:
    """Print the results, then write the files; return the exit status of these."""
    name = chosen.size_option
    found = crossovers(series)
    content = document(
        "bench",
        device={**selection.device.as_dict(), "reason": selection.reason},
        problem={"operation": chosen.name, "sizes": [size for size, _ in series]},
        options=options,
        results=[{name: size, **row.as_row()} for size, rows in series for row in rows],
        crossovers=[vars(crossover).copy() for crossover in found],
    )
    title = f"{chosen.name} on {selection.device}"
    flat = (({name: size, **options}, row) for size, rows in series for row in rows)
    table, data, text = (folder / item for item in RESULTS)
    time, speedup, throughput = (folder / item for item in PLOTS)
    try:
        _print(chosen, selection, series, found, content)
    finally:  # also where nobody reads what is printed
        failed = write_files(
            lambda: write_csv(table, flat, leading=(name, *options)),
            lambda: write_text(data, json.dumps(content, indent=1, sort_keys=True)),
            lambda: write_text(text, _tables(chosen, series, title)),
            lambda: plot_times(time, series, name, title, found),
            lambda: plot_speedup(speedup, series, name, BASELINE, title),
            lambda: plot_throughput(throughput, series, name, title, found),
        )
    if not failed:
        settings().say(f"written to {folder}: {' '.join((*RESULTS, *PLOTS))}")
    return failed


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all."""
    with write_target(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _print(
    chosen: Operation[Any],
    selection: Selection,
    series: list[tuple[int, list[Measurement]]],
    found: list[Crossover],
    content: dict[str, Any],
) -> None:
    if settings().json:
        print_json(content)
        return
    settings().say(f"device: {selection.device}: {selection.reason}")
    for size, rows in series:
        title = f"{chosen.name}: {chosen.size_option}={size}"
        settings().show(comparison_table(rows, title), OPTIONAL_COLUMNS)
    for crossover in found:
        settings().say(str(crossover))


def _tables(chosen: Operation[Any], series: list[tuple[int, list[Measurement]]], title: str) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(title, markup=False)
    for size, rows in series:
        console.print(comparison_table(rows, f"{chosen.size_option}={size}"))
    for crossover in crossovers(series):
        console.print(str(crossover), markup=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
