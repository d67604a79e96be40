"""Where the time of a run went, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SLICES = 10


@dataclass(frozen=True)
class Slice:
    """A part of a run."""

    begin: float
    """This and the end are seconds since the run began."""
    end: float
    evaluated: int
    """Configurations that were evaluated meanwhile."""
    built_ahead: int
    """Those that other processes have built meanwhile, or refused."""
    phases: Mapping[str, float]
    """Seconds of each phase, without those of less than a hundredth of the slice."""

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {**vars(self), "phases": dict(self.phases)}

    def __str__(self) -> str:
        parts = sorted(self.phases.items(), key=lambda item: -item[1])
        spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts if seconds >= 0.05)
        counts = f"{self.evaluated} evaluated, {self.built_ahead} built ahead"
        return f"{self.begin:.0f} to {self.end:.0f} s: {counts}" + (f"; {spent}" if spent else "")


class Timeline:
    """Counters at moments of a run; each moment is a tuple of time, counts and phases."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, int, int, dict[str, float]]] = [(0.0, 0, 0, {})]

    def mark(
        self, seconds: float, evaluated: int, built_ahead: int, phases: Mapping[str, float]
    ) -> None:
        """Remember what the counters say so many seconds after the beginning."""
        self._moments.append((seconds, evaluated, built_ahead, dict(phases)))

    def slices(self, most: int = SLICES) -> tuple[Slice, ...]:
        """Return the run in slices of about the same length, which begin and end at moments."""
        length = self._moments[-1][0] / most
        made, last = [], self._moments[0]
        for moment in self._moments[1:]:
            if moment[0] - last[0] >= length or moment is self._moments[-1]:
                phases = {name: spent - last[3].get(name, 0.0) for name, spent in moment[3].items()}
                least = (moment[0] - last[0]) / 100
                shown = {name: spent for name, spent in phases.items() if spent > least}
                counts = moment[1] - last[1], moment[2] - last[2]
                made.append(Slice(last[0], moment[0], *counts, shown))
                last = moment
        return tuple(made)
