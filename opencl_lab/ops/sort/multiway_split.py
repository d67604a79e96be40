"""Where to cut several sorted runs so that a given number of the first keys lies before the cuts.

Multisequence selection (Varman, Scheufler, Iyer and Ricard 1991) for runs that lie in a file. Every
`step`-th key of each run is kept as a sample. The samples narrow each cut down to a window of its
run; all windows together hold about ``4 * step`` keys per run, and only they are read. Equal keys
count in the order of their runs. So the pieces between cuts have exactly the lengths asked for,
whatever the keys are, and a stable sort of a piece, taken run by run, is a stable merge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.sort.codes import codes

MOST_SAMPLES = 1 << 22


class Samples:
    """Every `step`-th key of sorted runs with the given lengths."""

    def __init__(
        self,
        lengths: Sequence[int],
        dtype: np.dtype[Any],
        descending: bool,
        step: int | None = None,
    ):
        self._lengths = np.array(lengths, np.int64)
        self.dtype, self._descending = dtype, descending
        total = sum(lengths)
        # So few samples that sorting them once takes about as long as searching all windows.
        fewest = math.isqrt(total) // (2 * len(lengths))
        self.step = step or max(fewest, total // MOST_SAMPLES, 1)
        self._keys = [np.empty(ceil_divide(length, self.step), dtype) for length in lengths]
        self._places: list[np.ndarray[Any, Any]] = []

    def take(self, run: int, begin: int, keys: np.ndarray[Any, Any]) -> None:
        """Keep the samples among consecutive keys of a run, which start at position `begin`."""
        first = ceil_divide(begin, self.step)
        found = keys[first * self.step - begin :: self.step]
        self._keys[run][first : first + found.size] = found

    def put(self, run: int, found: np.ndarray[Any, Any]) -> None:
        """Keep all samples of a run: its keys at multiples of `step`."""
        self._keys[run][:] = found

    def order(self) -> None:
        """Sort all samples; `take` must not be called afterwards."""
        merged = np.argsort(codes(np.concatenate(self._keys), self._descending), kind="stable")
        places = np.empty_like(merged)
        places[merged] = np.arange(merged.size)
        ends = np.cumsum([keys.size for keys in self._keys])
        self._places = np.split(places, ends[:-1])  # each ascending

    def cut(
        self, rank: int, read: Callable[[int, int, int], np.ndarray[Any, Any]]
    ) -> np.ndarray[Any, Any]:
        """Return how many keys of each run are among the first `rank` of all.

        `read(run, begin, end)` returns those keys of a run.
        """
        low, high = self.window(rank)
        windows = [
            codes(read(run, int(begin), int(end)), self._descending)
            for run, (begin, end) in enumerate(zip(low, high, strict=True))
        ]
        return np.asarray(low + first_of(windows, rank - int(low.sum())))

    def window(self, rank: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return how many keys of each run are among the first `rank` at least, and at most."""
        # At most m * step keys lie before the m-th sample, and at least as many without those
        # that may follow the last sample of each run.
        least = rank // self.step
        most = ceil_divide(rank + len(self._lengths) * (self.step - 1), self.step)
        below = np.array([np.searchsorted(places, least) for places in self._places])
        above = np.array([np.searchsorted(places, most) for places in self._places])
        low = np.where(below > 0, (below - 1) * self.step + 1, 0)
        return low, np.minimum(above * self.step, self._lengths)


def first_of(windows: Sequence[np.ndarray[Any, Any]], rank: int) -> np.ndarray[Any, Any]:
    """Return how many codes of each sorted array are among the first `rank` of all."""
    everything = np.concatenate(windows)
    if rank == everything.size:
        return np.array([window.size for window in windows])
    border = np.partition(everything, rank)[rank]
    before = np.array([np.searchsorted(window, border, "left") for window in windows])
    until = np.array([np.searchsorted(window, border, "right") for window in windows])
    # Keys that equal the border are taken from the first arrays first.
    equal = until - before
    return np.asarray(before + np.clip(rank - before.sum() - (np.cumsum(equal) - equal), 0, equal))
