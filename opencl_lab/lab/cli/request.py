"""The request of the command of an operation, and its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from opencl_lab.core.paths import check_target
from opencl_lab.drivers.discovery import Selection
from opencl_lab.lab.cli.common import output_path, settings
from opencl_lab.lab.cli.options import given_of, request_of
from opencl_lab.lab.engine.request import Point, Request, point_of
from opencl_lab.lab.files import STDIN, STDOUT, Stored, check_output, is_rounded, read_stored
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.drawing import check_plot
from opencl_lab.lab.reference.descriptor import Arrays


@dataclass(frozen=True)
class OperationRequest:
    """A call of `oclab OPERATION`."""

    chosen: Operation[Any]
    files: tuple[str | None, ...]  # the input files; None for each that is not given
    options: Mapping[str, Any]  # the given options of the problem
    run: Request
    seed: int
    memory_limit: float | None
    output: Path | None  # the file of the result; below, those of the table and the plot
    csv: Path | None
    plot: Path | None
    selection: Selection

    @classmethod
    def of(cls, chosen: Operation[Any], given: dict[str, Any]) -> OperationRequest:
        """Return the request of a command's options and arguments, with all paths checked."""
        run, seed = request_of(given), given.pop("seed")
        limit = given.pop("memory_limit", None)
        output, csv, plot = (given.pop(name) for name in ("output", "csv_file", "plot_file"))
        if output == STDIN:  # "-" for an output, too
            if settings().json:
                raise click.UsageError("the result and --json cannot both be printed; name a file")
            output, settings().quiet = STDOUT, True
        files = tuple(given.pop(name) for name in chosen.inputs)
        request = cls(
            chosen,
            files,
            given_of(given),
            run,
            seed,
            limit,
            output_path(output, partial(check_output, formats=chosen.formats)),
            output_path(csv, check_target),
            output_path(plot, check_plot),
            settings().begin(),
        )
        about_data = [o.name for o in chosen.options if o.about_data and not o.with_files]
        useless = [name for name in about_data if name in request.options]
        if useless and any(file is not None for file in files):
            raise click.UsageError(
                f"--{useless[0]} is for generated data; leave it out with a file"
            )
        return request

    @property
    def files_by_name(self) -> dict[str, str | None]:
        """The input files by the names of the inputs."""
        return dict(zip(self.chosen.inputs, self.files, strict=True))


@dataclass(frozen=True)
class Data:
    """The problem of a request with its inputs, which are not read yet."""

    point: Point
    stored: Mapping[str, Stored]  # the files by the names of inputs; empty for generated data
    options: Mapping[str, Any]  # completed with values from the files

    @property
    def arrays(self) -> Arrays:
        """The arrays of the input files."""
        return {name: item.array for name, item in self.stored.items()}


def read_data(asked: OperationRequest) -> Data:
    """Open the input files; without any, choose a problem of generated data."""
    chosen, options = asked.chosen, dict(asked.options)
    files = [file for file in asked.files if file is not None]
    if not files:
        return Data(point_of(chosen, options, asked.seed), {}, options)
    if len(files) != len(asked.files):
        raise click.UsageError(
            f"{chosen.name} takes {len(asked.files)} input files ({', '.join(chosen.inputs)}) "
            "or none"
        )
    rounded = is_rounded(options.get("dtype"))
    read = [read_stored(file, chosen.formats, rounded) for file in files]
    for item in read:
        chosen.check_columns(item.names)
        options = {**item.options, **options}
    stored = dict(zip(chosen.inputs, read, strict=True))
    arrays = {name: item.array for name, item in stored.items()}
    problem, inputs = chosen.problem_of(arrays, **options)
    return Data(Point(chosen, problem, lambda: inputs), stored, options)
