"""How an operation names its references: pure data, read by tests, comparison and tuner alike."""

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
    """Exported symbol. It returns ``int``: 0, or an errno when memory ran out."""
    defines: Callable[[Any], Mapping[str, str]]
    """``defines(problem)``: macros that specialise the source, such as ``{"KEY_T": "float"}``."""
    arguments: Callable[[Any, Arrays, Arrays], Sequence[Any]]
    """``arguments(problem, inputs, outputs)``: arrays pass as pointers, Python ints as ``int64_t``,
    floats as ``double``."""
    threaded: bool = False
    """Whether it uses OpenMP, and takes the number of threads as its last argument; if not it
    always counts as one worker."""
    cost: Callable[[Any], int] | None = None
    """``cost(problem)`` is how many products it forms, where that is far more than others need.
    From these and a run on a small problem a comparison with all references estimates how long it
    takes, and leaves it out where nobody would wait."""

    kind = "c"


@dataclass(frozen=True)
class HostReference:
    """A Python function over NumPy arrays, here or in a child process."""

    name: str
    """Name of its row, for example ``"numpy"``."""
    function: Callable[[Any, Arrays, int], Arrays]
    """``function(problem, inputs, threads)`` returns the outputs. A module-level function, so that
    a child process can import it."""
    unavailable: Callable[[], str | None] = lambda: None
    """Returns a reason why it cannot run here, or None."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables it needs before NumPy is imported: it runs in a child process that has them set."""
    threaded: bool = False
    """Whether it uses several threads; if not it always counts as one worker."""
    cost: Callable[[Any], int] | None = None
    """As of a `CReference`."""
    held: Callable[[int], AbstractContextManager[Any]] = nullcontext
    """``held(threads)`` is a context in which the library keeps to so many threads, where
    `function` does not tell it. It is entered for each row of calls, outside the times."""
    builds: bool = False
    """Whether its first call makes what the next ones use, such as a plan. No time counts that."""

    kind = "library"


@dataclass(frozen=True)
class DeviceReference:
    """Another library that works on a device, with arrays of the host: they go there and back."""

    resident: Any
    """The same call on arrays that are there already, a `peers.Resident`."""

    threaded = False
    kind = "library"

    @property
    def name(self) -> str:
        """Name of its row: that of the library."""
        name: str = self.resident.peer
        return name

    @property
    def cost(self) -> Callable[[Any], int] | None:
        """As of a `CReference`."""
        cost: Callable[[Any], int] | None = self.resident.cost
        return cost

    def unavailable(self) -> str | None:
        """Return what is missing, or None."""
        reason: str | None = self.resident.library.missing()
        return reason


@dataclass(frozen=True)
class MpiReference:
    """A function that the ranks of an MPI world run together, around a C kernel."""

    name: str
    """Name of its rows, which have the number of ranks behind it: ``"mpi:c x4"``."""
    function: Callable[[Any, Mapping[str, Any], Arrays], tuple[Callable[[], None], Arrays]]
    """``function(world, task, inputs)`` of a module that can be imported; only rank 0 has inputs.
    It returns what solves the problem once, and the outputs, which rank 0 has."""
    task: Callable[[Any], Mapping[str, Any]]
    """``task(problem)`` is what ranks need to know, in plain Python objects."""
    kernel: CReference
    """What they call, compiled for the task before they start."""
    unavailable: Callable[[], str | None]
    """As of a `HostReference`."""
    ranks: tuple[int, ...] = (1, 2, 4)
    """How many a comparison starts, one row each, unless a request names others."""
    cost: Callable[[Any], int] | None = None
    """As of a `CReference`."""

    threaded = True
    kind = "mpi"


def needs(module: str, package: str | None = None) -> Callable[[], str | None]:
    """Return the `unavailable` of what needs a module; `package` installs it."""

    def unavailable() -> str | None:
        if find_spec(module) is not None:
            return None
        return f"not installed; pip install {package or module}"

    return unavailable


def imported(module: str) -> Any:
    """Return a module of another library; whatever its import raises, it is unavailable then."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        words = str(error).split("\n")[0] or type(error).__name__
        raise ReferenceUnavailable(f"it does not work here: {words}") from error


Reference: TypeAlias = CReference | HostReference | DeviceReference | MpiReference
