"""Trying what may crash or hang, in a child process, until there is a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from opencl_lab.core.errors import LaunchError, OclabError
from opencl_lab.core.records import as_json, typed
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import ENDED_BY_OTHERS, Died, Worker, opening

Item = TypeVar("Item")
Result = TypeVar("Result")


class Trying(NamedTuple):
    """What a child tries next, and what is known until then: if it dies, that is the verdict."""

    trying: str
    value: Any = None  # how much has worked; None if it works or does not
    claimed: bool = True
    reached: str = ""  # the value in words


class TrialError(OclabError):
    """The driver raised an error, which may be another one in another process."""


class Child:
    """A process that tries things on a device; it is started again after one that crashes or hangs.

    Parameters
    ----------
    target : str
        ``module:class`` of the handler; its methods return verdicts, and say each `Trying`.
    arguments : tuple
        Those of the handler.
    environment : mapping
    attempts : sequence of float
        Longest time in seconds between two steps, in each attempt. A driver must fail in all
        attempts, as a machine may just be busy.
    """

    def __init__(
        self,
        target: str,
        arguments: tuple[Any, ...],
        environment: Mapping[str, str],
        attempts: Sequence[float],
    ):
        self._target, self._arguments = target, arguments
        self._environment, self._attempts = environment, attempts
        self._worker: Worker | None = None
        self._stopped = False

    def ask(self, *request: Any) -> Verdict:
        """Return the verdict for a request: a method of the handler, and its arguments."""
        begin, verdict = time.monotonic(), Verdict("unknown")
        for seconds in self._attempts:
            verdict, certain = self._attempt(seconds, request)
            if verdict.word not in ("ok", "no"):
                self.end()  # its memory may be damaged
            if certain or self._stopped:
                break
        return replace(verdict, seconds=round(time.monotonic() - begin, 3))

    def _attempt(self, seconds: float, request: tuple[Any, ...]) -> tuple[Verdict, bool]:
        """Return a verdict, and whether it is certain; else it may be another one next time."""
        step: Trying | None = None
        try:
            if self._worker is None:
                self._worker = Worker(opening(self._target, *self._arguments), self._environment)
                if self._stopped:  # while it was started
                    return Verdict("unknown", "it was stopped"), True
                self._worker.answer(time.monotonic() + seconds)
            step = Trying("the first kernel")
            self._worker.send(*request)
            while True:
                kind, value = self._worker.receive(time.monotonic() + seconds)
                if kind == "done":
                    return _sound(value), True
                step = value if isinstance(value, Trying) else step
        except Failed as error:
            if isinstance(error.error, TrialError):
                return Verdict("broken", error.error.sentence, False), False
            where = "no child process" if step is None else step.trying
            return Verdict("unknown", f"{where}: {error}"), True
        except Died as death:
            if step is None or death.signal_name in ENDED_BY_OTHERS:
                return Verdict("unknown", f"a child process ended: {death.how}"), True
            said = f", {death.said[:120]}" if death.said else ""
            return _fault(step, f"the driver ended the process ({death.how}{said})"), False
        except TimeoutError:
            if step is None:
                return Verdict("unknown", "a child process does not start"), True
            return _fault(step, f"no answer within {seconds:g} s"), False
        except (LaunchError, OSError, TypeError, RuntimeError) as error:
            # No executable, no memory, or processes are not allowed.
            return Verdict("unknown", f"no child process: {error}"), True

    def stop(self) -> None:
        """Kill the process; another thread that asks it gets an answer at once."""
        self._stopped, worker = True, self._worker
        if worker is not None:  # another thread may end it meanwhile
            worker.stop()

    def end(self) -> None:
        """Kill the process, and wait for its end; it may be asked again."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()


def _sound(value: Any) -> Verdict:
    """Return a verdict from a child, whose memory may be damaged."""
    if isinstance(value, Verdict):
        try:
            return typed(Verdict, as_json(value))
        except (TypeError, ValueError) as error:
            return Verdict("unknown", f"its answer is no verdict: {error}")
    return Verdict("unknown", "its answer is no verdict")


def _fault(step: Trying, reason: str) -> Verdict:
    """Return the verdict on a driver that fails at a step."""
    if step.value is None:
        word = "broken" if step.claimed else "no"  # what is not claimed may fail in any way
        return Verdict(word, f"{step.trying}: {reason}", False)
    detail = f"up to {step.reached or step.value}; {step.trying}: {reason}"
    if not step.claimed:
        return Verdict("ok", detail, step.value)
    return Verdict("limited" if step.value > 1 else "broken", detail, step.value)


def spread(
    work: Callable[[Child, Item], Result], items: Iterable[Item], children: Sequence[Child]
) -> Iterator[Result]:
    """Yield the results of ``work(child, item)`` as they come, from all children at once.

    At the end, and if it is left early, the children are killed.
    """
    free: SimpleQueue[Child] = SimpleQueue()

    def run(item: Item) -> Result:
        child = free.get()
        try:
            return work(child, item)
        finally:
            free.put(child)

    for child in children:
        child._stopped = False
        free.put(child)
    pool = ThreadPoolExecutor(len(children))
    try:
        for done in as_completed([pool.submit(run, item) for item in items]):
            yield done.result()
    finally:
        for child in children:
            child.stop()
        pool.shutdown(cancel_futures=True)
        for child in children:
            child.end()
