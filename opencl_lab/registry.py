"""The operations by name: what the command line, the comparison and the tuner iterate."""

from __future__ import annotations

from typing import Any

from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Operation
from opencl_lab.operations.conv2d.operation import CONV2D
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.gemm.operation import GEMM
from opencl_lab.operations.select.searchsorted_operation import SEARCHSORTED
from opencl_lab.operations.select.topk_operation import TOPK
from opencl_lab.operations.select.unique_operation import UNIQUE
from opencl_lab.operations.sort.operation import SORT

__all__ = ["get_operation", "operations"]

OPERATIONS: tuple[Operation[Any], ...] = (
    *(CONV2D, DFT, GEMM, SORT),
    *(TOPK, UNIQUE, SEARCHSORTED),
)


def operations() -> dict[str, Operation[Any]]:
    """Return every operation by name."""
    return {operation.name: operation for operation in OPERATIONS}


def get_operation(name: str) -> Operation[Any]:
    """Return an operation by name.

    Raises
    ------
    InvalidProblem
        If there is none of that name.
    """
    known = operations()
    if name not in known:
        raise InvalidProblem(f"there is no operation {name!r}; there are: {', '.join(known)}")
    return known[name]
