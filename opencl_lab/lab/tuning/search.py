"""The search: configurations come from a strategy, results from the sandbox or the journal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Literal

from opencl_lab.core.errors import OclabError
from opencl_lab.core.records import timestamp
from opencl_lab.core.space import Config
from opencl_lab.core.template import digest_now, kernel_digest
from opencl_lab.lab.engine.explore import (
    Exploration,
    ExplorationStop,
    Limits,
    PointGenerator,
    Stopped,
)
from opencl_lab.lab.engine.journal import Journal
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.measuring.timing_sanity import implausible
from opencl_lab.lab.offline import checked_target, spilling
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.result import TuningProgress, failures
from opencl_lab.lab.tuning.sandbox import Sandbox
from opencl_lab.lab.tuning.strategies import Strategy, in_order
from opencl_lab.lab.tuning.task import TuningTask

FINALS_SHARE, FINALS_SECONDS = 0.15, 15.0  # of the time limit, at most so much

PROOFS, PROOFS_SHARE = 2, 0.33
"""Configurations for which time is reserved to check them with all check cases in the finals, and
the largest share of the time limit for that."""


class Search(Exploration[Config, Evaluation]):
    """The evaluations of a run of the tuner.

    `known` are those in the task's journal; `report` is called after each evaluation.
    """

    def __init__(
        self,
        task: TuningTask,
        points: Points,
        sandbox: Sandbox,
        journal: Journal,
        known: Mapping[Config, Evaluation],
        limits: Limits,
        report: Callable[[TuningProgress], None] | None,
    ):
        super().__init__(
            self._evaluate,
            known=known,
            keep=self._record,
            told=self._report_evaluation,
            limits=limits,
        )
        self.task, self.points, self.sandbox = task, points, sandbox
        self.built_in = points.starts[0]
        self.proved: set[Config] = set()
        """Configurations that passed all check cases, so that they may win."""
        self.notes: list[str] = []
        """Problems other than failures of configurations."""
        self._journal, self._report = journal, report
        self._kernel = kernel_digest(task.algorithm.templates)
        self._searched = 0.0  # seconds from the start to the end of the latest evaluation

    def search(self, strategy: Strategy, rng: Random) -> Stopped:
        """Evaluate the starting configurations, then those of the strategy."""
        if self.limits.budget != 1:
            self.sandbox.ahead.want([c for c in self.points.starts if c not in self.known])
        stopped = self.run(_from_starts(self.points, strategy, rng))
        if stopped in ("budget", "time"):
            for found in self.sandbox.ahead.refused():  # a resumed run need not build them
                if found.config not in self.seen and self.limits.allow(len(self.seen)):
                    self._take_over(found)
                    self.measured.append(found.config)
        return stopped

    def choose(self, points: list[Config]) -> Config:
        """Return a known configuration, else one that is built; others are built meanwhile."""
        first = super().choose(points)
        if first in self.seen or first in self.known or not self.limits.allow(len(self.seen)):
            return first
        self._prove_leader()
        if self.limits.budget is not None:  # do not build more than the budget allows
            points = points[: self.limits.budget - len(self.seen)]
        left = self._left_to_search()
        return self.sandbox.ahead.choose(points, left) if left > 0 else first

    def prove(self, config: Config) -> None:
        """Check a configuration with all check cases."""
        if self._once_more(self.sandbox.prove, config).status == "correct":
            self.proved.add(config)

    def again(self, config: Config) -> Evaluation:
        """Time a configuration again, for the finals."""
        return self._once_more(self.sandbox.again, config)

    def _report_evaluation(self, config: Config, found: Evaluation) -> None:
        self.report("search", found, self.best())

    def _evaluate(self, config: Config) -> Evaluation:
        if self.task.compile_for and config != self.task.built_in:  # that one is always compared
            left = self._left_to_search()
            target, plan = checked_target(self.task.compile_for), self.task.plan(config)
            reason = spilling(target, plan, left) if left > 0 else "no time"
            if self._left_to_search() <= 0:
                raise ExplorationStop("time")
            if reason is not None:
                return Evaluation(config, "constraints", reason, timestamp=timestamp())
        best_ms = min((item.time_ms for item in self.seen.values()), default=math.inf)
        found = self._ask(partial(self.sandbox.evaluate, config, best_ms), self._left_to_search())
        self._searched = self.limits.spent
        if trouble := self.sandbox.ahead.trouble:
            self.note(trouble)
        return found

    def _once_more(
        self, ask: Callable[[Config, float], Evaluation | None], config: Config
    ) -> Evaluation:
        """Evaluate a configuration that was correct before; if it fails now, that counts."""
        found = self._ask(partial(ask, config), self.limits.left)
        if found.status != "correct":
            self._take_over(found)
        return found

    def _ask(self, ask: Callable[[float], Evaluation | None], left: float) -> Evaluation:
        """Return the sandbox's evaluation; one with an implausible time is a failure.

        `ExplorationStop` is raised if no time is left; OclabError if the kernel's template has
        changed.
        """
        found = ask(left) if left > 0 else None
        if found is None:
            raise ExplorationStop("time")
        task, problem = self.task, self.task.problem
        if digest_now(task.algorithm.templates) != self._kernel:
            raise OclabError(
                f"a template of {task.algorithm_name} has changed during tuning; start again "
                "to tune the new one"
            )
        reason = implausible(
            found.time_ms,
            work=task.algorithm.work(problem),
            dtype=getattr(problem, "dtype", None),
            peaks=stored_peaks(task.device),
        )
        if reason is None:
            return found
        return replace(found, status="runtime", reason=reason, times_ms=())

    def _prove_leader(self) -> None:
        """Check the best so far with all check cases, once its programs are built."""
        leader = self.best()
        if leader is None or leader.config in self.proved:
            return
        if self.sandbox.ahead.complete(leader.config):
            with suppress(ExplorationStop):  # the remaining time is for the finals
                self.prove(leader.config)

    def _take_over(self, found: Evaluation) -> None:
        self.seen[found.config] = found
        self._record(found.config, found)

    def _record(self, config: Config, found: Evaluation) -> None:
        self._journal.add({"evaluation": found.as_dict()})
        if self._journal.trouble:
            self.note(f"{self._journal.trouble}; tuning goes on without it")

    def note(self, text: str) -> None:
        """Add a note, unless it was added before."""
        if text not in self.notes:
            self.notes.append(text)

    # ------------------------------------------------------------------ account

    def evaluations(self) -> dict[Config, Evaluation]:
        """Return all evaluations, of earlier runs and this one, in order."""
        return {**self.known, **self.seen}

    def correct(self) -> list[Evaluation]:
        """Return the correct evaluations, the fastest first."""
        correct = [item for item in self.evaluations().values() if item.status == "correct"]
        return sorted(correct, key=lambda item: item.time_ms)

    def best(self) -> Evaluation | None:
        """Return the fastest correct evaluation."""
        return next(iter(self.correct()), None)

    def per_minute(self) -> float:
        """Return the number of configurations evaluated per minute of the search."""
        return 60 * len(self.measured) / self._searched if self._searched else 0.0

    def _left_to_search(self) -> float:
        """Return the seconds left before the finals."""
        limit = self.limits.time_limit
        if limit is None:
            return math.inf
        usual = min(FINALS_SHARE * limit, FINALS_SECONDS)
        # The first one was built by the worker, for one check case and the timed problem.
        first = next(iter(self.seen.values()), None)
        proof = 0.0 if first is None else first.build_ms / 2e3 * (len(self.task.check_problems) - 1)
        return self.limits.left - max(usual, min(PROOFS_SHARE * limit, PROOFS * proof))

    def report(
        self, phase: Literal["search", "finals"], latest: Evaluation, best: Evaluation | None
    ) -> None:
        """Report the progress."""
        if self._report is None:
            return
        evaluated, limits = len(self.seen), self.limits
        totals = [n for n in (self.points.pruning.left, limits.budget) if n is not None]
        self._report(
            TuningProgress(
                phase,
                evaluated,
                max(min(totals), evaluated) if totals else None,
                best,
                latest,
                failures(self.seen.values()),
                max(limits.left, 0.0) if math.isfinite(limits.left) else None,
                tuple(self.notes),
                self.per_minute(),
                self.sandbox.ahead.built,
            )
        )


def _from_starts(
    points: Points, strategy: Strategy, rng: Random
) -> PointGenerator[Config, Evaluation]:
    """Yield the starting configurations, then those of the strategy."""
    yield from in_order(points.starts)
    yield from strategy(points, rng)
