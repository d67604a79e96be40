"""`oclab OPERATION --distributed`, which `mpiexec` starts on all ranks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import click

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.distributed import agreed, collective, device_of, world
from opencl_lab.drivers.discovery import DeviceFallbackWarning
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.options import used_options
from opencl_lab.lab.cli.outputs import Outputs, print_comparison
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.request import Data, OperationRequest, read_data, request_of
from opencl_lab.lab.engine.over_ranks import measure
from opencl_lab.lab.engine.runner import Comparison
from opencl_lab.lab.operation import Operation

UNUSED = ("against", "baseline", "threads", "resident", "vary", "time_limit")


@collective
def run_over_ranks(chosen: Operation[Any], given: dict[str, Any]) -> int:
    """Share a problem of generated data out to the ranks; rank 0 prints and writes the results."""
    comm = world()
    if comm.rank:
        settings().quiet, settings().json = True, False
    device, asked, data = agreed(
        comm, lambda: _prepared(comm, chosen, given), (OclabError, click.ClickException)
    )
    with progress_bar(chosen.name) as progress:
        found = measure(
            data.point,
            comm,
            device,
            asked.run.repeats,
            (lambda done, total, label: None) if comm.rank else progress,
        )
    return int(comm.bcast(0 if comm.rank else _shown(asked, data, found), root=0))


def _prepared(
    comm: Any, chosen: Operation[Any], given: dict[str, Any]
) -> tuple[Device, OperationRequest, Data]:
    _check(chosen, given)
    asked_for = str(settings().device or os.environ.get("OCLAB_DEVICE", ""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceFallbackWarning)  # rank 0 says which device it has
        device = device_of(comm, settings().device)
    if comm.rank or "," in asked_for:
        settings().device = device.spec
    asked = request_of(chosen, given)
    return device, asked, read_data(asked)


def _check(chosen: Operation[Any], given: Mapping[str, Any]) -> None:
    """Refuse what has no meaning over ranks."""
    if any(given[name] is not None for name in chosen.inputs):
        raise click.UsageError("--distributed takes generated data; leave the files out")
    used = [name for name in UNUSED if given.get(name)]
    if used or given.get("algorithm", "auto") != "auto":
        name = (used or ["algorithm"])[0].replace("_", "-")
        raise click.UsageError(f"--{name} is not used with --distributed; leave it out")


def _shown(asked: OperationRequest, data: Data, comparison: Comparison) -> int:
    """Print the row and write the files; return the exit status."""
    options = {**used_options(asked.chosen, data.options), "seed": asked.run.seed}
    try:
        print_comparison(asked, comparison, options)
    finally:  # even if the output cannot be printed
        failed = Outputs(asked, data, comparison, options).write()
    return failed or comparison.exit_status
