"""Trials: calls of public functions whose results are known.

Each operation says in its module `trials` which problems it has, at which sizes and with which
awkward data: a few fixed ones for the first use of a device, and random ones, which its whole
self-test, `tools/soak.py` and tests draw. Its `ODD_SIZES`, above every tile and multiples of none,
are those at which the tuner checks configurations. `tests/matrix.py` and `tools/race_cases.py` take
sizes and data from there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import is_wide, lacks_type

Array: TypeAlias = np.ndarray[Any, Any]
TOLERANCE = {2: 2e-3, 4: 2e-5, 8: 1e-12}
"""Largest error by bytes of a number, relative to the largest number that is expected. Wrong
kernels are further off; `oclab sort` and others have the bounds of rounding errors."""


class Task(NamedTuple):
    """What a trial computes: ``call(*arrays, **how)`` returns an array, or a tuple of them.

    Where it is a `functools.partial` of a public function, that takes more options.
    """

    call: Callable[..., Any]
    arrays: tuple[Array, ...]
    expected: tuple[Array, ...]


@dataclass(frozen=True)
class Trial:
    """A call of a public function, and its right results.

    Parameters
    ----------
    title : str
        What is computed, after the name of the operation.
    task : callable
        ``task(rng)`` makes the arrays and the right results.
    dtype : str
        Type of the numbers.
    exact : bool
        Whether all values must be equal; else within `TOLERANCE`.
    """

    title: str
    task: Callable[[np.random.Generator], Task]
    dtype: str
    exact: bool = False

    @property
    def wide(self) -> bool:
        """Whether numbers have eight bytes, as `Problem.wide`."""
        return is_wide(np.dtype(self.dtype))

    def error(self, given: tuple[Array, ...], expected: tuple[Array, ...]) -> str:
        """Return what is wrong with results, or ""."""
        if len(given) != len(expected):
            return f"{len(given)} results instead of {len(expected)}"
        for result, right in zip(given, expected, strict=True):
            if (result.shape, result.dtype) != (right.shape, right.dtype):
                return f"a result of {result.dtype}{result.shape}, not {right.dtype}{right.shape}"
            with np.errstate(invalid="ignore"):  # NaN and infinities, and whatever a driver left
                wrong = int(np.count_nonzero(~self._alike(result, right)))
            if wrong:
                return f"{wrong:,} of {right.size:,} numbers are wrong"
        return ""

    def _alike(self, result: Array, right: Array) -> Array:
        number = right.dtype.kind in "fc"
        equal = result == right
        if number:
            equal |= np.isnan(result) & np.isnan(right)
        if self.exact or not number or not right.size:
            return np.asarray(equal)
        size = result.dtype.itemsize // (2 if result.dtype.kind == "c" else 1)
        largest = np.abs(right[np.isfinite(right)]).max(initial=0)
        return np.asarray(equal | (np.abs(result - right) <= TOLERANCE[size] * largest))


class Drawer:
    """Draws what is left open in a trial: sizes, types and options.

    Parameters
    ----------
    device : Device
        The types are those that it has.
    rng : numpy.random.Generator
    """

    def __init__(self, device: Device, rng: np.random.Generator):
        self._device, self._rng = device, rng

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        return items[int(self._rng.integers(len(items)))]

    def chance(self, share: float) -> bool:
        """Return True in such a share of all cases."""
        return bool(self._rng.random() < share)

    def dtype(self, names: Sequence[str]) -> str:
        """Return one of these types that the device has."""
        found: str = self.pick([name for name in names if not lacks_type(self._device, name)])
        return found

    def size(self, most: int, least: int = 1) -> int:
        """Return a size; each order of magnitude is as likely."""
        return round(float(np.exp(self._rng.uniform(np.log(least), np.log(most)))))


class Chooser(Protocol):
    """What trials need of a solver."""

    name: ClassVar[str]
    registry: ClassVar[Mapping[str, Any]]

    def choose(self, problem: Any, device: Device) -> Any:
        """Return the algorithm for a problem."""

    def algorithm(self, name: str) -> Any:
        """Return an algorithm by name."""


@dataclass(frozen=True)
class Trials:
    """The trials of an operation.

    Parameters
    ----------
    solver : Solver
    trials : tuple of Trial
    typical : tuple of Problem
        The algorithms that are chosen for these problems are tested at the first use of a device;
        others when a call needs them.
    only : str
        The algorithm that the calls use, if they take no name of one.
    draw : callable, optional
        Makes a random trial, of any size that takes little time.

    `trials` are those of the first use of a device.
    """

    solver: Chooser
    trials: tuple[Trial, ...]
    typical: tuple[Any, ...] = ()
    only: str = ""
    draw: Callable[[Drawer], Trial] | None = None

    def drawn(self, device: Device, count: int) -> Iterator[Trial]:
        """Yield random trials, the same ones each time."""
        if self.draw is not None:
            for seed in range(count):
                yield self.draw(Drawer(device, np.random.default_rng(seed)))

    def how(self, algorithm: str) -> dict[str, Any] | None:
        """Return the arguments that choose an algorithm; None if there are no trials of it."""
        if self.only:
            return {} if algorithm == self.only else None
        return {"algorithm": algorithm}
