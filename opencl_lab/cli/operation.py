"""The command of one operation, made from its description: `oclab sort`, `oclab gemm`, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from opencl_lab.cli.common import (
    WholeNumber,
    document,
    global_options,
    output_path,
    print_json,
    progress_bar,
    settings,
    variants,
    write_files,
)
from opencl_lab.cli.parts import ByteCount, find_job, run_job
from opencl_lab.comparison.drawing import check_plot
from opencl_lab.comparison.plots import plot_comparison, plot_curves
from opencl_lab.comparison.runner import Comparison, run_comparison
from opencl_lab.comparison.table import OPTIONAL_COLUMNS, comparison_table, write_csv
from opencl_lab.device import Device
from opencl_lab.discovery import Selection
from opencl_lab.errors import BuildError
from opencl_lab.files import (
    Stored,
    check_array,
    check_output,
    is_text,
    read_stored,
    summary,
    write_array,
)
from opencl_lab.operation import Operation, Option
from opencl_lab.paths import check_target
from opencl_lab.reference.descriptor import Arrays
from opencl_lab.reference.peers import residents
from opencl_lab.solver import Problem

__all__ = ["REPEATS", "operation_command", "problem_options", "run_options", "used_options"]

REPEATS = 5  # timed runs of each implementation


def _option(option: Option, hidden: bool) -> Callable[[Any], Any]:
    flag = "--" + option.name.replace("_", "-")
    default = f"  [default: {option.default}]" if option.type is not bool else ""
    choices = f" One of {', '.join(option.choices)}." if option.choices else ""
    text = option.help[0].upper() + option.help[1:] + "." + choices
    if option.default is None:
        default = ""
    kwargs: dict[str, Any] = {"help": text + default, "hidden": hidden, "default": None}
    if option.type is bool:
        return click.option(flag, option.name, is_flag=True, **kwargs)
    kind = WholeNumber() if option.type is int else option.type
    return click.option(flag, option.name, type=kind, **kwargs)


def problem_options(chosen: Operation[Any], without: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of an operation."""

    def decorate(command: Any) -> Any:
        for option in reversed(chosen.options):
            if option.name not in without:
                command = _option(option, hidden=False)(command)
        return command

    return decorate


def run_options(command: Any) -> Any:
    """Add the options of everything that compares implementations."""
    for option in (
        click.option("--threads", type=int, help="Threads of references.  [default: all]"),
        click.option(
            "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the data."
        ),
        click.option(
            "--repeats", type=int, help=f"Timed rows of calls of each.  [default: {REPEATS}]"
        ),
        click.option(
            "--against",
            metavar="NAME[,NAME]|all|none",
            help="References to compare with; all: also those on data of the device, and what is "
            "missing.  [default: those here on data of the host, where they are shown]",
        ),
        click.option(
            "--resident",
            is_flag=True,
            help="Measure with the data on the device, before and after.",
        ),
        click.option(
            "--vary",
            multiple=True,
            metavar="NAME=A,B,C",
            help="Run each algorithm with all of these values of a kernel parameter; repeatable.",
        ),
        click.option(
            "--algorithm",
            default="auto",
            show_default=True,
            metavar="NAME[,NAME]|auto|all",
            help="OpenCL algorithms to run.",
        ),
    ):
        command = option(command)
    return command


def operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command of an operation."""

    @click.command(chosen.name, help=_help(chosen))
    @problem_options(chosen)
    @run_options
    @_parts_options(chosen)
    @click.option("-o", "--output", metavar="OUT", help="Write the result to a file.")
    @click.option("--csv", "csv_file", metavar="FILE", help="Write the rows as CSV.")
    @click.option("--plot", "plot_file", metavar="FILE", help="Draw the rows.")
    @global_options
    def command(
        output: str | None,
        csv_file: str | None,
        plot_file: str | None,
        algorithm: str,
        vary: tuple[str, ...],
        against: str | None,
        repeats: int | None,
        seed: int,
        threads: int | None,
        resident: bool,
        memory_limit: float | None = None,
        **given: Any,
    ) -> int:
        files = [given.pop(name) for name in chosen.inputs]
        options = {name: value for name, value in given.items() if value is not None}
        output_file = output_path(output, partial(check_output, formats=chosen.formats))
        csv_path = output_path(csv_file, check_target)
        plot_path = output_path(plot_file, check_plot)
        selection = settings().select()
        if any(file is not None for file in files):
            _check_about_data(chosen, options)
        job = find_job(chosen, files, options, selection, algorithm, memory_limit)
        if job is not None:
            return run_job(
                chosen,
                job,
                selection,
                {**options, **dict(zip(chosen.inputs, files, strict=True))},
                output=output_file,
                algorithm=algorithm,
                vary=vary,
                against=against,
                resident=resident,
                repeats=repeats,
                csv_path=csv_path,
                plot_path=plot_path,
            )
        with progress_bar(chosen.name) as progress:
            progress(0, 1, "input")
            problem, make_inputs, stored, options = _problem(chosen, files, options, seed)
        arrays = {name: item.array for name, item in stored.items()}
        writes = output_file is not None or plot_path is not None
        blank = _blank_outputs(chosen, problem, selection.device) if writes else {}
        draws_result = plot_path is not None and _has_curves(chosen, arrays, blank, options)
        if output_file is not None:
            check_array(
                output_file,
                chosen.present(arrays, blank, **options),
                partial(chosen.columns, arrays, blank, **options),
                like=arrays.get(chosen.inputs[0]),
            )
        used = {**options, **dict(zip(chosen.inputs, files, strict=True))}
        if not arrays:
            used = {**used_options(chosen, options), "seed": seed}
        shown = settings().json or not settings().quiet or csv_path is not None
        shown = shown or (plot_path is not None and not draws_result)
        if against is None and not shown:
            against = "none"
        if repeats is None:  # who sees no times needs a checked result alone
            repeats = REPEATS if shown else 1
        with progress_bar(chosen.name) as progress:
            comparison = run_comparison(
                chosen,
                problem,
                make_inputs,
                device=selection.device,
                algorithms=algorithm,
                variants=variants(vary),
                against=against,
                repeats=repeats,
                threads=threads,
                resident=resident,
                timed=shown,
                progress=progress,
            )
        writers = _writers(
            chosen, comparison, selection, stored, options, csv_path, plot_path, output_file
        )
        try:
            _say_what_was_read(chosen, files, stored, options)
            _print(chosen, comparison, selection, used)
        finally:  # also where nobody reads what is printed
            failed = write_files(*writers)
        return failed or comparison.exit_status

    for name in chosen.inputs:
        command = click.argument(name, required=False, metavar=f"[{name.upper()}]")(command)
    return command


def _writers(
    chosen: Operation[Any],
    comparison: Comparison,
    selection: Selection,
    stored: Mapping[str, Stored],
    options: dict[str, Any],
    csv_path: Path | None,
    plot_path: Path | None,
    output_file: Path | None,
) -> list[Callable[[], None]]:
    """Return what writes the files that were asked for."""
    rows, outputs = comparison.measurements, comparison.outputs
    arrays = {name: item.array for name, item in stored.items()}
    names = [name for item in stored.values() for name in item.names]

    def plot(path: Path) -> None:
        title = f"{chosen.name}: {comparison.problem.title}\n{selection.device}"
        curves = chosen.curves(arrays, outputs, **options) if arrays and outputs else None
        if curves is not None:
            plot_curves(path, curves, title)
        else:
            data = comparison.inputs, comparison.expected, outputs
            pictures = chosen.pictures(comparison.problem, *data) if outputs else None
            plot_comparison(path, rows, title, pictures)

    def output(path: Path) -> None:
        if not outputs:
            click.echo(f"oclab: {path} is not written: no algorithm gave a right result", err=True)
            return
        kept = names and chosen.keeps_columns(arrays, **options)
        write_array(
            path,
            chosen.present(arrays, outputs, **options),
            partial(chosen.columns, arrays, outputs, **options),
            like=(arrays or comparison.inputs)[chosen.inputs[0]],
            names=names if kept else (),
        )
        if names and not kept and is_text(path):
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            click.echo(
                f"oclab: the names above the columns ({shown}) are not written to {path}, whose "
                "columns hold something else",
                err=True,
            )

    def table(path: Path) -> None:
        write_csv(path, (({}, row) for row in rows))

    wanted = ((csv_path, table), (plot_path, plot), (output_file, output))
    return [partial(write, path) for path, write in wanted if path is not None]


def _help(chosen: Operation[Any]) -> str:
    names = ", ".join(algorithm.name for algorithm in chosen.algorithms)
    there = (item.name for item in residents(chosen.calls))
    references = ", ".join([*(reference.name for reference in chosen.references), *there])
    return (
        f"{chosen.summary}\n\nRuns on random data, or on files ({' '.join(chosen.formats)}), and "
        f"compares with references.\n\nAlgorithms: {names}\n\nReferences: {references}"
    )


def _problem(
    chosen: Operation[Any], files: list[str | None], options: dict[str, Any], seed: int
) -> tuple[Problem, Callable[[], Arrays], dict[str, Stored], dict[str, Any]]:
    """Return the problem, how to get its inputs, what the user's own files hold, and the options.

    What a file says itself completes the options.
    """
    given = [file for file in files if file is not None]
    if not given:
        complete = chosen.with_defaults(options)
        problem = chosen.problem(**complete)
        return problem, lambda: chosen.generate(problem, seed, **complete), {}, options
    if len(given) != len(files):
        raise click.UsageError(
            f"{chosen.name} takes {len(files)} input files ({', '.join(chosen.inputs)}) or none"
        )
    read = [read_stored(Path(file), chosen.formats) for file in given]
    stored = dict(zip(chosen.inputs, read, strict=True))
    for item in read:
        chosen.check_columns(item.names)
        options = {**item.options, **options}
    arrays = {name: item.array for name, item in stored.items()}
    problem, inputs = chosen.problem_of(arrays, **options)
    return problem, lambda: inputs, stored, options


def _check_about_data(chosen: Operation[Any], options: Mapping[str, Any]) -> None:
    """Refuse options about generated data beside a file."""
    about_data = [o.name for o in chosen.options if o.about_data and not o.with_files]
    useless = [name for name in about_data if name in options]
    if useless:
        raise click.UsageError(f"--{useless[0]} is for generated data; leave it out with a file")


def _parts_options(chosen: Operation[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds the option of what goes through large files in parts."""
    if chosen.find_file_job is None:
        return lambda command: command
    return click.option(
        "--memory-limit",
        type=ByteCount(),
        metavar="BYTES",
        help="Sort a .npy file in parts if it takes more of the device's memory at once than this, "
        "such as 256M.  [default: $OCLAB_DEVICE_BYTES, else all of it]",
    )


