"""A reference in a process of its own, with environment variables of its own.

For functions that need variables to be set before NumPy is imported. The child
imports the function at once, while the parent goes on; then it answers requests
until its stdin closes:

    ("load", problem, inputs, threads) -> None
    ("run", calls)                     -> seconds of calls in a row, by the child's clock
    ("outputs",)                       -> arrays of the last call

A request is a pickled tuple, an answer ``("ok", value)`` or ``("error", text)``.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from opencl_lab.core.errors import LaunchError, OclabError, ReferenceUnavailable
from opencl_lab.drivers.processes import end
from opencl_lab.lab.measuring.rows import in_a_row
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.reference.messages import receive, send

__all__ = ["ChildProcess"]

# The path comes first: with "-m", modules in the current folder would hide those of the library.
START = """
import sys
sys.path[:] = sys.argv[2:]
from opencl_lab.lab.reference.child import main
main(sys.argv[1])
"""


class ChildProcess:
    """The parent's side of a child; use it as a context manager, or call `close`.

    Parameters
    ----------
    function : callable
        ``function(problem, inputs, threads)`` of a module that can be imported.
    environment : mapping, optional
        Variables that the child has in addition to ours.
    name : str, optional
        For error messages.

    Raises
    ------
    ReferenceUnavailable
        If no process can be started. The constructor does not wait for the child:
        whatever fails in it is raised by the first request.
    """

    def __init__(
        self,
        function: Callable[[Any, Arrays, int], Arrays],
        environment: Mapping[str, str] | None = None,
        name: str = "",
    ):
        target = f"{function.__module__}:{function.__qualname__}"
        self.name = name or target
        self._loaded = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the child)
        search = map(os.path.abspath, sys.path)  # what imports here must import there
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, target, *search],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
            )
        except OSError as error:
            self._stderr.close()
            raise ReferenceUnavailable(
                f"{self.name}: cannot start {sys.executable or 'Python'}: {error}"
            ) from error

    def load(self, problem: Any, inputs: Arrays, threads: int) -> None:
        """Give the child its problem.

        Raises
        ------
        ReferenceUnavailable
            If the child cannot import the function or ended.
        """
        self._ask("load", problem, inputs, threads)
        self._loaded = True

    def run(self, calls: int = 1) -> float:
        """Call the function so many times in a row; return the seconds that the child measured.

        Raises
        ------
        LaunchError
            If the function fails, or the child ended.
        """
        return float(self._ask("run", calls))

    def outputs(self) -> Arrays:
        """Return the outputs of the last run."""
        arrays: Arrays = self._ask("outputs")
        return arrays

    def close(self) -> None:
        """End the child, also in the middle of a run; it has nothing to save."""
        end(self._process)
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            with suppress(OSError):  # unsent bytes, which nobody waits for any more
                stream.close()  # type: ignore[union-attr]

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, *request: Any) -> Any:
        kind: type[OclabError] = LaunchError if self._loaded else ReferenceUnavailable
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        if stdin.closed:
            raise kind(f"{self.name}: its process was closed")
        try:
            send(stdin, request)
            status, answer = receive(stdout)
        except (OSError, EOFError) as error:
            reason = self._last_words()
            self.close()
            raise kind(f"{self.name}: its process ended: {reason}") from error
        except BaseException:
            self.close()  # half a message may be under way: no later answer could be trusted
            raise
        if status == "error":
            raise kind(f"{self.name}: {answer}")
        return answer

    def _last_words(self) -> str:
        """Return the last line that the child printed, or how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        code = self._process.returncode
        how = f"exit status {code}"
        if code is not None and code < 0:
            how = f"signal {-code} ({signal.strsignal(-code)})"
        return next((line.strip() for line in reversed(lines) if line.strip()), how)


def _answer(
    function: Callable[[Any, Arrays, int], Arrays], requests: IO[bytes], answers: IO[bytes]
) -> None:
    """Answer requests until there are no more."""
    arguments: tuple[Any, ...] = ()
    outputs: Arrays = {}

    def call() -> None:
        nonlocal outputs
        outputs = function(*arguments)

    while True:
        try:
            try:
                request, *rest = receive(requests)
            except EOFError:
                return
            reply: Any = None
            if request == "load":
                arguments = tuple(rest)
            elif request == "run":
                _, reply = in_a_row(call, *rest)
            else:
                reply = outputs
            send(answers, ("ok", reply))
        except Exception as error:
            send(answers, ("error", f"{type(error).__name__}: {error}"))


def main(target: str) -> None:
    """Serve the function `target`."""
    # Ctrl-C reaches every process of the terminal: the parent decides, and closes our stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the function prints must not mix with the answers: stdout becomes stderr.
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        module, _, function = target.partition(":")
        with suppress(BrokenPipeError):  # the parent is gone
            _answer(getattr(importlib.import_module(module), function), requests, answers)
