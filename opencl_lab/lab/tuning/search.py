"""One run of the tuner: what it knows, asks next, and may still spend."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from opencl_lab.core.errors import OclabError
from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.measuring.doubt import doubt
from opencl_lab.lab.measuring.roofline import stored_peaks
from opencl_lab.lab.measuring.rounds import shuffled
from opencl_lab.lab.measuring.samples import interval_of_median
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.journal import Journal
from opencl_lab.lab.tuning.limits import no_reference
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.result import Stopped, TuningProgress, failures, share_of_space
from opencl_lab.lab.tuning.runner import Runner
from opencl_lab.lab.tuning.strategies import Strategy
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.timeline import Timeline
from opencl_lab.lab.tuning.trial import NEAR

__all__ = ["Search", "evaluation_of"]

FINALS_SHARE, FINALS_SECONDS = 0.15, 15.0  # of the time limit, at most so much

PROOFS, PROOFS_SHARE = 2, 0.33
"""Finals have time to check so many with all check cases, up to this share of the time limit."""

FINALISTS = 5

STABLE_ROUNDS, MOST_ROUNDS = 4, 20

LEAST_PAIRS, DOUBT = 8, 0.01
"""Rounds that show whether one is faster than another, and how unsure that may be."""


class _OutOf(Exception):
    """Budget or time is used up."""

    def __init__(self, what: Stopped):
        super().__init__(what)
        self.what: Stopped = what


class Search:
    """One run of the tuner: what was evaluated, and how much may still be spent."""

    def __init__(
        self,
        task: TuningTask,
        points: Points,
        runner: Runner,
        journal: Journal,
        *,
        budget: int | None,
        time_limit: float | None,
        report: Callable[[TuningProgress], None],
    ):
        self.task, self.points, self.runner, self.journal = task, points, runner, journal
        self.budget, self.time_limit = budget, time_limit
        self.report = report
        self.kernel = kernel_digest(task.algorithm.templates)
        self.begin = time.monotonic()
        self.earlier = dict(journal.evaluations)
        self.seen: dict[Config, Evaluation] = {}
        self.finalists: list[Evaluation] = []
        self.rounds: dict[Config, list[float]] = {}
        self.proved: set[Config] = set()  # right in all check cases, so that they may win
        self.timeline = Timeline()
        self.thinking = 0.0  # seconds that the strategy took
        self.made = 0
        self.searched = 0.0  # seconds, when the last one was made
        self.stable = False
        self.notes: list[str] = []

    # ------------------------------------------------------------------ search

    def search(self, strategy: Strategy, rng: random.Random) -> Stopped:
        """Evaluate the starting configurations, then what the strategy asks for."""
        try:
            starts = list(self.points.starts)
            if self._budget_left() and self.budget != 1:
                self.runner.want([c for c in starts if c not in self.earlier])
            while starts:
                starts.remove(self._answer(starts).config)
            with closing(strategy(self.points, rng)) as questions:
                asked = next(questions)
                while True:
                    answer = self._answer(asked)
                    begin = time.monotonic()
                    asked = questions.send(answer)
                    self.thinking += time.monotonic() - begin
        except _OutOf as limit:
            for found in self.runner.refused():  # a resume need not wait for it again
                if found.config not in self.seen and self._budget_left():
                    self.seen[found.config] = found
                    self.made += 1
                    self._keep(found)
            return limit.what
        except StopIteration:
            return "complete"

    def _answer(self, asked: Config | Sequence[Config]) -> Evaluation:
        """Return the evaluation of a configuration, or of one of several: what is known first."""
        configs = (asked,) if isinstance(asked, Config) else asked
        known = next((c for c in configs if c in self.seen or c in self.earlier), None)
        if known is not None or not self._budget_left():
            return self._ask(known or configs[0])
        self._prove_leader()
        if self.budget is not None:  # the others would be built for nothing
            configs = configs[: self.budget - len(self.seen)]
        left = self._left(search=True)
        return self._ask(self.runner.choose(configs, left) if left > 0 else configs[0])

    def _budget_left(self) -> bool:
        return self.budget is None or len(self.seen) < self.budget

    def _ask(self, config: Config) -> Evaluation:
        """Return the evaluation of a configuration: of this run, of the journal, or made now."""
        if config in self.seen:
            return self.seen[config]
        if not self._budget_left():
            raise _OutOf("budget")
        evaluation = self.earlier.get(config)
        if evaluation is not None and self._leaves_no_reference(evaluation):
            raise no_reference(config, evaluation.reason)
        if evaluation is None:
            left = self._left(search=True)
            evaluation = self.runner.evaluate(config, self._best_ms(), left) if left > 0 else None
            if evaluation is None:
                raise _OutOf("time")
            evaluation = self._believed(evaluation)
            self.made += 1
            self.searched = time.monotonic() - self.begin
            self._keep(evaluation)
            if self.runner.trouble:
                self.note(self.runner.trouble)
        self.seen[config] = evaluation
        self._report_progress("search", evaluation)
        return evaluation

    def _believed(self, evaluation: Evaluation) -> Evaluation:
        """Return a failure instead of a time that the device cannot have reached.

        Raises
        ------
        OclabError
            If the kernel is no longer the one that this run tunes, or nothing can be compared.
        """
        if self._leaves_no_reference(evaluation):
            self._keep(evaluation)
            raise no_reference(evaluation.config, evaluation.reason)
        if kernel_digest(self.task.algorithm.templates) != self.kernel:
            raise OclabError(
                f"a template of {self.task.algorithm_name} has changed while it was tuned; the "
                "same command tunes it as it is now"
            )
        problem = self.task.problem
        reason = doubt(
            evaluation.time_ms,
            work=self.task.algorithm.work(problem),
            dtype=getattr(problem, "dtype", None),
            peaks=stored_peaks(self.task.device),
        )
        if reason is None:
            return evaluation
        return replace(evaluation, status="runtime", reason=reason, times_ms=())

    def _leaves_no_reference(self, evaluation: Evaluation) -> bool:
        """Return whether a configuration hangs with which all others would be compared."""
        if evaluation.status != "timeout" or not self.task.operation.reference_is_first:
            return False
        return evaluation.config == self.points.starts[0]

    def _keep(self, evaluation: Evaluation) -> None:
        before = self.journal.trouble
        self.journal.add(evaluation)
        if self.journal.trouble and not before:
            self.note(f"{self.journal.trouble}; tuning goes on without it")

    def note(self, text: str) -> None:
        """Remember what went wrong; the same thing once."""
        if text not in self.notes:
            self.notes.append(text)

    def _prove_leader(self) -> None:
        """Check the best so far with all check cases, once that needs no wait."""
        leader = next(iter(self._correct()), None)
        if leader is None or leader.config in self.proved:
            return
        if self.runner.complete(leader.config):
            self._prove(leader.config)

    def _prove(self, config: Config) -> bool:
        """Check a configuration with all check cases; return False where time ran out."""
        left = self._left()
        found = self.runner.prove(config, left) if left > 0 else None
        if found is None:
            return False
        found = self._believed(found)
        if found.status == "correct":
            self.proved.add(config)
        else:
            self.seen[config] = found
            self._keep(found)
        return True

    # ------------------------------------------------------------------ finals

    def finals(self) -> None:
        """Measure the best again, taking turns, until the same one has won several rounds.

        And until these show whether it is faster than the built-in configuration.
        """
        qualified = [item.config for item in self._proved_finalists()]
        times: dict[Config, list[float]] = {config: [] for config in qualified}
        self.rounds = {config: [] for config in times}
        winners: list[Config] = []
        order = random.Random(self.task.seed)
        while times and len(winners) < MOST_ROUNDS and not (self.stable and self._decided()):
            for config in shuffled(list(times), order):
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
            evaluations = {**self.earlier, **self.seen}
            self.finalists = sorted(
                (
                    replace(evaluations[config], times_ms=tuple(all_))
                    for config, all_ in times.items()
                ),
                key=lambda item: item.time_ms,
            )
            winners.append(self.finalists[0].config)
            last = winners[-STABLE_ROUNDS:]
            self.stable = len(last) == STABLE_ROUNDS and len(set(last)) == 1
            self._report_progress("finals", self.finalists[0])

    def _proved_finalists(self) -> list[Evaluation]:
        """Return the best few, each checked with all check cases; the next best for one that fails.

        Half of the time that is left goes into this, where any was checked by then. The built-in
        configuration takes part in any case, to be compared with.
        """
        built_in = self.points.starts[0]
        kept = self._left() / 2 if self.time_limit is not None else 0.0
        going_on = True
        while True:
            best = self._qualified()
            unproved = [item.config for item in best if item.config not in self.proved]
            proved = [item for item in best if item.config in self.proved]
            left = self._left() - kept
            if not unproved or not going_on or left <= 0:
                self.runner.want(())
                return [item for item in best if item in proved or item.config == built_in]
            chosen = self.runner.choose(unproved, left, whole=True)
            if self.runner.complete(chosen) or not proved:
                going_on = self._prove(chosen)

    def _decided(self) -> bool:
        """Return whether the leader is the built-in configuration, or measurably faster."""
        leader, built_in = self.finalists[0], self._built_in()
        return built_in is None or leader.config == built_in.config or self._beats(leader, built_in)

    def _built_in(self) -> Evaluation | None:
        """Return the built-in configuration with its latest times; None if it is not correct."""
        latest_first = (*self.finalists, *self.seen.values(), *self.earlier.values())
        found = evaluation_of(self.points.starts[0], latest_first)
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
        correct = [item for item in self.evaluations() if item.status == "correct"]
        return sorted(correct, key=lambda item: item.time_ms)

    # ------------------------------------------------------------------ account

    def best(self) -> Evaluation | None:
        """Return the fastest: of the finals, else of what was evaluated."""
        return next(iter(self.finalists or self._correct()), None)

    def winner(self) -> Evaluation | None:
        """Return the best, or the built-in configuration where that is as fast within noise.

        The best is one that was checked with all check cases.
        """
        built_in = self._built_in()
        proved = [item for item in self._correct() if item.config in self.proved]
        best = next(iter(self.finalists or proved), built_in)
        if best is None or built_in is None or self._beats(best, built_in):
            return best
        return built_in

    def untested(self) -> str:
        """Say which configuration looked faster than the built-in, but was not compared with it."""
        built_in, compared = self._built_in(), {item.config for item in self.finalists}
        best = next(iter(self._correct()), None)
        if best is None or built_in is None or best.config in compared:
            return ""
        once = {**self.earlier, **self.seen}[built_in.config].time_ms
        if best.time_ms >= once:
            return ""
        return (
            f"a configuration that took {best.time_ms:.4g} ms in the search, where the "
            f"{self.task.operation.default_name} one took {once:.4g} ms, was not compared with it: "
            "no time was left to check it in all cases and to time both in turns; a longer time "
            "limit leaves more"
        )

    def per_minute(self) -> float:
        """Return how many configurations a minute of the search evaluates."""
        return 60 * self.made / self.searched if self.searched else 0.0

    def phases(self) -> dict[str, float]:
        """Return the seconds that each phase has taken so far, all configurations together."""
        spent = {**self.runner.seconds, "asking the strategy": self.thinking}
        spent["the rest"] = time.monotonic() - self.begin - sum(spent.values())
        return {name: seconds for name, seconds in spent.items() if seconds > 0}

    def _best_ms(self) -> float:
        return min((item.time_ms for item in self.seen.values()), default=math.inf)

    def _left(self, search: bool = False) -> float:
        """Return how many seconds are left, to the search or altogether."""
        if self.time_limit is None:
            return math.inf
        limit = self.time_limit
        if search:
            usual = min(FINALS_SHARE * limit, FINALS_SECONDS)
            limit -= max(usual, min(PROOFS_SHARE * limit, PROOFS * self._proof_seconds()))
        return limit - (time.monotonic() - self.begin)

    def _proof_seconds(self) -> float:
        """Return about how long it takes to build the check cases that a search leaves out.

        The first configuration was built by the worker: one check case, and the timed problem.
        """
        first = next(iter(self.seen.values()), None)
        return 0.0 if first is None else first.build_ms / 2e3 * (len(self.task.check_problems) - 1)

    def _report_progress(self, phase: Any, latest: Evaluation) -> None:
        pruning = self.points.pruning
        totals = [pruning.left] if pruning.exact else []
        totals += [] if self.budget is None else [self.budget]
        left = self._left()
        built_ahead = self.runner.built_ahead
        self.timeline.mark(
            time.monotonic() - self.begin, len(self.seen), built_ahead, self.phases()
        )
        self.report(
            TuningProgress(
                phase,
                len(self.seen),
                max(min(totals), len(self.seen)) if totals else None,
                self.best(),
                latest,
                failures(list(self.seen.values())),
                max(left, 0.0) if math.isfinite(left) else None,
                self.time_limit,
                tuple(self.notes),
                self.per_minute(),
                built_ahead,
                share_of_space(len(self.seen), pruning),
            )
        )

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return all evaluations, of earlier runs and this one, in the order of their making."""
        return tuple({**self.earlier, **self.seen}.values())


def evaluation_of(config: Config, evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """Return the evaluation of a configuration, if it is among these."""
    return next((item for item in evaluations if item.config == config), None)
