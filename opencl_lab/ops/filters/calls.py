"""Filters by their names, as one operation: each is a call of `opencl_lab.ndimage`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.plan import Plan, Work
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.filters import linear, ranks
from opencl_lab.ops.filters.arguments import axes_of
from opencl_lab.ops.filters.filtering import Asked, Filtering, Inquiry
from opencl_lab.ops.filters.numbers import Type, is_whole
from opencl_lab.ops.filters.solver import LINES, WINDOW
from opencl_lab.ops.solver import AUTO, Algorithm, Problem, Registry, Solver
from opencl_lab.runtime.arrays import AnyArray, as_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import implementation, replayed

FUNCTIONS: Mapping[str, Callable[..., AnyArray]] = {
    "gaussian": linear.gaussian_filter,
    "gradient": linear.gaussian_gradient_magnitude,
    "mean": linear.uniform_filter,
    "minimum": ranks.minimum_filter,
    "maximum": ranks.maximum_filter,
    "median": ranks.median_filter,
    "percentile": ranks.percentile_filter,
    "sobel": linear.sobel,
    "prewitt": linear.prewitt,
    "laplace": linear.laplace,
}
"""The filters by name."""
ALONG = ("sobel", "prewitt")
"""Those that are derivatives along one axis."""
PLAIN = (*ALONG, "laplace")
"""Those that take no number."""
FLOAT = np.dtype(np.float32)
USUAL = "gaussian", 2.0
"""The filter of generated data, unless one is named."""


def named_filter(options: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the filter that options name, and its number; None if there is none."""
    found = {name: options.get(name) for name in FUNCTIONS}
    given = [name for name, value in found.items() if value is not None and value is not False]
    if len(given) > 1:
        raise InvalidProblem(
            f"{' and '.join(given)} are several filters: take one, and filter its result next"
        )
    return (given[0], float(options[given[0]])) if given else None


@dataclass(frozen=True)
class FilterCall(Problem):
    """A call of a filter by its name.

    `value` is its number: sigma, the size of the window, or the percentile. `ksize` is the size of
    the window of a percentile, `axis` that of a derivative; `axes` are those that are filtered.
    """

    sizes: ClassVar[tuple[str, ...]] = ("count", "taps")
    layout: ClassVar[tuple[str, ...]] = ("dtype", "reduce")

    shape: tuple[int, ...] = (1024, 1024)
    dtype: Type = FLOAT
    filter: str = USUAL[0]
    value: float = USUAL[1]
    ksize: int = 3
    axis: int = -1
    axes: tuple[int, ...] = (0, 1)
    mode: str = "reflect"
    cval: float = 0.0

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.shape):
            raise InvalidProblem(f"an array cannot have the shape {self.shape}")
        if self.filter == "gradient" and is_whole(self.dtype):
            raise InvalidProblem(
                f"the squares of a gradient do not fit into {self.dtype}: take float32"
            )
        if self.filter in ("gaussian", "gradient") and not self.value > 0:
            raise InvalidProblem(f"the deviation of a Gaussian is positive, not {self.value:g}")
        asked(self)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the function takes after the array."""
        if self.filter in PLAIN:
            return ()
        value = int(self.value) if self.value.is_integer() else self.value
        return (value, self.ksize) if self.filter == "percentile" else (value,)

    @property
    def options(self) -> dict[str, Any]:
        """Its keywords."""
        found: dict[str, Any] = {"mode": self.mode, "cval": self.cval}
        if self.axes != tuple(range(len(self.shape))):
            found["axes"] = self.axes
        if self.filter in ALONG:
            found["axis"] = self.axis
        return found

    @property
    def work(self) -> Work:
        """That of the windows."""
        return asked(self).problem.work

    @property
    def title(self) -> str:
        """The filter, its numbers, the array, and its axes unless all are filtered alike."""
        named = " ".join([self.filter, *(f"{number:g}" for number in self.arguments)])
        axes = (self.axis,) if self.filter in ALONG else self.axes
        along = ""
        if self.filter in ALONG or len(axes) < len(self.shape):
            along = f" along {', '.join(map(str, axes))}"
        return f"{named} of {' x '.join(map(str, self.shape))} {self.dtype}{along}, {self.mode}"

    @property
    def count(self) -> int:
        """Values of the array."""
        return asked(self).problem.count

    @property
    def taps(self) -> int:
        """Values that each result is made of."""
        return asked(self).problem.taps

    @property
    def reduce(self) -> str:
        """What becomes of the values of a window."""
        return asked(self).problem.reduce

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and what configurations are looked up by."""
        return {**super().as_dict(), **asked(self).problem.looked_up}


@lru_cache(maxsize=256)
def asked(problem: FilterCall) -> Asked:
    """Return what a call would solve, and with which weights."""
    call, array = Inquiry(), np.broadcast_to(problem.dtype.type(0), problem.shape)
    function = implementation(FUNCTIONS[problem.filter])
    function(call, array, *problem.arguments, **problem.options)
    assert call.asked is not None  # each of them solves one problem
    return call.asked


