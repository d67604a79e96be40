"""How far a result is from the right one, and how far it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np

from opencl_lab.drivers.processes import default_threads

Array = np.ndarray[Any, Any]
Part = TypeVar("Part")


@dataclass(frozen=True)
class Difference:
    """How far a result is from the expected one, and how far it may be."""

    max_abs: float
    max_rel: float
    """The largest errors of a value. Near zero the relative one says little."""
    _: KW_ONLY
    error_over_bound: float | None
    """The largest error over the bound by which the operation judges it: 0 where nothing differs,
    infinity where nothing may and something does; None only in records of earlier versions."""
    rel_l2: float | None = None
    """The relative error in the Euclidean norm, by operations that judge by it."""
    checked: str = ""
    """How, where it is not each value that was compared; `max_abs` and `max_rel` are NaN then."""
    first_wrong: str = ""
    """The first wrong value, its place and what it should be, by operations that say."""

    @classmethod
    def exact(cls, max_abs: float, max_rel: float, same: bool) -> Difference:
        """Return the difference of a result in which no value may be another."""
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
"""That of a result of another shape or type."""


def shares_of_bound(error: Any, bound: Any) -> np.ndarray[Any, Any]:
    """Return errors relative to their bounds: 0 without an error, infinity for what is NaN."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = np.asarray(error / np.asarray(bound, np.float64))
    shares[np.isnan(shares)] = np.inf
    shares[np.broadcast_to(error == 0, shares.shape)] = 0
    return shares


def largest_share(error: Any, bound: Any) -> float:
    """Return the largest of `shares_of_bound`; 0 where there are none."""
    return float(np.max(shares_of_bound(error, bound), initial=0))


def growth(terms: int, dtype: np.dtype[Any]) -> float:
    """Return how far a sum of so many terms may be off, relative to the sum of their magnitudes.

    That is ``gamma = n u / (1 - n u)`` with unit roundoff ``u``, whatever the order of the sum
    (N. Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1). It is twice that in
    float64, in which the right result has this error too.
    """
    first_order = terms * float(np.finfo(dtype).eps) / 2
    gamma = first_order / (1 - first_order) if first_order < 0.5 else 2 * first_order
    return 2 * gamma if dtype == np.float64 else gamma


def errors_of(right: Array, given: Array, period: float | None = None) -> tuple[Array, Array]:
    """Return the absolute and the relative errors of values.

    Values are float64 or complex128; those that differ by a `period` are the same, as integers
    that wrap around. The same values and two NaN have no error. Where only one is NaN, and between
    an infinity and anything else, it is infinite.
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


def over_parts(
    parts: Iterable[Part], compare: Callable[[Part], tuple[Array, Array, float]]
) -> Difference:
    """Return the difference of a result that all processors compare, a part each at a time.

    `compare` returns absolute and relative errors of a part, and its largest error over the bound.
    """

    def of_part(part: Part) -> tuple[float, float, float]:
        absolute, relative, share = compare(part)
        return float(np.max(absolute, initial=0)), float(np.max(relative, initial=0)), share

    worst = [0.0, 0.0, 0.0]
    with ThreadPoolExecutor(default_threads()) as threads:
        for found in threads.map(of_part, parts):
            worst[:] = map(max, worst, found)
    return Difference(worst[0], worst[1], error_over_bound=worst[2])
