"""`oclab bench OPERATION`: a sweep over sizes, with CSV, JSON, tables and plots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import click

from opencl_lab.core import early
from opencl_lab.lab.cli.common import complain, global_options, option, settings
from opencl_lab.lab.cli.crossover import CROSSOVER_FILES, bench_crossover, range_of
from opencl_lab.lab.cli.options import (
    given_of,
    problem_options,
    request_of,
    run_options,
    used_options,
)
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.results import named_folder, results_folder
from opencl_lab.lab.cli.sweep_outputs import (
    CALL_RESULTS,
    PLOT_FILES,
    RESULT_FILES,
    SweepOutputs,
    bench_calls,
)
from opencl_lab.lab.cli.values import no_nan, variants, whole_numbers
from opencl_lab.lab.engine.calls import OURS
from opencl_lab.lab.engine.explore import Exploration, Stopped, grid
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.engine.row import Measurement, first_failure
from opencl_lab.lab.engine.runner import one_of
from opencl_lab.lab.engine.sweep import Sweep, Unfinished
from opencl_lab.lab.engine.timeout_predictor import UNNAMED_SECONDS, TimeoutPredictor
from opencl_lab.lab.operation import Operation
from opencl_lab.ops.solver import AUTO


def sweep_command(chosen: Operation[Any]) -> click.Command:
    """Return the command that sweeps one operation."""

    @click.command(chosen.name, help=f"Sweep {chosen.name} over {chosen.size_option}.")
    @option(
        "--sizes A,B,C",
        f"Values of {chosen.size_option}; required for a sweep. With --crossover, the "
        "smallest and the largest one.",
    )
    @option(
        "--out DIR",
        "Folder for the results; required, except with --calls and --crossover.",
        type=click.Path(),
    )
    @option(
        "--fresh",
        "Measure all sizes again instead of resuming a stopped sweep, and replace the results "
        "of another sweep in DIR.",
        is_flag=True,
    )
    @option(
        "--patience S",
        "Leave out references whose next call would take more than S seconds, as estimated "
        "from smaller sizes.  [default: 60 for those named by --against, else 5; 5 with "
        "--crossover]",
        type=click.FloatRange(0, min_open=True),
        callback=no_nan,
    )
    @option("--calls", "Measure the cost of calls, beside those of other libraries.", is_flag=True)
    @option(
        "--crossover",
        "Find the size from which on the device is faster than each reference, by bisection.",
        is_flag=True,
    )
    @problem_options(chosen, without=(chosen.size_option,))
    @run_options
    @global_options
    def command(**given: Any) -> int:
        return _command(chosen, given)

    return command


def _command(chosen: Operation[Any], given: dict[str, Any]) -> int:
    """Run the command; return the exit status."""
    run, seed = request_of(given), given.pop("seed")
    _check(chosen, given, run)
    names = "sizes", "out", "fresh", "patience", "calls", "crossover"
    sizes, out, fresh, patience, calls, crossover = (given.pop(name) for name in names)
    options = given_of(given)
    numbers = sorted(set(whole_numbers(sizes))) if sizes is not None else None
    if crossover:
        sweep = _sweep_of(chosen, range_of(chosen, options, numbers), options, run, seed)
        with _folder(out, CROSSOVER_FILES, sweep.about(), fresh) as folder:
            # A search does not need slow references, even if they were named.
            limit = UNNAMED_SECONDS if patience is None else patience
            return bench_crossover(sweep, sweep.timeout_predictor(limit), folder)
    assert numbers is not None
    if calls:
        sweep = _sweep_of(chosen, numbers, options, replace(run, baseline=None), seed)
        with _folder(out, CALL_RESULTS, sweep.about(numbers), fresh) as folder:
            return bench_calls(sweep, run.baseline or OURS, folder)
    sweep = _sweep_of(chosen, numbers, options, run, seed)
    return _bench(sweep, out, patience, fresh)


def _sweep_of(
    chosen: Operation[Any],
    sizes: Sequence[int],
    options: Mapping[str, Any],
    run: Request,
    seed: int,
) -> Sweep:
    used = {**used_options(chosen, options), "seed": seed}
    del used[chosen.size_option]
    sweep = Sweep(chosen, settings().begin(), sizes, used, run)
    sweep.planned  # noqa: B018  (all is checked before a folder is made)
    return sweep


def _folder(out: str | None, files: Sequence[str], about: Mapping[str, Any], fresh: bool) -> Any:
    if out is None:
        return nullcontext()
    return results_folder(out, files, None if fresh else about)


def _check(chosen: Operation[Any], given: Mapping[str, Any], run: Request) -> None:
    """Refuse combinations of options that exclude each other, or are incomplete."""
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
    if given["sizes"] is None and not crossover:
        raise click.UsageError(f"--sizes is needed: the values of {chosen.size_option}")


def _check_calls(run: Request, patience: float | None) -> None:
    """Refuse options that ``--calls`` does not use."""
    if run.algorithms != AUTO or run.variants != variants(()):
        raise click.UsageError("--calls measures public calls, which choose the algorithm")
    given = {"--against": run.against, "--threads": run.threads, "--patience": patience}
    for flag, value in given.items():
        if value is not None:
            raise click.UsageError(f"--calls takes no {flag}: it measures all peers as they are")
    if run.resident:
        raise click.UsageError("--calls takes no --resident: it measures both sides")


def _bench(sweep: Sweep, out: str, seconds: float | None, fresh: bool) -> int:
    """Begin a sweep, or resume a stopped one; return the exit status.

    Results from before an interrupt are printed and written, and taken over by the next sweep with
    the same options.
    """
    identity = {**sweep.identity, "patience": seconds}
    unfinished = Unfinished(named_folder(out), identity, fresh)
    files, about = (*RESULT_FILES, *PLOT_FILES), sweep.about(sweep.sizes)
    with _folder(out, files, about, fresh or unfinished.goes_on) as folder:
        run, stopped = _explored(sweep, unfinished, sweep.timeout_predictor(seconds))
        if unfinished.trouble:
            complain(unfinished.trouble)
        elif stopped == "complete":
            early.command.kept = "all sizes are kept, the same command writes the remaining files"
        failed = 0
        if run.seen:
            taken = [size for size in run.seen if size in run.known]
            draws = stopped != "interrupted"
            found = SweepOutputs(sweep, list(run.seen.items()), folder, taken, draws)
            failed = found.print_and_write()
        if stopped == "interrupted":
            raise KeyboardInterrupt
        if not failed:
            unfinished.remove()
        return failed or first_failure(run.seen.values())


def _explored(
    sweep: Sweep, unfinished: Unfinished, predictor: TimeoutPredictor
) -> tuple[Exploration[int, list[Measurement]], Stopped]:
    """Measure all sizes that are not taken over."""
    known = sweep.taken_over(unfinished)
    _say_taken_over(sweep, known, unfinished)
    with progress_bar(sweep.chosen.name) as progress:

        def measure(size: int) -> list[Measurement]:
            done, count, label = len(run.seen), len(sweep.sizes), sweep.label(size)
            early.command.patient = bool(unfinished.trouble)
            if done and not unfinished.trouble:
                early.command.kept = f"the same command resumes with {label}"
            return sweep.measure(size, predictor, one_of(progress, done, count, label))

        run = Exploration(
            measure,
            known=known,
            keep=lambda size, rows: unfinished.keep(size, sweep.planned[size].configs, rows),
            told=predictor.add,
        )
        return run, run.run(grid(sweep.sizes))


def _say_taken_over(sweep: Sweep, sizes: Collection[int], unfinished: Unfinished) -> None:
    if unfinished.afresh:
        settings().say(f"{unfinished.afresh}; all sizes are measured again")
    if sizes:
        date, labels = unfinished.date(sizes), ", ".join(map(sweep.label, sizes))
        settings().say(f"taken over from {unfinished.path}, measured until {date}: {labels}")