def _say_what_was_read(
    chosen: Operation[Any],
    files: list[str | None],
    stored: Mapping[str, Stored],
    options: dict[str, Any],
) -> None:
    """Say what text files were taken for, which they do not say themselves."""
    done = chosen.reading({name: item.array for name, item in stored.items()}, **options)
    for file, item in zip(files, stored.values(), strict=False):
        if file is not None and is_text(Path(file)):
            settings().say(f"{file}: {summary(item)}" + (f"; {done}" if done else ""))


def _blank_outputs(chosen: Operation[Any], problem: Problem, device: Device) -> Arrays:
    """Return zeros in the shapes and types of the outputs, which take no memory."""
    algorithm = chosen.choose(problem, device)
    plan = algorithm.plan(problem, algorithm.configure(problem, device), device)
    return {
        buffer.name: np.broadcast_to(buffer.dtype.type(0), buffer.shape)
        for buffer in plan.with_role("out")
    }


def _has_curves(
    chosen: Operation[Any], arrays: Arrays, outputs: Arrays, options: dict[str, Any]
) -> bool:
    """Return whether a plot shows the result of the user's own arrays, and not the times."""
    return bool(arrays) and chosen.curves(arrays, outputs, **options) is not None


def used_options(chosen: Operation[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of generated data as a report names them: with defaults, without None."""
    complete = chosen.with_defaults(options)
    return {name: value for name, value in complete.items() if value is not None}


def _print(
    chosen: Operation[Any], comparison: Comparison, selection: Selection, options: dict[str, Any]
) -> None:
    if settings().json:
        print_json(
            document(
                chosen.name,
                device={**selection.device.as_dict(), "reason": selection.reason},
                problem=comparison.problem.as_dict(),
                options=options,
                results=[row.as_row() for row in comparison.measurements],
            )
        )
        return
    settings().say(f"device: {selection.device}: {selection.reason}")
    title = f"{chosen.name}: {comparison.problem.title}"
    settings().show(comparison_table(comparison.measurements, title), OPTIONAL_COLUMNS)
    for row in comparison.measurements:
        if row.kind == "opencl" and settings().verbose:
            build = "" if row.build_ms is None else f", build {row.build_ms:.0f} ms"
            settings().say(f"{row.implementation}: {dict(row.config)}{build}")
            for line in comparison.profiles.get(row.implementation, ()):
                settings().say(f"  {line}")
    for error in comparison.errors:
        if isinstance(error, BuildError) and settings().verbose:
            click.echo(error.details(), err=True)
