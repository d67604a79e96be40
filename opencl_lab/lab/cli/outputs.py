"""Output of the command of an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    print_json,
    say_written,
    settings,
    write_files,
)
from opencl_lab.lab.cli.options import used_options
from opencl_lab.lab.cli.request import Data, OperationRequest
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import Comparison
from opencl_lab.lab.files import check_array, is_text, summary, write_array
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.plots import plot_comparison, plot_curves
from opencl_lab.lab.presentation.table import OPTIONAL_COLUMNS, comparison_table, write_csv
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import Problem


def show_comparison(asked: OperationRequest, data: Data, comparison: Comparison) -> int:
    """Print the rows, and write the files, even if nothing can be printed; return the status."""
    if data.stored:
        options = {**data.options, **asked.files_by_name}
    else:
        options = {**used_options(asked.chosen, data.options), "seed": asked.run.seed}
    try:
        _print_what_was_read(asked, data)
        _print_comparison(asked, comparison, options)
    finally:
        failed = _Outputs(asked, data, comparison, options).write()
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


def _print_what_was_read(asked: OperationRequest, data: Data) -> None:
    """Print how text files were interpreted, where that is ambiguous."""
    reading = asked.chosen.reading(data.arrays, **data.options)
    for file, item in zip(asked.files, data.stored.values(), strict=False):
        if item.of_text:
            settings().say(f"{file}: {summary(item)}" + (f"; {reading}" if reading else ""))
        for name, value in item.options.items():
            if data.options[name] != value:
                given = f"--{name} {data.options[name]:g}"
                settings().say(f"{file} says {name} {value:g}; {given} is used instead")


def print_rows(
    asked: OperationRequest,
    problem: Problem,
    options: Mapping[str, Any],
    output: Path | None,
    rows: Sequence[Measurement],
    **more: Any,
) -> None:
    """Print the JSON document of the command; `output` is the file of its result."""
    content = {
        "device": asked.selection.as_dict(),
        "problem": problem.as_dict(),
        "options": options,
        "output": str(output) if output else None,
        "results": [row.as_row() for row in rows],
    }
    print_json(document(asked.chosen.name, **content, **more))


def _print_comparison(
    asked: OperationRequest, comparison: Comparison, options: Mapping[str, Any]
) -> None:
    """Print the rows as a table or as JSON; `options` are written to the JSON document."""
    problem, rows = comparison.workload.problem, comparison.measurements
    if settings().json:
        written = asked.output if comparison.outputs else None
        print_rows(asked, problem, options, written, rows)
        return
    settings().say_device()
    table = comparison_table(rows, f"{asked.chosen.name}: {problem.title}")
    settings().show(table, OPTIONAL_COLUMNS)
    if settings().verbose:
        _print_details(comparison)


def _print_details(comparison: Comparison) -> None:
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


@dataclass(frozen=True)
class _Outputs:
    """The files of a comparison."""

    asked: OperationRequest
    data: Data
    comparison: Comparison
    options: Mapping[str, Any]  # those for reports

    def write(self) -> int:
        """Write the requested files, and print which; return the exit status."""
        asked = self.asked
        files = ((asked.csv, self._csv), (asked.plot, self._plot), (asked.output, self._output))
        written: list[Path] = []

        def keep(path: Path, write: Callable[[Path], bool | None]) -> None:
            if write(path) is not False:
                written.append(path)

        failed = write_files(
            *(partial(keep, path, write) for path, write in files if path is not None)
        )
        say_written(written)
        return failed

    def _csv(self, path: Path) -> None:
        before = self.data.point.problem.as_dict() if self.data.stored else self.options
        write_csv(path, ((before, row) for row in self.comparison.measurements), tuple(before))

    def _plot(self, path: Path) -> None:
        chosen, comparison, arrays = self.asked.chosen, self.comparison, self.data.arrays
        work, outputs = comparison.workload, comparison.outputs
        title = f"{chosen.name}: {work.problem.title}\n{self.asked.selection.device}"
        shows_result = arrays and outputs
        curves = chosen.curves(arrays, outputs, **self.data.options) if shows_result else None
        if curves is not None:
            plot_curves(path, curves, title)
            return
        data = work.problem, work.inputs, work.expected, outputs
        pictures = chosen.pictures(*data) if outputs else None
        plot_comparison(path, comparison.measurements, title, pictures)

    def _output(self, path: Path) -> bool:
        """Write the result, if there is a correct one; return whether it was written."""
        chosen, arrays, options = self.asked.chosen, self.data.arrays, self.data.options
        outputs = self.comparison.outputs
        if not outputs:
            reason = "no algorithm gave a correct result"
            complain(f"{path} is not written: {reason}")
            return False
        names = [name for item in self.data.stored.values() for name in item.names]
        kept = bool(names) and chosen.keeps_columns(arrays, **options)
        result, shown = chosen.present(arrays, outputs, **options), names if kept else ()
        write_array(
            path,
            result,
            partial(chosen.columns, arrays, outputs, shown, **options),
            like=(arrays or self.comparison.workload.inputs)[chosen.inputs[0]],
            names=shown,
            parts=_parts(chosen, result, arrays, outputs, options),
        )
        if names and not kept and is_text(path):
            first = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            complain(
                f"the names above the columns ({first}) are not written to {path}, whose "
                "columns hold something else",
            )
        return True
