"""What an operation is to the lab: what it takes to compare and to tune what a solver solves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Complex, Integral, Real
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.wording import counted
from opencl_lab.lab.file_jobs import FindJob
from opencl_lab.lab.files import FORMATS
from opencl_lab.lab.measuring.difference import UNLIKE, Difference
from opencl_lab.lab.reference.descriptor import Arrays, OutputsLike, Reference
from opencl_lab.lab.reference.peers import Calls
from opencl_lab.ops.solver import AUTO, Algorithm, Problem, Solver
from opencl_lab.runtime.execute import Execution

__all__ = ["UNLIKE", "Curves", "Difference", "Operation", "Option", "axis_of", "refuse_axis"]

NUMBERS: dict[type, tuple[type, str]] = {
    int: (Integral, "whole number"),
    float: (Real, "real number"),
    complex: (Complex, "number"),
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
        ``int``, ``float``, ``complex`` (which a real number is, too), ``str`` or ``bool`` (a flag).
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
class Curves:
    """A picture of a result: curves by name over common points, and what the axes show."""

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
    """Refuse the option `axis` where there is no array that has any."""
    if options.get("axis") is not None:
        raise InvalidProblem("axis is for input files: generated data are rows; leave it out")


class Operation(ABC, Generic[P]):
    """A solver with the data, references, tolerance, formats and pictures of its problems.

    The command line, the comparison, the tuner and the tests know operations
    through this class alone.
    """

    solver: Solver[P]
    summary: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]
    size_option: ClassVar[str]
    """The option that a sweep over sizes sets."""
    shape_options: ClassVar[tuple[str, ...]] = ()
    """The options that together say how large a problem is, if there are several."""
    shapes: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """Values of these that show where an operation is slow: large and small, even and odd."""
    inputs: ClassVar[tuple[str, ...]]
    """Names of the arrays that a user supplies, in the order of the command line."""
    formats: ClassVar[tuple[str, ...]] = FORMATS
    """Endings of the files that they may come from, and the result may go to."""
    output: ClassVar[str]
    """Name of the array that a user wants back."""
    check_cases: ClassVar[tuple[Mapping[str, Any], ...]]
    """Changes of a problem to small sizes, which are larger than every tile and multiples of none.
    Every configuration is checked with the first of them, and with all before it can win."""
    default_name: ClassVar[str] = "built-in"
    """Name of the configuration where nobody has tuned or asked for one."""
    references: ClassVar[tuple[Reference, ...]]
    calls: ClassVar[Calls]
    """How users call it, here and in other libraries."""
    find_file_job: FindJob | None = None
    """Finds how a file that is too large for memory is solved in parts, if that can be done."""

    @property
    def name(self) -> str:
        """What users call it."""
        return self.solver.name

    @property
    def algorithms(self) -> tuple[Algorithm[Any], ...]:
        """Those of the solver, in order of preference."""
        return self.solver.algorithms

    @property
    def choices(self) -> Mapping[str, str]:
        """What the public function takes as an algorithm and is none; see `Solver.choices`."""
        return self.solver.choices

    def algorithm(self, name: str) -> Algorithm[P]:
        """Return an algorithm by name; see `Solver.algorithm`."""
        return self.solver.algorithm(name)

    def choose(self, problem: P, device: Device, name: str = AUTO) -> Algorithm[P]:
        """Return the algorithm `name`, or what ``auto`` means; see `Solver.choose`."""
        return self.solver.choose(problem, device, name)

    def run(self, problem: P, inputs: Mapping[str, Any], **how: Any) -> Execution:
        """Solve a problem; see `Solver.run`."""
        return self.solver.run(problem, inputs, **how)

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

    def make_reference(self, say: Callable[[str], None]) -> None:
        """Make what `expected` needs of the device, if anything.

        Parameters
        ----------
        say : callable
            Called with ``launching`` before each run on the device, which may hang.
        """

    def check_changes(self, problem: P) -> Sequence[Mapping[str, Any]]:
        """Return those of `check_cases` as they suit a problem."""
        return self.check_cases

    def room(self, problem: P, expected: Arrays) -> OutputsLike:
        """Return shape and dtype of every output as algorithms and C references write it.

        More than what is expected, where how much there is depends on the data.
        """
        return {name: (array.shape, array.dtype) for name, array in expected.items()}

    def sample(self, problem: P) -> P:
        """Return a small problem of the same kind, which tells how fast a reference is."""
        return replace(problem, **self.check_cases[-1])

    def in_parts(
        self, problem: P, device: Device, algorithm: str, config: Mapping[str, Any]
    ) -> str:
        """Return how the public function solves it for host arrays, such as in which parts.

        Nothing where that is a single run. Other calls have no launches that one run would show.
        """
        return ""

    def present(self, arrays: Arrays, outputs: Arrays, **options: Any) -> np.ndarray[Any, Any]:
        """Return the result in the shape that a user expects of `arrays`; none for random data."""
        return outputs[self.output]

    def second(self, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the options of a second run that completes the result of the first.

        `combined` puts both together. None, as usual: one run is all.
        """
        return None

    def combined(self, first: Arrays, second: Arrays) -> Arrays:
        """Return the outputs that those of two runs make, see `second`."""
        raise NotImplementedError(f"{self.name} has no second run")

    def beside(self, arrays: Arrays, outputs: Arrays, **options: Any) -> Arrays:
        """Return what else the result consists of, by name, such as the places of its values.

        A file holds all of it, or is refused.
        """
        return {}

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
        self, arrays: Arrays, outputs: Arrays, names: Sequence[str] = (), **options: Any
    ) -> Mapping[str, np.ndarray[Any, Any]] | None:
        """Return the columns, by name, of a text file with the result; None: its plain numbers.

        `names` are those of the user's columns, where the result keeps them.
        """
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
                raise InvalidProblem(f"{name} must be a {kind_name}, not {value!r}")
        return {name: options.get(name, option.default) for name, option in known.items()}
