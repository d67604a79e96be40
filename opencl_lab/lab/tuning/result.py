"""What tuning found, how far it has come, and where its time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from opencl_lab.lab.engine.explore import Stopped
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.roofline import above_peak, fraction_of_peak, stored_peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Pruning
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.solver import Problem

SLICES = 10
"""Of a run's timeline."""


def failures(evaluations: Iterable[Evaluation]) -> dict[str, int]:
    """Return how many evaluations failed, by their status."""
    return dict(Counter(item.status for item in evaluations if item.status != "correct"))


def share_of_peak(task: TuningTask, milliseconds: float) -> tuple[float | None, str]:
    """Return a time's share of the device's roofline, and why it is above 1 if it is.

    None if `oclab doctor` has not run.
    """
    dtype = getattr(task.problem, "dtype", None)
    doing = task.algorithm.work(task.problem), dtype, milliseconds, stored_peaks(task.device)
    return fraction_of_peak(*doing), above_peak(*doing)


def share_of_space(evaluated: int, pruning: Pruning) -> float | None:
    """Return how much of a space was evaluated; None where the estimate of its size is nothing."""
    return min(1.0, evaluated / pruning.left) if pruning.left else None


@dataclass(frozen=True)
class TuningProgress:
    """How far tuning has come."""

    phase: Literal["search", "finals"]
    evaluated: int
    """Configurations evaluated, those of earlier runs included."""
    total: int | None
    """How many there will be; None if only time decides."""
    best: Evaluation | None
    latest: Evaluation | None
    failures: Mapping[str, int]
    """How many failed, by status."""
    seconds_left: float | None
    """None without a time limit."""
    time_limit: float | None = None
    notes: tuple[str, ...] = ()
    """What went wrong beside the configurations."""
    per_minute: float = 0.0
    """Configurations that this run has evaluated, for each minute of its search."""
    built_ahead: int = 0
    """How many of them other processes have compiled so far, or refused."""
    share: float | None = None
    """How much of the space was evaluated, from 0 to 1; None if nobody knows.

    It is estimated where the space is too large to be counted.
    """


@dataclass(frozen=True)
class Slice:
    """A part of a run."""

    begin: float
    end: float
    """Both in seconds since the run began."""
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


@dataclass(frozen=True)
class TuneResult:
    """What tuning found.

    Parameters
    ----------
    task : TuningTask
        Operation, algorithm, problem and device.
    best : Evaluation or None
        The winner with the times of the finals: the fastest, or the built-in configuration where
        none is faster beyond the noise. None if nothing was correct.
    default : Evaluation or None
        The built-in configuration; with the times of the finals if it got there.
    finalists : tuple of Evaluation
        Those that were measured again, taking turns; the fastest first.
    stable : bool
        Whether the same one won several rounds of the finals in a row.
    evaluations : tuple of Evaluation
        All of this run and of earlier ones, in the order in which they were made.
    pruning : Pruning
        The size of the space, and what was removed before compiling.
    stopped : str
        ``complete``, or what ended the search: ``budget``, ``time``, ``interrupted``.
    seconds : float
        How long it took.
    resumed : int
        How many of the evaluations were in the journal.
    restarts : int
        Workers lost to crashes and time limits.
    journal : Path or None
        None if it could not be written.
    stored : bool
        Whether the winner is in the tuning database.
    notes : tuple of str
        What went wrong beside the configurations.
    built_ahead : int
        Configurations that other processes have compiled, or refused.
    phases : mapping
        Seconds that each phase has taken, all configurations together: where the time went.
    per_minute : float
        Configurations that this run has evaluated, for each minute of its search.
    timeline : tuple of Slice
        The phases again, from the beginning of the run to its end.
    """

    task: TuningTask
    best: Evaluation | None
    default: Evaluation | None
    finalists: tuple[Evaluation, ...]
    stable: bool
    evaluations: tuple[Evaluation, ...]
    pruning: Pruning
    stopped: Stopped
    seconds: float
    journal: Path | None
    resumed: int = 0
    restarts: int = 0
    stored: bool = False
    notes: tuple[str, ...] = field(default=())
    built_ahead: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    per_minute: float = 0.0
    timeline: tuple[Slice, ...] = ()

    def __repr__(self) -> str:
        best = self.best
        winner = "no winner" if best is None else f"{best.time_ms:.4g} ms by {dict(best.config)}"
        return f"<TuneResult: {self.task.problem.title}, {len(self.evaluations)} tried, {winner}>"

    @property
    def problem(self) -> Problem:
        """The problem that was tuned for."""
        return self.task.problem

    @property
    def device(self) -> Any:
        """The device that was tuned on."""
        return self.task.device

    @property
    def share(self) -> float | None:
        """How much of the space was evaluated, from 0 to 1; None if nobody knows."""
        return share_of_space(len(self.evaluations), self.pruning)

    @property
    def removed(self) -> Mapping[str, int]:
        """How many combinations each reason removed before compiling."""
        return self.pruning.removed

    @property
    def failures(self) -> dict[str, int]:
        """How many evaluations failed, by status."""
        return failures(self.evaluations)

    @property
    def speedup(self) -> float | None:
        """Time of the built-in configuration over that of the winner."""
        if self.best is None or self.default is None or self.default.status != "correct":
            return None
        return self.default.time_ms / self.best.time_ms

    @property
    def gained(self) -> bool:
        """Whether the winner is another than the built-in configuration, and so faster."""
        return self.best is not None and (
            self.default is None or self.best.config != self.default.config
        )

    @property
    def share_of_peak(self) -> float | None:
        """The winner's share of the device's roofline."""
        if self.best is None:
            return None
        return share_of_peak(self.task, self.best.time_ms)[0]

    def as_row(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return an evaluation as a row of the JSON document ``oclab/1``, by kernel times."""
        times = Times.of(evaluation.times_ms) if evaluation.times_ms else None
        peak, note = share_of_peak(self.task, times.median) if times else (None, "")
        row = Measurement(
            f"opencl:{self.task.algorithm_name}",
            "opencl",
            self.task.algorithm_name,
            evaluation.status,
            evaluation.reason,
            config=evaluation.config,
            workers=self.device.compute_units,
            kernel_ms=times.median if times else None,
            kernel_times=times,
            total_ms=times,  # for the rates; nothing else than kernels was timed
            build_ms=evaluation.build_ms or None,
            work=self.problem.work,
            peak=peak,
            peak_note=note,
        ).as_row()
        return {**row, "total_ms": None, "kernel_spread_ms": row["total_ms"]}
