"""Tuning a kernel of your own: a template, a problem, a plan and a reference make an operation.

`docs/examples/tune_your_operation.py` is a worked example. For a kernel in a file that needs one
launch, `opencl_lab.tune_kernel` makes all this from plain data.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import real_number
from opencl_lab.core.plan import Plan, Work
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.measuring.difference import Difference, errors_of, shares_of_bound
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.solver import Algorithm, Problem, Solver

P = TypeVar("P", bound=Problem)


class _KernelAlgorithm(Algorithm[P]):
    """The one algorithm of a `KernelOperation`."""

    replanned = True

    @property
    def version(self) -> int:  # type: ignore[override]
        """The text of the kernel as a number, since nobody raises one with each edit."""
        return int(kernel_digest(self.templates), 16)

    def __init__(
        self,
        name: str,
        space: SearchSpace,
        default: Config | Callable[[P, Device], Config],
        plan: Callable[[P, Config, Device], Plan],
        templates: tuple[str, ...],
        work: Callable[[P], Work] | None,
    ):
        # The base has class variables; here each instance has its own.
        vars(self).update(name=name, space=space, templates=templates)
        self._default, self._plan, self._work = default, plan, work

    def work(self, problem: P) -> Work:
        """Return the least work of the kernel, if the user gave it, else that of the problem."""
        return problem.work if self._work is None else self._work(problem)

    def default_config(self, problem: P, device: Device) -> Config:
        """Return the configuration that the user gave."""
        if isinstance(self._default, Config):
            return self._default
        return self._default(problem, device)

    def plan(self, problem: P, config: Config, device: Device) -> Plan:
        """Return what the user's function plans."""
        return self._plan(problem, config, device)


class _Single(Solver[P]):
    """A solver with a single algorithm."""

    def __init__(self, name: str, algorithm: Algorithm[P]):
        super().__init__()
        vars(self).update(name=name, registry={algorithm.name: algorithm})


