"""The tuner: a strategy asks, the sandbox answers, the journal remembers, the finals decide."""

from __future__ import annotations

import math
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

from opencl_lab.comparison.measure import interval_of_median
from opencl_lab.device import Device, select_device
from opencl_lab.doctor.peaks import refusal, stored_peaks
from opencl_lab.errors import InvalidProblem, OclabError
from opencl_lab.operation import Operation
from opencl_lab.plan import check_plan
from opencl_lab.registry import get_operation
from opencl_lab.space import Config
from opencl_lab.template import kernel_digest
from opencl_lab.tuned import database
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.journal import Journal
from opencl_lab.tuning.prune import Points, points_of
from opencl_lab.tuning.result import Progress, Stopped, TuneResult, failures
from opencl_lab.tuning.runner import Runner
from opencl_lab.tuning.sandbox import Sandbox
from opencl_lab.tuning.strategies import Strategy, get_strategy
from opencl_lab.tuning.task import Task
from opencl_lab.tuning.trial import NEAR

__all__ = ["make_task", "run_tuning", "tune"]

DEFAULT_TIME_LIMIT = 90.0
FINALS_SHARE, FINALS_SECONDS = 0.15, 15.0  # of the time limit, at most so much
FINALISTS = 5
STABLE_ROUNDS, MOST_ROUNDS = 4, 20
LEAST_PAIRS, DOUBT = 8, 0.01
"""Rounds that tell whether one is faster than another, and how unsure that may be."""


class _OutOf(Exception):
    """Budget or time is used up."""

    def __init__(self, what: Stopped):
        super().__init__(what)
        self.what: Stopped = what


