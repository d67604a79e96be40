"""The grids in which ranks multiply matrices, and where the matrices lie in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.memory import host_memory
from opencl_lab.distributed.exchange import Placement
from opencl_lab.distributed.layout import Layout, Run, Shape, Split, common
from opencl_lab.distributed.mpi import mpi, near_ranks
from opencl_lab.ops.gemm.problem import GemmProblem

SHARE = 0.25
"""Largest part of a rank's memory that its copy of C may take where there are several layers."""


@dataclass(frozen=True)
class Grid:
    """How the ranks share a product: `rows` of the grid have rows of C, and so on."""

    rows: int
    columns: int
    layers: int = 1

    def coordinates(self, rank: int) -> tuple[int, int, int]:
        """Return row, column and layer of a rank."""
        rest, column = divmod(rank, self.columns)
        layer, row = divmod(rest, self.rows)
        return row, column, layer


def grids(ranks: int) -> Iterator[Grid]:
    """Yield all grids of so many ranks."""
    for layers in range(1, ranks + 1):
        for rows in range(1, ranks // layers + 1):
            if ranks % (layers * rows) == 0:
                yield Grid(rows, ranks // (layers * rows), layers)


def part_of(run: Run, parts: int, part: int) -> Run:
    """Return one of even parts of a run."""
    begin, end = run
    bounds = Split(end - begin, parts).bounds
    return begin + bounds[part], begin + bounds[part + 1]


@dataclass(frozen=True)
class Operand:
    """Where one of the matrices of a product lies while it is computed."""

    name: str  # a, b, c or result
    problem: GemmProblem
    grid: Grid

    def runs(self, rank: int) -> list[list[Run]]:
        """Return the indices that a rank has along each axis."""
        row, column, layer = self.grid.coordinates(rank)
        m = part_of((0, self.problem.m), self.grid.rows, row)
        n = part_of((0, self.problem.n), self.grid.columns, column)
        k = part_of((0, self.problem.k), self.grid.layers, layer)
        if self.name == "a":
            found = [m, part_of(k, self.grid.columns, column)]
            found = found[::-1] if self.problem.trans_a else found
        elif self.name == "b":
            found = [part_of(k, self.grid.rows, row), n]
            found = found[::-1] if self.problem.trans_b else found
        elif self.name == "c":
            found = [m, n] if layer == 0 else [(0, 0), (0, 0)]
        else:
            found = [part_of(m, self.grid.layers, layer), n]
        return [[run] if run[0] < run[1] else [] for run in found]

    def local_shape(self, rank: int) -> Shape:
        """Return the shape of a rank's part."""
        return tuple(sum(end - begin for begin, end in runs) for runs in self.runs(rank))


def best_grid(comm: Any, problem: GemmProblem, a: Layout, b: Layout, result: Layout) -> Grid:
    """Return the grid in which a rank gets the fewest numbers, in all steps together."""
    rank = comm.rank
    every = list(grids(comm.size))
    room = SHARE * host_memory() / problem.dtype.itemsize / near_ranks(comm)[1]
    costs = []
    for grid in every:
        m, n = problem.m / grid.rows, problem.n / grid.columns
        k = problem.k / grid.layers
        cost = m * k * (1 - 1 / grid.columns) + k * n * (1 - 1 / grid.rows)
        cost += m * n * (1 - 1 / grid.layers)
        moves: list[tuple[Placement, Placement]] = [
            (a, Operand("a", problem, grid)),
            (b, Operand("b", problem, grid)),
            (Operand("result", problem, grid), result),
        ]
        for before, after in moves:
            pairs = zip(before.runs(rank), after.runs(rank), strict=True)
            kept = [common(have, need) for have, need in pairs]
            cost += math.prod(after.local_shape(rank))
            cost -= math.prod(sum(end - begin for begin, end in runs) for runs in kept)
        half = problem.dtype == np.float16  # MPI cannot add it up
        costs.append(math.inf if grid.layers > 1 and (half or m * n > room) else cost)
    comm.Allreduce(mpi().IN_PLACE, worst := np.array(costs), op=mpi().MAX)
    return every[int(np.argmin(worst))]
