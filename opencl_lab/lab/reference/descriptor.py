"""Descriptors of references: plain data for tests, comparison and tuner."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]
"""Named arrays: the inputs or the outputs of one problem."""

OutputsLike: TypeAlias = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shape and dtype of every output."""


@dataclass(frozen=True)
class CReference:
    """A C function, compiled at run time with the system's compiler."""

    name: str
    """Name of its row, for example ``"c:seq"``."""
    source: str
    """File below ``opencl_lab/lab/reference/csrc``."""
    function: str
    """Exported symbol. It returns ``int``: 0, or an errno if it runs out of memory."""
    defines: Callable[[Any], Mapping[str, str]]
    """``defines(problem)``: macros that specialise the source, such as ``{"KEY_T": "float"}``."""
    arguments: Callable[[Any, Arrays, Arrays], Sequence[Any]]
    """``arguments(problem, inputs, outputs)``: arrays are passed as pointers, Python ints as
    ``int64_t``, floats as ``double``."""
    threaded: bool = False
    """Whether it uses OpenMP, and takes the number of threads as its last argument."""
    cost: Callable[[Any], int] | None = None
    """``cost(problem)``: the number of its products, for references with many more than others.
    With it and a run on a small problem a comparison estimates the time of a run, and leaves the
    reference out if it is too slow."""

    kind = "c"


@dataclass(frozen=True)
class HostReference:
    """A Python function on NumPy arrays, in this process or in a worker."""

    name: str
    """Name of its row, for example ``"numpy"``."""
    function: Callable[[Any, Arrays, int], Arrays]
    """``function(problem, inputs, threads)`` returns the outputs. It is a function of a module, so
    that a worker can import it."""
    unavailable: Callable[[], str | None] = lambda: None
    """Returns a reason why it cannot run here, or None."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to set before NumPy is imported: the function runs in a worker that has them."""
    threaded: bool = False
    """Whether it uses several threads."""
    cost: Callable[[Any], int] | None = None
    """As of a `CReference`."""
    held: Callable[[int], AbstractContextManager[Any]] = nullcontext
    """``held(threads)`` is a context in which the library uses so many threads, for libraries that
    `function` does not tell. It is entered for each sample, outside the timing."""
    builds: bool = False
    """Whether its first call, which is not timed, makes something that the next ones use."""
    differs: Callable[[Any, Arrays], str] = lambda problem, inputs: ""
    """``differs(problem, inputs)``: why its result is known to be another one here; else empty."""

    kind = "library"


@dataclass(frozen=True)
class MpiReference:
    """A function that the ranks of an MPI world run together, with a C kernel."""

    name: str
    """Name of its rows, to which the number of ranks is added: ``"mpi:c x4"``."""
    function: Callable[[Any, Mapping[str, Any], Arrays], tuple[Callable[[], None], Arrays]]
    """``function(world, task, inputs)``, a function of a module; only rank 0 has inputs. It returns
    a function that solves the problem once, and the outputs, which only rank 0 has."""
    task: Callable[[Any], Mapping[str, Any]]
    """``task(problem)``: the description of the problem for ranks, in plain Python objects."""
    kernel: CReference
    """The C function that ranks call, compiled before they start."""
    unavailable: Callable[[], str | None]
    """As of a `HostReference`."""
    ranks: tuple[int, ...] = (1, 2, 4)
    """Numbers of ranks, one row each, unless a request names others."""
    cost: Callable[[Any], int] | None = None
    """As of a `CReference`."""

    threaded = True
    kind = "mpi"


def needs(module: str, package: str | None = None) -> Callable[[], str | None]:
    """Return an `unavailable` for a reference that needs a module, which `package` installs."""

    def unavailable() -> str | None:
        if find_spec(module) is not None:
            return None
        return f"not installed; pip install {package or module}"

    return unavailable


def imported(module: str) -> Any:
    """Import a module of another library; any error makes it unavailable."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        words = str(error).split("\n")[0] or type(error).__name__
        raise ReferenceUnavailable(f"it does not work here: {words}") from error
