"""The plots of a study: times and speed-ups by size, speed-ups by workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.engine.crossings import crossovers
from opencl_lab.lab.presentation.plots import plot_speedup, plot_throughput, plot_times
from opencl_lab.lab.presentation.speedups import ONE_WORKER, by_workers, with_base
from opencl_lab.lab.studies.descriptor import PartResult, Study

Draw: TypeAlias = Callable[[Path], None]

KINDS = ("time", "speedup", "throughput", "workers")
"""What plots of a part show; each ends the name of a file."""


def plots_of(result: PartResult, title: str) -> dict[str, Draw]:
    """Return by the name of its file what draws each plot of a part.

    Throughput stands in for the speed-up where the baseline was not measured.
    """
    part, series = result.part, result.series
    found = crossovers(series)
    times = partial(plot_times, series=series, size_name=part.axis, title=title, crossings=found)
    drawn: dict[str, Draw] = {_file(part.name, "time"): times}
    if any(row.speedup for _, rows in series for row in rows):
        base = ", ".join(with_base(series)[1])
        drawn[_file(part.name, "speedup")] = partial(
            plot_speedup, series=series, size_name=part.axis, baseline=base, title=title
        )
    else:
        drawn[_file(part.name, "throughput")] = partial(
            plot_throughput, series=series, size_name=part.axis, title=title, crossings=found
        )
    several = [(point, shares) for point, rows in result.rows if (shares := by_workers(rows))]
    if several:
        point, workers = several[-1]
        drawn[_file(part.name, "workers")] = partial(
            plot_speedup,
            series=workers,
            size_name="workers",
            baseline=ONE_WORKER,
            title=f"{title}, {point}",
        )
    return drawn


def remove_plots(study: Study, folder: Path) -> None:
    """Remove the plots of an earlier run of this study; that one stays is an `InvalidProblem`."""
    for name in (_file(part.name, kind) for part in study.parts for kind in KINDS):
        try:
            with suppress(FileNotFoundError):
                (folder / name).unlink()
        except OSError as error:
            where = folder / name
            raise InvalidProblem(
                f"cannot remove {where}, a plot of an earlier run: {error.strerror or error}"
            ) from error


def _file(part: str, kind: str) -> str:
    return f"{part}-{kind}.png"
