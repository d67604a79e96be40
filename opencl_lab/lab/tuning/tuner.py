"""The tuner: a strategy asks, the sandbox answers, the journal remembers, the finals decide."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, OclabError, ReferenceUnavailable
from opencl_lab.core.plan import check_plan
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.threads import blas_threads
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.journal import Journal
from opencl_lab.lab.tuning.limits import LEAST_BUILD, longest_phase
from opencl_lab.lab.tuning.prune import points_of
from opencl_lab.lab.tuning.result import Stopped, TuneResult, TuningProgress
from opencl_lab.lab.tuning.runner import Runner
from opencl_lab.lab.tuning.sandbox import Sandbox
from opencl_lab.lab.tuning.search import Search, evaluation_of
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY, Strategy, get_strategy
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.tuned import database

__all__ = ["make_task", "run_tuning", "tune"]

DEFAULT_TIME_LIMIT = 90.0

RELATIVES = 4
"""Configurations of like problems and devices that are tried first, at most."""


def make_task(
    operation: str | Operation[Any],
    *,
    algorithm: str = "auto",
    device: str | int | Device | None = None,
    seed: int = 0,
    **problem: Any,
) -> TuningTask:
    """Return what is to be tuned, checked.

    Raises
    ------
    InvalidProblem, InvalidConfig
        If the options make no problem, or there is nothing to time.
    """
    if seed < 0:
        raise InvalidProblem(f"seed must not be negative: {seed}")
    chosen = get_operation(operation) if isinstance(operation, str) else operation
    options = chosen.with_defaults(problem)
    bound = chosen.problem(**options)
    selected = select_device(device)
    algorithm_name = chosen.choose(bound, selected, algorithm).name
    data = {option.name: options[option.name] for option in chosen.options if option.about_data}
    task = TuningTask(chosen, algorithm_name, bound, selected, seed, data)
    if not task.algorithm.space.parameters:
        raise InvalidConfig(
            f"the algorithm {algorithm_name} of {chosen.name} has no parameters to tune"
        )
    plan = task.algorithm.plan(bound, task.algorithm.default_config(bound, selected), selected)
    if not plan.launches:
        raise InvalidProblem(f"this {chosen.name} is empty: there is nothing to time")
    check_plan(plan, selected)
    return task


def run_tuning(
    task: TuningTask,
    *,
    strategy: str | Strategy = DEFAULT_STRATEGY,
    budget: int | None = None,
    time_limit: float | None = None,
    timeout: float | None = None,
    builders: int | None = None,
    fresh: bool = False,
    progress: Callable[[TuningProgress], None] | None = None,
    runner: Runner | None = None,
) -> TuneResult:
    """Tune; Ctrl-C ends the search, and the result says so.

    Parameters are those of `tune`. The strategy may be one of the caller's own; so
    may the `runner` that answers, such as a recorded run, and then nothing is stored.

    Raises
    ------
    OclabError
        Of the kind that says what is wrong.
    """
    check_limits(budget=budget, time_limit=time_limit, timeout=timeout)
    if builders is not None and builders < 0:
        raise InvalidProblem(f"builders must not be negative: {builders}")
    search = get_strategy(strategy) if isinstance(strategy, str) else strategy
    if budget is None and time_limit is None:
        time_limit = DEFAULT_TIME_LIMIT
    algorithm, problem, device = task.algorithm, task.problem, task.device
    built_in = algorithm.default_config(problem, device)
    points = points_of(algorithm, problem, device, _starts(task))
    journal = _journal(task, fresh, timeout, time_limit)
    sandbox = None if runner is not None else Sandbox(task, timeout, builders, time_limit)
    used: Runner = runner or sandbox  # type: ignore[assignment]
    with closing(used):
        report = progress or (lambda state: None)
        tuning = Search(
            task, points, used, journal, budget=budget, time_limit=time_limit, report=report
        )
        if journal.trouble:
            tuning.note(journal.trouble)
        stopped = _stopped(tuning, search, random.Random(task.seed))
        untested = tuning.untested()
        if untested:
            tuning.note(untested)
        phases = tuning.phases()
    best = tuning.winner()
    with _undisturbed():
        stored = sandbox is not None and _store(task, best, tuning)
    return TuneResult(
        task,
        best,
        evaluation_of(built_in, (*tuning.finalists, *tuning.seen.values())),
        tuple(tuning.finalists),
        tuning.stable,
        tuning.evaluations(),
        points.pruning,
        stopped,
        time.monotonic() - tuning.begin,
        None if journal.trouble else journal.path,
        len(tuning.evaluations()) - tuning.made,
        max(0, sandbox.restarts - 1) if sandbox is not None else 0,
        stored,
        tuple(tuning.notes),
        used.built_ahead,
        phases,
        tuning.per_minute(),
        tuning.timeline.slices(),
    )


def _journal(
    task: TuningTask, fresh: bool, timeout: float | None, time_limit: float | None
) -> Journal:
    """Return the journal of a task, without what had less time to end than it would have now."""
    journal = Journal(task, fresh)
    least = LEAST_BUILD if timeout is None else timeout
    patience = min(least, longest_phase(timeout, time_limit)) * 1e3
    journal.evaluations = {
        config: item
        for config, item in journal.evaluations.items()
        if item.status != "timeout" or item.build_ms >= patience
    }
    return journal


def _stopped(tuning: Search, strategy: Strategy, rng: random.Random) -> Stopped:
    """Search, then hold the finals; return what ended the search."""
    try:
        with _one_blas_thread():
            stopped = tuning.search(strategy, rng)
        tuning.finals()
    except KeyboardInterrupt:
        return "interrupted"
    return stopped


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Hold NumPy's BLAS to one thread, where that can be done.

    A strategy's matrices are small, and the other cores compile: threads of BLAS would wait for
    each other many times longer than they compute.
    """
    with ExitStack() as held:
        with suppress(ReferenceUnavailable):
            held.enter_context(blas_threads(1))
        yield


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM from what must not be left half done; threads never get them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def check_limits(**limits: float | None) -> None:
    """Check that limits of a search, by name, are positive where they are given.

    Raises
    ------
    InvalidProblem
        If one is not.
    """
    for name, value in limits.items():
        if value is not None and not value > 0:
            raise InvalidProblem(f"{name} must be positive, not {value}")


