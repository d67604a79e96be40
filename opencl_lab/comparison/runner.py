"""Running implementations against each other, interleaved, on one problem or a sweep of sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

from opencl_lab.comparison.implementations import Implementation, ReferenceRun, Workload
from opencl_lab.comparison.measure import Measurement, Side
from opencl_lab.comparison.ours import OpenCL
from opencl_lab.comparison.wanted import References, names_of, references_of, workers_of
from opencl_lab.device import Device
from opencl_lab.discovery import select_device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.operation import Operation
from opencl_lab.plan import check_plan
from opencl_lab.processes import default_threads
from opencl_lab.reference.descriptor import Arrays
from opencl_lab.reference.peers import Calls
from opencl_lab.registry import get_operation
from opencl_lab.solver import Problem

__all__ = [
    "BASELINE",
    "Comparison",
    "StepReport",
    "check_comparison",
    "compare",
    "run_comparison",
]

BASELINE = "c:seq"
MANY_THREADS = 256  # OpenMP ends the process where the system has no thread left

StepReport: TypeAlias = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and what comes next."""


@dataclass(frozen=True)
class Comparison:
    """The measured rows of one problem, its data, and the outputs of the first right algorithm.

    `profiles` has lines for people about every launch, by the name of the row.
    """

    problem: Problem
    device: Device
    measurements: list[Measurement]
    inputs: Arrays
    expected: Arrays
    outputs: Arrays
    errors: list[Exception]
    profiles: dict[str, list[str]]

    @property
    def exit_status(self) -> int:
        """0 when all is right, 4 when a kernel did not build or run, 1 for a wrong result."""
        failed = {row.status for row in self.measurements if row.kind == "opencl"}
        if failed & {"compile", "runtime", "timeout"}:
            return 4
        if failed & {"constraints"}:
            return 2
        wrong = any(row.status in ("correctness", "runtime") for row in self.measurements)
        return 1 if wrong else 0


def _algorithms(
    chosen: Operation[Any], problem: Problem, device: Device, wanted: str | Sequence[str]
) -> list[str]:
    """Return the names of the algorithms to run.

    All that support the problem and are practical, for ``all``; for ``auto`` the first of
    them. Where none is practical, these are those that support it.
    """
    names = names_of(wanted)
    if not names:
        raise InvalidConfig("no algorithm is named; take a name, auto or all")
    if names == ["all"]:
        able = [a.name for a in chosen.algorithms if a.supports(problem, device) is None]
        practical = [name for name in able if chosen.algorithm(name).too_slow(problem) is None]
        return practical or able or [chosen.choose(problem, device).name]  # raises, saying why
    return [
        _first(chosen, problem, device)
        if name == "auto"
        else chosen.choose(problem, device, name).name
        for name in names
    ]


def _first(chosen: Operation[Any], problem: Problem, device: Device) -> str:
    first = chosen.choose(problem, device)
    if first.too_slow(problem) is not None:
        for other in chosen.algorithms:
            if other.supports(problem, device) is None and other.too_slow(problem) is None:
                return other.name
    return first.name


@dataclass(frozen=True)
class _Request:
    """What a comparison is to run, by name and found to be possible."""

    runs: Sequence[tuple[str, str, Mapping[str, Any]]]
    """Algorithm, name of the variant, and parameters."""
    sides: Sequence[Side]
    references: References
    threads: Sequence[int]
    ranks: bool
    """Whether the numbers of threads are those of ranks, too."""

    def steps(self, repeats: int) -> int:
        """Return how many steps there are: of each implementation a start, runs, and two checks."""
        others = (*self.references.on_host, *self.references.on_device)
        rows = sum(len(workers_of(item, self.threads, self.ranks)) for item in others)
        return 2 + (len(self.runs) * len(self.sides) + rows) * (repeats + 3)

    def implementations(
        self, workload: Workload, device: Device, calls: Calls
    ) -> list[Implementation]:
        """Return all that take part: ours, then the others, first those on the host."""
        found: list[Implementation] = []
        others = {"host": self.references.on_host, "device": self.references.on_device}
        for side in self.sides:
            found += [
                OpenCL(workload, device, name, values, label, calls, side)
                for name, label, values in self.runs
            ]
            found += [
                ReferenceRun(workload, item, workers, device, self.references.by_name, name)
                for item in others[side]
                for name, workers in workers_of(item, self.threads, self.ranks).items()
            ]
        return found