class FilterAlgorithm(Algorithm[FilterCall]):
    """An algorithm of lines or of windows, for calls that need it."""

    def __init__(self, solver: Solver[Any], name: str):
        self._solver, self._inner = solver, solver.algorithm(name)

    def supports(self, problem: FilterCall, device: Device) -> str | None:
        """Need the problem that it is for."""
        found = asked(problem)
        if found.solver is not self._solver:
            return f"the {problem.filter} is one of {found.solver.name}"
        return self._inner.supports(found.problem, device)

    def _problem(self, problem: FilterCall) -> Problem:
        found = asked(problem)
        if found.solver is not self._solver:
            raise InvalidConfig(f"{self.name} is no algorithm of {found.solver.name}")
        return found.problem

    def default_config(self, problem: FilterCall, device: Device) -> Config:
        """Return that of the algorithm."""
        return self._inner.default_config(self._problem(problem), device)

    def search_space(self, problem: FilterCall, device: Device) -> SearchSpace:
        """Return that of the algorithm."""
        return self._inner.search_space(self._problem(problem), device)

    def plan(self, problem: FilterCall, config: Config, device: Device) -> Plan:
        """Return that of the algorithm."""
        return self._inner.plan(self._problem(problem), config, device)


def _named(solver: Solver[Any], name: str) -> Algorithm[FilterCall]:
    inner = solver.algorithm(name)
    copied = ("space", "templates", "version", "modelled")
    about = {"name": name, **{each: getattr(inner, each) for each in copied}}
    made: Algorithm[FilterCall] = type(f"Filter_{name}", (FilterAlgorithm,), about)(solver, name)
    return made


class FilterSolver(Solver[FilterCall]):
    """All filters: those along lines, and those by windows."""

    name = "filter"
    registry: ClassVar[Registry] = {
        name: _named(solver, name) for solver in (LINES, WINDOW) for name in solver.registry
    }

    def choose(
        self, problem: FilterCall, device: Device, name: str = AUTO, *, internal: bool = False
    ) -> Algorithm[FilterCall]:
        """Return what the call would take."""
        found = asked(problem)
        if name != AUTO:
            reason = self.algorithm(name).supports(problem, device)
            if reason is not None:
                raise InvalidConfig(f"no algorithm for this filter on {device}: {name}: {reason}")
        chosen = found.solver.choose(found.problem, device, name, internal=internal)
        return self.algorithm(chosen.name)

    def serial_us(self, problem: FilterCall) -> float:
        """Return the estimated microseconds on one thread."""
        found = asked(problem)
        return found.solver.serial_us(found.problem)

    def parallel_us(self, problem: FilterCall, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        found = asked(problem)
        return found.solver.parallel_us(found.problem, units)


FILTER_SOLVER = FilterSolver()


def filtered_axes(shape: tuple[int, ...], axes: Any, coloured: bool) -> tuple[int, ...]:
    """Return the axes to filter, all but that of colours unless they are given."""
    given = range(len(shape) - coloured) if axes is None else axes
    return tuple(sorted(axes_of(given, len(shape))))


def derivative_axis(axis: int | None, axes: tuple[int, ...]) -> int:
    """Return the axis of a derivative, the last one that is filtered unless it is given."""
    if axis is not None:
        return axis
    return axes[-1] if axes else -1


@replayed()
def filter(
    call: Call,
    image: Any,
    *,
    gaussian: float | None = None,
    gradient: float | None = None,
    mean: int | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
    median: int | None = None,
    percentile: float | None = None,
    sobel: bool = False,
    prewitt: bool = False,
    laplace: bool = False,
    ksize: int = 3,
    axis: int | None = None,
    axes: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    algorithm: str = AUTO,
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
    device: DeviceSpec = None,
) -> AnyArray:
    """Filter an array by one of `FUNCTIONS`, named by its keyword, with an algorithm by its name.

    The other parameters are those of `FilterCall`, and of all public functions.
    """
    f = Filtering.of(call, as_array(image), out, queue, device, "filter")
    numbers = {"gaussian": gaussian, "gradient": gradient, "percentile": percentile}
    sizes = {"mean": mean, "minimum": minimum, "maximum": maximum, "median": median}
    plain = {"sobel": sobel, "prewitt": prewitt, "laplace": laplace}
    name, value = named_filter({**numbers, **sizes, **plain}) or USUAL
    if f.dtype != f.array.dtype:
        raise InvalidProblem(f"out must be of {f.array.dtype}, as the image is, and not {f.dtype}")
    shape = tuple(f.array.shape)
    chosen = filtered_axes(shape, axes, False)
    axis = derivative_axis(axis, chosen)
    problem = FilterCall(shape, f.array.dtype, name, value, ksize, axis, chosen, mode, cval)
    return f.run(*asked(problem), algorithm=algorithm, config=config)
