"""A first look at how fast references are: runs on a small problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from opencl_lab.comparison.measure import Measurement
from opencl_lab.comparison.request import Request
from opencl_lab.comparison.runner import run_comparison
from opencl_lab.device import Device
from opencl_lab.errors import OclabError
from opencl_lab.operation import Operation
from opencl_lab.solver import Problem

__all__ = ["small_trial"]


def small_trial(
    chosen: Operation[Any], problem: Problem, names: Sequence[str], *, device: Device
) -> tuple[Problem, Sequence[Measurement]] | None:
    """Return a small problem of the kind of `problem`, and the rows of references for it.

    None where it cannot be run: what is wrong is said where the problem itself is.
    """
    request = Request(against=names, repeats=1, lenient=True)
    try:
        small = chosen.sample(problem)
        comparison = run_comparison(
            chosen, small, partial(chosen.generate, small, 0), request, device=device
        )
    except OclabError:
        return None
    return small, comparison.measurements
