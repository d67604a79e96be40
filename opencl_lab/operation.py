"""What a problem, an algorithm, a solver and an operation are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from opencl_lab.device import Device, select_device
from opencl_lab.errors import InvalidConfig, InvalidProblem
from opencl_lab.files import FORMATS
from opencl_lab.plan import Plan, Work, check_plan
from opencl_lab.reference.descriptor import Arrays, Reference
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.execute import Execution, execute
from opencl_lab.runtime.recording import note_condition
from opencl_lab.runtime.session import default_queue, session_of
from opencl_lab.space import Config, SearchSpace
from opencl_lab.template import kernel_digest, recent_digest
from opencl_lab.tuned import database
from opencl_lab.wording import counted

__all__ = [
    "Algorithm",
    "Curves",
    "Difference",
    "Operation",
    "Option",
    "Problem",
    "Solver",
    "axis_of",
    "real_number",
]


NUMBERS: dict[type, tuple[type, str]] = {int: (Integral, "whole"), float: (Real, "real")}


def real_number(value: Any, name: str) -> float:
    """Return an argument as a float; one that no float can hold is an infinity.

    Raises
    ------
    InvalidProblem
        If it is no real number, named by `name`.
    """
    try:
        # NumPy's complex numbers would lose their imaginary parts, and a text is no number.
        if np.iscomplexobj(value) or isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except OverflowError:  # a large whole number
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"{name} must be a real number, not {value!r}") from error


def axis_of(options: Mapping[str, Any], dimensions: int) -> int:
    """Return the axis that the option `axis` names, the last by default, counted from the front.

    Raises
    ------
    InvalidProblem
        If there is no such axis.
    """
    axis = options.get("axis")
    if axis is None:
        return dimensions - 1
    if not -dimensions <= axis < dimensions:
        where = counted(dimensions, "dimension")
        raise InvalidProblem(f"axis {axis} is out of bounds for {where}")
    return int(axis) % dimensions


@dataclass(frozen=True)
class Problem(ABC):
    """Shapes, dtype and options of one problem; its constructor validates them.

    Subclasses are frozen dataclasses, so that problems are hashable.
    """

    sizes: ClassVar[tuple[str, ...]]
    """The fields that say how large the problem is."""
    layout: ClassVar[tuple[str, ...]]
    """The other fields that change which configuration is the fastest, such as the dtype."""

    @property
    @abstractmethod
    def work(self) -> Work:
        """The least arithmetic and memory traffic that solve it."""

    @property
    def title(self) -> str:
        """What it is in the words of its user, for tables, plots and messages.

        Unless an operation has better words: the sizes, and what is not as by default.
        """
        default = {item.name: item.default for item in fields(self)}
        return ", ".join(
            f"{name}={value:,}" if type(value) is int else f"{name}={value}"
            for name, value in self.as_dict().items()
            if name in self.sizes or (name in default and getattr(self, name) != default[name])
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: value.name
            if isinstance(value, np.dtype)
            else repr(value)  # JSON knows neither infinities nor NaN
            if isinstance(value, float) and not math.isfinite(value)
            else value
            for name, value in values.items()
        }


P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class Option:
    """One named option of an operation, as keyword and on the command line alike.

    Parameters
    ----------
    name : str
        Python keyword; the command line writes it with dashes.
    type : type
        ``int``, ``float``, ``str`` or ``bool`` (a flag).
    default : object
        Value when it is not given.
    help : str
        One line.
    choices : tuple of str, optional
        The only values allowed.
    about_data : bool
        Whether it says how input data are generated and not what the problem is.
    with_files : bool
        Whether an option about data is needed for a user's own files too, because it
        describes an input that they do not hold.
    """

    name: str
    type: type
    default: Any
    help: str
    choices: tuple[str, ...] | None = None
    about_data: bool = False
    with_files: bool = False


@dataclass(frozen=True)
class Difference:
    """How far a result is from the expected one, and whether that is within tolerance.

    `rel_l2` is the relative error in the Euclidean norm, by operations that judge by it: the
    largest relative error of one element says little where elements are near zero.
    """

    max_abs: float
    max_rel: float
    ok: bool
    rel_l2: float | None = None

    def __str__(self) -> str:
        if self.rel_l2 is not None:
            return f"rel_l2_diff {self.rel_l2:.3g}"
        return f"max_rel_diff {self.max_rel:.3g}"


@dataclass(frozen=True)
class Curves:
    """A picture of a result: curves by name over common points, and what the axes show."""

    points: np.ndarray[Any, Any]
    values: Mapping[str, np.ndarray[Any, Any]]
    x_label: str
    y_label: str


class Algorithm(ABC, Generic[P]):
    """One way to solve the problems of an operation on a device."""

    name: ClassVar[str]
    space: ClassVar[SearchSpace]
    templates: ClassVar[tuple[str, ...]] = ()
    """Templates of its kernels; tuned configurations hold until one of them changes."""
    replanned: ClassVar[bool] = False
    """Whether `plan` is asked at every call: what it calls may change while a kernel is written."""
    operation: str = ""
    """Name of the operation that lists it; set by that class."""

    def supports(self, problem: P, device: Device) -> str | None:
        """Return why this algorithm cannot solve `problem` on `device`, or None if it can."""
        return None

    def too_slow(self, problem: P) -> str | None:
        """Return why few would wait for it: comparisons then run it by its name only."""
        return None

    def work(self, problem: P) -> Work:
        """Return the least that this algorithm does, which the device's peaks bound."""
        return problem.work

    @abstractmethod
    def default_config(self, problem: P, device: Device) -> Config:
        """Return the built-in configuration for this kind of device."""

    def search_space(self, problem: P, device: Device) -> SearchSpace:
        """Return the part of the space that can make a difference here: what a tuner tries."""
        return self.space

    @abstractmethod
    def plan(self, problem: P, config: Config, device: Device) -> Plan:
        """Return what to launch. Pure: no OpenCL call, no device handle."""

    def configure(
        self, problem: P, device: Device, values: Mapping[str, Any] | None = None
    ) -> Config:
        """Return the tuned or else the default configuration with explicit `values` put in.

        Raises
        ------
        InvalidConfig
            If the space of this algorithm does not allow the result, or `values` are none.
        """
        if values is not None and not isinstance(values, Mapping):
            raise InvalidConfig(f"config must map parameters to values, not be {values!r}")
        if values:
            return self._configure(problem, device, values)
        # This is on the way of every call, so the answer is kept.
        return database.remember(
            (self, recent_digest(self.templates), problem, device, database.enabled()),
            lambda: self._configure(problem, device, {}),
        )

    def _configure(self, problem: P, device: Device, values: Mapping[str, Any]) -> Config:
        default = self.default_config(problem, device)
        if set(values) < set(self.space.names):
            found = self.tuned(problem, device, values)
            if found is not None:
                return found[0]
        return self.space.check(values, default)

    def tuned(
        self, problem: P, device: Device, values: Mapping[str, Any] | None = None
    ) -> tuple[Config, database.Match] | None:
        """Return the best tuned configuration that is allowed here, and where it is from.

        None if there is none, or ``OCLAB_TUNING=off``; `values` replace its own.
        """
        if not (database.enabled() and self.templates and self.operation):
            return None
        digest = kernel_digest(self.templates)
        for match in database.lookup(device, self.operation, self.name, problem, digest):
            merged = {**match.entry.config, **(values or {})}
            # What was measured elsewhere may break a limit of this device or problem.
            with suppress(InvalidConfig, InvalidProblem):
                config = self.space.check(merged, self.default_config(problem, device))
                check_plan(self.plan(problem, config, device), device)
                return config, match
        return None


