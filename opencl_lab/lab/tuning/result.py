"""The result of tuning, and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opencl_lab.core.wording import plain
from opencl_lab.lab.engine.explore import Stopped
from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.roofline import above_peak, fraction_of_peak, stored_peaks
from opencl_lab.lab.measuring.samples import Times
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Pruning
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.solver import Problem


def failures(evaluations: Iterable[Evaluation]) -> dict[str, int]:
    """Return the number of failed evaluations, by status."""
    return dict(Counter(item.status for item in evaluations if item.status != "correct"))


def share_of_peak(task: TuningTask, milliseconds: float) -> tuple[float | None, str]:
    """Return a time as a fraction of the device's roofline, and why it is above 1 if it is.

    The fraction is None if `oclab doctor` has not run.
    """
    dtype = getattr(task.problem, "dtype", None)
    doing = task.algorithm.work(task.problem), dtype, milliseconds, stored_peaks(task.device)
    return fraction_of_peak(*doing), above_peak(*doing)


@dataclass(frozen=True)
class TuningProgress:
    """The progress of tuning."""

    phase: Literal["search", "finals"]
    evaluated: int
    """Number of evaluated configurations, including those of earlier runs."""
    total: int | None
    """Their number at the end; None if only time limits it."""
    best: Evaluation | None
    latest: Evaluation | None
    failures: Mapping[str, int]
    """Number of failures, by status."""
    seconds_left: float | None
    """None without a time limit."""
    notes: tuple[str, ...] = ()
    """Problems other than failures of configurations."""
    per_minute: float = 0.0
    """Configurations evaluated per minute of this run's search."""
    built_ahead: int = 0
    """Number of configurations that builders have built, or failed to build."""


@dataclass(frozen=True)
class TuneResult:
    """The result of tuning.

    Parameters
    ----------
    task : TuningTask
        Operation, algorithm, problem and device.
    best : Evaluation or None
        The winner with the times of the finals: the fastest, or the built-in configuration if none
        is faster beyond noise. None if none was correct.
    default : Evaluation or None
        The built-in configuration; with the times of the finals if it took part in them.
    finalists : tuple of Evaluation
        Those that were timed again in turns, the fastest first.
    stable : bool
        Whether the same one won several rounds of the finals in a row.
    evaluations : tuple of Evaluation
        All of this run and of earlier ones, in the order in which they were evaluated.
    pruning : Pruning
        The size of the space, and how much was removed before compiling.
    stopped : str
        ``complete``, or what ended the search: ``budget``, ``time``, ``interrupted``.
    seconds : float
        Duration in seconds.
    resumed : int
        Number of evaluations that came from the journal.
    restarts : int
        Number of workers lost to crashes and timeouts.
    journal : Path or None
        None if it could not be written.
    stored : bool
        Whether the winner is in the tuning database.
    notes : tuple of str
        Problems other than failures of configurations.
    built_ahead : int
        Number of configurations that builders have built, or failed to build.
    per_minute : float
        Configurations evaluated per minute of this run's search.
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
    notes: tuple[str, ...] = ()
    built_ahead: int = 0
    per_minute: float = 0.0

    def __repr__(self) -> str:
        best = self.best
        winner = "no winner" if best is None else f"{plain(best.time_ms)} ms by {dict(best.config)}"
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
    def removed(self) -> Mapping[str, int]:
        """Number of combinations that each reason removed before compiling."""
        return self.pruning.removed or {}

    @property
    def failures(self) -> dict[str, int]:
        """Number of failed evaluations, by status."""
        return failures(self.evaluations)

    @property
    def speedup(self) -> float | None:
        """The time of the built-in configuration divided by that of the winner."""
        if self.best is None or self.default is None or self.default.status != "correct":
            return None
        return self.default.time_ms / self.best.time_ms

    @property
    def gained(self) -> bool:
        """Whether the winner differs from the built-in configuration, and so is faster."""
        return self.best is not None and (
            self.default is None or self.best.config != self.default.config
        )

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
