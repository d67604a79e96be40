"""The lab's interface of an operation: all that comparing and tuning a solver needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Complex, Integral, Real
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import python_value
from opencl_lab.core.wording import counted
from opencl_lab.lab.files import FORMATS
from opencl_lab.lab.measuring.difference import UNLIKE, Difference
from opencl_lab.lab.reference.descriptor import Arrays, OutputsLike
from opencl_lab.lab.reference.peers import Calls, Reference
from opencl_lab.ops.solver import AUTO, Algorithm, Problem, Solver
from opencl_lab.runtime.execute import Execution

__all__ = ["UNLIKE", "Curves", "Difference", "Operation", "Option", "axis_of", "refuse_axis"]

NUMBERS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a real number"),
    complex: (Complex, "a number"),
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
        ``int``, ``float``, ``complex`` (which a real number is, too), ``str``, ``bool`` (a flag)
        or ``tuple`` (of whole numbers).
    default : object
        The default value.
    help : str
        One line.
    choices : tuple of str, optional
        The only values allowed.
    about_data : bool
        Whether it describes how input data are generated, and not the problem.
    with_files : bool
        Whether an option about data is also needed with a user's files, because it describes an
        input that they do not contain.
    default_text : str
        The default in words, if it depends on other options or on the data.
    also : tuple
        Values of other types that keywords take.
    """

    name: str
    type: type
    default: Any
    help: str
    choices: tuple[str, ...] | None = None
    about_data: bool = False
    with_files: bool = False
    default_text: str = ""
    also: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Curves:
    """A plot of a result: curves by name over common points, and labels of the axes."""

    points: np.ndarray[Any, Any]
    values: Mapping[str, np.ndarray[Any, Any]]
    x_label: str
    y_label: str


def axis_of(options: Mapping[str, Any], dimensions: int) -> int:
    """Return the axis that the option `axis` names, counted from the front; by default the last."""
    axis = options.get("axis")
    if axis is None:
        return dimensions - 1
    if not -dimensions <= axis < dimensions:
        where = counted(dimensions, "dimension")
        raise InvalidProblem(f"axis {axis} is out of bounds for {where}")
    return int(axis) % dimensions


def refuse_axis(options: Mapping[str, Any]) -> None:
    """Raise InvalidProblem if the option `axis` is given without an array."""
    if options.get("axis") is not None:
        raise InvalidProblem("axis is for input files: generated data are rows; leave it out")


