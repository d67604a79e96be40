"""`oclab bench OPERATION`: a sweep over sizes into a folder of CSV, JSON, table and plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from opencl_lab.lab.cli.calls import CALL_RESULTS, bench_calls
from opencl_lab.lab.cli.common import global_options, settings
from opencl_lab.lab.cli.completion import files, folders
from opencl_lab.lab.cli.crossover import CROSSOVER_FILES, bench_crossover, range_of
from opencl_lab.lab.cli.options import RunOptions, given_of, problem_options, run_options
from opencl_lab.lab.cli.progress import progress_bar, progress_of_part
from opencl_lab.lab.cli.results import named_folder, results_folder
from opencl_lab.lab.cli.shapes import (
    SHAPE_RESULTS,
    UNLIMITED,
    ShapeOutputs,
    shape_sweep_of,
    shapes_of,
)
from opencl_lab.lab.cli.sweep_outputs import PLOTS, RESULTS, SweepOutputs
from opencl_lab.lab.cli.values import no_nan, whole_numbers
from opencl_lab.lab.engine.calls import OURS
from opencl_lab.lab.engine.patience import UNNAMED, Patience
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import Comparison, StepReport, run_comparison
from opencl_lab.lab.engine.sweep import Sweep, SweepPoint, patience_of, sweep_of
from opencl_lab.lab.engine.unfinished import Finished, Unfinished
from opencl_lab.lab.operation import Operation

__all__ = ["sweep_command"]


def sweep_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that sweeps one operation."""

    @click.command(chosen.name, help=f"Sweep {chosen.name} over {chosen.size_option}.")
    @click.option(
        "--sizes",
        metavar="A,B,C",
        help=f"Values of {chosen.size_option}: a sweep needs them; with --crossover the least and "
        "the greatest.",
    )
    @click.option(
        "--out",
        metavar="DIR",
        shell_complete=folders,
        help="Folder for the results: needed, except with --calls and --crossover.",
    )
    @click.option(
        "--fresh",
        is_flag=True,
        help="Measure all sizes anew, also those of a stopped sweep, and replace what DIR has of "
        "another one.",
    )
    @click.option(
        "--patience",
        type=click.FloatRange(0, min_open=True),
        callback=no_nan,
        metavar="S",
        help="Leave out references whose next call would take more than S seconds, by their "
        "times at smaller sizes.  [default: 60 for those named by --against, else 5; 5 with "
        "--crossover]",
    )
    @click.option(
        "--calls", is_flag=True, help="Measure what public calls cost, in rows, beside peers."
    )
    @click.option(
        "--crossover",
        is_flag=True,
        help="Find the size from which the device is faster than each reference, by bisection.",
    )
    @problem_options(chosen, without=(chosen.size_option,))
    @run_options
    @global_options
    def command(**given: Any) -> int:
        return _command(chosen, given)

    if chosen.shape_options:
        return _with_shapes(chosen, command)
    return command


def _with_shapes(chosen: Operation[Any], command: click.Command) -> click.Command:
    """Add the option of an operation whose size is several numbers."""
    names = ",".join(chosen.shape_options)
    option = click.option(
        "--shapes",
        metavar="FILE|standard",
        shell_complete=files,
        help=f"Instead of --sizes: the lines {names} of a file, or the {len(chosen.shapes)} shapes "
        "that come with the operation; what auto takes beside the best other library, and beside "
        "each --algorithm, the worst shapes last. --time-limit is 1 s a shape by default.",
    )
    added: click.Command = option(command)
    return added


def _command(chosen: Operation[Any], given: dict[str, Any]) -> int:
    """Do what the options ask for; return the exit status."""
    run = RunOptions.taken_from(given)
    _check(chosen, given, run)
    names = "sizes", "out", "fresh", "patience", "calls", "crossover"
    sizes, out, fresh, patience, calls, crossover = (given.pop(name) for name in names)
    shapes = given.pop("shapes", None)
    options = given_of(given)
    if shapes is not None:
        listed = shape_sweep_of(chosen, shapes_of(chosen, shapes), options, run)
        limit = UNLIMITED if patience is None else patience
        return _go_on(listed, listed.shapes, out, limit, fresh, SHAPE_RESULTS, ShapeOutputs)
    numbers = sorted(set(whole_numbers(sizes))) if sizes is not None else None
    if crossover:
        sweep = sweep_of(chosen, range_of(chosen, options, numbers), options, run)
        with _folder(out, CROSSOVER_FILES, sweep.about(), fresh) as folder:
            # What takes long is not what a search needs, even where it was named.
            limit = UNNAMED if patience is None else patience
            return bench_crossover(sweep, patience_of(sweep, limit), folder)
    assert numbers is not None
    if calls:
        sweep = sweep_of(chosen, numbers, options, replace(run, baseline=None))
        with _folder(out, CALL_RESULTS, sweep.about(numbers), fresh) as folder:
            return bench_calls(sweep, run.baseline or OURS, folder)
    sweep = sweep_of(chosen, numbers, options, run)
    return _go_on(sweep, numbers, out, patience, fresh, (*RESULTS, *PLOTS), SweepOutputs)


def _folder(out: str | None, files: Sequence[str], about: Mapping[str, Any], fresh: bool) -> Any:
    if out is None:
        return nullcontext()
    return results_folder(out, files, None if fresh else about)


