"""The points of a search space that a device can run, found without compiling anything."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.plan import Plan, check_plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.solver import Algorithm, Problem

EXACT = 100_000
"""Spaces with more combinations are never listed: points are drawn from them."""
REPEATS = 20_000
"""After so many draws without a new configuration, probably all have been drawn."""

Refusal = Callable[[Config], "str | None"]
"""Returns why a configuration that breaks no constraint cannot run anyway, or None."""
Effect = Callable[[Config], Hashable]
"""Returns what a configuration does: those of equal effect count as one."""
SAME = "does the same as another configuration"


@dataclass(frozen=True)
class Pruning:
    """How a space shrinks before anything is compiled."""

    total: int
    """Combinations of values."""
    removed: Mapping[str, int] | None
    """How many combinations each reason removes; each counts for the first reason found. None if
    there are too many to look at each."""

    @property
    def left(self) -> int | None:
        """Number of configurations that can be tried, if known."""
        return None if self.removed is None else self.total - sum(self.removed.values())

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {"total": self.total, "left": self.left, "reasons": dict(self.removed or {})}


class Points:
    """The configurations of a space that can be tried: all of them, at random, or neighbours.

    `starts` are the built-in configuration and good ones of earlier runs, whose values need not be
    in the space. By default nothing is refused, and all configurations differ in effect.
    """

    def __init__(
        self,
        space: SearchSpace,
        starts: Sequence[Config],
        refusal: Refusal = lambda config: None,
        effect: Effect = lambda config: config,
    ):
        self.space = space
        self.starts = tuple(dict.fromkeys(starts))
        self.refusal = refusal
        self.effect = effect

    def __iter__(self) -> Iterator[Config]:
        """Yield every configuration, in the order of the space."""
        if self._total <= EXACT:
            return iter(self._listed[0])
        seen: set[Hashable] = set()
        return (config for config in self.space.all_points() if self._reason(config, seen) is None)

    def shuffled(self, rng: random.Random) -> Iterator[Config]:
        """Yield configurations in random order, without repetition."""
        if self._total <= EXACT:
            everything = list(self)
            rng.shuffle(everything)
            yield from everything
            return
        seen: set[Hashable] = set()
        drawn: set[Config] = set()
        repeats = 0
        while repeats < REPEATS:
            config = Config({p.name: rng.choice(p.values) for p in self.space.parameters})
            repeats += 1
            if config not in drawn and self._reason(config, seen) is None:
                drawn.add(config)
                repeats = 0
                yield config

    def neighbours(self, config: Config) -> list[Config]:
        """Return the configurations that differ from `config` in one parameter, and in effect."""
        seen = {self.effect(config)}
        near = (
            config.replace(**{parameter.name: value})
            for parameter in self.space.parameters
            for value in parameter.values
            if value != config[parameter.name]
        )
        return [other for other in near if self._reason(other, seen) is None]

    def _reason(self, config: Config, seen: set[Hashable]) -> str | None:
        """Return why a configuration is left out; if it is not, add its effect to `seen`."""
        reason = self.space.violation(config)
        if reason is None:
            reason = self.refusal(config)
            reason = None if reason is None else _kind(reason)
        if reason is None:
            effect = self.effect(config)
            if effect in seen:
                return SAME
            seen.add(effect)
        return reason

    @cached_property
    def pruning(self) -> Pruning:
        """The number of combinations, and how many of them each reason removes."""
        total = self._total
        return Pruning(total, dict(self._listed[1].most_common()) if total <= EXACT else None)

    @property
    def _total(self) -> int:
        return math.prod(len(parameter.values) for parameter in self.space.parameters)

    @cached_property
    def _listed(self) -> tuple[list[Config], Counter[str]]:
        """The configurations that are left of a small space, and why others are removed."""
        left: list[Config] = []
        removed: Counter[str] = Counter()
        seen: set[Hashable] = set()
        for config in self.space.all_points():
            reason = self._reason(config, seen)
            if reason is None:
                left.append(config)
            else:
                removed[reason] += 1
        return left, removed


def _kind(reason: str) -> str:
    """Return a reason without the numbers of one configuration, which precede the comma."""
    head, comma, limit = reason.partition(", ")
    return re.sub(r"\b\d[\d.]*( bytes| KiB| MiB| GiB)?", "…", head) + comma + limit


def points_of(
    algorithm: Algorithm[Any], problem: Problem, device: Device, starts: Sequence[Config]
) -> Points:
    """Return the configurations of an algorithm whose plans a device can run."""

    @lru_cache(maxsize=1)  # shared by the functions below
    def plan(config: Config) -> Plan:
        return algorithm.plan(problem, config, device)

    def refusal(config: Config) -> str | None:
        try:
            check_plan(plan(config), device)
        except (InvalidConfig, InvalidProblem) as error:
            return str(error)
        return None

    def effect(config: Config) -> Hashable:
        return hashlib.sha256(repr(plan(config)).encode()).digest()  # plans can be long

    space = algorithm.search_space(problem, device)
    return Points(space, starts, refusal, effect)
