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


class Schedule:
    """Iterations with the uploads and slots that they need; more may be added while they run.

    `slots` has the number of tiles of each array on the device; `uploads` are in order; `taken` has
    the slot of each input of an iteration, and `needs` the number of uploads that precede it.
    """

    def __init__(self, slots: Mapping[str, int]):
        self.slots = slots
        self.iterations: list[Iteration] = []
        self.uploads: list[Upload] = []
        self.taken: list[Mapping[str, int]] = []
        self.needs: list[int] = []
        self._held: dict[str, list[Tile | None]] = {
            name: [None] * count for name, count in slots.items()
        }
        self._last = {name: [-1] * count for name, count in slots.items()}

    def add(self, iterations: Sequence[Iteration]) -> None:
        """Assign the tiles of further iterations to slots.

        A tile that is needed and not on the device takes a free slot, else that of the tile whose
        next use among these iterations is the furthest away (L. Belady, 1966); of several, the one
        least recently used. No iteration needs more tiles of an array than it has slots.
        """
        uses: dict[Tile, deque[int]] = defaultdict(deque)
        for index, iteration in enumerate(iterations, len(self.iterations)):
            for tile in set(iteration.inputs.values()):
                uses[tile].append(index)
        for index, iteration in enumerate(iterations, len(self.iterations)):
            places = {}
            for name, tile in iteration.inputs.items():
                there, last = self._held[tile.array], self._last[tile.array]
                if tile not in there:
                    slot = _victim(there, last, uses)
                    there[slot] = tile
                    self.uploads.append(Upload(tile, slot, last[slot] + 1))
                places[name] = there.index(tile)
            for name, tile in iteration.inputs.items():
                self._last[tile.array][places[name]] = index
            for tile in set(iteration.inputs.values()):
                uses[tile].popleft()
            self.taken.append(places)
            self.needs.append(len(self.uploads))
        self.iterations += iterations


def schedule(iterations: Sequence[Iteration], slots: Mapping[str, int]) -> Schedule:
    """Return the schedule of iterations that are all known."""
    found = Schedule(slots)
    found.add(iterations)
    return found


def _victim(
    held: Sequence[Tile | None], last: Sequence[int], uses: Mapping[Tile, Sequence[int]]
) -> int:
    def key(slot: int) -> tuple[float, int]:
        tile = held[slot]
        following = uses[tile] if tile is not None else ()
        return (-following[0] if following else -np.inf, last[slot])

    return min(range(len(held)), key=key)
