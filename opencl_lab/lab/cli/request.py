"""What the command of an operation was asked for, and the data that this names."""

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
from opencl_lab.lab.cli.options import RunOptions, given_of
from opencl_lab.lab.engine.request import Point, point_of
from opencl_lab.lab.files import Stored, check_output, read_stored
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.presentation.drawing import check_plot
from opencl_lab.lab.reference.descriptor import Arrays


@dataclass(frozen=True)
class OperationRequest:
    """One call of `oclab OPERATION`.

    `files` are the input files, None for each that is not given; `options` are those of the
    problem that are given; `output`, `csv` and `plot` are the files to write.
    """

    chosen: Operation[Any]
    files: tuple[str | None, ...]
    options: Mapping[str, Any]
    run: RunOptions
    memory_limit: float | None
    output: Path | None
    csv: Path | None
    plot: Path | None
    selection: Selection

    @property
    def files_by_name(self) -> dict[str, str | None]:
        """The input files by the names of the inputs."""
        return dict(zip(self.chosen.inputs, self.files, strict=True))


def request_of(chosen: Operation[Any], given: dict[str, Any]) -> OperationRequest:
    """Return what the options and arguments of the command say, with all paths checked.

    Raises
    ------
    click.UsageError
        For an option about generated data beside a file.
    OclabError
        If an output cannot be written, or there is no device.
    """
    run = RunOptions.taken_from(given)
    limit = given.pop("memory_limit", None)
    output, csv, plot = (given.pop(name) for name in ("output", "csv_file", "plot_file"))
    files = tuple(given.pop(name) for name in chosen.inputs)
    request = OperationRequest(
        chosen,
        files,
        given_of(given),
        run,
        limit,
        output_path(output, partial(check_output, formats=chosen.formats)),
        output_path(csv, check_target),
        output_path(plot, check_plot),
        settings().begin(),
    )
    if any(file is not None for file in files):
        _check_about_data(chosen, request.options)
    return request


def _check_about_data(chosen: Operation[Any], options: Mapping[str, Any]) -> None:
    """Refuse options about generated data beside a file."""
    about_data = [o.name for o in chosen.options if o.about_data and not o.with_files]
    useless = [name for name in about_data if name in options]
    if useless:
        raise click.UsageError(f"--{useless[0]} is for generated data; leave it out with a file")


@dataclass(frozen=True)
class Data:
    """The problem of a request with its inputs, of which nothing is asked yet.

    `stored` has the content of the input files by the names of the inputs, nothing for generated
    data. What a file says itself completes the `options`.
    """

    point: Point
    stored: Mapping[str, Stored]
    options: Mapping[str, Any]

    @property
    def arrays(self) -> Arrays:
        """The arrays of the input files."""
        return {name: item.array for name, item in self.stored.items()}


def read_data(asked: OperationRequest) -> Data:
    """Read the input files, or choose a problem of generated data where there are none."""
    chosen, options = asked.chosen, dict(asked.options)
    files = [file for file in asked.files if file is not None]
    if not files:
        return Data(point_of(chosen, options, asked.run.seed), {}, options)
    if len(files) != len(asked.files):
        raise click.UsageError(
            f"{chosen.name} takes {len(asked.files)} input files ({', '.join(chosen.inputs)}) "
            "or none"
        )
    read = [read_stored(file, chosen.formats) for file in files]
    for item in read:
        chosen.check_columns(item.names)
        options = {**item.options, **options}
    stored = dict(zip(chosen.inputs, read, strict=True))
    arrays = {name: item.array for name, item in stored.items()}
    problem, inputs = chosen.problem_of(arrays, **options)
    return Data(Point(chosen, problem, lambda: inputs), stored, options)