class _Tuning:
    """One run of the tuner: what is known, and how much may still be spent."""

    def __init__(
        self,
        task: Task,
        points: Points,
        runner: Runner,
        journal: Journal,
        *,
        budget: int | None,
        time_limit: float | None,
        report: Callable[[Progress], None],
    ):
        self.task, self.points, self.runner, self.journal = task, points, runner, journal
        self.budget, self.time_limit = budget, time_limit
        self.report = report
        self.kernel = kernel_digest(task.algorithm.templates)
        self.begin = time.monotonic()
        self.earlier = dict(journal.known)
        self.seen: dict[Config, Evaluation] = {}
        self.finalists: list[Evaluation] = []
        self.rounds: dict[Config, list[float]] = {}
        self.made = 0
        self.stable = False
        self.notes: list[str] = []

    # ------------------------------------------------------------------ search

    def search(self, strategy: Strategy, rng: random.Random) -> Stopped:
        """Evaluate the known configurations, then what the strategy asks for."""
        try:
            for config in self.points.starts:
                self._ask(config)
            with closing(strategy(self.points, rng)) as questions:
                config = next(questions)
                while True:
                    config = questions.send(self._ask(config))
        except _OutOf as limit:
            return limit.what
        except StopIteration:
            return "complete"

    def _ask(self, config: Config) -> Evaluation:
        """Return what becomes of a configuration: known, from the journal, or tried now."""
        if config in self.seen:
            return self.seen[config]
        if self.budget is not None and len(self.seen) >= self.budget:
            raise _OutOf("budget")
        evaluation = self.earlier.get(config)
        if evaluation is None:
            left = self._left(search=True)
            evaluation = self.runner.evaluate(config, self._best_ms(), left) if left > 0 else None
            if evaluation is None:
                raise _OutOf("time")
            evaluation = self._believed(evaluation)
            self.made += 1
            self._keep(evaluation)
        self.seen[config] = evaluation
        self._tell("search", evaluation)
        return evaluation

    def _believed(self, evaluation: Evaluation) -> Evaluation:
        """Return a failure in place of a time that the device cannot have reached.

        Raises
        ------
        OclabError
            If the kernel is no longer the one that this run tunes.
        """
        if kernel_digest(self.task.algorithm.templates) != self.kernel:
            raise OclabError(
                f"a template of {self.task.algorithm_name} has changed while it was tuned; the "
                "same command tunes it as it is now"
            )
        problem = self.task.problem
        dtype = getattr(problem, "dtype", None)
        peaks = stored_peaks(self.task.device)
        reason = refusal(self.task.algorithm.work(problem), dtype, evaluation.time_ms, peaks)
        if reason is None:
            return evaluation
        return replace(evaluation, status="runtime", reason=reason, times_ms=())

    def _keep(self, evaluation: Evaluation) -> None:
        before = self.journal.trouble
        self.journal.add(evaluation)
        if self.journal.trouble and not before:
            self.note(f"{self.journal.trouble}; tuning goes on without it")

    def note(self, text: str) -> None:
        """Remember what went wrong; the same thing once."""
        if text not in self.notes:
            self.notes.append(text)

    # ------------------------------------------------------------------ finals

    def finals(self) -> None:
        """Measure the best again, taking turns, until the same one has won several rounds.

        And until these tell whether it is faster than the built-in configuration.
        """
        times: dict[Config, list[float]] = {item.config: [] for item in self._qualified()}
        self.rounds = {config: [] for config in times}
        winners: list[Config] = []
        while times and len(winners) < MOST_ROUNDS and not (self.stable and self._told()):
            for config in list(times):
                left = self._left()
                again = self.runner.again(config, left) if left > 0 else None
                if again is None:
                    return
                again = self._believed(again)
                if again.status == "correct":
                    times[config] += again.times_ms
                    self.rounds[config].append(again.time_ms)
                else:
                    del times[config]
                    self.seen[config] = again
                    self._keep(again)
            if not times:
                break
            known = {**self.earlier, **self.seen}
            self.finalists = sorted(
                (replace(known[config], times_ms=tuple(all_)) for config, all_ in times.items()),
                key=lambda item: item.time_ms,
            )
            winners.append(self.finalists[0].config)
            last = winners[-STABLE_ROUNDS:]
            self.stable = len(last) == STABLE_ROUNDS and len(set(last)) == 1
            self._tell("finals", self.finalists[0])

    def _told(self) -> bool:
        """Return whether the leader is the built-in configuration, or measurably faster."""
        leader, built_in = self.finalists[0], self._built_in()
        return built_in is None or leader.config == built_in.config or self._beats(leader, built_in)

    def _built_in(self) -> Evaluation | None:
        """Return the built-in configuration with its latest times; None if it is not correct."""
        known = (*self.finalists, *self.seen.values(), *self.earlier.values())
        found = _of(self.points.starts[0], known)
        return None if found is None or found.status != "correct" else found

    def _beats(self, one: Evaluation, other: Evaluation) -> bool:
        """Return whether one is faster than the other beyond the noise.

        All its times are less, or its time over the other's, round by round, is below 1 for sure.
        """
        if max(one.times_ms) < min(other.times_ms):
            return True
        both = (self.rounds.get(item.config, ()) for item in (one, other))
        ratios = [ours / theirs for ours, theirs in zip(*both, strict=False)]
        return len(ratios) >= LEAST_PAIRS and interval_of_median(ratios, DOUBT)[1] < 1

    def _qualified(self) -> list[Evaluation]:
        """Return the fastest of this run and of earlier ones, and the built-in configuration."""
        correct = self._correct()
        first = [item for item in correct[:FINALISTS] if item.time_ms <= NEAR * correct[0].time_ms]
        built_in = self.points.starts[0]
        return first + [item for item in correct if item.config == built_in and item not in first]

    def _correct(self) -> list[Evaluation]:
        known = {**self.earlier, **self.seen}.values()
        correct = [item for item in known if item.status == "correct"]
        return sorted(correct, key=lambda item: item.time_ms)

    # ------------------------------------------------------------------ account

    def best(self) -> Evaluation | None:
        """Return the fastest: of the finals, else of what was evaluated."""
        return next(iter(self.finalists or self._correct()), None)

    def winner(self) -> Evaluation | None:
        """Return the best, or the built-in configuration where that is as fast within noise."""
        best, built_in = self.best(), self._built_in()
        if best is None or built_in is None or self._beats(best, built_in):
            return best
        return built_in

    def _best_ms(self) -> float:
        return min((item.time_ms for item in self.seen.values()), default=math.inf)

    def _left(self, search: bool = False) -> float:
        """Return how many seconds are left, to the search or altogether."""
        if self.time_limit is None:
            return math.inf
        limit = self.time_limit
        if search:
            limit -= min(FINALS_SHARE * limit, FINALS_SECONDS)
        return limit - (time.monotonic() - self.begin)

    def _tell(self, phase: Any, latest: Evaluation) -> None:
        pruning = self.points.pruning
        totals = [pruning.left] if pruning.exact else []
        totals += [] if self.budget is None else [self.budget]
        left = self._left()
        self.report(
            Progress(
                phase,
                len(self.seen),
                max(min(totals), len(self.seen)) if totals else None,
                self.best(),
                latest,
                failures(list(self.seen.values())),
                max(left, 0.0) if math.isfinite(left) else None,
                self.time_limit,
                tuple(self.notes),
            )
        )

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return all that is known in the order in which it was found."""
        return tuple({**self.earlier, **self.seen}.values())


def make_task(
    operation: str | Operation[Any],
    *,
    algorithm: str = "auto",
    device: str | int | Device | None = None,
    seed: int = 0,
    **problem: Any,
) -> Task:
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
    settled = chosen.problem(**options)
    selected = select_device(device)
    algorithm_name = chosen.choose(settled, selected, algorithm).name
    data = {option.name: options[option.name] for option in chosen.options if option.about_data}
    task = Task(chosen, algorithm_name, settled, selected, seed, data)
    plan = task.algorithm.plan(settled, task.algorithm.default_config(settled, selected), selected)
    if not plan.launches:
        raise InvalidProblem(f"this {chosen.name} is empty: there is nothing to time")
    check_plan(plan, selected)
    return task


def run_tuning(
    task: Task,
    *,
    strategy: str | Strategy = "local-search",
    budget: int | None = None,
    time_limit: float | None = None,
    timeout: float | None = None,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
    runner: Runner | None = None,
) -> TuneResult:
    """Tune; Ctrl-C ends the search and is told in the result.

    Parameters are those of `tune`. The strategy may be one of the caller's own; so
    may the `runner` that answers, such as a recorded run, and then nothing is stored.

    Raises
    ------
    OclabError
        Of the kind that says what is wrong.
    """
    check_limits(budget=budget, time_limit=time_limit, timeout=timeout)
    search = get_strategy(strategy) if isinstance(strategy, str) else strategy
    if budget is None and time_limit is None:
        time_limit = DEFAULT_TIME_LIMIT
    algorithm, problem, device = task.algorithm, task.problem, task.device
    built_in = algorithm.default_config(problem, device)
    points = points_of(algorithm, problem, device, (built_in, *_tuned(task)))
    journal = Journal(task, fresh)
    if timeout is not None:  # another limit may lead to another end
        journal.known = {c: e for c, e in journal.known.items() if e.status != "timeout"}
    sandbox = Sandbox(task, timeout) if runner is None else None
    stopped: Stopped = "interrupted"
    with closing(runner or sandbox) as used:  # type: ignore[type-var]
        tuning = _Tuning(
            task,
            points,
            used,  # type: ignore[arg-type]
            journal,
            budget=budget,
            time_limit=time_limit,
            report=progress or (lambda state: None),
        )
        if journal.trouble:
            tuning.note(journal.trouble)
        try:
            stopped = tuning.search(search, random.Random(task.seed))
            tuning.finals()
        except KeyboardInterrupt:
            stopped = "interrupted"
    best = tuning.winner()
    with _undisturbed():
        stored = sandbox is not None and best is not None and _store(task, best, tuning)
    return TuneResult(
        task,
        best,
        _of(built_in, (*tuning.finalists, *tuning.seen.values())),
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
    )


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


def _tuned(task: Task) -> Sequence[Config]:
    """Return the configuration in use now, so that tuning cannot end with a worse one."""
    found = task.algorithm.tuned(task.problem, task.device)
    return () if found is None else (found[0],)


def _of(config: Config, evaluations: Sequence[Evaluation]) -> Evaluation | None:
    return next((item for item in evaluations if item.config == config), None)


def _store(task: Task, best: Evaluation, tuning: _Tuning) -> bool:
    """Put the winner into the database; say so if that cannot be done."""
    try:
        database.store(
            task.device,
            task.operation.name,
            task.algorithm,
            task.problem,
            best.config,
            median(best.times_ms),
        )
    except OclabError as error:
        tuning.note(f"the winner could not be stored: {error}")
        return False
    return True


def tune(
    operation: str | Operation[Any],
    *,
    algorithm: str = "auto",
    strategy: str = "local-search",
    budget: int | None = None,
    time_limit: float | None = None,
    timeout: float | None = None,
    seed: int = 0,
    fresh: bool = False,
    device: str | int | Device | None = None,
    progress: Callable[[Progress], None] | None = None,
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
        Name of an operation, or one of your own (`opencl_lab.tuning.custom`).
    algorithm : str
        Its algorithm; ``auto`` takes the one that the public functions take.
    strategy : str
        ``exhaustive``, ``random`` or ``local-search``.
    budget : int, optional
        Evaluations at most, those in the journal included.
    time_limit : float, optional
        Seconds at most; 90 if neither this nor a budget is given.
    timeout : float, optional
        Seconds that a configuration may take to build, and to run; the default
        follows from the best so far.
    seed : int
        Seed of data and strategy.
    fresh : bool
        Forget the journal.
    device : str, int or Device, optional
        As `select_device` takes it.
    progress : callable, optional
        Called with a `Progress` after each evaluation.
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
        fresh=fresh,
        progress=progress,
    )
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return result
