"""What filters arrays, and which algorithm is the fastest."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from opencl_lab.ops.estimates import VECTOR_BYTES, on_threads
from opencl_lab.ops.filters.networks import MOST_VALUES
from opencl_lab.ops.filters.problem import FilterProblem, LinesProblem, WindowProblem
from opencl_lab.ops.solver import Algorithm, Registry, Solver

VALUE_NS = 25.0, 0.4
"""A vector of results, and each value of its windows."""
RANK_VALUES = 3, 80
"""Values of a window that take as long as one value of a rank by a network, and bit by bit."""


P = TypeVar("P", bound=FilterProblem)


class _FilterSolver(Solver[P], Generic[P]):
    """What filters take on the threads of a CPU."""

    tunable = False

    def algorithm(self, name: str) -> Algorithm[P]:
        """Return an algorithm by name; it is tuned as one of all filters, see `FilterSolver`."""
        found = super().algorithm(name)
        found.operation = "filter"
        return found

    def serial_us(self, problem: P) -> float:
        """Return the estimated microseconds on one thread."""
        vectors = problem.count * problem.sum_type.itemsize / VECTOR_BYTES
        taps = problem.taps
        if problem.reduce == "rank":
            taps *= RANK_VALUES[taps > MOST_VALUES]
        return 1e-3 * vectors * (VALUE_NS[0] + VALUE_NS[1] * taps)

    def parallel_us(self, problem: P, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return on_threads(self.serial_us(problem), units)


class LinesSolver(_FilterSolver[LinesProblem]):
    """Filters along the axes of an array."""

    name = "filter-lines"
    registry: ClassVar[Registry] = {
        "cross": "opencl_lab.ops.filters.near:NearCross",
        "extremes": "opencl_lab.ops.filters.extremes:Extremes",
        "planes": "opencl_lab.ops.filters.planes:Planes",
        "sheets": "opencl_lab.ops.filters.sheets:Sheets",
        "tiled": "opencl_lab.ops.filters.lines:TiledLines",
        "padded": "opencl_lab.ops.filters.padded:PaddedLines",
    }


class WindowSolver(_FilterSolver[WindowProblem]):
    """Filters by a window of any shape."""

    name = "filter-window"
    registry: ClassVar[Registry] = {
        "networks": "opencl_lab.ops.filters.networks:Networks",
        "near": "opencl_lab.ops.filters.near:NearWindow",
        "window": "opencl_lab.ops.filters.padded:PaddedWindow",
    }


LINES = LinesSolver()
WINDOW = WindowSolver()
