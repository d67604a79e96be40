"""How `blocked` brings tiles of a factor to local memory: what ``blocked_staging.mako`` knows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StagedTile:
    """The tiles of A or of B: TILE_K lines in local memory, each of `extent` elements.

    The items of a group load them `width` elements at once, the same number of loads each.
    """

    name: str  # of the matrix in OpenCL C
    size: str  # OpenCL C: rows or columns of the whole matrix
    first: str  # OpenCL C: the first of them in the tile
    extent: int  # rows of A, or columns of B, in a tile
    depth: int  # values of k in a tile
    items: int  # of a group
    along: bool  # rows in memory lie along the lines of the tile, and not across
    conjugated: bool  # elements count by their complex conjugates
    width: int  # elements of a load
    line: int  # elements from line to line in local memory: `extent`, and a gap

    @property
    def loads(self) -> int:
        """Loads of an item for a tile."""
        return self.depth * self.extent // self.width // self.items

    @property
    def beside(self) -> int:
        """Loads side by side in memory."""
        return (self.extent if self.along else self.depth) // self.width
