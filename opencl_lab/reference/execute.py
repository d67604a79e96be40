"""Run any reference the same way: prepare, run, read the outputs, close."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.errors import LaunchError, OclabError, ReferenceUnavailable
from opencl_lab.reference.build import load
from opencl_lab.reference.child import ChildProcess
from opencl_lab.reference.descriptor import (
    Arrays,
    CReference,
    DeviceReference,
    HostReference,
    Reference,
)

__all__ = ["OutputsLike", "Prepared", "poisoned", "prepare"]

OutputsLike: TypeAlias = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shape and dtype of every output."""

POISON = 0xCD


class Prepared(ABC):
    """A reference that is ready to run on one problem.

    Attributes
    ----------
    workers : int
        Threads that it may use; 1 unless the reference is threaded.
    """

    workers: int

    @abstractmethod
    def run(self) -> float:
        """Solve the problem once; return the seconds that the call alone took.

        Raises
        ------
        LaunchError
            If it fails.
        """

    @abstractmethod
    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""

    def close(self) -> None:  # noqa: B027  (most have nothing to give back)
        """End what was started."""


class _PreparedC(Prepared):
    """A C function with its arguments; the first run finds its outputs poisoned."""

    def __init__(
        self, reference: CReference, problem: Any, inputs: Arrays, like: OutputsLike, workers: int
    ):
        self.workers = workers
        function = load(reference, problem)
        inputs = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        self._outputs = {name: poisoned(shape, dtype) for name, (shape, dtype) in like.items()}
        self._call = function.bind(*reference.arguments(problem, inputs, self._outputs, workers))

    def run(self) -> float:
        begin = time.perf_counter()
        self._call()
        return time.perf_counter() - begin

    def outputs(self) -> Arrays:
        return self._outputs


class _PreparedHost(Prepared):
    """A Python function in this process; the last of its arguments is threads or a device."""

    def __init__(self, reference: HostReference | DeviceReference, *arguments: Any, workers: int):
        self.workers = workers
        self._reference = reference
        self._arguments = arguments
        self._outputs: Arrays = {}

    def run(self) -> float:
        begin = time.perf_counter()
        try:
            self._outputs = self._reference.function(*self._arguments)
        except OclabError:
            raise
        except Exception as error:
            name = self._reference.name
            raise LaunchError(f"{name}: {type(error).__name__}: {error}") from error
        return time.perf_counter() - begin

    def outputs(self) -> Arrays:
        return self._outputs


class _PreparedChild(Prepared):
    """A Python function in a child process, which starts and gets its problem in the background."""

    def __init__(self, reference: HostReference, problem: Any, inputs: Arrays, workers: int):
        self.workers = workers
        self._child = ChildProcess(reference.function, reference.environment, reference.name)
        self._executor = ThreadPoolExecutor(1)
        self._loading = self._executor.submit(self._child.load, problem, inputs, workers)

    def run(self) -> float:
        self._loading.result()
        return self._child.run()

    def outputs(self) -> Arrays:
        return self._child.outputs()

    def close(self) -> None:
        self._child.close()
        self._executor.shutdown()


def poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array full of a byte that no right result is made of."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = POISON
    return array


def prepare(
    reference: Reference,
    problem: Any,
    inputs: Arrays,
    outputs_like: OutputsLike,
    threads: int,
    device: Any = None,
) -> Prepared:
    """Compile a C reference, or start a child process; nothing is timed yet.

    Parameters
    ----------
    reference : CReference, HostReference or DeviceReference
    problem : object
        What the reference was written for.
    inputs : dict of arrays
        Never changed; C references get contiguous copies where they need them.
    outputs_like : mapping
        Shape and dtype of each output. C references write there, and the first run
        finds it poisoned, so that what it leaves out shows.
    threads : int
        For references that are threaded.
    device : Device, optional
        For references on an OpenCL device.

    Raises
    ------
    ReferenceUnavailable
        If it cannot run here; the message says why. A child process that does not
        come up raises it from the first run.
    BuildError
        If the compiler refuses the source.
    """
    workers = threads if reference.threaded else 1
    if isinstance(reference, CReference):
        return _PreparedC(reference, problem, inputs, outputs_like, workers)
    reason = reference.unavailable()
    if reason is not None:
        raise ReferenceUnavailable(f"{reference.name}: {reason}")
    if isinstance(reference, DeviceReference):
        return _PreparedHost(reference, problem, inputs, device, workers=workers)
    if reference.environment:
        return _PreparedChild(reference, problem, inputs, workers)
    return _PreparedHost(reference, problem, inputs, workers, workers=workers)
