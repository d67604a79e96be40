"""Where to cut several sorted runs, so that the first keys, a given number, lie before the cuts.

Multisequence selection (Varman, Scheufler, Iyer and Ricard 1991) of runs that lie in a file. Every
`step`-th key of each run is known. These samples leave a window of each run in which a cut may lie;
all windows together hold about four steps per run, and are read. Equal keys are parted by the order
of the runs: so pieces have the lengths that were asked for, whatever the keys are, and sorting
the parts of a piece stably, in the order of the runs, is a stable merge.
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
    """Every so many-th key of sorted runs of some lengths."""

    def __init__(self, lengths: Sequence[int], dtype: np.dtype[Any], descending: bool):
        self._lengths = np.array(lengths, np.int64)
        self.dtype, self._descending = dtype, descending
        total = sum(lengths)
        # Sorting all samples once then takes about as long as all windows do.
        fewest = math.isqrt(total) // (2 * len(lengths))
        self.step = max(fewest, total // MOST_SAMPLES, 1)
        self._keys = [np.empty(ceil_divide(length, self.step), dtype) for length in lengths]
        self._places: list[np.ndarray[Any, Any]] = []

    def take(self, run: int, begin: int, keys: np.ndarray[Any, Any]) -> None:
        """Take the samples among some keys of a run, the first of which is the `begin`-th."""
        first = ceil_divide(begin, self.step)
        found = keys[first * self.step - begin :: self.step]
        self._keys[run][first : first + found.size] = found

    def order(self) -> None:
        """Order all samples; none is taken afterwards."""
        merged = np.argsort(codes(np.concatenate(self._keys), self._descending), kind="stable")
        places = np.empty_like(merged)
        places[merged] = np.arange(merged.size)
        ends = np.cumsum([keys.size for keys in self._keys])
        self._places = np.split(places, ends[:-1])  # each ascending

    def cut(
        self, rank: int, read: Callable[[int, int, int], np.ndarray[Any, Any]]
    ) -> np.ndarray[Any, Any]:
        """Return how many keys of each run are among the first `rank` of all.

        `read` returns the keys of a run from one place to another.
        """
        low, high = self._window(rank)
        windows = [
            codes(read(run, int(begin), int(end)), self._descending)
            for run, (begin, end) in enumerate(zip(low, high, strict=True))
        ]
        left = rank - int(low.sum())
        everything = np.concatenate(windows)
        if left == everything.size:
            return high
        border = np.partition(everything, left)[left]
        before = np.array([np.searchsorted(window, border, "left") for window in windows])
        until = np.array([np.searchsorted(window, border, "right") for window in windows])
        # Of those that equal the border the first runs give theirs first.
        equal = until - before
        taken = np.clip(left - before.sum() - (np.cumsum(equal) - equal), 0, equal)
        return np.asarray(low + before + taken)

    def _window(self, rank: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return how many keys of each run are among the first `rank` at least, and at most."""
        # No more keys lie before the m-th sample than m steps, and no fewer than m steps without
        # what may lie behind the last sample of each run.
        least = rank // self.step
        most = ceil_divide(rank + len(self._lengths) * (self.step - 1), self.step)
        below = np.array([np.searchsorted(places, least) for places in self._places])
        above = np.array([np.searchsorted(places, most) for places in self._places])
        low = np.where(below > 0, (below - 1) * self.step + 1, 0)
        return low, np.minimum(above * self.step, self._lengths)
