"""`oclab OPERATION --distributed`, which `mpiexec` starts on all ranks."""

from __future__ import annotations

import os
import warnings
from typing import Any

import click

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.distributed import agreed, collective, device_of, world
from opencl_lab.drivers.discovery import DeviceFallbackWarning
from opencl_lab.lab.cli.common import settings
from opencl_lab.lab.cli.options import refuse_unused
from opencl_lab.lab.cli.outputs import check_outputs, show_comparison
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.cli.request import Data, OperationRequest, read_data
from opencl_lab.lab.engine.over_ranks import measure
from opencl_lab.lab.engine.request import Point
from opencl_lab.lab.operation import Operation


@collective
def run_over_ranks(chosen: Operation[Any], given: dict[str, Any]) -> int:
    """Share a problem out to the ranks; rank 0 prints and writes the results."""
    comm = world()
    if comm.rank:
        settings().quiet, settings().json = True, False
    known = (OclabError, click.ClickException)
    device, asked = agreed(comm, lambda: _prepared(comm, chosen, given), known)
    # Of files rank 0 has the arrays, as it checks the result.
    data = agreed(comm, lambda: None if comm.rank else _read(asked), known)
    problem = comm.bcast(None if data is None else data.point.problem, root=0)
    point = Point(chosen, problem, dict) if data is None else data.point
    with progress_bar(chosen.name) as progress:
        found = measure(
            point,
            comm,
            device,
            asked.run.repeats,
            (lambda done, total, label: None) if comm.rank else progress,
        )
    return int(comm.bcast(0 if data is None else show_comparison(asked, data, found), root=0))


def _prepared(
    comm: Any, chosen: Operation[Any], given: dict[str, Any]
) -> tuple[Device, OperationRequest]:
    refuse_unused(given["algorithms"])
    asked_for = str(settings().device or os.environ.get("OCLAB_DEVICE", ""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceFallbackWarning)  # rank 0 says which device it has
        device = device_of(comm, settings().device)
    if comm.rank or "," in asked_for:
        settings().device = device.spec
    return device, OperationRequest.of(chosen, given)


def _read(asked: OperationRequest) -> Data:
    data = read_data(asked)
    if data.stored:
        check_outputs(asked, data)
    return data
