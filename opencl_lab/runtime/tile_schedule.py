"""Schedules: which tile of a host array is copied to which slot of a device, and when.

They are plain data; `opencl_lab.runtime.tiles` runs them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

HostArray: TypeAlias = np.ndarray[Any, Any]


class Tile(NamedTuple):
    """A tile of a host array: the array's name, and the tile's bounds along each axis."""

    array: str
    bounds: tuple[tuple[int, int], ...]

    def of(self, array: HostArray) -> HostArray:
        """Return the tile as a view of the array."""
        view: HostArray = array[tuple(slice(*bound) for bound in self.bounds)]
        return view


@dataclass(frozen=True)
class Iteration:
    """One iteration: a problem on tiles."""

    problem: Any  # what is to be solved
    inputs: Mapping[str, Tile]  # by the problem's names
    # Where its result belongs; None if only the next iteration uses it.
    result: Tile | None
    shape: tuple[int, ...]  # of the result
    # Name of the input that is the previous iteration's result; empty for none.
    continues: str = ""


class Upload(NamedTuple):
    """A tile to copy to a slot once `after` iterations are done."""

    tile: Tile
    slot: int
    after: int


@dataclass(frozen=True)
class TileSchedule:
    """Iterations with the uploads and slots that they need."""

    iterations: tuple[Iteration, ...]
    slots: Mapping[str, int]  # number of tiles of each array on the device
    uploads: tuple[Upload, ...]  # in order
    taken: tuple[Mapping[str, int], ...]  # the slot of each input of an iteration
    needs: tuple[int, ...]  # number of uploads that precede each iteration


def schedule(iterations: Sequence[Iteration], slots: Mapping[str, int]) -> TileSchedule:
    """Assign tiles to slots.

    A tile that is needed and not on the device takes a free slot, else that of the tile whose next
    use is the furthest away (L. Belady, 1966); of several, the one least recently used.
    No iteration needs more tiles of an array than it has slots.
    """
    uses: dict[Tile, deque[int]] = defaultdict(deque)
    for index, iteration in enumerate(iterations):
        for tile in set(iteration.inputs.values()):
            uses[tile].append(index)
    held: dict[str, list[Tile | None]] = {name: [None] * count for name, count in slots.items()}
    last = {name: [-1] * count for name, count in slots.items()}
    uploads, taken, needs = list[Upload](), list[dict[str, int]](), list[int]()
    for index, iteration in enumerate(iterations):
        places = {}
        for name, tile in iteration.inputs.items():
            there = held[tile.array]
            if tile not in there:
                slot = _victim(there, last[tile.array], uses)
                there[slot] = tile
                uploads.append(Upload(tile, slot, last[tile.array][slot] + 1))
            places[name] = there.index(tile)
        for name, tile in iteration.inputs.items():
            last[tile.array][places[name]] = index
        for tile in set(iteration.inputs.values()):
            uses[tile].popleft()
        taken.append(places)
        needs.append(len(uploads))
    return TileSchedule(tuple(iterations), slots, tuple(uploads), tuple(taken), tuple(needs))


def _victim(
    held: Sequence[Tile | None], last: Sequence[int], uses: Mapping[Tile, Sequence[int]]
) -> int:
    def key(slot: int) -> tuple[float, int]:
        tile = held[slot]
        following = uses[tile] if tile is not None else ()
        return (-following[0] if following else -np.inf, last[slot])

    return min(range(len(held)), key=key)
