"""The finals of a run of the tuner: the best few are timed again in turns to find the winner."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from opencl_lab.core.space import Config
from opencl_lab.core.wording import plain
from opencl_lab.lab.engine.explore import ExplorationStop
from opencl_lab.lab.measuring.rounds import Rounds
from opencl_lab.lab.measuring.samples import interval_of_median
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.search import Search
from opencl_lab.lab.tuning.trial import NEAR

FINALISTS = 5

STABLE_ROUNDS, MOST_ROUNDS = 4, 20

LEAST_PAIRS, DOUBT = 8, 0.01
"""Rounds of a paired comparison of two configurations, and its level of significance."""


class Finals:
    """The best few of a search, timed in rounds until the result is stable.

    It is stable when the same one has won several rounds, and when these show whether it is
    faster than the built-in configuration.
    """

    def __init__(self, search: Search):
        self._search = search
        self.ranking: list[Evaluation] = []
        """The finalists with the times of all rounds, the fastest first."""
        self.stable = False
        """Whether the same one has won the latest rounds."""
        self._rounds: dict[Config, list[float]] = {}

    def hold(self) -> None:
        """Check the best few in all check cases, then time them in rounds, while there is time."""
        search, configs = self._search, self._qualified()
        times: dict[Config, list[float]] = {config: [] for config in configs}
        self._rounds = {config: [] for config in configs}
        winners: list[Config] = []
        turns = Rounds(list(self._rounds.values()), MOST_ROUNDS, seed=search.task.seed)
        with suppress(ExplorationStop):
            for turn in turns:
                config = configs[turn.participant]
                again = search.again(config)
                if again.status == "correct":
                    times[config] += again.times_ms
                    self._rounds[config].append(again.time_ms)
                else:  # it can no longer win
                    del times[config]
                    search.proved.discard(config)
                    self.ranking = [item for item in self.ranking if item.config in times]
                if not times or any(len(self._rounds[c]) < turn.number for c in times):
                    continue
                winners.append(self._rank(times))
                last = winners[-STABLE_ROUNDS:]
                self.stable = len(last) == STABLE_ROUNDS and len(set(last)) == 1
                search.report("finals", self.ranking[0], self.ranking[0])
                if self.stable and self._is_decided():
                    return

    def _rank(self, times: dict[Config, list[float]]) -> Config:
        """Order the finalists by their times, and return the leader."""
        known = self._search.evaluations()
        found = [replace(known[config], times_ms=tuple(all_)) for config, all_ in times.items()]
        self.ranking = sorted(found, key=lambda item: item.time_ms)
        return self.ranking[0].config

    def _qualified(self) -> list[Config]:
        """Return the best few that pass all check cases.

        Once one has passed, this ends after half of the remaining time. The built-in configuration
        is always included, for comparison.
        """
        search, sandbox = self._search, self._search.sandbox
        left = search.limits.left
        kept = left / 2 if math.isfinite(left) else 0.0
        with suppress(ExplorationStop):
            while True:
                best = self._best()
                unproved = [config for config in best if config not in search.proved]
                left = search.limits.left - kept
                if not unproved or left <= 0:
                    break
                chosen = sandbox.ahead.choose(unproved, left, whole=True)
                if sandbox.ahead.complete(chosen) or unproved == best:
                    search.prove(chosen)
        sandbox.ahead.want([])
        return [c for c in self._best() if c in search.proved or c == search.built_in]

    def _best(self) -> list[Config]:
        """Return the fastest of this run and of earlier ones, and the built-in configuration."""
        correct = self._search.correct()
        best = [i.config for i in correct[:FINALISTS] if i.time_ms <= NEAR * correct[0].time_ms]
        rival = self._rival()
        return best if rival is None or rival.config in best else [*best, rival.config]

    def default(self) -> Evaluation | None:
        """Return the evaluation of the built-in configuration, with its latest times."""
        latest = {**self._search.evaluations(), **{item.config: item for item in self.ranking}}
        return latest.get(self._search.built_in)

    def _rival(self) -> Evaluation | None:
        """Return the evaluation of the built-in configuration; None if it is not correct."""
        default = self.default()
        return default if default is not None and default.status == "correct" else None

    def _is_decided(self) -> bool:
        """Return whether the leader is the built-in configuration, or measurably faster."""
        leader, rival = self.ranking[0], self._rival()
        return rival is None or leader.config == rival.config or self._beats(leader, rival)

    def _beats(self, one: Evaluation, other: Evaluation) -> bool:
        """Return whether one is faster than the other beyond noise.

        Either all its times are shorter, or the ratio of the times in each round is significantly
        below 1.
        """
        if max(one.times_ms) < min(other.times_ms):
            return True
        both = (self._rounds.get(item.config, ()) for item in (one, other))
        ratios = [ours / theirs for ours, theirs in zip(*both, strict=False)]
        return len(ratios) >= LEAST_PAIRS and interval_of_median(ratios, DOUBT)[1] < 1

    def winner(self) -> Evaluation | None:
        """Return the best, or the built-in configuration if that is as fast within noise.

        Only configurations that passed all check cases can win.
        """
        search, rival = self._search, self._rival()
        proved = [item for item in search.correct() if item.config in search.proved]
        best = next(iter(self.ranking or proved), rival)
        if best is None or rival is None or self._beats(best, rival):
            return best
        return rival

    def untested(self) -> str:
        """Return a note about a configuration that seemed faster but was not in the finals."""
        search = self._search
        best, built_in = search.best(), search.evaluations().get(search.built_in)
        if best is None or built_in is None or not best.time_ms < built_in.time_ms < math.inf:
            return ""
        if best.config in {item.config for item in self.ranking}:
            return ""
        return (
            f"a configuration that took {plain(best.time_ms)} ms in the search, where the "
            f"{search.task.operation.default_name} one took {plain(built_in.time_ms)} ms, was not "
            "compared with it: no time was left to check it in all cases and to time both in "
            "turns; a longer time limit leaves more"
        )