class KernelOperation(Operation[P], Generic[P]):
    """An operation made of a kernel of the user's own.

    Pass it to `opencl_lab.tune` instead of a name; `run` applies it with the configuration that
    was found. Bind it to a name at the top level of a module, from where the worker that tries
    configurations imports it.

    Parameters
    ----------
    name : str
        The name of its entries in journal and database.
    problem : type
        A frozen dataclass derived from `Problem` whose fields all have defaults.
    template : str
        Absolute path of the Mako template.
    space : SearchSpace
        The parameters of the template and their constraints.
    default : Config or callable
        The configuration without tuning, or ``default(problem, device)``.
    plan : callable
        ``plan(problem, config, device)`` returns the `Plan`: buffers and launches.
    inputs : callable
        ``inputs(problem, rng)`` returns random input arrays by their names in the plan. An array
        under the name of an output is its content before each run, for a kernel that works in
        place.
    reference : callable
        ``reference(problem, inputs)`` returns the expected outputs.
    check_cases : mapping or sequence of mappings
        Fields of the problem to replace for checks: small sizes, larger than any tile and not a
        multiple of one. Several mappings check other options, too.
    tolerance : float
        Largest error relative to the largest magnitude in the expected result. 0 demands
        equality, and integers must always be equal.
    summary : str
        One sentence.
    algorithm : str
        The name of its one algorithm; by default that of the operation.
    work : callable, optional
        ``work(problem)`` returns the least work of the kernel, for the roofline, if that is less
        than the work of the problem.

    Raises
    ------
    InvalidProblem
        If a field has no default.
    """

    references = ()
    inputs = ()

    def __init__(
        self,
        name: str,
        *,
        problem: type[P],
        template: str,
        space: SearchSpace,
        default: Config | Callable[[P, Device], Config],
        plan: Callable[[P, Config, Device], Plan],
        inputs: Callable[[P, np.random.Generator], Arrays],
        reference: Callable[[P, Arrays], Arrays],
        check_cases: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        tolerance: float = 0.0,
        summary: str = "",
        algorithm: str = "",
        work: Callable[[P], Work] | None = None,
    ):
        tolerance = real_number(tolerance, "tolerance")
        if not 0 <= tolerance < math.inf:
            raise InvalidProblem(f"tolerance must be finite and not negative, not {tolerance}")
        bare = [item.name for item in fields(problem) if item.default is MISSING]
        if bare:
            raise InvalidProblem(f"{problem.__name__}.{bare[0]} needs a default value")
        options = tuple(
            Option(item.name, type(item.default), item.default, item.name)
            for item in fields(problem)
        )
        only = _KernelAlgorithm(algorithm or name, space, default, plan, (template,), work)
        # The base has class variables; here each instance has its own.
        vars(self).update(
            solver=_Single(name, only),
            summary=summary,
            options=options,
            size_option=problem.sizes[0],
            check_cases=(check_cases,) if isinstance(check_cases, Mapping) else tuple(check_cases),
        )
        self._problem, self._inputs, self._reference = problem, inputs, reference
        self._tolerance = tolerance
        self.__module__ = sys._getframe(1).f_globals["__name__"]

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by its name in its module, since the lambdas of a space cannot be pickled."""
        module = sys.modules.get(self.__module__)
        for name, value in vars(module).items() if module is not None else ():
            if value is self:
                return name
        raise InvalidProblem(
            f"the operation {self.name} must be bound to a name at the top level of the module "
            f"that makes it, {self.__module__}"
        )

    def problem(self, **options: Any) -> P:
        """Return the problem that the options describe."""
        return self._problem(**self.with_defaults(options))

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[P, Arrays]:
        """Raise InvalidProblem: only the user's functions know what arrays mean."""
        raise InvalidProblem(f"{self.name} takes a problem and its inputs; use `run`")

    def generate(self, problem: P, seed: int, **options: Any) -> Arrays:
        """Return the inputs that the user's function makes."""
        return self._inputs(problem, np.random.default_rng(seed))

    def expected(self, problem: P, inputs: Arrays) -> Arrays:
        """Return what the user's reference computes."""
        return self._reference(problem, inputs)

    def compare(self, problem: P, inputs: Arrays, expected: Arrays, actual: Arrays) -> Difference:
        """Compare every output within the tolerance; NaN equals NaN."""
        for name in sorted({*expected} | {*actual}):
            given, right = actual.get(name), expected.get(name)
            if given is None or right is None or given.shape != right.shape:
                raise InvalidProblem(
                    f"the reference of {self.name} must return every output of the plan in its "
                    f"shape: {name!r} is {_shape(right)} there and {_shape(given)} in the plan"
                )
        max_abs = max_rel = worst = 0.0
        first_wrong = ""
        for name, right in expected.items():
            given = actual[name]
            exact = not self._tolerance or given.dtype.kind not in "fc"
            error, relative = errors_of(right.astype(np.complex128), given.astype(np.complex128))
            magnitude = np.abs(right[np.isfinite(right)]).max(initial=0)
            # Large integers differ where their nearest floating-point numbers do not.
            equal = (right == given) | ((right != right) & (given != given))
            far = np.where(equal, 0.0, np.inf) if exact else error
            shares = shares_of_bound(far, self._tolerance * magnitude)
            worst = max(worst, float(shares.max(initial=0)))
            if not first_wrong and (shares > 1).any():
                place = np.flatnonzero(shares > 1)[0]
                values = str(given.flat[place]), str(right.flat[place])  # as short as their type
                where = place_text(name, place, right.shape)
                first_wrong = f"{where} is {values[0]}, not {values[1]}"
            max_abs = max(max_abs, float(error.max(initial=0)))
            max_rel = max(max_rel, float(relative.max(initial=0)))
        return Difference(max_abs, max_rel, error_over_bound=worst, first_wrong=first_wrong)


def place_text(name: str, place: Any, shape: tuple[int, ...]) -> str:
    """Return an element of an array by its indices, such as ``x[2, 5]``; `place` is its number."""
    return f"{name}[{', '.join(map(str, np.unravel_index(place, shape)))}]"


def _shape(array: np.ndarray[Any, Any] | None) -> str:
    return "missing" if array is None else str(array.shape)
