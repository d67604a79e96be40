"""The problems `topk`, `unique` and `searchsorted`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Work
from opencl_lab.ops.problem import Problem
from opencl_lab.ops.sort.problem import SortProblem, check_keys


@dataclass(frozen=True)
class TopkProblem(Problem):
    """Find the first `k` keys of each row, in sorted order, and their positions."""

    sizes = ("n", "k", "rows")
    layout = ("dtype",)

    n: int  # keys in a row
    k: int  # keys to find in each row, at most `n`
    dtype: np.dtype[Any]  # type of the keys, in the machine's byte order
    rows: int = 1
    largest: bool = True  # the first keys are the largest, with NaN before them

    def __post_init__(self) -> None:
        self._check_sizes("n", "rows")
        check_keys(self.dtype, max(self.n, self.rows, self.n * self.rows))
        if not 0 <= self.k <= self.n:
            raise InvalidProblem(f"k must be 0 to {self.n}, the keys that there are, not {self.k}")

    @property
    def title(self) -> str:
        """Number of keys to find, and number and type of all keys."""
        which = "largest" if self.largest else "smallest"
        rows = "" if self.rows == 1 else f"{self.rows:,} rows of "
        return f"the {self.k:,} {which} of {rows}{self.n:,} {self.dtype} keys"

    @property
    def order(self) -> SortProblem:
        """The sort of all positions by their keys."""
        return replace(self.selected, n=self.n, indices=True, value_bytes=0)

    @property
    def selected(self) -> SortProblem:
        """The sort of the keys that are selected, with their positions."""
        down = self.largest
        return SortProblem(
            self.k, self.dtype, self.rows, descending=down, value_bytes=8, nan_first=down
        )

    @property
    def work(self) -> Work:
        """One read of every key, and one write of each result."""
        item, keys = self.dtype.itemsize, self.rows * self.n
        nbytes = float(keys * item + self.rows * self.k * (item + 8))
        return Work(0, nbytes, items=keys, item="keys")


@dataclass(frozen=True)
class UniqueProblem(Problem):
    """Find the distinct keys, sorted, and on request their counts and positions."""

    sizes = ("n",)
    layout = ("dtype", "counts", "first", "inverse")

    n: int
    dtype: np.dtype[Any]  # type of the keys, in the machine's byte order
    counts: bool = False  # whether to count how often each key occurs
    first: bool = False  # whether to return the position of each key's first occurrence
    inverse: bool = False  # whether to return the index of each key among the distinct ones
    equal_nan: bool = True  # whether all NaN, or all NaT, are one key

    def __post_init__(self) -> None:
        self._check_sizes()
        check_keys(self.dtype, self.n)

    @property
    def title(self) -> str:
        """Number and type of the keys, and the options."""
        parts = [f"{self.n:,} {self.dtype} keys", *["counted"] * self.counts]
        return ", ".join([*parts, *["with places"] * self.placed])

    @property
    def placed(self) -> bool:
        """Whether positions of keys are needed."""
        return self.first or self.inverse

    @property
    def sorting(self) -> SortProblem:
        """The sort that comes first."""
        return SortProblem(self.n, self.dtype, indices=self.placed)

    @property
    def work(self) -> Work:
        """Two reads of every key: one to count the results, one to write them."""
        return Work(0, 2.0 * self.n * self.dtype.itemsize, items=self.n, item="keys")


@dataclass(frozen=True)
class SearchProblem(Problem):
    """Find where values would be inserted among `n` sorted keys."""

    sizes = ("n", "m")
    layout = ("dtype", "sorter")

    n: int  # keys
    m: int  # values to search for
    dtype: np.dtype[Any]  # type of both, in the machine's byte order
    right: bool = False  # whether values go after equal keys
    sorter: bool = False  # whether keys are unsorted, and an argsort of them is given

    def __post_init__(self) -> None:
        self._check_sizes()
        check_keys(self.dtype, max(self.n, self.m))

    @property
    def title(self) -> str:
        """Number and type of the values, and number of the keys."""
        side = ", behind equal keys" if self.right else ""
        side += ", by a sorter" * self.sorter
        return f"{self.m:,} {self.dtype} values among {self.n:,} keys{side}"

    @property
    def work(self) -> Work:
        """One read of every value, and one write of its position."""
        nbytes = float(self.m * (self.dtype.itemsize + 8))
        return Work(0, nbytes, items=self.m, item="values")
