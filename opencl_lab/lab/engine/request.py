"""What is asked for at a point: a problem, its data, and the implementations to run on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.plan import check_plan
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.implementations import Implementation, ReferenceRun, Workload
from opencl_lab.lab.engine.ours import OpenCL, row_name
from opencl_lab.lab.engine.references import References, names_of, references_of, workers_of
from opencl_lab.lab.engine.row import Side
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import AUTO, Problem

MANY_THREADS = 256  # OpenMP ends the process where the system has no thread left

AlgorithmRun: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""An algorithm, the name of its variant (empty for the only one), and kernel parameters."""


@dataclass(frozen=True)
class Request:
    """What a comparison is asked to run on one problem."""

    algorithms: str | Sequence[str] = "auto"
    """Names, comma-separated in a string; ``auto`` or ``all``."""
    against: str | Sequence[str] | None = None
    """Names of references, ``none``, or ``all``: with those on the device that can run here.

    By default those that are installed, on data of the host; with `resident` all on data of the
    device. ``NAME@device`` is a reference on data of the device only.
    """
    variants: Mapping[str, Mapping[str, Any]] | None = None
    """Kernel parameters by a name for the rows: every algorithm runs once with each."""
    repeats: int | None = None
    """Timed rows of calls of each; without it as many as make the spread small, see `Rounds`."""
    budget: float | None = None
    """Seconds for all timed rows, the first one of each aside.

    By default no limit with `repeats`, else `BUDGET` of `opencl_lab.lab.measuring.rounds`.
    """
    threads: int | Sequence[int] | None = None
    """For references that use several; default: all processors.

    Of several numbers each is a row of its own, and the same numbers of ranks are started; else
    ranks are 1, 2 and 4.
    """
    resident: bool = False  # with the data on the device only
    runs: Sequence[AlgorithmRun] | None = None  # instead of `algorithms` and `variants`
    lenient: bool = False
    """Whether references that are missing or too slow are rows that say so, even if named."""
    timed: bool = True  # whether anybody looks at the times; else runs for their sake are left out
    baseline: str | None = None  # the row that speed-ups are over, instead of c:seq
    skip: Mapping[str, str] = field(default_factory=dict)
    """Rows of references that are not started, by name, and why: they are ``unavailable``."""


USUAL = Request()


@dataclass(frozen=True)
class Point:
    """One problem, what makes its inputs, and what is to be run on it."""

    operation: Operation[Any]
    problem: Problem
    make_inputs: Callable[[], Arrays]
    request: Request = USUAL

    def asking(self, **changes: Any) -> Point:
        """Return the same problem with other values in the request."""
        return replace(self, request=replace(self.request, **changes))


def point_of(
    operation: Operation[Any], options: Mapping[str, Any], seed: int, request: Request = USUAL
) -> Point:
    """Return a problem of generated data; `options` that are not given are as by default."""
    complete = operation.with_defaults(options)
    problem = operation.problem(**complete)
    generate = partial(operation.generate, problem, seed, **complete)
    return Point(operation, problem, generate, request)


@dataclass(frozen=True)
class Schedule:
    """The runs of a point by name, all of them found to be possible."""

    runs: Sequence[AlgorithmRun]
    configs: Sequence[Mapping[str, Any]]  # the kernel parameters of each run of ours
    sides: Sequence[Side]
    references: References
    threads: Sequence[int]
    ranks: bool  # whether the numbers of threads are those of ranks, too
    skip: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """What the rows are called, one for each implementation that takes part."""
        found = [row_name(name, label, side) for side in self.sides for name, label, _ in self.runs]
        for item in self.references.every:
            found += workers_of(item, self.threads, self.ranks)
        return found

    def implementations(self, workload: Workload, device: Device) -> list[Implementation]:
        """Return all that take part: on data of the host, then of the device; ours first."""
        found: list[Implementation] = []
        chosen = workload.operation
        references = {"host": self.references.on_host, "device": self.references.on_device}
        for side in self.sides:
            found += [
                OpenCL(workload, device, name, values, label, chosen.calls, side)
                for name, label, values in self.runs
                if side == "host" or name not in chosen.choices
            ]
            found += [
                ReferenceRun(workload, item, workers, device, self.references.by_name, name)
                for item in references[side]
                for name, workers in workers_of(item, self.threads, self.ranks).items()
            ]
        for item in found:
            if item.name in self.skip:
                item.status, item.reason = "unavailable", self.skip[item.name]
        return found


