"""The command of an operation, made from its description: `oclab sort`, `oclab gemm`, ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from opencl_lab.lab.cli.common import global_options, option, settings
from opencl_lab.lab.cli.options import problem_options, quick, run_options
from opencl_lab.lab.cli.outputs import check_outputs, show_comparison
from opencl_lab.lab.cli.parts import find_job, run_job
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.request import OperationRequest, read_data
from opencl_lab.lab.cli.values import BYTE_COUNT
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.peers import residents

DISTRIBUTED = "distributed"


def operation_command(chosen: Operation[Any]) -> click.Command:
    """Return the command of an operation."""

    @click.command(chosen.name, help=_help(chosen))
    @problem_options(chosen)
    @run_options
    @_parts_options(chosen)
    @_ranks_options(chosen)
    @option(
        "-o --output FILE",
        "Write the result to a file; - prints it, as comma-separated text, and nothing else.",
        type=click.Path(),
    )
    @option("--csv FILE", "Write the table as CSV.", to="csv_file", type=click.Path())
    @option("--plot FILE", "Write a plot of times or results.", to="plot_file", type=click.Path())
    @global_options
    def command(**given: Any) -> int:
        if given.pop(DISTRIBUTED, False):
            from opencl_lab.lab.cli.over_ranks import run_over_ranks

            return run_over_ranks(chosen, given)
        asked = OperationRequest.of(chosen, given)
        job = find_job(asked)
        return _run(asked) if job is None else run_job(asked, job)

    for name in chosen.inputs:
        command = click.argument(
            name, required=False, metavar=f"[{name.upper()}]", type=click.Path()
        )(command)
    return command


def _help(chosen: Operation[Any]) -> str:
    names = ", ".join([*(algorithm.name for algorithm in chosen.algorithms), *chosen.choices])
    on_device = (item.name for item in residents(chosen.calls))
    references = ", ".join([*(reference.name for reference in chosen.references), *on_device])
    return (
        f"{chosen.summary}\n\nRuns on random data, or on files ({' '.join(chosen.formats)}), and "
        f"compares with references.\n\nAlgorithms: {names}\n\nReferences: {references}"
    )


def _parts_options(chosen: Operation[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds the option of operations that process large files in parts."""
    if chosen.find_file_job is None:
        return lambda command: command
    return option(
        "--memory-limit BYTES",
        "Sort a .npy file in parts if it needs more device memory than this, such as 256M.  "
        "[default: $OCLAB_DEVICE_BYTES, else all memory]",
        type=BYTE_COUNT,
    )


def _ranks_options(chosen: Operation[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds the option of operations that run over ranks."""
    if chosen.calls.over_ranks is None:
        return lambda command: command
    return click.option(
        f"--{DISTRIBUTED}",
        is_flag=True,
        help=f"Share the problem out to the ranks of MPI: mpiexec -n 4 oclab {chosen.name} "
        f"--{DISTRIBUTED}; each has a device, or its share of the processors.",
    )


def _run(asked: OperationRequest) -> int:
    """Compare implementations on data that fit into memory; return the exit status."""
    chosen = asked.chosen
    with progress_bar(chosen.name) as progress:
        progress(0, 1, "input")
        data = read_data(asked)
    draws_result = check_outputs(asked, data)
    request = _request(asked, draws_result)
    with progress_bar(chosen.name) as progress:
        point = replace(data.point, request=request)
        comparison = run_point(point, device=asked.selection.device, progress=progress)
    return show_comparison(asked, data, comparison)


def _request(asked: OperationRequest, draws_result: bool) -> Request:
    """Return the request of a comparison; if no times are shown, one checked result is enough."""
    request = quick(asked.run)
    draws_times = asked.plot is not None and not draws_result
    if settings().json or not settings().quiet or asked.csv is not None or draws_times:
        return request
    against = "none" if request.against is None else request.against
    repeats = 1 if asked.run.repeats is None else asked.run.repeats
    return replace(request, timed=False, against=against, repeats=repeats, baseline=None)
