"""Shared by all operations: messages about a user's arrays, and references in C and PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem, ReferenceUnavailable
from opencl_lab.lab.operation import axis_of
from opencl_lab.lab.reference.descriptor import Arrays, CReference, HostReference, needs
from opencl_lab.lab.reference.peers import Call, named
from opencl_lab.lab.reference.threads import torch_threads


def refuse_given(options: Mapping[str, Any], names: Iterable[str], source: str = "file") -> None:
    """Refuse options whose values come from the user's file or files."""
    for name in names:
        if name in options:
            raise InvalidProblem(f"{name} is given by the input {source}; leave it out")


def reading_along(
    array: np.ndarray[Any, Any] | None, options: Mapping[str, Any], doing: str, columns: str
) -> str:
    """Return in words along which axis of a table an operation works; empty for other arrays.

    `columns` ends the hint how to work on columns instead of rows.
    """
    if array is None or array.ndim != 2:
        return ""
    if axis_of(options, 2) == 0:
        return f"{doing} each column"
    return f"{doing} each row (--axis 0{columns})"


def in_c(
    source: str,
    stem: str,
    defines: Callable[[Any], Mapping[str, str]],
    arguments: Callable[[Any, Arrays, Arrays], tuple[Any, ...]],
    cost: Callable[[Any], int] | None = None,
) -> tuple[CReference, CReference]:
    """Return the functions ``<stem>_seq`` and ``<stem>_omp`` of a C source; the latter threaded."""
    return (
        CReference("c:seq", source, f"{stem}_seq", defines, arguments, cost=cost),
        CReference("c:omp", source, f"{stem}_omp", defines, arguments, threaded=True, cost=cost),
    )


UNSUPPORTED = "not implemented", "support"
"""Words of PyTorch's errors for types that a function does not take."""


def in_torch(
    call: Call, *names: str, cost: Callable[[Any], int] | None = None, no_nan: str = ""
) -> HostReference:
    """Return the reference that makes a call of PyTorch on the processor; `names` of its results.

    Types that it does not support are refused, and so are NaN if `no_nan` says what it does then.
    """

    def run(problem: Any, inputs: Arrays, threads: int) -> Arrays:
        if no_nan and any(x.dtype.kind == "f" and np.isnan(x).any() for x in inputs.values()):
            raise ReferenceUnavailable(f"PyTorch {no_nan}")
        torch = importlib.import_module("torch")
        try:
            result = call(problem, torch, {n: torch.from_numpy(a) for n, a in inputs.items()})
        except (RuntimeError, TypeError) as error:
            said = str(error)
            if isinstance(error, RuntimeError) and not any(word in said for word in UNSUPPORTED):
                raise  # such as one of memory
            reason = f"PyTorch does not support {problem.dtype} here: {said.splitlines()[0]}"
            raise ReferenceUnavailable(reason) from error
        return {name: np.asarray(array) for name, array in named(names, result).items()}

    return HostReference("torch", run, needs("torch"), threaded=True, cost=cost, held=torch_threads)