def _starts(task: TuningTask) -> list[Config]:
    """Return where to begin: the built-in configuration, that in use, those of like problems.

    With that in use among them, tuning cannot end with a worse one.
    """
    algorithm, problem, device = task.algorithm, task.problem, task.device
    built_in = algorithm.default_config(problem, device)
    found = algorithm.tuned(problem, device)
    starts = [built_in, *([] if found is None else [found[0]])]
    digest = kernel_digest(algorithm.templates)
    known = database.relatives(device, task.operation.name, algorithm.name, problem, digest)
    for config in dict.fromkeys(entry.config for entry in known):
        if len(starts) > RELATIVES:
            break
        with suppress(InvalidConfig, InvalidProblem):
            allowed = algorithm.space.check(config, built_in)
            check_plan(algorithm.plan(problem, allowed, device), device)
            starts.append(allowed)
    return list(dict.fromkeys(starts))


def _store(task: TuningTask, best: Evaluation | None, tuning: Search) -> bool:
    """Put a winner that was checked in all cases into the database; say so if that fails.

    What was compared with nothing is no winner, and what is stored already may be faster.
    """
    if best is None or best.config not in tuning.proved or len(tuning.evaluations()) < 2:
        return False
    try:
        database.store(
            task.device,
            task.operation.name,
            task.algorithm,
            task.problem,
            best.config,
            best.time_ms,
        )
    except OclabError as error:
        tuning.note(f"the winner could not be stored: {error}")
        return False
    return True


def tune(
    operation: str | Operation[Any],
    *,
    algorithm: str = "auto",
    strategy: str = DEFAULT_STRATEGY,
    budget: int | None = None,
    time_limit: float | None = None,
    timeout: float | None = None,
    builders: int | None = None,
    seed: int = 0,
    fresh: bool = False,
    device: str | int | Device | None = None,
    progress: Callable[[TuningProgress], None] | None = None,
    **problem: Any,
) -> TuneResult:
    """Find the fastest configuration of an algorithm for a problem on a device, and keep it.

    Each configuration is built, checked and timed in a process of its own, which
    a crash or a hang costs no more than that configuration. The winner is used
    by the public functions from the next call on. What was evaluated is kept in
    a journal: the same call goes on where an earlier one stopped.

    Parameters
    ----------
    operation : str or Operation
        Name of an operation, or one of your own (`opencl_lab.lab.tuning.custom`).
    algorithm : str
        Its algorithm; ``auto`` takes the one that the public functions take.
    strategy : str
        ``exhaustive``, ``random``, ``local-search`` or ``model``.
    budget : int, optional
        Evaluations at most, those in the journal included.
    time_limit : float, optional
        Seconds at most; 90 if neither this nor a budget is given.
    timeout : float, optional
        Seconds that a configuration may take to build, and to run; the default
        follows from the best so far. A third of the time limit at most.
    builders : int, optional
        Processes that compile ahead; by default one for each core, but for the one that measures.
        0: the process that measures compiles.
    seed : int
        Seed of data and strategy.
    fresh : bool
        Forget the journal.
    device : str, int or Device, optional
        As `select_device` takes it.
    progress : callable, optional
        Called with a `TuningProgress` after each evaluation.
    **problem
        Options of the operation, such as ``n=50_000, dtype="float32"``.

    Returns
    -------
    TuneResult

    Raises
    ------
    OclabError
        Of the kind that says what is wrong.
    KeyboardInterrupt
        After what was found so far has been stored.
    """
    task = make_task(operation, algorithm=algorithm, device=device, seed=seed, **problem)
    result = run_tuning(
        task,
        strategy=strategy,
        budget=budget,
        time_limit=time_limit,
        timeout=timeout,
        builders=builders,
        fresh=fresh,
        progress=progress,
    )
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return result