def _go_on(
    sweep: Sweep,
    sizes: Sequence[Any],
    out: str,
    patience: float | None,
    fresh: bool,
    files: Sequence[str],
    outputs: Callable[..., Any],
) -> int:
    """Begin a sweep, or go on with it where it was stopped; return the exit status."""
    unfinished = Unfinished(named_folder(out), {**sweep.identity, "patience": patience}, fresh)
    with _folder(out, files, sweep.about(sizes), fresh or unfinished.goes_on) as folder:
        return _bench(sweep, folder, unfinished, patience_of(sweep, patience), outputs)


def _check(chosen: Operation[Any], given: Mapping[str, Any], run: RunOptions) -> None:
    """Refuse options that do not go together, or are missing."""
    calls, crossover = given["calls"], given["crossover"]
    if calls and crossover:
        raise click.UsageError("take --calls or --crossover, not both")
    if crossover and run.baseline is not None:
        raise click.UsageError("--crossover takes no --baseline: it compares with each reference")
    if given["fresh"] and given["out"] is None:
        raise click.UsageError("--fresh is for results in a folder: give --out, too")
    if calls:
        _check_calls(run, given["patience"])
    elif given["out"] is None and not crossover:
        raise click.UsageError("--out is needed: the folder for tables and plots")
    if given.get("shapes") is not None:
        _check_shapes(chosen, given)
    elif given["sizes"] is None and not crossover:
        raise click.UsageError(f"--sizes is needed: the values of {chosen.size_option}")


def _check_shapes(chosen: Operation[Any], given: Mapping[str, Any]) -> None:
    """Refuse options that ``--shapes`` has no use for, or that it sets itself."""
    for name in ("sizes", "calls", "crossover", *chosen.shape_options):
        if given[name]:
            raise click.UsageError(f"take --shapes or --{name}, not both")


def _check_calls(run: RunOptions, patience: float | None) -> None:
    """Refuse options that ``--calls`` has no use for."""
    if run.algorithm != "auto" or run.vary:
        raise click.UsageError("--calls measures public calls, which choose by themselves")
    given = {"--against": run.against, "--threads": run.threads, "--patience": patience}
    for option, value in given.items():
        if value is not None:
            raise click.UsageError(f"--calls takes no {option}: it measures all peers as they are")
    if run.resident:
        raise click.UsageError("--calls takes no --resident: it measures both sides")


def _bench(
    sweep: Sweep,
    folder: Path,
    unfinished: Unfinished,
    patience: Patience,
    outputs: Callable[..., Any],
) -> int:
    """Compare implementations at every size, then print and write; return the exit status.

    What was measured before an interrupt is printed and written all the same, and taken over by
    the next such sweep.
    """
    series: list[tuple[int, list[Measurement]]] = []
    status = failed = 0
    interrupt: KeyboardInterrupt | None = None
    taken = _taken_over(sweep, unfinished)
    with progress_bar(sweep.chosen.name) as progress:
        for index, point in enumerate(sweep.points):
            part = progress_of_part(progress, index, len(sweep.points), sweep.label(point))
            try:
                finished = taken.get(point.size) or _measure(sweep, point, patience, part)
                if point.size not in taken:
                    unfinished.add(point.size, point.configs, finished.status, finished.rows)
            except KeyboardInterrupt as error:
                interrupt = error
                break
            patience.add(point.size, finished.rows)
            status = status or finished.status
            series.append((point.size, finished.rows))
    if unfinished.trouble:
        click.echo(f"oclab: {unfinished.trouble}", err=True)
    if series:
        reached = [size for size in taken if size <= series[-1][0]]
        failed = outputs(sweep, series, folder, reached).print_and_write()
    if interrupt is not None:
        if series and not unfinished.trouble:
            next_one = sweep.label(sweep.points[len(series)])
            settings().say(f"stopped; the same command goes on with {next_one}")
        raise interrupt
    if not failed:
        unfinished.remove()
    return failed or status


def _taken_over(sweep: Sweep, unfinished: Unfinished) -> dict[int, Finished]:
    """Return the sizes that a stopped sweep has measured, and say what is taken over."""
    found: dict[int, Finished] = {}
    for point in sweep.points:
        finished = unfinished.take(point.size, point.configs, sweep.chosen.name)
        if finished is not None:
            # Documents have the rates of work and not what it is made of.
            work = point.problem.work
            rows = [replace(row, work=work) for row in finished.rows]
            found[point.size] = replace(finished, rows=rows)
    if unfinished.afresh:
        settings().say(unfinished.afresh)
    if found:
        labels = ", ".join(sweep.label(point) for point in sweep.points if point.size in found)
        date = max(item.date for item in found.values())
        settings().say(f"taken over from {unfinished.path}, measured until {date}: {labels}")
    return found


def _measure(sweep: Sweep, point: SweepPoint, patience: Patience, progress: StepReport) -> Finished:
    """Compare implementations at one size."""
    comparison: Comparison = run_comparison(
        sweep.chosen,
        point.problem,
        partial(sweep.data, point.size),
        replace(sweep.request_at(point.size), skip=patience.skip(point.size)),
        device=sweep.selection.device,
        progress=progress,
    )
    return Finished(comparison.exit_status, comparison.measurements, "")
