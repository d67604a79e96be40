"""Configurations as points of the unit cube, so that a model can use their distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.core.space import Config, Value


class Features:
    """A number from 0 to 1 for each varying parameter and trait; for text, one for each value.

    The values of `configs` span the cube.
    """

    def __init__(
        self,
        configs: Sequence[Config],
        traits: Callable[[Config], tuple[float, ...]] = lambda config: (),
    ):
        self._columns: list[tuple[str, Callable[[Value], float]]] = []
        self._rows: dict[Config, list[float]] = {}
        self._traits = traits
        ranges = [(min(column), max(column)) for column in zip(*map(traits, configs), strict=True)]
        self._ranges = [(place, *ends) for place, ends in enumerate(ranges) if ends[0] < ends[1]]
        for name in configs[0] if configs else ():
            values = list(dict.fromkeys(config[name] for config in configs))
            if len(values) > 1:
                self._columns += [(name, column) for column in _columns(values)]

    @property
    def count(self) -> int:
        """Number of features of a configuration."""
        return len(self._columns) + len(self._ranges)

    def of(self, configs: Sequence[Config]) -> np.ndarray[Any, Any]:
        """Return the features of configurations, a row for each."""
        rows = [self._rows.get(config) or self._row(config) for config in configs]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.count)

    def _row(self, config: Config) -> list[float]:
        row = [column(config[name]) for name, column in self._columns]
        traits = self._traits(config) if self._ranges else ()
        row += [(traits[place] - low) / (high - low) for place, low, high in self._ranges]
        self._rows[config] = row
        return row


def _columns(values: list[Value]) -> list[Callable[[Value], float]]:
    """Return the functions that map values of a parameter to numbers."""
    if any(isinstance(value, str) for value in values):
        return [partial(_is, known) for known in values]
    if all(type(value) is int for value in values):
        steps = [_step(int(value)) for value in values]
        return [partial(_between, min(steps), max(steps))]
    return [float]


def _is(known: Value, value: Value) -> float:
    return float(value == known)


def _between(low: float, high: float, value: Value) -> float:
    return (_step(int(value)) - low) / (high - low)


def _step(value: int) -> float:
    """Return a size on a logarithmic scale."""
    return math.copysign(math.log2(1 + abs(value)), value)
