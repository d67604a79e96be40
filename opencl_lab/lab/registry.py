"""The operations by name, for the command line, the comparison and the tuner."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.operation import Operation

OPERATIONS: dict[str, Operation[Any] | str] = {
    "conv2d": "opencl_lab.lab.ops.conv2d.operation:CONV2D",
    "dft": "opencl_lab.lab.ops.dft.operation:DFT",
    "filter": "opencl_lab.lab.ops.filters.operation:FILTER",
    "gemm": "opencl_lab.lab.ops.gemm.operation:GEMM",
    "sort": "opencl_lab.lab.ops.sort.operation:SORT",
    "topk": "opencl_lab.lab.ops.select.topk:TOPK",
    "unique": "opencl_lab.lab.ops.select.unique:UNIQUE",
    "searchsorted": "opencl_lab.lab.ops.select.searchsorted:SEARCHSORTED",
}
"""Operations, or the places ``"module:attribute"`` from which they are imported when needed."""


def operations() -> dict[str, Operation[Any]]:
    """Return every operation by name."""
    return {name: get_operation(name) for name in OPERATIONS}


def get_operation(name: str) -> Operation[Any]:
    """Return an operation by name; raise `InvalidProblem` with all names for an unknown one."""
    if name not in OPERATIONS:
        raise InvalidProblem(f"there is no operation {name!r}; there are: {', '.join(OPERATIONS)}")
    found = OPERATIONS[name]
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        operation: Operation[Any] = getattr(import_module(module), attribute)
        return operation
    return found