def check_point(point: Point, device: Device) -> Schedule:
    """Return what `run_point` would run, after all its checks; nothing is run here.

    It raises InvalidProblem or InvalidConfig if the problem does not fit the device, or a name
    is unknown.
    """
    request = point.request
    _check_effort(request)
    threads = default_threads() if request.threads is None else request.threads
    ranks = isinstance(threads, Sequence)
    numbers = threads if isinstance(threads, Sequence) else [threads]
    most = max(MANY_THREADS, 4 * default_threads())
    for number in numbers:
        if not 1 <= number <= most:
            raise InvalidProblem(f"threads must be from 1 to {most}, not {number}")
    references = references_of(point.operation, request.against, device, request.resident)
    if request.lenient:
        references = replace(references, by_name=False)
    runs = _runs(point, device)
    configs = [_checked_config(point, name, values, device) for name, _, values in runs]
    sides: list[Side] = [] if request.resident else ["host"]
    if request.resident or references.on_device:
        sides.append("device")
    schedule = Schedule(runs, configs, sides, references, numbers, ranks, request.skip)
    if request.baseline is not None:
        check_baseline(request.baseline, schedule.names)
    return schedule


def _checked_config(
    point: Point, name: str, values: Mapping[str, Any], device: Device
) -> dict[str, Any]:
    """Return the kernel parameters of a run whose plan fits the device."""
    chosen, problem, resident = point.operation, point.problem, point.request.resident
    if name in chosen.choices:  # which stands for no kernels
        if resident or values:
            what = "data on the device" if resident else "kernel parameters"
            raise InvalidConfig(f"{name} takes no {what}: {chosen.choices[name]}")
        return {}
    algorithm = chosen.algorithm(name)
    config = algorithm.configure(problem, device, values)
    if resident or not chosen.in_parts(problem, device, name, config):
        check_plan(algorithm.plan(problem, config, device), device)
    return dict(config)


def check_baseline(name: str, names: Sequence[str]) -> None:
    """Raise InvalidConfig if speed-ups cannot be over `name`, which is none of those of rows."""
    if name not in names:
        raise InvalidConfig(
            f"{name} is not measured here, so it is no baseline; there are: {', '.join(names)}"
        )


def _check_effort(request: Request) -> None:
    if request.repeats is not None and request.repeats < 1:
        raise InvalidProblem(f"repeats must be at least 1, not {request.repeats}")
    if request.budget is not None and not 0 < request.budget < math.inf:
        raise InvalidProblem(f"the time limit must be a time in seconds, not {request.budget:g}")


def _runs(point: Point, device: Device) -> Sequence[AlgorithmRun]:
    """Return the runs of algorithms, each pair of algorithm and variant once."""
    request = point.request
    runs = request.runs
    if runs is None:
        variants = (request.variants or {"": {}}).items()
        names = _algorithms(point, device, request.algorithms)
        runs = [(name, label, values) for name in names for label, values in variants]
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for wanted, label, values in runs:
        for name in _algorithms(point, device, wanted):
            found.setdefault((name, label), values)
    return [(name, label, values) for (name, label), values in found.items()]


def _algorithms(point: Point, device: Device, wanted: str | Sequence[str]) -> list[str]:
    """Return the names of the algorithms to run.

    All that support the problem and are practical, for ``all``; for ``auto`` the first of
    them. Where none is practical, these are those that support it.
    """
    chosen, problem = point.operation, point.problem
    names = names_of(wanted)
    if not names:
        raise InvalidConfig("no algorithm is named; take a name, auto or all")
    if names == ["all"]:
        able = [item for item in chosen.algorithms if item.supports(problem, device) is None]
        practical = [item for item in able if item.too_slow(problem) is None]
        found = practical or able or [chosen.choose(problem, device)]  # which raises, saying why
        return [item.name for item in found]
    return [name if name in chosen.choices else _taken(point, device, name) for name in names]


def _taken(point: Point, device: Device, name: str) -> str:
    """Return the algorithm that a name stands for; for ``auto`` one that is practical."""
    chosen, problem = point.operation, point.problem
    first = chosen.choose(problem, device, name)
    if name == AUTO and first.too_slow(problem) is not None:
        for other in chosen.algorithms:
            if other.supports(problem, device) is None and other.too_slow(problem) is None:
                return other.name
    return first.name
