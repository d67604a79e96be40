"""The plots of a study: times and speed-ups by size, speed-ups by workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.presentation.plots import (
    plot_ranks,
    plot_speedup,
    plot_throughput,
    plot_times,
)
from opencl_lab.lab.presentation.speedups import ONE_WORKER, by_workers, with_base
from opencl_lab.lab.studies.descriptor import PartResult, Study
from opencl_lab.lab.studies.over_ranks import over_ranks

Draw: TypeAlias = Callable[[Path], None]

KINDS = ("time", "speedup", "throughput", "workers", "ranks")
"""The plots of a part, which are the suffixes of their file names."""


def plots_of(result: PartResult, title: str) -> dict[str, Draw]:
    """Return functions that draw the plots of a part, by the names of their files.

    Throughput replaces the speed-up if the baseline was not measured.
    """
    part, series = result.part, result.series
    if part.ranks:
        shown = [(point, found) for point, rows in result.rows if (found := over_ranks(rows))]
        return {
            _file(part.name, "ranks"): partial(plot_ranks, rows=found, title=f"{title}, {point}")
            for point, found in shown[-1:]
        }
    over: dict[str, Any] = {"series": series, "size_name": part.axis, "title": title}
    drawn: dict[str, Draw] = {"time": partial(plot_times, **over)}
    if any(row.speedup for _, rows in series for row in rows):
        base = ", ".join(with_base(series)[1])
        drawn["speedup"] = partial(plot_speedup, **over, baseline=base)
    else:
        drawn["throughput"] = partial(plot_throughput, **over)
    several = [(point, shares) for point, rows in result.rows if (shares := by_workers(rows))]
    if several:
        point, shares = several[-1]
        over = {"series": shares, "size_name": "workers", "title": f"{title}, {point}"}
        drawn["workers"] = partial(plot_speedup, **over, baseline=ONE_WORKER)
    return {_file(part.name, kind): draw for kind, draw in drawn.items()}


def remove_plots(study: Study, folder: Path) -> None:
    """Remove the plots of an earlier run of this study; InvalidProblem if one cannot be removed."""
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
