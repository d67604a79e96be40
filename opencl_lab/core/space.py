"""Search spaces: the parameters of an algorithm, their values, and the constraints on them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.options import python_value

__all__ = ["Config", "Constraint", "Parameter", "SearchSpace", "Value"]

Value: TypeAlias = int | str | bool


class Config(Mapping[str, Value]):
    """One point of a search space: an immutable, hashable, JSON-able mapping."""

    __slots__ = ("_hash", "_items")

    def __init__(self, values: Mapping[str, Value] | None = None, /, **more: Value):
        self._items = dict(values or {}, **more)
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Value:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        if self._hash is None:  # every call of a public function hashes it
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Config], tuple[dict[str, Value]]]:
        return Config, (self._items,)  # hashes of text differ between processes

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self._items.items())})"

    def __str__(self) -> str:
        return json.dumps(self._items)

    def integer(self, name: str) -> int:
        """Return a parameter that is known to be an integer."""
        return int(self._items[name])

    def replace(self, **changes: Value) -> Config:
        """Return a copy with some values changed."""
        return Config({**self._items, **changes})


@dataclass(frozen=True)
class Parameter:
    """A tunable parameter: its name in the template, its values, and what it means."""

    name: str
    values: tuple[Value, ...]
    meaning: str


@dataclass(frozen=True)
class Constraint:
    """A condition on a `Config`, with the reason given when it does not hold."""

    holds: Callable[[Config], bool]
    reason: str


@dataclass(frozen=True)
class SearchSpace:
    """Parameters and the constraints between them."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    def violation(self, config: Config) -> str | None:
        """Return the reason why `config` is not allowed, or None when it is."""
        for constraint in self.constraints:
            if not constraint.holds(config):
                return constraint.reason
        return None

    def lists(self, values: Mapping[str, Any]) -> bool:
        """Return whether all of `values` are among the listed ones of their parameters."""
        return all(
            values[parameter.name] in parameter.values
            for parameter in self.parameters
            if parameter.name in values
        )

    def check(self, values: Mapping[str, Any], default: Config) -> Config:
        """Return `default` updated with `values`, validated.

        Raises
        ------
        InvalidConfig
            If a parameter is unknown, a value has another type than the listed values, a text is
            not listed, or a constraint does not hold. Numbers that are not listed are allowed.
        """
        values = {name: python_value(value) for name, value in values.items()}
        unknown = sorted(map(str, values.keys() - set(self.names)))
        if unknown:
            raise InvalidConfig(
                f"unknown parameter {', '.join(unknown)}; this algorithm has: "
                f"{', '.join(self.names) or 'none'}"
            )
        for parameter in self.parameters:
            value = values.get(parameter.name, default[parameter.name])
            expected = {type(known) for known in parameter.values}
            if type(value) not in expected:
                kinds = " or ".join(sorted(kind.__name__ for kind in expected))
                raise InvalidConfig(f"{parameter.name} must be {kinds}, not {value!r}")
            if isinstance(value, str) and value not in parameter.values:  # it gets into kernels
                known = ", ".join(map(repr, parameter.values))
                raise InvalidConfig(f"{parameter.name} must be one of {known}, not {value!r}")
        config = default.replace(**values)
        reason = self.violation(config)
        if reason is not None:
            raise InvalidConfig(f"{config} is not a valid configuration: {reason}")
        return config

    def narrowed(self, fixed: Mapping[str, Value]) -> SearchSpace:
        """Return this space with a single value for each parameter in `fixed`."""
        return self.among({name: (value,) for name, value in fixed.items()})

    def among(self, values: Mapping[str, tuple[Value, ...]], *more: Constraint) -> SearchSpace:
        """Return this space with other values for parameters in `values`, and `more` constraints.

        It is what a tuner tries on one kind of device.
        """
        parameters = tuple(
            replace(item, values=values.get(item.name, item.values)) for item in self.parameters
        )
        return replace(self, parameters=parameters, constraints=(*self.constraints, *more))

    def all_points(self) -> Iterator[Config]:
        """Yield every combination of values, valid or not."""
        for values in itertools.product(*(parameter.values for parameter in self.parameters)):
            yield Config(dict(zip(self.names, values, strict=True)))

    def __iter__(self) -> Iterator[Config]:
        """Yield every configuration that satisfies all constraints."""
        return (config for config in self.all_points() if self.violation(config) is None)