class _Steps:
    """Counts the steps of a comparison while it names each before it begins."""

    def __init__(self, total: int, report: StepReport):
        self._numbers = count()
        self._total, self._report = total, report

    def next(self, label: str) -> None:
        self._report(next(self._numbers), self._total, label)


def check_comparison(
    chosen: Operation[Any],
    problem: Problem,
    *,
    device: Device,
    algorithms: str | Sequence[str] = "auto",
    against: str | Sequence[str] | None = None,
    config: Mapping[str, Any] | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    repeats: int = 5,
    threads: int | Sequence[int] | None = None,
    resident: bool = False,
    runs: Sequence[tuple[str, str, Mapping[str, Any]]] | None = None,
    lenient: bool = False,
) -> _Request:
    """Check what `run_comparison` would check, and run nothing."""
    if repeats < 1:
        raise InvalidProblem(f"repeats must be at least 1, not {repeats}")
    most = max(MANY_THREADS, 4 * default_threads())
    threads = default_threads() if threads is None else threads
    numbers = threads if isinstance(threads, Sequence) else [threads]
    for number in numbers:
        if not 1 <= number <= most:
            raise InvalidProblem(f"threads must be from 1 to {most}, not {number}")
    references = references_of(chosen, against, device, resident)
    if lenient:
        references = replace(references, by_name=False)
    if runs is None:
        labels = (variants or {"": {}}).items()
        names = _algorithms(chosen, problem, device, algorithms)
        runs = [(name, label, values) for name in names for label, values in labels]
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for wanted, label, values in runs:
        for name in _algorithms(chosen, problem, device, wanted):
            found.setdefault((name, label), {**(config or {}), **values})
    runs = [(name, label, values) for (name, label), values in found.items()]
    for name, _, values in runs:
        algorithm = chosen.algorithm(name)
        configured = algorithm.configure(problem, device, values)
        check_plan(algorithm.plan(problem, configured, device), device)
    sides: list[Side] = [] if resident else ["host"]
    if resident or references.on_device:
        sides.append("device")
    return _Request(runs, sides, references, numbers, isinstance(threads, Sequence))