class Solver(ABC, Generic[P]):
    """What solves problems of a kind: its algorithms, and the one road to a result."""

    name: ClassVar[str]
    algorithms: ClassVar[tuple[Algorithm[Any], ...]]
    """In order of preference: ``auto`` takes the first that supports the problem."""

    def algorithm(self, name: str) -> Algorithm[P]:
        """Return an algorithm by name.

        Raises
        ------
        InvalidConfig
            If there is none of that name.
        """
        for algorithm in self.algorithms:
            if algorithm.name == name:
                return algorithm
        names = ", ".join(algorithm.name for algorithm in self.algorithms)
        raise InvalidConfig(f"{self.name} has no algorithm {name!r}; it has: auto, {names}")

    def choose(self, problem: P, device: Device, name: str = "auto") -> Algorithm[P]:
        """Return the algorithm `name`, or for ``auto`` the first that supports the problem.

        Raises
        ------
        InvalidConfig
            If there is no such algorithm, or it does not support this problem here.
        """
        candidates = self.algorithms if name == "auto" else (self.algorithm(name),)
        reasons = []
        for algorithm in candidates:
            reason = algorithm.supports(problem, device)
            if reason is None:
                return algorithm
            reasons.append(f"{algorithm.name}: {reason}")
        raise InvalidConfig(f"no algorithm for this {self.name} on {device}: {'; '.join(reasons)}")

    def run(
        self,
        problem: P,
        inputs: Mapping[str, Any],
        *,
        algorithm: str = "auto",
        config: Mapping[str, Any] | None = None,
        queue: Any = None,
        out: Mapping[str, Any] | None = None,
    ) -> Execution:
        """Solve a problem on contiguous arrays of the host or of the device.

        This is the one road from a problem to its result: the public functions,
        the comparison, the tuner and the tests all take it.

        Parameters
        ----------
        problem : Problem
        inputs : mapping
            An array for every input buffer of the plan.
        algorithm : str
            Name of an algorithm, or ``auto``.
        config : mapping, optional
            Parameters that replace those of the default configuration.
        queue : pyopencl.CommandQueue, optional
            Where to run; by default the library's queue on `select_device()`.
        out : mapping, optional
            Arrays that receive outputs; they must not overlap the inputs.

        Raises
        ------
        InvalidProblem, InvalidConfig, BuildError, LaunchError
        """
        for name, array in {**inputs, **(out or {})}.items():
            if is_device_array(array) and array.size and array.offset:
                raise InvalidProblem(f"the device array {name!r} has an offset; pass a copy")
        if queue is None:
            queue = default_queue(select_device())
        session = session_of(queue)
        chosen = self.choose(problem, session.device, algorithm)
        settled = chosen.configure(problem, session.device, config)
        definition = _definition(chosen.plan)
        note_condition(partial(_is_defined_so, chosen, *definition))
        executable = session.executable(
            (chosen, definition, problem, settled),
            lambda: chosen.plan(problem, settled, session.device),
            replan=chosen.replanned,
        )
        return execute(executable, inputs, queue, out)


