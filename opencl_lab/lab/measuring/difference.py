"""The error of a result, and its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np

from opencl_lab.drivers.processes import default_threads

Array = np.ndarray[Any, Any]
Block = TypeVar("Block")


@dataclass(frozen=True)
class Difference:
    """The errors of a result, relative to the expected one and to their bound."""

    max_abs: float
    max_rel: float
    """The largest errors of a value. Near zero the relative one is of little use."""
    _: KW_ONLY
    error_over_bound: float | None
    """The largest ratio of an error to the operation's bound: 0 without differences, infinity for
    a difference where the bound is 0; None only in records of earlier versions."""
    rel_l2: float | None = None
    """The relative error in the Euclidean norm, for operations that are judged by it."""
    checked: str = ""
    """How the result was checked, if not value by value; `max_abs` and `max_rel` are NaN then."""
    first_wrong: str = ""
    """The first wrong value, its index and the expected value, where the operation reports it."""

    @classmethod
    def exact(cls, max_abs: float, max_rel: float, same: bool) -> Difference:
        """Return the difference of a result that must be equal to the expected one."""
        return cls(max_abs, max_rel, error_over_bound=0.0 if same else np.inf)

    @property
    def ok(self) -> bool:
        """Whether the result is within its bound."""
        return self.error_over_bound is not None and bool(self.error_over_bound <= 1)

    def __str__(self) -> str:
        kind, value = ("max_rel", self.max_rel) if self.rel_l2 is None else ("rel_l2", self.rel_l2)
        text = self.checked or f"{kind}_diff {value:.3g}"
        if self.error_over_bound is not None and np.isfinite(self.error_over_bound):
            text += f", {self.error_over_bound:.3g} times the bound"
        return f"{text}; {self.first_wrong}" if self.first_wrong else text


UNLIKE = Difference(np.inf, np.inf, error_over_bound=np.inf)
"""The difference of a result of another shape or type."""


def shares_of_bound(error: Any, bound: Any) -> np.ndarray[Any, Any]:
    """Return errors relative to their bounds: 0 without an error, infinity for NaN."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = np.asarray(error / np.asarray(bound, np.float64))
    shares[np.isnan(shares)] = np.inf
    shares[np.broadcast_to(error == 0, shares.shape)] = 0
    return shares


def largest_share(error: Any, bound: Any) -> float:
    """Return the largest of `shares_of_bound`; 0 where there are none."""
    return float(np.max(shares_of_bound(error, bound), initial=0))


def growth(terms: int, dtype: np.dtype[Any]) -> float:
    """Return the error bound of a sum of `terms` terms, relative to the sum of their magnitudes.

    That is ``gamma = n u / (1 - n u)`` with unit roundoff ``u``, in any order of summation
    (N. Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1). It is doubled in
    float64, in which the expected result has this error, too.
    """
    first_order = terms * float(np.finfo(dtype).eps) / 2
    gamma = first_order / (1 - first_order) if first_order < 0.5 else 2 * first_order
    return 2 * gamma if dtype == np.float64 else gamma


def errors_of(right: Array, given: Array, period: float | None = None) -> tuple[Array, Array]:
    """Return the absolute and the relative errors of values.

    Values are float64 or complex128. Those that differ by a `period` are equal, as integers that
    wrap around. Equal values and two NaN have no error; the error between NaN and a number, or
    between an infinity and any other value, is infinite.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        absolute = np.abs(right - given)
        if period is not None:
            absolute = np.minimum(absolute, period - absolute)
        same = (right == given) | (np.isnan(right) & np.isnan(given))
        absolute[same] = 0
        absolute[np.isnan(absolute)] = np.inf
        relative = absolute / (np.abs(right) + 1e-12)
        relative[np.isnan(relative)] = np.inf
        relative[same] = 0
    return absolute, relative


def over_blocks(
    blocks: Iterable[Block], compare: Callable[[Block], tuple[Array, Array, float]]
) -> Difference:
    """Return the difference of a result that is compared block by block, on all processors.

    `compare` returns the absolute and relative errors of a block, and its largest error relative
    to the bound.
    """

    def of_block(block: Block) -> tuple[float, float, float]:
        absolute, relative, share = compare(block)
        return float(np.max(absolute, initial=0)), float(np.max(relative, initial=0)), share

    worst = [0.0, 0.0, 0.0]
    with ThreadPoolExecutor(default_threads()) as threads:
        for found in threads.map(of_block, blocks):
            worst[:] = map(max, worst, found)
    return Difference(worst[0], worst[1], error_over_bound=worst[2])
