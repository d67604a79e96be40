"""Running references of all kinds by one interface: prepare, run, read the outputs, close."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np

from opencl_lab.core.errors import LaunchError, OclabError, ReferenceUnavailable
from opencl_lab.drivers.processes import on_all_processors
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.measuring.poison import poisoned
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.descriptor import (
    Arrays,
    CReference,
    HostReference,
    MpiReference,
    OutputsLike,
)
from opencl_lab.lab.reference.isolated import PreparedChild
from opencl_lab.lab.reference.mpi import Ranks
from opencl_lab.lab.reference.peers import PeerReference, Reference, named
from opencl_lab.lab.reference.threads import bind_openmp


class PreparedReference(Protocol):
    """A reference that is ready to run on one problem."""

    workers: int
    """Number of threads or ranks; 1 unless the reference is threaded."""

    def run(self, calls: int = 1) -> float:
        """Solve the problem `calls` times back to back; return the seconds of the calls alone.

        A failure raises `LaunchError`.
        """
        ...

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        ...

    def close(self) -> None:
        """Release resources, if any."""
        return


class _PreparedC(PreparedReference):
    """A C function with its arguments; its outputs are poisoned before the first run."""

    def __init__(
        self, reference: CReference, problem: Any, inputs: Arrays, like: OutputsLike, workers: int
    ):
        self.workers = workers
        function = load(reference, problem)
        inputs = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        self._outputs = {name: poisoned(shape, dtype) for name, (shape, dtype) in like.items()}
        arguments = reference.arguments(problem, inputs, self._outputs)
        self._call = function.bind(*arguments, *((workers,) if reference.threaded else ()))

    def run(self, calls: int = 1) -> float:
        with on_all_processors():
            if self.workers > 1:
                bind_openmp(self.workers)
            return back_to_back(self._call, calls)[1]

    def outputs(self) -> Arrays:
        return self._outputs


class _PreparedHost(PreparedReference):
    """A Python function in this process."""

    def __init__(self, reference: HostReference, problem: Any, inputs: Arrays, workers: int):
        self.workers = workers
        self._reference = reference
        self._arguments = problem, inputs, workers
        self._outputs: Arrays = {}
        self._to_build = reference.builds

    def run(self, calls: int = 1) -> float:
        try:
            with on_all_processors(), self._reference.held(self.workers):
                if self._to_build:
                    self._call()
                    self._to_build = False
                return back_to_back(self._call, calls)[1]
        except OclabError:
            raise
        except Exception as error:
            name = self._reference.name
            raise LaunchError(f"{name}: {type(error).__name__}: {error}") from error

    def _call(self) -> None:
        self._outputs = self._reference.function(*self._arguments)

    def outputs(self) -> Arrays:
        return self._outputs


class _PreparedPeer(PreparedReference):
    """Another library on a device; any error makes it unavailable.

    Its inputs are on the device already, or each call copies host inputs there and the result
    back. The first call builds kernels, which takes seconds in some libraries, and is not timed.
    """

    workers = 1

    def __init__(
        self,
        reference: PeerReference,
        problem: Any,
        inputs: Arrays,
        like: OutputsLike,
        device: Any,
    ):
        self._name = reference.name
        self._peer, self._transfers = reference, reference.copies
        self._library = library = reference.library
        self._problem, self._like = problem, like
        self._result: Any = None
        self._built = False
        self._module = library.reach(device) if self._transfers else library.open(device)
        with self._explained():
            self._inputs = reference.shaped(problem, inputs)
            self._arrays = {} if self._transfers else self._put()
            library.finish(self._module)

    def _put(self) -> dict[str, Any]:
        return {n: self._library.put(self._module, a) for n, a in self._inputs.items()}

    def _get(self) -> Arrays:
        like = self._like
        results = named(self._peer.returned or tuple(like), self._result)
        arrays = {n: self._library.get(self._module, part) for n, part in results.items()}
        return {n: a.reshape(like[n][0]) if n in like else a for n, a in arrays.items()}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert the errors of a library, which may be of any class."""
        try:
            yield
        except ReferenceUnavailable:
            raise
        except Exception as error:
            words = str(error).strip().split("\n")[0]
            reason = f"{self._name}: {type(error).__name__}: {words}"
            raise ReferenceUnavailable(reason) from error

    def run(self, calls: int = 1) -> float:
        finish = partial(self._library.finish, self._module)
        with self._explained():
            if not self._built:
                back_to_back(self._call, 1, finish)
                self._built = True
            return back_to_back(self._call, calls, finish)[1]

    def _call(self) -> None:
        arrays = self._put() if self._transfers else self._arrays
        self._result = self._peer.call(self._problem, self._module, arrays)
        if self._transfers:
            self._result = self._get()

    def outputs(self) -> Arrays:
        with self._explained():
            return self._result if self._transfers else self._get()

    def close(self) -> None:
        self._arrays, self._inputs, self._result = {}, {}, None


def prepare(
    reference: Reference,
    problem: Any,
    inputs: Arrays,
    outputs_like: OutputsLike,
    threads: int,
    device: Any = None,
) -> PreparedReference:
    """Compile a C reference, or start a worker, without timing anything.

    C references get contiguous copies of the inputs if necessary, and write to arrays as
    `outputs_like` says, which are poisoned before the first run. `threads` is for references that
    are threaded; for one over MPI it is the number of ranks.
    `ReferenceUnavailable` is raised if it cannot run here, by the first run if it is in a worker;
    `BuildError` if the source does not compile.
    """
    workers = threads if reference.threaded else 1
    if isinstance(reference, CReference):
        return _PreparedC(reference, problem, inputs, outputs_like, workers)
    if isinstance(reference, PeerReference):
        reason = reference.unavailable(device)
    else:
        reason = reference.unavailable()
    if reason is not None:
        raise ReferenceUnavailable(f"{reference.name}: {reason}")
    if isinstance(reference, PeerReference):
        return _PreparedPeer(reference, problem, inputs, outputs_like, device)
    if isinstance(reference, MpiReference):
        inputs = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        with on_all_processors():
            return Ranks(reference, problem, inputs, workers)
    if reference.environment:
        return PreparedChild(reference, problem, inputs, workers)
    return _PreparedHost(reference, problem, inputs, workers)
