"""A reference in a worker, with its own environment variables.

This is for functions that need variables to be set before NumPy is imported. The worker imports
the function in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opencl_lab.core.errors import LaunchError, OclabError, ReferenceUnavailable
from opencl_lab.lab.measuring.back_to_back import back_to_back
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.workers.serving import Failed, find
from opencl_lab.workers.worker import Died, Worker, opening


class IsolatedReference:
    """A Python function in a worker; use it as a context manager, or call `close`.

    The worker can import the module of the function, and has the variables of `environment` in
    addition to ours. The constructor does not wait for it: failures are raised by the first
    request, as `ReferenceUnavailable` until a problem is loaded, then as `LaunchError`.
    """

    def __init__(
        self,
        function: Callable[[Any, Arrays, int], Arrays],
        environment: Mapping[str, str] | None = None,
        name: str = "",
    ):
        target = f"{function.__module__}:{function.__qualname__}"
        self.name = name or target
        self._opened = self._loaded = self._closed = False
        try:
            self._worker = Worker(opening(f"{__name__}:Called", target), environment)
        except LaunchError as error:
            raise ReferenceUnavailable(f"{self.name}: {error}") from error

    def load(self, problem: Any, inputs: Arrays, threads: int) -> None:
        """Send the problem to the worker."""
        self._ask("load", problem, inputs, threads)
        self._loaded = True

    def run(self, calls: int = 1) -> float:
        """Call the function `calls` times back to back; return the seconds that it measured."""
        return float(self._ask("run", calls))

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        arrays: Arrays = self._ask("outputs")
        return arrays

    def close(self) -> None:
        """Kill the worker, even during a run."""
        self._closed = True
        self._worker.kill()

    def __enter__(self) -> IsolatedReference:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, method: str, *arguments: Any) -> Any:
        kind: type[OclabError] = LaunchError if self._loaded else ReferenceUnavailable
        if self._closed:
            raise kind(f"{self.name}: its process was closed")
        try:
            if not self._opened:
                self._worker.answer()
                self._opened = True
            self._worker.send(method, *arguments)
            return self._worker.answer()
        except BaseException as error:
            if self._opened and isinstance(error, Failed):
                raise kind(f"{self.name}: {error}") from error
            self.close()  # half a message may have been transferred
            if isinstance(error, (Failed, Died)):
                reason = error.said or error.how if isinstance(error, Died) else error
                raise kind(f"{self.name}: its process ended: {reason}") from error
            raise


class Called:
    """The handler in the worker: calls a function with the latest problem."""

    def __init__(self, target: str, say: Callable[[Any], None]):
        self._function = find(target)
        self._arguments: tuple[Any, ...] = ()
        self._outputs: Arrays = {}

    def load(self, problem: Any, inputs: Arrays, threads: int) -> None:
        """Set the problem."""
        self._arguments = problem, inputs, threads

    def run(self, calls: int) -> float:
        """Return the seconds of `calls` back-to-back calls, by this process's clock."""
        return back_to_back(self._call, calls)[1]

    def outputs(self) -> Arrays:
        """Return the outputs of the last call."""
        return self._outputs

    def _call(self) -> None:
        self._outputs = self._function(*self._arguments)
