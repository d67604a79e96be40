"""Names of algorithms that mean one class for CPUs and another one for other devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from opencl_lab.core.device import Device
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.solver import Algorithm, Problem, made
from opencl_lab.tuned.database import Match

P = TypeVar("P", bound=Problem)


class ByKind(Algorithm[P]):
    """A name that means one algorithm on CPUs and another one on all other devices.

    Each of the two has its own templates and search space; `on` returns it. All methods that take a
    device delegate to the algorithm for that device.
    """

    cpu: ClassVar[str]
    """Place ``"module:class"`` of the algorithm for CPUs."""
    gpu: ClassVar[str]
    """Place ``"module:class"`` of the algorithm for other devices."""

    def __init__(self) -> None:
        self._made: dict[str, Algorithm[P]] = {}

    def on(self, kind: str) -> Algorithm[P]:
        """Return the algorithm for a kind of device."""
        found = self._made.get(kind) or self._made.setdefault(kind, self._make(kind))
        found.operation = self.operation
        return found

    def _make(self, kind: str) -> Algorithm[P]:
        return made(self.cpu if kind == "cpu" else self.gpu)

    def supports(self, problem: P, device: Device) -> str | None:
        """Return that of the algorithm for this device."""
        return self.on(device.kind).supports(problem, device)

    def default_config(self, problem: P, device: Device) -> Config:
        """Return that of the algorithm for this device."""
        return self.on(device.kind).default_config(problem, device)

    def search_space(self, problem: P, device: Device) -> SearchSpace:
        """Return that of the algorithm for this device."""
        return self.on(device.kind).search_space(problem, device)

    def plan(self, problem: P, config: Config, device: Device) -> Plan:
        """Plan by the algorithm for this device."""
        return self.on(device.kind).plan(problem, config, device)

    def configure(
        self, problem: P, device: Device, values: Mapping[str, Any] | None = None
    ) -> Config:
        """Return that of the algorithm for this device."""
        return self.on(device.kind).configure(problem, device, values)

    def tuned(
        self, problem: P, device: Device, values: Mapping[str, Any] | None = None
    ) -> tuple[Config, Match] | None:
        """Return that of the algorithm for this device."""
        return self.on(device.kind).tuned(problem, device, values)
