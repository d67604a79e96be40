"""The result of a sweep over shapes: `auto` beside other libraries and all our algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from opencl_lab.lab.engine.row import Measurement, Side
from opencl_lab.lab.engine.sweep import Shape, shape_text
from opencl_lab.lab.presentation.table import Cell, CellTable, number_cell, ratio_cell

GOOD = 0.8
"""Share of the speed of the best other library from which a shape counts as good."""
WORST = 5
"""Number of worst shapes that a summary names."""


@dataclass(frozen=True)
class ShapeResult:
    """The rows of a shape: ``auto``, the fastest other library, our fastest algorithm.

    Each is None if no such row was measured with a correct result.
    """

    shape: Shape
    auto: Measurement | None
    peer: Measurement | None
    best: Measurement | None

    @property
    def ratio(self) -> float | None:
        """The speed of ``auto`` over that of the peer; above 1, ``auto`` is faster."""
        return _quotient(self.peer, self.auto)

    @property
    def over_best(self) -> float | None:
        """The time of ``auto`` over that of our fastest algorithm; 1 if it chooses that one."""
        return _quotient(self.auto, self.best)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON-able values of the summary's table."""
        return {
            "shape": list(self.shape),
            "auto": None if self.auto is None else self.auto.algorithm,
            "auto_ms": _median(self.auto),
            "peer": None if self.peer is None else self.peer.implementation,
            "peer_ms": _median(self.peer),
            "ratio": self.ratio,
            "best": None if self.best is None else self.best.algorithm,
            "over_best": self.over_best,
        }


def judged(
    shape: Shape, rows: Sequence[Measurement], auto: str, side: Side, peer: str | None = None
) -> ShapeResult:
    """Return the result of a shape from its rows, with data on one side.

    `auto` is the algorithm that ``auto`` chooses. `peer` is the implementation to compare it with;
    by default the fastest other library.
    """
    right = [row for row in rows if row.ok and row.data == side and _median(row)]
    ours = [row for row in right if row.kind == "opencl"]
    peers = [
        row for row in right if (row not in ours if peer is None else row.implementation == peer)
    ]
    taken = next((row for row in ours if row.algorithm == auto), None)
    return ShapeResult(shape, taken, _fastest(peers), _fastest(ours))


def summary(results: Sequence[ShapeResult]) -> dict[str, Any]:
    """Return the figures of a whole sweep."""
    ratios = sorted(r.ratio for r in results if r.ratio is not None)
    losses = [r.over_best for r in results if r.over_best is not None]
    logarithms = [math.log(ratio) for ratio in ratios]
    return {
        "shapes": len(results),
        "compared": len(ratios),
        "good": sum(ratio >= GOOD for ratio in ratios),
        "good_from": GOOD,
        "geometric_mean": math.exp(sum(logarithms) / len(ratios)) if ratios else None,
        "worst": [r.as_dict() for r in _worst(results)],
        "over_best": max(losses, default=None),
        "wrong": [list(r.shape) for r in results if r.auto is None],
    }


def summary_lines(results: Sequence[ShapeResult], peer: str | None = None) -> list[str]:
    """Return the figures of `summary` as lines of text; `peer` is as in `judged`."""
    figures, lines = summary(results), []
    if figures["compared"]:
        lines.append(
            f"{figures['good']} of {figures['compared']} shapes at {GOOD:g}x the speed of "
            f"{peer or 'the best other library'} or more; geometric mean "
            f"{figures['geometric_mean']:.2f}x"
        )
        worst = (f"{shape_text(r.shape)} ({r.ratio:.2f}x)" for r in _worst(results))
        lines.append(f"the worst: {', '.join(worst)}")
    slow = [r for r in results if r.over_best is not None and r.over_best > 1.1]
    if any(r.best is not r.auto for r in results):
        slowest = sorted(slow, key=lambda r: r.over_best or 0, reverse=True)[:WORST]
        named = ", ".join(
            f"{shape_text(r.shape)} ({r.over_best:.2f}x of {r.best.algorithm})"
            for r in slowest
            if r.best is not None
        )
        lines.append(
            f"auto takes at most {figures['over_best']:.2f}x the time of the best algorithm, "
            f"more than 1.1x for {len(slow)}{': ' + named if named else ''}"
        )
    if figures["wrong"]:
        shapes = ", ".join(shape_text(tuple(shape)) for shape in figures["wrong"])
        lines.append(f"no correct result of auto: {shapes}")
    return lines


def table(
    results: Sequence[ShapeResult], names: Sequence[str], title: str, peer: str | None = None
) -> Table:
    """Return a table with a row for each shape, the slowest beside others last."""
    ranked = sorted(results, key=lambda r: math.inf if r.ratio is None else r.ratio, reverse=True)
    columns: dict[str, Callable[[ShapeResult], Cell]] = {
        " x ".join(names): lambda r: Cell(shape_text(r.shape), heads=True),
        "auto takes": lambda r: Cell("" if r.auto is None else r.auto.algorithm),
        "ms": lambda r: number_cell(_median(r.auto), 3),
        peer or "best other": lambda r: Cell("" if r.peer is None else r.peer.label),
        "its ms": lambda r: number_cell(_median(r.peer), 3),
        f"speed-up\nover {peer or 'it'}": lambda r: ratio_cell(r.ratio),
        "best OpenCL": lambda r: Cell("" if r.best is None else r.best.algorithm),
        "time of auto\nover it": lambda r: ratio_cell(r.over_best),
    }
    return CellTable.of(ranked, columns).table(title)


def _median(row: Measurement | None) -> float | None:
    return None if row is None or row.total_ms is None else row.total_ms.median


def _quotient(above: Measurement | None, below: Measurement | None) -> float | None:
    top, bottom = _median(above), _median(below)
    return None if top is None or not bottom else top / bottom


def _fastest(rows: Sequence[Measurement]) -> Measurement | None:
    return min(rows, key=lambda row: _median(row) or math.inf, default=None)


def _worst(results: Sequence[ShapeResult]) -> list[ShapeResult]:
    compared = [r for r in results if r.ratio is not None]
    return sorted(compared, key=lambda r: r.ratio or 0)[:WORST]
