"""How fast a reference is: one run of it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import OclabError
from opencl_lab.lab.engine.request import Request
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.engine.runner import run_comparison
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import Problem

__all__ = ["reference_trial"]


def reference_trial(
    chosen: Operation[Any],
    problem: Problem,
    make_inputs: Callable[[], Arrays],
    request: Request,
    reference: str,
    device: Device,
) -> Sequence[Measurement]:
    """Return the rows of a reference, each of one timed run; none where it cannot run.

    What is wrong with it is said where it is measured.
    """
    alone = replace(request, runs=(), against=[reference], repeats=1, lenient=True, baseline=None)
    try:
        return run_comparison(chosen, problem, make_inputs, alone, device=device).measurements
    except OclabError:
        return ()
