"""The tuner: the search resumes from its journal, the finals decide, the winner is stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, OclabError
from opencl_lab.core.interrupt import held
from opencl_lab.core.options import checked
from opencl_lab.core.space import Config
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.engine.explore import Limits
from opencl_lab.lab.offline import checked_target
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.ahead import LEAST_BUILD_SECONDS
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.finals import Finals
from opencl_lab.lab.tuning.journal import evaluations_of, journal_of
from opencl_lab.lab.tuning.prune import points_of
from opencl_lab.lab.tuning.result import TuneResult, TuningProgress
from opencl_lab.lab.tuning.sandbox import Sandbox, longest_phase
from opencl_lab.lab.tuning.search import Search
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY, Strategy, get_strategy
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.tuned import database

DEFAULT_TIME_LIMIT = 90.0

RELATIVES = 4
"""Largest number of configurations of similar problems and devices that are tried first."""


def make_task(
    operation: str | Operation[Any],
    *,
    algorithm: str = "auto",
    device: str | int | Device | None = None,
    seed: int = 0,
    **problem: Any,
) -> TuningTask:
    """Return a checked task: there must be parameters to tune, and something to time."""
    if seed < 0:
        raise InvalidProblem(f"seed must not be negative: {seed}")
    chosen = get_operation(operation) if isinstance(operation, str) else operation
    options = chosen.with_defaults(problem)
    bound = chosen.problem(**options)
    selected = chosen.side(bound, select_device(device), algorithm)  # where calls run
    algorithm_name = chosen.choose(bound, selected, algorithm).name
    data = {option.name: options[option.name] for option in chosen.options if option.about_data}
    task = TuningTask(chosen, algorithm_name, bound, selected, seed, data)
    if not task.algorithm.space.parameters:
        raise InvalidConfig(
            f"the algorithm {algorithm_name} of {chosen.name} has no parameters to tune"
        )
    if not task.plan(task.built_in).launches:
        raise InvalidProblem(f"this {chosen.name} is empty: there is nothing to time")
    return task


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, as in `tune`; the strategy may also be a function."""

    strategy: str | Strategy = DEFAULT_STRATEGY
    budget: int | None = None
    time_limit: float | None = None
    timeout: float | None = None
    builders: int | None = None
    fresh: bool = False
    compile_for: str = ""

    def __post_init__(self) -> None:
        if self.compile_for:
            checked_target(self.compile_for)
        for name in ("budget", "time_limit", "timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidProblem(f"{name} must be positive, not {value}")
        if self.builders is not None and self.builders < 0:
            raise InvalidProblem(f"builders must not be negative: {self.builders}")
        if self.budget is None and self.time_limit is None:
            object.__setattr__(self, "time_limit", DEFAULT_TIME_LIMIT)

    @property
    def least_timeout_ms(self) -> float:
        """The shortest timeout of a build in ms: builds that timed out earlier are tried again."""
        least = LEAST_BUILD_SECONDS if self.timeout is None else self.timeout
        return min(least, longest_phase(self.timeout, self.time_limit)) * 1e3


def run_tuning(
    task: TuningTask,
    options: SearchOptions,
    progress: Callable[[TuningProgress], None] | None = None,
    sandbox: Sandbox | None = None,
) -> TuneResult:
    """Tune; Ctrl-C ends the search, as `TuneResult.stopped` tells.

    `sandbox` replaces the one of the task; nothing is stored then.
    """
    strategy = options.strategy
    if isinstance(strategy, str):
        strategy = get_strategy(strategy)
    task = replace(task, compile_for=options.compile_for)
    points = points_of(task.algorithm, task.problem, task.device, _starts(task))
    journal = journal_of(task, options.fresh)
    known = {
        config: item
        for config, item in evaluations_of(journal.records).items()
        if config.keys() == task.built_in.keys()
        and (item.status != "timeout" or item.build_ms >= options.least_timeout_ms)
    }
    answers = sandbox or Sandbox(task, options.timeout, options.builders, options.time_limit)
    limits = Limits(options.budget, options.time_limit)
    search = Search(task, points, answers, journal, known, limits, progress)
    finals = Finals(search)
    late: list[int] = []
    try:
        stopped = search.search(strategy, random.Random(task.seed))
        if stopped != "interrupted":
            finals.hold()
    except KeyboardInterrupt:
        stopped = "interrupted"
    finally:
        with held(late):  # a second Ctrl-C does not lose what was found
            answers.close()
    best = finals.winner()
    if untested := finals.untested():
        search.note(untested)
    with held(late):
        stored = sandbox is None and _store(search, best)
    if late:
        stopped = "interrupted"
    evaluations = tuple(search.evaluations().values())
    return TuneResult(
        task=task,
        best=best,
        default=finals.default(),
        finalists=tuple(finals.ranking),
        stable=finals.stable,
        evaluations=evaluations,
        pruning=points.pruning,
        stopped=stopped,
        seconds=limits.spent,
        journal=None if journal.trouble else journal.path,
        resumed=len(evaluations) - len(search.measured),
        restarts=max(0, answers.restarts - 1),
        stored=stored,
        notes=tuple(search.notes),
        built_ahead=answers.ahead.built,
        per_minute=search.per_minute(),
    )


def _starts(task: TuningTask) -> list[Config]:
    """Return the starting configurations: built in, in use, and of similar problems.

    Since they include the one in use, tuning cannot end with a worse one.
    """
    algorithm, problem, device = task.algorithm, task.problem, task.device
    found = algorithm.tuned(problem, device)
    starts = [task.built_in, *([] if found is None else [found[0]])]
    about = (task.operation.name, algorithm.name, problem, algorithm.version)
    known = database.relatives(device, *about)
    for config in dict.fromkeys(entry.config for entry in known):
        if len(starts) > RELATIVES:
            break
        if (allowed := task.allowed(config)) is not None:
            starts.append(allowed)
    return list(dict.fromkeys(starts))


def _store(search: Search, best: Evaluation | None) -> bool:
    """Store a winner that passed all check cases in the database; add a note if that fails.

    A configuration that was not compared with another is not stored: the stored one may be faster.
    """
    if best is None or best.config not in search.proved or len(search.evaluations()) < 2:
        return False
    task = search.task
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
        search.note(f"the winner could not be stored: {error}")
        return False
    return True


@checked
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
    compile_for: str = "",
    device: str | int | Device | None = None,
    progress: Callable[[TuningProgress], None] | None = None,
    **problem: Any,
) -> TuneResult:
    """Find the fastest configuration of an algorithm for a problem on a device, and store it.

    Configurations are built, checked and timed in a worker process, so that a crash or a hang
    costs only that configuration. The public functions use the winner from the next call on.
    Evaluations are written to a journal: the same call resumes where an earlier one stopped.

    Parameters
    ----------
    operation : str or Operation
        Name of an operation, or an operation of your own (docs/adding_an_operation.md).
    algorithm : str
        Its algorithm; ``auto`` is the one that the public functions take.
    strategy : str
        ``exhaustive``, ``random`` or ``local-search``.
    budget : int, optional
        Largest number of evaluations, including those in the journal.
    time_limit : float, optional
        Time limit in seconds; 90 if neither this nor a budget is given.
    timeout : float, optional
        Timeout in seconds for the build and for the runs of a configuration. The default depends
        on the best so far, and is at most a third of the time limit.
    builders : int, optional
        Number of processes that compile ahead; by default one for each core but that of the
        measuring worker. 0: the measuring worker compiles.
    seed : int
        Seed of data and strategy.
    fresh : bool
        Start a new journal.
    compile_for : str
        A GPU, which need not be here: ``gfx900``, ``gfx90a``, ``gfx1030``, ``skl``, ``tgllp``,
        ``dg2-g10`` or ``pvc``. Configurations whose kernels spill registers there, as its compiler
        says, are neither run nor stored.
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
        Of the class for the failure.
    KeyboardInterrupt
        After the results so far were stored.
    """
    task = make_task(operation, algorithm=algorithm, device=device, seed=seed, **problem)
    options = SearchOptions(strategy, budget, time_limit, timeout, builders, fresh, compile_for)
    result = run_tuning(task, options, progress)
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return result