class Operation(Solver[P]):
    """A kind of problem with its algorithms, references, data and tolerance.

    The command line, the comparison, the tuner and the tests know operations
    through this class alone.
    """

    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]
    size_option: ClassVar[str]
    """The option that a sweep over sizes sets."""
    inputs: ClassVar[tuple[str, ...]]
    """Names of the arrays that a user supplies, in the order of the command line."""
    formats: ClassVar[tuple[str, ...]] = FORMATS
    """Endings of the files that they may come from, and the result may go to."""
    output: ClassVar[str]
    """Name of the array that a user wants back."""
    check_cases: ClassVar[tuple[Mapping[str, Any], ...]]
    """Changes of a problem, each with small sizes above every tile, of which none is a multiple.
    Every configuration is checked with the first of them, and with all before it can win."""
    default_name: ClassVar[str] = "built-in"
    """What a configuration is called that nobody has tuned or asked for."""
    references: ClassVar[tuple[Reference, ...]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for algorithm in vars(cls).get("algorithms", ()):
            algorithm.operation = cls.name

    @abstractmethod
    def problem(self, **options: Any) -> P:
        """Return the problem that `options` describe; unknown ones never get here."""

    @abstractmethod
    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[P, Arrays]:
        """Return the problem of a user's host arrays, and the arrays as its inputs."""

    @abstractmethod
    def generate(self, problem: P, seed: int, **options: Any) -> Arrays:
        """Return random inputs for `problem`, the same for the same seed."""

    @abstractmethod
    def expected(self, problem: P, inputs: Arrays) -> Arrays:
        """Return the right outputs, computed on the host by NumPy."""

    @abstractmethod
    def compare(self, problem: P, inputs: Arrays, expected: Arrays, actual: Arrays) -> Difference:
        """Compare outputs with the expected ones; a tolerance may depend on the inputs."""

    @property
    def reference_is_first(self) -> bool:
        """Whether `expected` runs the default configuration on the device, and nothing else."""
        return False

    def sample(self, problem: P) -> P:
        """Return a small problem of the same kind, which tells how fast a reference is."""
        return replace(problem, **self.check_cases[-1])

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result in the shape that a user expects of `arrays`; none for random data."""
        return outputs[self.output]

    def check_columns(self, names: Sequence[str]) -> None:
        """Check that columns of these names, as a text file has them, can be an input.

        Raises
        ------
        InvalidProblem
            If they hold something else.
        """

    def reading(self, arrays: Arrays, **options: Any) -> str:
        """Return what is done with a user's `arrays` that could be meant otherwise."""
        return ""

    def keeps_columns(self, arrays: Arrays, **options: Any) -> bool:
        """Return whether the names of the first array's columns are those of the result's."""
        return False

    def curves(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Curves | None:
        """Return what a plot for a user's own `arrays` shows; None: the times."""
        return None

    def columns(
        self, arrays: Arrays, outputs: Arrays, **options: Any
    ) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Return the columns, by name, of a text file with the result; None: its plain numbers."""
        return None

    def pictures(
        self, problem: P, inputs: Arrays, expected: Arrays, outputs: Arrays
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Return what a plot shows of the data, by title: rows x columns, or with colours."""
        return {}

    def with_defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return `options` completed by defaults.

        Raises
        ------
        InvalidProblem
            For an unknown option, or a value outside its choices or of another type.
        """
        known = {option.name: option for option in self.options}
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise InvalidProblem(
                f"{self.name} has no option {', '.join(unknown)}; it has: {', '.join(known)}"
            )
        for name, value in options.items():
            choices = known[name].choices
            if choices is not None and value != known[name].default and value not in choices:
                raise InvalidProblem(f"{name} must be one of {', '.join(choices)}, not {value!r}")
            kind, kind_name = NUMBERS.get(known[name].type, (object, ""))
            if value is not known[name].default and not isinstance(value, kind):
                raise InvalidProblem(f"{name} must be a {kind_name} number, not {value!r}")
        return {name: options.get(name, option.default) for name, option in known.items()}


def _is_defined_so(algorithm: Algorithm[Any], function: Any, code: Any) -> bool:
    """Return whether `_definition` of an algorithm's plan is still this one."""
    plan = algorithm.plan  # asked at every call
    return getattr(plan, "__code__", None) is code and getattr(plan, "__func__", plan) is function


def _definition(method: Callable[..., Any]) -> tuple[Any, Any]:
    """Return what tells a method from one that was defined anew, also in place."""
    return getattr(method, "__func__", method), getattr(method, "__code__", None)
