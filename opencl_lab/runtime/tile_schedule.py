"""Which tile of a host array comes into which slot of a device, and when: plain data.

See `opencl_lab.runtime.tiles`, which does it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

HostArray: TypeAlias = np.ndarray[Any, Any]


class Tile(NamedTuple):
    """A part of a host array: its name, and where the part begins and ends along each axis."""

    array: str
    bounds: tuple[tuple[int, int], ...]

    def of(self, array: HostArray) -> HostArray:
        """Return it as a view."""
        view: HostArray = array[tuple(slice(*bound) for bound in self.bounds)]
        return view


@dataclass(frozen=True)
class Iteration:
    """One iteration."""

    problem: Any  # what is to be solved
    inputs: Mapping[str, Tile]  # by the names that it has for them
    # Where its result belongs; None if it is only what the next iteration goes on with.
    result: Tile | None
    shape: tuple[int, ...]  # of the result
    # Name of a further input, which is the result of the iteration before; none if empty.
    continues: str = ""


class Upload(NamedTuple):
    """A tile that comes into a slot once so many iterations are done."""

    tile: Tile
    slot: int
    after: int


@dataclass(frozen=True)
class Schedule:
    """What comes where and when."""

    iterations: tuple[Iteration, ...]
    slots: Mapping[str, int]  # how many tiles of each array the device holds
    uploads: tuple[Upload, ...]  # in order
    taken: tuple[Mapping[str, int], ...]  # the slot of each input of an iteration
    needs: tuple[int, ...]  # how many uploads must be over before an iteration


def schedule(iterations: Sequence[Iteration], slots: Mapping[str, int]) -> Schedule:
    """Work out which tile comes into which slot.

    A tile that is needed and not there takes a slot that is free, else that of the tile which is
    not needed for the longest time (L. Belady, 1966); of several, the one that was used first.
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
    return Schedule(tuple(iterations), slots, tuple(uploads), tuple(taken), tuple(needs))


def _victim(
    held: Sequence[Tile | None], last: Sequence[int], uses: Mapping[Tile, Sequence[int]]
) -> int:
    def key(slot: int) -> tuple[float, int]:
        tile = held[slot]
        following = uses[tile] if tile is not None else ()
        return (-following[0] if following else -np.inf, last[slot])

    return min(range(len(held)), key=key)