class Operation(ABC, Generic[P]):
    """A solver with the data, references, tolerances, formats and plots of its problems.

    The command line, the comparison, the tuner and the tests use operations only through this
    class.
    """

    solver: Solver[P]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]
    size_option: ClassVar[str]
    """The option that a sweep over sizes sets."""
    inputs: ClassVar[tuple[str, ...]]
    """Names of the arrays that a user supplies, in the order of the command line."""
    formats: ClassVar[tuple[str, ...]] = FORMATS
    """Extensions of the files for inputs and result."""
    output: ClassVar[str]
    """Name of the array that is the result."""
    check_cases: ClassVar[tuple[Mapping[str, Any], ...]]
    """Changes of a problem to small sizes, larger than every tile and multiples of none. The tuner
    checks every configuration with the first of them, and with all before it can win."""
    default_name: ClassVar[str] = "built-in"
    """Name of the configuration that is used without tuning."""
    references: ClassVar[tuple[Reference, ...]]
    calls: ClassVar[Calls]
    """The public function, and the corresponding calls of other libraries."""
    find_file_job: Callable[..., Any] | None = None
    """Returns how a file too large for memory is sorted in parts, see `ops.sort.file.sort_file`."""

    @property
    def name(self) -> str:
        """Its public name."""
        return self.solver.name

    @property
    def algorithms(self) -> tuple[Algorithm[Any], ...]:
        """The algorithms of the solver, in order of preference."""
        return self.solver.algorithms

    @property
    def choices(self) -> Mapping[str, str]:
        """Names that the public function takes besides algorithms; see `Solver.choices`."""
        return self.solver.choices

    def algorithm(self, name: str) -> Algorithm[P]:
        """Return an algorithm by name; see `Solver.algorithm`."""
        return self.solver.algorithm(name)

    def choose(self, problem: P, device: Device, name: str = AUTO) -> Algorithm[P]:
        """Return the algorithm `name`, or what ``auto`` means; see `Solver.choose`."""
        return self.solver.choose(problem, device, name)

    def side(self, problem: P, device: Device, algorithm: str = AUTO) -> Device:
        """Return where a call on host arrays runs; see `Solver.side`."""
        return self.solver.side(problem, device, algorithm)

    def run(self, problem: P, inputs: Mapping[str, Any], **how: Any) -> Execution:
        """Solve a problem; see `Solver.run`."""
        return self.solver.run(problem, inputs, **how)

    @abstractmethod
    def problem(self, **options: Any) -> P:
        """Return the problem that `options` describe; they were checked by `with_defaults`."""

    @abstractmethod
    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[P, Arrays]:
        """Return the problem of a user's host arrays, and the arrays as its inputs."""

    @abstractmethod
    def generate(self, problem: P, seed: int, **options: Any) -> Arrays:
        """Return random inputs for `problem`, the same for the same seed."""

    @abstractmethod
    def expected(self, problem: P, inputs: Arrays) -> Arrays:
        """Return the expected outputs, computed on the host by NumPy."""

    @abstractmethod
    def compare(self, problem: P, inputs: Arrays, expected: Arrays, actual: Arrays) -> Difference:
        """Compare outputs with the expected ones; a tolerance may depend on the inputs."""

    @property
    def reference_is_first(self) -> bool:
        """Whether `expected` is the result of the default configuration on the device."""
        return False

    def make_reference(self, say: Callable[[str], None]) -> None:
        """Compute what `expected` needs from the device, if anything.

        Parameters
        ----------
        say : callable
            Called with ``launching`` before each run on the device, which may hang.
        """

    def check_changes(self, problem: P) -> Sequence[Mapping[str, Any]]:
        """Return the `check_cases`, adapted to a problem."""
        return self.check_cases

    def room(self, problem: P, expected: Arrays) -> OutputsLike:
        """Return shape and dtype of every output for algorithms and C references.

        They are larger than the expected outputs if the size of the result depends on the data.
        """
        return {name: (array.shape, array.dtype) for name, array in expected.items()}

    def sample(self, problem: P) -> P:
        """Return a small problem of the same kind, to estimate how fast a reference is."""
        return replace(problem, **self.check_changes(problem)[-1])

    def in_parts(
        self, problem: P, device: Device, algorithm: str, config: Mapping[str, Any]
    ) -> str:
        """Return in words how the public function works on host arrays in parts.

        Empty if a call is a single run. Otherwise one run cannot show the launches of a call.
        """
        return ""

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result in the shape that a user of `arrays` expects; random data have none."""
        return outputs[self.output]

    def beside(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Arrays:
        """Return the other arrays of the result by name, such as the indices of its values.

        A file must be able to hold all of them.
        """
        return {}

    def check_columns(self, names: Sequence[str]) -> None:
        """Check that the columns of a text file, by their names, can be an input.

        Raises
        ------
        InvalidProblem
            If they cannot.
        """

    def reading(self, arrays: Arrays, **options: Any) -> str:
        """Return in words how a user's `arrays` are interpreted, if that is ambiguous."""
        return ""

    def keeps_columns(self, arrays: Arrays, **options: Any) -> bool:
        """Return whether the result's columns have the names of the first array's columns."""
        return False

    def curves(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Curves | None:
        """Return the curves of a plot for a user's `arrays`; None: the plot shows times."""
        return None

    def columns(
        self, arrays: Arrays, outputs: Arrays, names: Sequence[str] = (), **options: Any
    ) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Return the columns of a text file with the result by name; None: numbers without names.

        `names` are those of the user's columns, if the result keeps them.
        """
        return None

    def pictures(
        self, problem: P, inputs: Arrays, expected: Arrays, outputs: Arrays
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Return images of the data for a plot by title: rows x columns, or with colours."""
        return {}

    def with_defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return `options` completed with defaults.

        Raises
        ------
        InvalidProblem
            For an unknown option, or a value outside its choices or of another type.
        """
        options = {name: python_value(value) for name, value in options.items()}
        known = {option.name: option for option in self.options}
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise InvalidProblem(
                f"{self.name} has no option {', '.join(unknown)}; it has: {', '.join(known)}"
            )
        for name, value in options.items():
            if value is known[name].default:
                continue
            choices, also = known[name].choices, known[name].also
            word = isinstance(value, (str, np.dtype))
            if choices is not None and not (word and value in choices):
                raise InvalidProblem(f"{name} must be one of {', '.join(choices)}, not {value!r}")
            kind, kind_name = NUMBERS.get(known[name].type, (object, ""))
            if not isinstance(value, kind) and not (
                isinstance(value, (str, int)) and value in also
            ):
                raise InvalidProblem(f"{name} must be {kind_name}, not {value!r}")
        return {name: options.get(name, option.default) for name, option in known.items()}
