"""The operations by name, for the command line, the comparison and the tuner."""

from __future__ import annotations

from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.ops.select.searchsorted import SEARCHSORTED
from opencl_lab.lab.ops.select.topk import TOPK
from opencl_lab.lab.ops.select.unique import UNIQUE
from opencl_lab.lab.ops.sort.operation import SORT

OPERATIONS: tuple[Operation[Any], ...] = (CONV2D, DFT, GEMM, SORT, TOPK, UNIQUE, SEARCHSORTED)


def operations() -> dict[str, Operation[Any]]:
    """Return every operation by name."""
    return {operation.name: operation for operation in OPERATIONS}


def get_operation(name: str) -> Operation[Any]:
    """Return an operation by name; raise `InvalidProblem` with all names for an unknown one."""
    known = operations()
    if name not in known:
        raise InvalidProblem(f"there is no operation {name!r}; there are: {', '.join(known)}")
    return known[name]
