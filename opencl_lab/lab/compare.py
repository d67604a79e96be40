"""`opencl_lab.compare`: algorithms and references of an operation, measured in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.options import checked
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.engine.request import Request, point_of
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.presentation.table import Measurements
from opencl_lab.lab.registry import get_operation


@checked
def compare(
    operation: str,
    *,
    algorithms: str | Sequence[str] = "auto",
    against: str | Sequence[str] | None = "all",
    repeats: int | None = 5,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    resident: bool = False,
    config: Mapping[str, Any] | None = None,
    baseline: str | None = None,
    device: str | int | Device | None = None,
    **problem: Any,
) -> Measurements:
    """Compare OpenCL algorithms with the references of an operation on random data.

    Parameters
    ----------
    operation : str
        Such as ``"sort"``.
    algorithms : str or sequence of str
        Names, ``"auto"`` (the one that the library takes) or ``"all"``.
    against : str or sequence of str, optional
        Names of references; ``"none"`` or an empty list for none; ``"all"``, which includes those
        on device data; None for the installed ones on host data.
    repeats : int, optional
        Number of samples of each implementation, unless `time_limit` ends them. None: at least 5
        of each, and more until all medians are precise.
    time_limit : float, optional
        Seconds for all samples; each implementation gets at least one. By default 10 if `repeats`
        is None, else no limit.
    seed : int
        Seed of the data.
    threads : int, optional
        Threads of references that use several; default: all processors.
    resident : bool
        Measure on device data only.
    config : mapping, optional
        Kernel parameters instead of the default ones.
    baseline : str, optional
        The implementation that speed-ups are over, such as ``"numpy"``; default: ``"c:seq"``.
    device : str, int or Device, optional
        As `select_device` takes it.
    **problem
        Options of the operation, such as ``n=50_000, dtype="float32"``.

    Returns
    -------
    list of Measurement
        OpenCL algorithms, then references; first on host data, then on device data. It prints as
        a table.

    Raises
    ------
    OclabError
        Of the class for the failure.
    """
    request = Request(
        algorithms=algorithms,
        against=against,
        variants={"": config} if config else None,
        repeats=repeats,
        budget=time_limit,
        threads=threads,
        resident=resident,
        baseline=baseline,
    )
    point = point_of(get_operation(operation), problem, seed, request)
    rows = run_point(point, device=select_device(device)).measurements
    return Measurements(rows, f"{point.operation.name}: {point.problem.title}")
