"""The problem of sorting rows of keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import C_TYPES, WORD_TYPES
from opencl_lab.core.plan import Work
from opencl_lab.core.wording import counted
from opencl_lab.ops.problem import Problem

KEY_TYPES = tuple(name for name in C_TYPES if not name.startswith("complex"))
"""Names of the dtypes that can be sorted, besides those of times in any unit."""
PARTIAL_KEYS = "only radix sorts by some bits of the keys"


def check_keys(dtype: np.dtype[Any], count: int) -> None:
    """Refuse keys of a dtype that has no order here, and more of them than can be counted."""
    if count >= 2**63:
        raise InvalidProblem(f"{count} keys are more than a 64-bit index counts")
    if (dtype.name not in KEY_TYPES and dtype.kind not in "mM") or not dtype.isnative:
        raise InvalidProblem(
            f"cannot sort keys of dtype {dtype}; supported: {', '.join(KEY_TYPES)}, datetime64, "
            "timedelta64"
        )


@dataclass(frozen=True)
class SortProblem(Problem):
    """Sort `rows` rows of `n` keys each, stably."""

    sizes = ("n", "rows")
    layout = ("dtype", "indices", "value_bytes")

    n: int  # keys in a row
    dtype: np.dtype[Any]  # type of the keys, in the machine's byte order
    rows: int = 1
    # Reverse NumPy's order, but NaN and NaT stay last; equal keys still keep their order.
    descending: bool = False
    indices: bool = False  # return each key's position in its row (int64) instead of the keys
    value_bytes: int = 0  # size of the value that belongs to each key; 0 for none
    # First bit to sort by, and one after the last, as `opencl_lab.sort` describes; None: all.
    bits: tuple[int, int] | None = None
    # Where descending, NaN and NaT are the largest keys; only `topk` sorts so.
    nan_first: bool = False

    def __post_init__(self) -> None:
        self._check_sizes()
        check_keys(self.dtype, self.n * self.rows)
        if self.bits is not None:
            most = 8 * self.dtype.itemsize
            if not 0 <= self.bits[0] < self.bits[1] <= most:
                raise InvalidProblem(
                    f"bits must be (low, high) with 0 <= low < high <= {most}, not {self.bits}"
                )
        if self.value_bytes and self.value_bytes not in WORD_TYPES:
            raise InvalidProblem(
                f"values of {self.value_bytes} bytes cannot travel with keys (sizes: "
                f"{', '.join(map(str, WORD_TYPES))}); use argsort and index with its result"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that a user can choose."""
        values = super().as_dict()
        del values["nan_first"]
        return values

    @property
    def title(self) -> str:
        """Number and type of the keys, and the options."""
        keys = f"{self.n:,} {self.dtype} keys"
        parts = [keys if self.rows == 1 else f"{self.rows:,} rows of {keys}"]
        parts += ["by bits {} to {}".format(*self.bits)] if self.bits else []
        parts += ["as indices"] * self.indices
        parts += [f"with values of {counted(self.value_bytes, 'byte')}"] * bool(self.value_bytes)
        return ", ".join(parts + ["descending"] * self.descending)

    @property
    def code_bits(self) -> int:
        """How many bits of a key are sorted by."""
        return 8 * self.dtype.itemsize if self.bits is None else self.bits[1] - self.bits[0]

    @property
    def work(self) -> Work:
        """One read and one write of every key, value and index."""
        moved = 2 * (self.dtype.itemsize + self.value_bytes)
        if self.indices:
            moved = self.dtype.itemsize + 8
        keys = self.rows * self.n
        return Work(flops=0, bytes=float(keys * moved), items=keys, item="keys")


@dataclass(frozen=True)
class RunsProblem(SortProblem):
    """Merge the sorted runs that make a row of `n` keys; equal keys are taken run by run."""

    runs: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runs < 2 or self.rows != 1 or self.indices or self.bits is not None:
            raise InvalidProblem("at least two runs of one row are merged, by whole keys")
