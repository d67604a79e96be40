"""Output of the command of an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError
from opencl_lab.lab.cli.common import (
    complain,
    document,
    say_written,
    settings,
    write_files,
)
from opencl_lab.lab.cli.options import used_options
from opencl_lab.lab.cli.request import Data, OperationRequest
from opencl_lab.lab.cli.results import print_and_write
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import Comparison
from opencl_lab.lab.files import check_array, is_text, summary, write_array
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.plots import plot_comparison, plot_curves
from opencl_lab.lab.presentation.table import OPTIONAL_COLUMNS, comparison_table, write_csv
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import Problem


def show_comparison(asked: OperationRequest, data: Data, comparison: Comparison) -> int:
    """Print the rows, and write the files; return the status."""
    chosen, problem = asked.chosen, comparison.workload.problem
    if data.stored:
        options = {**data.options, **asked.files_by_name}
    else:
        options = {**used_options(chosen, data.options), "seed": asked.seed}

    def show() -> None:
        _say_what_was_read(asked, data)
        settings().say_device()
        table = comparison_table(comparison.measurements, f"{chosen.name}: {problem.title}")
        settings().show(table, OPTIONAL_COLUMNS)
        if settings().verbose:
            _say_details(comparison)

    def plot(path: Path) -> None:
        title = f"{chosen.name}: {problem.title}\n{asked.selection.device}"
        _plot(path, chosen, data, comparison, title)

    before = problem.as_dict() if data.stored else options
    output = asked.output if comparison.outputs else None
    rows = [(before, row) for row in comparison.measurements]
    files: list[tuple[Path | None, Callable[[Path], Any]]] = [
        (asked.csv, lambda path: write_csv(path, rows, tuple(before))),
        (asked.plot, plot),
        (output, lambda path: _write_result(path, chosen, data, comparison)),
    ]
    content = partial(rows_document, asked, problem, options, output, comparison.measurements)
    failed = print_and_write(content, show, lambda: write_named(files))
    if asked.output is not None and output is None:
        complain(f"{asked.output} is not written: no algorithm gave a correct result")
    return failed or comparison.exit_status


def check_outputs(asked: OperationRequest, data: Data) -> bool:
    """Check that the result can be written; return whether the plot shows it.

    A plot shows the result of the user's arrays if it is a curve, and the times otherwise.
    """
    if asked.output is None and asked.plot is None:
        return False
    chosen, arrays = asked.chosen, data.arrays
    blank = _blank_outputs(chosen, data.point.problem, asked.selection.device)
    if asked.output is not None:
        result = chosen.present(arrays, blank, **data.options)
        check_array(
            asked.output,
            result,
            partial(chosen.columns, arrays, blank, **data.options),
            like=arrays.get(chosen.inputs[0]),
            parts=_parts(chosen, result, arrays, blank, data.options),
        )
    if asked.plot is None or not arrays:
        return False
    return chosen.curves(arrays, blank, **data.options) is not None


def _parts(
    chosen: Operation[Any],
    result: np.ndarray[Any, Any],
    arrays: Arrays,
    outputs: Arrays,
    options: Mapping[str, Any],
) -> Arrays:
    """Return the arrays of a result by name; empty if it is one array."""
    beside = chosen.beside(arrays, outputs, **options)
    return {chosen.output: result, **beside} if beside else {}


def _blank_outputs(chosen: Operation[Any], problem: Problem, device: Device) -> Arrays:
    """Return zeros in the shapes and types of the outputs, without using memory."""
    algorithm = chosen.choose(problem, device)
    plan = algorithm.plan(problem, algorithm.configure(problem, device), device)
    return {
        buffer.name: np.broadcast_to(buffer.dtype.type(0), buffer.shape)
        for buffer in plan.with_role("out")
    }


def _say_what_was_read(asked: OperationRequest, data: Data) -> None:
    """Print how text files were interpreted, where that is ambiguous."""
    reading = asked.chosen.reading(data.arrays, **data.options)
    for file, item in zip(asked.files, data.stored.values(), strict=False):
        if item.of_text:
            settings().say(f"{file}: {summary(item)}" + (f"; {reading}" if reading else ""))
        for name, value in item.options.items():
            if data.options[name] != value:
                given = f"--{name} {data.options[name]:g}"
                settings().say(f"{file} says {name} {value:g}; {given} is used instead")


def rows_document(
    asked: OperationRequest,
    problem: Problem,
    options: Mapping[str, Any],
    output: Path | None,
    rows: Sequence[Measurement],
    **more: Any,
) -> dict[str, Any]:
    """Return the JSON document of the command; `output` is the file of its result."""
    return document(
        asked.chosen.name,
        device=asked.selection.as_dict(),
        problem=problem.as_dict(),
        options=options,
        output=str(output) if output else None,
        results=[row.as_row() for row in rows],
        **more,
    )


def _say_details(comparison: Comparison) -> None:
    """Print the parameters and launches of OpenCL rows, and compiler messages."""
    for row in comparison.measurements:
        if row.kind == "opencl":
            build = "" if row.build_ms is None else f", build {row.build_ms:.0f} ms"
            settings().say(f"{row.implementation}: {dict(row.config)}{build}")
            for line in comparison.profiles.get(row.implementation, ()):
                settings().say(f"  {line}")
    for error in comparison.errors:
        if isinstance(error, BuildError):
            click.echo(error.details(), err=True)


def write_named(files: Sequence[tuple[Path | None, Callable[[Path], Any]]]) -> int:
    """Write the files that have a name, and print which; return the exit status."""
    written: list[Path] = []

    def keep(path: Path, write: Callable[[Path], Any]) -> None:
        write(path)
        written.append(path)

    failed = write_files(*(partial(keep, path, write) for path, write in files if path is not None))
    say_written(written)
    return failed


def _plot(
    path: Path, chosen: Operation[Any], data: Data, comparison: Comparison, title: str
) -> None:
    """Plot the result of a user's arrays if it is a curve, else the times."""
    work, outputs = comparison.workload, comparison.outputs
    if data.arrays and outputs:
        curves = chosen.curves(data.arrays, outputs, **data.options)
        if curves is not None:
            plot_curves(path, curves, title)
            return
    arrays = work.problem, work.inputs, work.expected, outputs
    plot_comparison(
        path, comparison.measurements, title, chosen.pictures(*arrays) if outputs else None
    )


def _write_result(path: Path, chosen: Operation[Any], data: Data, comparison: Comparison) -> None:
    """Write the result, below the names of columns that it keeps."""
    arrays, options, outputs = data.arrays, data.options, comparison.outputs
    names = [name for item in data.stored.values() for name in item.names]
    kept = bool(names) and chosen.keeps_columns(arrays, **options)
    result, shown = chosen.present(arrays, outputs, **options), names if kept else ()
    write_array(
        path,
        result,
        partial(chosen.columns, arrays, outputs, shown, **options),
        like=(arrays or comparison.workload.inputs)[chosen.inputs[0]],
        names=shown,
        parts=_parts(chosen, result, arrays, outputs, options),
    )
    if names and not kept and is_text(path):
        first = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        complain(
            f"the names above the columns ({first}) are not written to {path}, whose "
            "columns hold something else",
        )
