"""Requests: a problem, its data, and the implementations to run on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.memory import host_memory
from opencl_lab.core.plan import check_plan
from opencl_lab.core.wording import size_text
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.engine.implementations import Implementation, ReferenceRun, Workload
from opencl_lab.lab.engine.ours import OpenCL, row_name
from opencl_lab.lab.engine.references import References, names_of, references_of, workers_of
from opencl_lab.lab.engine.row import Side
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import AUTO, Problem

MANY_THREADS = 256  # OpenMP ends the process if the system cannot create a thread

AlgorithmRun: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""An algorithm, the name of its variant (empty if there is only one), and kernel parameters."""


@dataclass(frozen=True)
class Request:
    """What a comparison runs on one problem."""

    algorithms: str | Sequence[str] = "auto"
    """Names, comma-separated in a string; ``auto`` or ``all``."""
    against: str | Sequence[str] | None = None
    """Names of references, ``none``, or ``all``, which includes those on device data that can run.

    By default the installed ones, on host data; with `resident` all those on device data.
    ``NAME@device`` is a reference on device data only.
    """
    variants: Mapping[str, Mapping[str, Any]] | None = None
    """Kernel parameters by the name of the variant; every algorithm runs once with each."""
    repeats: int | None = None
    """Number of samples of each; by default until medians are precise, see `Rounds`."""
    budget: float | None = None
    """Seconds for all samples but the first of each.

    By default no limit with `repeats`, else `BUDGET` of `opencl_lab.lab.measuring.rounds`.
    """
    threads: int | Sequence[int] | None = None
    """Threads of references that use several; default: all processors.

    Several numbers make a row each, and are the numbers of MPI ranks, too; otherwise 1, 2 and 4
    ranks are started.
    """
    resident: bool = False  # compare on device data only
    runs: Sequence[AlgorithmRun] | None = None  # instead of `algorithms` and `variants`
    lenient: bool = False
    """Whether named references that are missing or too slow get a row instead of an error."""
    timed: bool = True  # False: only check results
    baseline: str | None = None  # the implementation that speed-ups are over, instead of c:seq
    skip: Mapping[str, str] = field(default_factory=dict)
    """References that are not started, by their name in rows, and why: they are ``unavailable``."""


USUAL = Request()


@dataclass(frozen=True)
class Point:
    """One problem, a function that makes its inputs, and the request."""

    operation: Operation[Any]
    problem: Problem
    make_inputs: Callable[[], Arrays]
    request: Request = USUAL

    def asking(self, **changes: Any) -> Point:
        """Return this point with other values in the request."""
        return replace(self, request=replace(self.request, **changes))


def point_of(
    operation: Operation[Any], options: Mapping[str, Any], seed: int, request: Request = USUAL
) -> Point:
    """Return the point of a problem with generated data; missing `options` have their defaults."""
    if seed < 0:
        raise InvalidProblem(f"seed must not be negative: {seed}")
    complete = operation.with_defaults(options)
    problem = operation.problem(**complete)
    generate = partial(operation.generate, problem, seed, **complete)
    return Point(operation, problem, generate, request)


