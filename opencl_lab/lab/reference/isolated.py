"""A reference in a worker, with environment variables that must be set before NumPy is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opencl_lab.core.errors import LaunchError, ReferenceUnavailable
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.reference.descriptor import Arrays, HostReference
from opencl_lab.workers.serving import Failed, find
from opencl_lab.workers.worker import Died, Worker, opening


class PreparedChild:
    """A Python function in a worker, with its problem; it must be one of a module.

    Failures are raised by the first run: as `ReferenceUnavailable` until the worker has the
    function and the problem, then as `LaunchError`.
    """

    def __init__(self, reference: HostReference, problem: Any, inputs: Arrays, workers: int):
        self.workers = workers
        self._name, self._ready = reference.name, False
        target = f"{reference.function.__module__}:{reference.function.__qualname__}"
        begin = opening(f"{__name__}:Called", target, problem, inputs, workers)
        try:
            self._worker = Worker(begin, reference.environment)
        except LaunchError as error:
            raise ReferenceUnavailable(f"{self._name}: {error}") from error

    def run(self, calls: int = 1) -> float:
        """Call the function `calls` times back to back; return the seconds that it measured."""
        return float(self._ask("run", calls))

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        arrays: Arrays = self._ask("outputs")
        return arrays

    def close(self) -> None:
        """Kill the worker, even during a run."""
        self._worker.kill()

    def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            if not self._ready:
                self._worker.answer()
                self._ready = True
            self._worker.send(method, *arguments)
            return self._worker.answer()
        except (Failed, Died) as error:
            kind = LaunchError if self._ready else ReferenceUnavailable
            if isinstance(error, Died):
                raise kind(f"{self._name}: its process ended: {error.said or error.how}") from error
            raise kind(f"{self._name}: {error}") from error
        except BaseException:
            self.close()  # half a message may have been transferred
            raise


class Called:
    """The handler in the worker: calls the function."""

    def __init__(
        self, target: str, problem: Any, inputs: Arrays, threads: int, say: Callable[[Any], None]
    ):
        self._function, self._arguments = find(target), (problem, inputs, threads)
        self._outputs: Arrays = {}

    def run(self, calls: int) -> float:
        """Return the seconds of `calls` back-to-back calls, by this process's clock."""
        return back_to_back(self._call, calls)[1]

    def outputs(self) -> Arrays:
        """Return the outputs of the last call."""
        return self._outputs

    def _call(self) -> None:
        self._outputs = self._function(*self._arguments)
