"""The operations by name: what the command line, the comparison and the tuner iterate."""

from __future__ import annotations

from typing import Any

from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Operation
from opencl_lab.operations.conv2d import calls as conv2d_calls
from opencl_lab.operations.conv2d.operation import CONV2D
from opencl_lab.operations.dft import calls as dft_calls
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.gemm import calls as gemm_calls
from opencl_lab.operations.gemm.operation import GEMM
from opencl_lab.operations.in_parts import FindJob
from opencl_lab.operations.sort import calls as sort_calls
from opencl_lab.operations.sort.file import sort_file
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.reference.peers import Calls

__all__ = ["calls_of", "get_operation", "in_parts_of", "operations"]

_LISTED: tuple[tuple[Operation[Any], Calls], ...] = (
    (CONV2D, conv2d_calls.CALLS),
    (DFT, dft_calls.CALLS),
    (GEMM, gemm_calls.CALLS),
    (SORT, sort_calls.CALLS),
)
_IN_PARTS: dict[str, FindJob] = {"sort": sort_file}
_OPERATIONS: dict[str, Operation[Any]] = {operation.name: operation for operation, _ in _LISTED}


def operations() -> dict[str, Operation[Any]]:
    """Return every operation by name."""
    return dict(_OPERATIONS)


def get_operation(name: str) -> Operation[Any]:
    """Return an operation by name.

    Raises
    ------
    InvalidProblem
        If there is none of that name.
    """
    if name not in _OPERATIONS:
        raise InvalidProblem(f"there is no operation {name!r}; there are: {', '.join(_OPERATIONS)}")
    return _OPERATIONS[name]


def calls_of(operation: Operation[Any]) -> Calls:
    """Return how users call an operation, here and in other libraries."""
    return next(calls for listed, calls in _LISTED if listed is operation)


def in_parts_of(operation: Operation[Any]) -> FindJob | None:
    """Return what finds out how an operation goes through a large file in parts, if it can."""
    return _IN_PARTS.get(operation.name)