@dataclass(frozen=True)
class PlannedRuns:
    """The runs of a point, after all checks of the request."""

    runs: Sequence[AlgorithmRun]
    configs: Sequence[Mapping[str, Any]]  # the kernel parameters of each run of ours
    sides: Sequence[Side]
    references: References
    threads: Sequence[int]
    ranks: bool  # whether `threads` are numbers of ranks, too
    skip: Mapping[str, str]
    host_only: Container[str]  # algorithms that take no device data

    def _ours(self, side: Side) -> list[AlgorithmRun]:
        return [run for run in self.runs if side == "host" or run[0] not in self.host_only]

    @property
    def names(self) -> list[str]:
        """The names of all implementations in the rows of results."""
        found = []
        for side in self.sides:
            found += [row_name(name, label, side) for name, label, _ in self._ours(side)]
        for item in self.references.every:
            found += workers_of(item, self.threads, self.ranks)
        return found

    def implementations(self, workload: Workload, device: Device) -> list[Implementation]:
        """Return all implementations: on host data, then on device data; ours first."""
        found: list[Implementation] = []
        calls = workload.operation.calls
        references = {"host": self.references.on_host, "device": self.references.on_device}
        for side in self.sides:
            found += [
                OpenCL(workload, device, name, values, label, calls, side)
                for name, label, values in self._ours(side)
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


def check_point(point: Point, device: Device) -> PlannedRuns:
    """Return what `run_point` would run, after all checks, without running anything.

    Raises
    ------
    InvalidProblem, InvalidConfig
        If the problem does not fit the device or the host, or a name is unknown.
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
    choices = point.operation.choices
    planned = PlannedRuns(runs, configs, sides, references, numbers, ranks, request.skip, choices)
    if request.baseline is not None:
        check_baseline(request.baseline, planned.names)
    check_host_memory(point, device)
    return planned


def _checked_config(
    point: Point, name: str, values: Mapping[str, Any], device: Device
) -> dict[str, Any]:
    """Return the kernel parameters of a run, after checking that its plan fits the device."""
    chosen, problem, resident = point.operation, point.problem, point.request.resident
    if name in chosen.choices:  # it has no kernels of its own
        if resident or values:
            what = "data on the device" if resident else "kernel parameters"
            raise InvalidConfig(f"{name} takes no {what}: {chosen.choices[name]}")
        return {}
    algorithm = chosen.algorithm(name)
    config = algorithm.configure(problem, device, values)
    if resident or not chosen.in_parts(problem, device, name, config):
        check_plan(algorithm.plan(problem, config, device), device)
    return dict(config)


def check_host_memory(point: Point, device: Device) -> None:
    """Raise InvalidProblem if inputs, result and right result do not fit into the host's memory."""
    problem = point.problem
    algorithm = point.operation.choose(problem, device)
    plan = algorithm.plan(problem, algorithm.configure(problem, device), device)
    results = 2  # ours and the right one
    needs = sum(buffer.nbytes for buffer in plan.with_role("in"))
    needs += results * sum(buffer.nbytes for buffer in plan.with_role("out"))
    if needs > host_memory():
        raise InvalidProblem(
            f"the data, the result and the right result take {size_text(needs)}, and this machine "
            f"has {size_text(host_memory())}; take a smaller problem"
        )


def check_baseline(name: str, names: Sequence[str]) -> None:
    """Raise InvalidConfig if the baseline `name` is not one of the implementations `names`."""
    if name not in names:
        raise InvalidConfig(
            f"{name} is not measured here, so it is no baseline; there are: {', '.join(names)}"
        )


def _check_effort(request: Request) -> None:
    if request.repeats is not None and request.repeats < 1:
        raise InvalidProblem(f"repeats must be at least 1, not {request.repeats}")
    if request.budget is not None and not 0 < request.budget < math.inf:
        raise InvalidProblem(f"the time limit must be a time in seconds, not {request.budget:g}")


def where_of(point: Point, device: Device, configured: bool = False) -> Device:
    """Return where the library's calls run; those with parameters do not take the serial side."""
    if configured or point.request.resident:
        return device
    return point.operation.side(point.problem, device)


def _runs(point: Point, device: Device) -> Sequence[AlgorithmRun]:
    """Return the runs of a request; each pair of algorithm and variant occurs once."""
    request = point.request
    runs = request.runs
    if runs is None:
        variants = (request.variants or {"": {}}).items()
        where = where_of(point, device, any(values for _, values in variants))
        names = _algorithms(point, where, request.algorithms)
        runs = [(name, label, values) for name in names for label, values in variants]
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for selection, label, values in runs:
        for name in _algorithms(point, where_of(point, device, bool(values)), selection):
            found.setdefault((name, label), values)
    return [(name, label, values) for (name, label), values in found.items()]


def _algorithms(point: Point, device: Device, selection: str | Sequence[str]) -> list[str]:
    """Return the names of the algorithms to run.

    ``all`` means those that support the problem and are not too slow for it, and ``auto`` the
    first of these. If all are too slow, ``all`` means those that support the problem.
    """
    chosen, problem = point.operation, point.problem
    names = names_of(selection)
    if not names:
        raise InvalidConfig("no algorithm is named; take a name, auto or all")
    if names == ["all"]:
        able = [item for item in chosen.algorithms if item.supports(problem, device) is None]
        practical = [item for item in able if item.too_slow(problem) is None]
        found = practical or able or [chosen.choose(problem, device)]  # raises, with the reason
        return [item.name for item in found]
    return [name if name in chosen.choices else _taken(point, device, name) for name in names]


def _taken(point: Point, device: Device, name: str) -> str:
    """Return the algorithm of a name; for ``auto`` one that is not too slow, if there is one."""
    chosen, problem = point.operation, point.problem
    first = chosen.choose(problem, device, name)
    if name == AUTO and first.too_slow(problem) is not None:
        for other in chosen.algorithms:
            if other.supports(problem, device) is None and other.too_slow(problem) is None:
                return other.name
    return first.name
