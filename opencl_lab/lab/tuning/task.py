"""The task of a tuning run: plain data that tuner and worker share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Plan, check_plan
from opencl_lab.core.space import Config
from opencl_lab.core.wording import number_of
from opencl_lab.drivers.discovery import here
from opencl_lab.lab.operation import Operation
from opencl_lab.ops.solver import Algorithm, Problem


@dataclass(frozen=True)
class TuningTask:
    """One algorithm on one problem on one device."""

    operation: Operation[Any]
    algorithm_name: str
    problem: Problem
    device: Device
    seed: int = 0
    """Seed of the data."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Options of the operation that describe the data."""
    compile_for: str = ""
    """A target of `opencl_lab.lab.offline` on which no kernel may spill registers."""

    @cached_property
    def algorithm(self) -> Algorithm[Any]:
        """The algorithm itself."""
        return self.operation.algorithm(self.algorithm_name).on(self.device.kind)

    @cached_property
    def built_in(self) -> Config:
        """The built-in configuration, which is measured first."""
        return self.algorithm.default_config(self.problem, self.device)

    def plan(self, config: Config, problem: Problem | None = None) -> Plan:
        """Return the plan of a configuration for the timed problem, or for another one.

        InvalidConfig or InvalidProblem is raised if the device cannot run it.
        """
        plan = self.algorithm.plan(problem or self.problem, config, self.device)
        check_plan(plan, self.device)
        return plan

    def allowed(self, values: Mapping[str, Any]) -> Config | None:
        """Return the built-in configuration with these values; None if it is not allowed."""
        return self.algorithm.allowed(self.problem, self.device, values)

    @cached_property
    def check_problems(self) -> tuple[Problem, ...]:
        """Variants of the problem with small sizes that no tile divides, and other options."""
        changes = self.operation.check_changes(self.problem)
        changed = (replace(self.problem, **change) for change in changes)
        return tuple(p for p in changed if self.algorithm.supports(p, self.device) is None)

    def here(self) -> TuningTask:
        """Return the task with this process's device; DeviceNotFound if it is not here."""
        return replace(self, device=here(self.device))

    def __getstate__(self) -> dict[str, Any]:
        state = {name: vars(self)[name] for name in self.__dataclass_fields__}
        return {**state, "data": dict(self.data)}


def problem_with(operation: Operation[Any], values: Mapping[str, Any]) -> Problem:
    """Return the problem of which `values` are stored: `Problem.as_dict`, or a part of it."""
    default: Problem = operation.problem()
    stored = [item.name for item in fields(default) if item.name in values]
    return replace(default, **{n: _like(getattr(default, n), n, values[n]) for n in stored})


def _like(default: Any, name: str, value: Any) -> Any:
    """Return a value from JSON with the type of the default."""
    if default is None and value is None:
        return None
    try:
        if isinstance(default, np.dtype):
            return np.dtype(value)
        if isinstance(default, float):
            return number_of(str(value))
        return type(default)(value)
    except (ValueError, TypeError) as error:
        raise InvalidProblem(f"{name} cannot be {value!r}") from error
