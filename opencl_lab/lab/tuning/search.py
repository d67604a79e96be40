"""The search of a run of the tuner: a strategy asks, the sandbox answers, the journal keeps it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Literal

from opencl_lab.core.errors import OclabError
from opencl_lab.core.space import Config
from opencl_lab.core.template import digest_now, kernel_digest
from opencl_lab.lab.engine.explore import Exploration, Limits, Stop, Stopped
from opencl_lab.lab.engine.explore import Strategy as Questions
from opencl_lab.lab.engine.journal import Journal
from opencl_lab.lab.measuring.doubt import doubt
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.result import Timeline, TuningProgress, failures, share_of_space
from opencl_lab.lab.tuning.sandbox import Sandbox, no_reference
from opencl_lab.lab.tuning.strategies import Strategy, in_order
from opencl_lab.lab.tuning.task import TuningTask

FINALS_SHARE, FINALS_SECONDS = 0.15, 15.0  # of the time limit, at most so much

PROOFS, PROOFS_SHARE = 2, 0.33
"""Finals have time to check so many with all check cases, up to this share of the time limit."""


class Search(Exploration[Config, Evaluation]):
    """What a run of the tuner knows about each configuration, and asks of the sandbox.

    `known` is what the task's journal says; `report` is called after each evaluation.
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
            self._evaluate, known=known, keep=self._keep, told=self._told, limits=limits
        )
        self.task, self.points, self.sandbox = task, points, sandbox
        self.built_in = points.starts[0]
        self.proved: set[Config] = set()
        """Those that were right in all check cases, so that they may win."""
        self.notes: list[str] = []
        """What went wrong beside the configurations."""
        self.timeline = Timeline()
        self._journal, self._report = journal, report
        self._kernel = kernel_digest(task.algorithm.templates)
        self._searched = 0.0  # seconds, when the last one was evaluated

    def search(self, strategy: Strategy, rng: Random) -> Stopped:
        """Evaluate the starting configurations, then what the strategy asks for."""
        if self.built_in in self.known:
            self._check_reference(self.known[self.built_in])
        if self.limits.budget != 1:
            self.sandbox.ahead.want([c for c in self.points.starts if c not in self.known])
        stopped = self.run(_from_starts(self.points, strategy, rng))
        if stopped in ("budget", "time"):
            for found in self.sandbox.ahead.refused():  # a resume need not wait for it again
                if found.config not in self.seen and self.limits.allow(len(self.seen)):
                    self._take_over(found)
                    self.measured.append(found.config)
        return stopped

    def choose(self, points: list[Config]) -> Config:
        """Return what is known, else what is built, while the others are built ahead."""
        first = super().choose(points)
        if first in self.seen or first in self.known or not self.limits.allow(len(self.seen)):
            return first
        self._prove_leader()
        if self.limits.budget is not None:  # the others would be built for nothing
            points = points[: self.limits.budget - len(self.seen)]
        left = self._left_to_search()
        return self.sandbox.choose(points, left) if left > 0 else first

    def prove(self, config: Config) -> None:
        """Check a configuration with all check cases."""
        if self._once_more(self.sandbox.prove, config).status == "correct":
            self.proved.add(config)

    def again(self, config: Config) -> Evaluation:
        """Time a configuration a few times more, for the finals."""
        return self._once_more(self.sandbox.again, config)

    def _told(self, config: Config, found: Evaluation) -> None:
        self.report("search", found, self.best())

    def _evaluate(self, config: Config) -> Evaluation:
        best_ms = min((item.time_ms for item in self.seen.values()), default=math.inf)
        found = self._ask(partial(self.sandbox.evaluate, config, best_ms), self._left_to_search())
        self._searched = self.limits.spent
        if trouble := self.sandbox.ahead.trouble:
            self.note(trouble)
        return found

    def _once_more(
        self, ask: Callable[[Config, float], Evaluation | None], config: Config
    ) -> Evaluation:
        """Return what becomes of a configuration that was right before; a failure counts."""
        found = self._ask(partial(ask, config), self.limits.left)
        if found.status != "correct":
            self._take_over(found)
        return found

    def _ask(self, ask: Callable[[float], Evaluation | None], left: float) -> Evaluation:
        """Return what the sandbox answers, a failure where the device cannot have been so fast.

        `Stop` if there is no time left for it; OclabError if the kernel is no longer the one that
        this run tunes, or nothing can be compared.
        """
        found = ask(left) if left > 0 else None
        if found is None:
            raise Stop("time")
        try:
            self._check_reference(found)
        except OclabError:
            self._keep(found.config, found)
            raise
        task, problem = self.task, self.task.problem
        if digest_now(task.algorithm.templates) != self._kernel:
            raise OclabError(
                f"a template of {task.algorithm_name} has changed while it was tuned; the "
                "same command tunes it as it is now"
            )
        reason = doubt(
            found.time_ms,
            work=task.algorithm.work(problem),
            dtype=getattr(problem, "dtype", None),
            peaks=stored_peaks(task.device),
        )
        if reason is None:
            return found
        return replace(found, status="runtime", reason=reason, times_ms=())

    def _check_reference(self, found: Evaluation) -> None:
        """Raise an error if a configuration hangs with which all others would be compared."""
        hangs = found.status == "timeout" and found.config == self.built_in
        if hangs and self.task.operation.reference_is_first:
            raise no_reference(found.config, found.reason)

    def _prove_leader(self) -> None:
        """Check the best so far with all check cases, once that needs no wait."""
        leader = self.best()
        if leader is None or leader.config in self.proved:
            return
        if self.sandbox.ahead.complete(leader.config):
            with suppress(Stop):  # what is left is for the finals
                self.prove(leader.config)

    def _take_over(self, found: Evaluation) -> None:
        self.seen[found.config] = found
        self._keep(found.config, found)

    def _keep(self, config: Config, found: Evaluation) -> None:
        self._journal.add({"evaluation": found.as_dict()})
        if self._journal.trouble:
            self.note(f"{self._journal.trouble}; tuning goes on without it")

    def note(self, text: str) -> None:
        """Remember what went wrong; the same thing once."""
        if text not in self.notes:
            self.notes.append(text)

    # ------------------------------------------------------------------ account

    def evaluations(self) -> dict[Config, Evaluation]:
        """Return all evaluations, of earlier runs and this one, in the order of their making."""
        return {**self.known, **self.seen}

    def correct(self) -> list[Evaluation]:
        """Return those that are correct, the fastest first."""
        correct = [item for item in self.evaluations().values() if item.status == "correct"]
        return sorted(correct, key=lambda item: item.time_ms)

    def best(self) -> Evaluation | None:
        """Return the fastest."""
        return next(iter(self.correct()), None)

    def per_minute(self) -> float:
        """Return how many configurations a minute of the search evaluates."""
        return 60 * len(self.measured) / self._searched if self._searched else 0.0

    def phases(self) -> dict[str, float]:
        """Return the seconds that each phase has taken so far, all configurations together."""
        spent = {**self.sandbox.seconds, "asking the strategy": self.thinking}
        spent["the rest"] = self.limits.spent - sum(spent.values())
        return {name: seconds for name, seconds in spent.items() if seconds > 0}

    def _left_to_search(self) -> float:
        """Return how many seconds are left before the finals."""
        limit = self.limits.time_limit
        if limit is None:
            return math.inf
        usual = min(FINALS_SHARE * limit, FINALS_SECONDS)
        # The first was built by the worker: for one check case, and for the timed problem.
        first = next(iter(self.seen.values()), None)
        proof = 0.0 if first is None else first.build_ms / 2e3 * (len(self.task.check_problems) - 1)
        return self.limits.left - max(usual, min(PROOFS_SHARE * limit, PROOFS * proof))

    def report(
        self, phase: Literal["search", "finals"], latest: Evaluation, best: Evaluation | None
    ) -> None:
        """Say how far it has come."""
        pruning, evaluated, limits = self.points.pruning, len(self.seen), self.limits
        totals = [pruning.left] if pruning.exact else []
        totals += [] if limits.budget is None else [limits.budget]
        built_ahead = self.sandbox.built_ahead
        self.timeline.mark(limits.spent, evaluated, built_ahead, self.phases())
        if self._report is None:
            return
        self._report(
            TuningProgress(
                phase,
                evaluated,
                max(min(totals), evaluated) if totals else None,
                best,
                latest,
                failures(self.seen.values()),
                max(limits.left, 0.0) if math.isfinite(limits.left) else None,
                limits.time_limit,
                tuple(self.notes),
                self.per_minute(),
                built_ahead,
                share_of_space(evaluated, pruning),
            )
        )


def _from_starts(points: Points, strategy: Strategy, rng: Random) -> Questions[Config, Evaluation]:
    """Ask for the starting configurations, then for what the strategy wants."""
    yield from in_order(points.starts)
    yield from strategy(points, rng)
