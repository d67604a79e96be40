"""The result of trying one configuration, as tuner and journal share it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from opencl_lab.core.records import Positive, typed
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.row import Status


@dataclass(frozen=True)
class Evaluation:
    """The result of trying one configuration."""

    config: Config
    status: Status
    """``correct``, or what went wrong; `reason` says it in words."""
    reason: str = ""
    times_ms: tuple[Positive, ...] = ()
    """Kernel time of each timed run; empty unless correct."""
    build_ms: float = 0.0
    """Time to render, build and launch for the first time."""
    check_ms: float = 0.0
    """Time to check results."""
    timestamp: str = ""
    """When it ended, in ISO 8601 with a time zone."""

    @property
    def time_ms(self) -> float:
        """Median kernel time in milliseconds; infinite if the configuration failed."""
        return median(self.times_ms) if self.times_ms else math.inf

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {**vars(self), "config": dict(self.config), "times_ms": list(self.times_ms)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Evaluation:
        """Return the evaluation in a record of `as_dict`; ValueError if it is not one."""
        made = typed(cls, record)
        if (made.status == "correct") != bool(made.times_ms):
            raise ValueError("what is correct has times, and nothing else")
        return made


@dataclass(frozen=True)
class Built:
    """The result of building one configuration ahead."""

    build_ms: float
    """Time to render and build, and on CPUs to launch for the first time."""
    refusal: Status | None = None
    """The status, if the configuration cannot be built.

    Other failures are left to the measuring worker.
    """
    reason: str = ""
    """Why it failed."""
