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
from itertools import count
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.plan import Plan, check_plan
from opencl_lab.core.space import Config, Constraint, SearchSpace, Value
from opencl_lab.ops.solver import Algorithm, Problem

EXACT = 100_000
"""Spaces with more combinations are not enumerated just to count them."""
SAMPLE = 4_000
REPEATS = 1_000
"""After so many draws without a new configuration, a random walk has probably seen all."""

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
    removed: Mapping[str, int]
    """How many combinations each reason removes; each counts for the first reason found."""
    exact: bool
    """False where the counts are estimated from a random sample."""

    @property
    def left(self) -> int:
        """Number of configurations that can be tried."""
        return self.total - sum(self.removed.values())

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {
            "total": self.total,
            "left": self.left,
            "exact": self.exact,
            "reasons": dict(self.removed),
        }


class Points:
    """The configurations of a space that can be tried: all of them, at random, or neighbours.

    Spaces of millions of combinations are never listed. They are searched depth first, one
    parameter at a time, and a constraint is checked as soon as the values that it reads are chosen,
    so that whole branches are pruned.

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
        return (config for config in self._walk() if self._reason(config, seen) is None)

    def shuffled(self, rng: random.Random) -> Iterator[Config]:
        """Yield configurations in random order, without repetition.

        Small spaces yield all. In large ones each value of the first parameter is equally likely,
        then each value of the second that is still allowed, and so on.
        """
        if self.pruning.exact:
            everything = list(self)
            rng.shuffle(everything)
            yield from everything
            return
        drawn: set[Config] = set()
        seen: set[Hashable] = set()
        last = 0
        for attempt in count():
            config = next(self._walk(rng), None)
            if config is None or attempt - last > REPEATS:
                return
            if config not in drawn:
                drawn.add(config)
                if self._reason(config, seen) is None:
                    last = attempt
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
        return [
            other
            for other in near
            if self.space.violation(other) is None and self._reason(other, seen) is None
        ]

    def _reason(self, config: Config, seen: set[Hashable]) -> str | None:
        """Return why a configuration is left out; if it is not, add its effect to `seen`."""
        reason = self.refusal(config)
        if reason is None:
            effect = self.effect(config)
            if effect in seen:
                return SAME
            seen.add(effect)
        return reason

    def _walk(self, rng: random.Random | None = None) -> Iterator[Config]:
        """Yield allowed configurations, depth first; in random order if `rng` is given."""
        parameters = self.space.parameters

        def descend(chosen: dict[str, Value], pending: Sequence[Constraint]) -> Iterator[Config]:
            whole = len(chosen) == len(parameters)
            config = Config(chosen) if whole else _Partial(chosen)
            waiting = []
            for constraint in pending:
                holds = _holds(constraint, config)
                if holds is None:
                    waiting.append(constraint)
                elif not holds:
                    return
            if whole:
                yield config
                return
            parameter = parameters[len(chosen)]
            values = list(parameter.values)
            if rng is not None:
                rng.shuffle(values)
            for value in values:
                yield from descend({**chosen, parameter.name: value}, waiting)

        return descend({}, self.space.constraints)

    @cached_property
    def pruning(self) -> Pruning:
        """The number of combinations, and how many of them each reason removes."""
        total = self._total
        if total <= EXACT:
            return Pruning(total, dict(self._listed[1].most_common()), exact=True)
        removed: Counter[str] = Counter()
        rng = random.Random(0)
        for _ in range(SAMPLE):
            drawn = {item.name: rng.choice(item.values) for item in self.space.parameters}
            self._count(Config(drawn), removed, set())  # too many to find those of equal effect
        scaled = {
            reason: round(number * total / SAMPLE) for reason, number in removed.most_common()
        }
        return Pruning(total, scaled, exact=False)

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
            if self._count(config, removed, seen):
                left.append(config)
        return left, removed

    def _count(self, config: Config, removed: Counter[str], seen: set[Hashable]) -> bool:
        """Return whether a combination is left; if not, count its reason."""
        reason = self.space.violation(config)
        if reason is None:
            refusal = self._reason(config, seen)
            reason = None if refusal is None else _kind(refusal)
        if reason is not None:
            removed[reason] += 1
        return reason is None


class _NotChosen(Exception):
    """A constraint reads a value that is not chosen yet."""


class _Partial(Config):
    """The values chosen so far; reading others raises `_NotChosen`."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Value:
        try:
            return super().__getitem__(name)
        except KeyError:
            raise _NotChosen from None

    def integer(self, name: str) -> int:
        """Return a parameter that is an integer."""
        return int(self[name])

    def __iter__(self) -> Iterator[str]:
        raise _NotChosen

    def __len__(self) -> int:
        raise _NotChosen


def _holds(constraint: Constraint, config: Config) -> bool | None:
    """Return whether a constraint holds; None if it reads a value that is not chosen yet."""
    try:
        return bool(constraint.holds(config))
    except _NotChosen:
        return None


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