def run_comparison(
    chosen: Operation[Any],
    problem: Problem,
    make_inputs: Callable[[], Arrays],
    *,
    device: Device,
    algorithms: str | Sequence[str] = "auto",
    against: str | Sequence[str] | None = None,
    config: Mapping[str, Any] | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    repeats: int = 5,
    threads: int | Sequence[int] | None = None,
    resident: bool = False,
    runs: Sequence[tuple[str, str, Mapping[str, Any]]] | None = None,
    lenient: bool = False,
    timed: bool = True,
    progress: StepReport | None = None,
) -> Comparison:
    """Measure algorithms and references on one problem, taking turns.

    Every implementation first runs once with poisoned outputs and is checked
    against `Operation.expected`; then all make `repeats` rows of calls, one after the other
    in each round, so that a change in the machine's speed meets all of them.

    Where references have their data on the device, so have further runs of the algorithms:
    data on the host and on the device are never set against each other.

    Parameters
    ----------
    chosen : Operation
    problem : Problem
    make_inputs : callable
        Makes the input arrays; called only after the problem was found to fit
        the device.
    device : Device
    algorithms : str or sequence of str
        Names, comma-separated in a string; ``auto`` or ``all``.
    against : str or sequence of str, optional
        Names, ``none``, or ``all``: with those that have their data on the device and can run
        here. By default those that are installed, on data of the host; with `resident` all on
        data of the device. ``NAME@device`` is a reference on data of the device only.
    config : mapping, optional
        Kernel parameters in place of the default ones.
    variants : mapping of str to mapping, optional
        More such parameters, by a name for the rows: every algorithm runs once with each.
    repeats : int
        Timed rows of calls of each.
    threads : int or sequence of int, optional
        For references that use several; default: all processors. Of several numbers each is a
        row of its own, and the same numbers of ranks are started; else ranks are 1, 2 and 4.
    resident : bool
        With the data on the device only.
    runs : sequence of (str, str, mapping), optional
        In place of `algorithms` and `variants`: names, what their rows are called, parameters.
    lenient : bool
        References that are missing or would take too long are rows that say so, as with ``all``,
        though they are asked for by name.
    timed : bool
        Whether anybody looks at the times; else runs that only make them better are left out.
    progress : callable, optional

    Raises
    ------
    InvalidProblem, InvalidConfig
        If the problem does not fit, or a name is unknown.
    ReferenceUnavailable
        If a reference asked for by name cannot run here.
    """
    request = check_comparison(
        chosen,
        problem,
        device=device,
        algorithms=algorithms,
        against=against,
        config=config,
        variants=variants,
        repeats=repeats,
        threads=threads,
        resident=resident,
        runs=runs,
        lenient=lenient,
    )
    steps = _Steps(request.steps(repeats), progress or (lambda done, total, label: None))
    steps.next("input")
    inputs = make_inputs()
    steps.next("right result on the host")
    workload = Workload(chosen, problem, inputs, chosen.expected(problem, inputs))
    with ExitStack() as stack:
        implementations = request.implementations(workload, device, chosen.calls)
        for implementation in implementations:
            implementation.timed = timed
            stack.callback(implementation.close)
            steps.next(f"{implementation.name}, start")
            implementation.attempt(implementation.start)
            if (
                request.references.by_name
                and implementation.status == "unavailable"
                and implementation.error is not None
            ):
                raise implementation.error
        for implementation in implementations:
            steps.next(f"{implementation.name}, first run")
            implementation.check()
        for index in range(repeats):
            for implementation in implementations:
                steps.next(f"{implementation.name}, run {index + 1} of {repeats}")
                implementation.measure()
        for implementation in implementations:
            steps.next(f"{implementation.name}, check of the last run")
            implementation.verify()
        steps.next("done")
        rows = [implementation.measurement() for implementation in implementations]
        profiles = {c.name: c.profile() for c in implementations if isinstance(c, OpenCL)}
        right = (
            c.outputs() for c in implementations if c.kind == "opencl" and c.status == "correct"
        )
        outputs = next(right, {})
    baseline = next((row for row in rows if row.implementation == BASELINE), None)
    errors = [c.error for c in implementations if c.error is not None and c.kind == "opencl"]
    measured = [row.against(baseline) for row in rows]
    return Comparison(
        problem, device, measured, inputs, workload.expected, outputs, list(errors), profiles
    )


def compare(
    operation: str,
    *,
    algorithms: str | Sequence[str] = "auto",
    against: str | Sequence[str] | None = "all",
    repeats: int = 5,
    seed: int = 0,
    threads: int | None = None,
    resident: bool = False,
    config: Mapping[str, Any] | None = None,
    device: str | int | Device | None = None,
    **problem: Any,
) -> list[Measurement]:
    """Compare OpenCL algorithms with the references of an operation on random data.

    Parameters
    ----------
    operation : str
        Such as ``"sort"``.
    algorithms : str or sequence of str
        Names, ``"auto"`` (the one the library would take) or ``"all"``.
    against : str or sequence of str
        Names of references, ``"all"`` or ``"none"``, as is an empty list. All are also those
        that have their data on the device; None leaves them out.
    repeats : int
        Timed rows of calls of each implementation.
    seed : int
        Seed of the data.
    threads : int, optional
        Threads of references that use several; default: all processors.
    resident : bool
        Measure with the data on the device only.
    config : mapping, optional
        Kernel parameters in place of the default ones.
    device : str, int or Device, optional
        As `select_device` takes it.
    **problem
        Options of the operation, such as ``n=50_000, dtype="float32"``.

    Returns
    -------
    list of Measurement
        OpenCL algorithms, then references; first with data on the host, then on the device.

    Raises
    ------
    OclabError
        Of the kind that says what is wrong.
    """
    chosen = get_operation(operation)
    options = chosen.with_defaults(problem)
    settled = chosen.problem(**options)
    return run_comparison(
        chosen,
        settled,
        lambda: chosen.generate(settled, seed, **options),
        device=select_device(device),
        algorithms=algorithms,
        against=against,
        config=config,
        repeats=repeats,
        threads=threads,
        resident=resident,
    ).measurements
