"""Tuning a kernel in a file, described by plain data: parameters, arguments, launch sizes.

The arguments are read from the kernel's source (`opencl_lab.lab.tuning.kernel_text`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, OclabError
from opencl_lab.core.options import real_number
from opencl_lab.core.plan import Argument as Passed
from opencl_lab.core.plan import Buffer, Launch, LocalMemory, Plan, Work, check_plan, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.core.template import kernel_digest
from opencl_lab.drivers.discovery import here, select_device
from opencl_lab.lab.measuring.difference import Difference
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.tuning.expressions import evaluate, whole_numbers_of
from opencl_lab.lab.tuning.kernel_arguments import BoundArguments, bind_arguments, expected_for
from opencl_lab.lab.tuning.kernel_results import compare_outputs, first_results
from opencl_lab.lab.tuning.kernel_text import KernelText, Signature
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.solver import Algorithm, Problem, Solver

MOST_ITEMS = 1 << 62  # in a dimension; rounded up it must still be a number of 64 bits


@dataclass(frozen=True)
class KernelProblem(Problem):
    """The problem of a kernel in a file: sizes of arrays, other arguments, and the launch."""

    sizes = ("elements",)
    layout = ("arguments", "launch")

    elements: int = 0
    arguments: str = ""
    launch: str = ""
    nbytes: int = 0

    @property
    def work(self) -> Work:
        """The traffic of each array once; the arithmetic is unknown."""
        return Work(flops=0.0, bytes=float(self.nbytes))

    @property
    def title(self) -> str:
        """The arguments, and how many work-items there are."""
        return f"{self.arguments}; work-items {self.launch}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values."""
        return {name: getattr(self, name) for name in (*self.sizes, *self.layout)}


@dataclass(frozen=True, eq=False)
class _Description:
    """The description of a `KernelFile`, as plain data that is sent to the worker."""

    text: KernelText
    kernel: str
    bound: BoundArguments
    global_size: str
    local_size: str | None
    restrictions: tuple[str, ...]
    expected: Arrays | None
    tolerance: float
    device: Device


class _KernelAlgorithm(Algorithm[KernelProblem]):
    """The one algorithm of a `KernelFile`."""

    replanned = True

    def __init__(self, file: KernelFile, text: KernelText, kernel: str, space: SearchSpace):
        templates = (str(text.path), *text.included())
        # The base has class variables; here each instance has its own.
        vars(self).update(name=kernel, space=space, templates=templates)
        self._file = file

    @property
    def version(self) -> int:  # type: ignore[override]
        """The text of the kernel as a number, since nobody raises one with each edit."""
        return int(kernel_digest(self.templates), 16)

    def work(self, problem: KernelProblem) -> Work:
        """Return nothing, since a kernel may use only some elements of its arrays."""
        return Work(0.0, 0.0)

    def default_config(self, problem: KernelProblem, device: Device) -> Config:
        """Return the first configuration that can run on a device."""
        refused: OclabError | None = None
        for config in self.space:
            try:
                check_plan(self.plan(problem, config, device), device)
            except InvalidConfig as error:
                refused = refused or error
            else:
                return config
        reason = "the restrictions leave none" if refused is None else refused.sentence
        raise InvalidConfig(
            f"no configuration of {self._file.name} can run on {device.name}: {reason}"
        )

    def plan(self, problem: KernelProblem, config: Config, device: Device) -> Plan:
        """Return the one launch."""
        return self._file.plan(config)


class _KernelSolver(Solver[KernelProblem]):
    def __init__(self, name: str, algorithm: _KernelAlgorithm):
        super().__init__()
        vars(self).update(name=name, registry={algorithm.name: algorithm})


class KernelFile(Operation[KernelProblem]):
    """The operation that `kernel_file` makes; it is pickled as its description."""

    default_name = "first"
    references = ()
    inputs = ()
    size_option = "elements"
    check_cases = ({},)  # checked at the sizes that are timed

    def __init__(self, description: _Description):
        self._description = description
        self._results = description.expected
        text = description.text
        parameters = (
            Parameter(name, tuple(values), f"parameter of {text.path.name}")
            for name, values in text.params.items()
        )
        restrictions = map(self._constraint, description.restrictions)
        space = SearchSpace(tuple(parameters), tuple(restrictions))
        contents = Option("contents", str, self._contents, "digest of the data", about_data=True)
        # The base has class variables; here each instance has its own.
        vars(self).update(
            solver=_KernelSolver(
                text.path.name, _KernelAlgorithm(self, text, description.kernel, space)
            ),
            summary=f"The kernel {description.kernel} in {text.path}.",
            options=(contents,),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description."""
        return KernelFile, (self._description,)

    def problem(self, **options: Any) -> KernelProblem:
        """Return the only problem."""
        about = self._description
        parts = [f"{b.name} {b.dtype}{list(b.shape)}" for b in about.bound.buffers]
        parts += [
            f"{name}={value}" for name, value in {**about.bound.values, **about.text.fixed}.items()
        ]
        parts += [f"{name} local[{count}]" for name, (count, _) in about.bound.local.items()]
        parts += [
            f"{name} {dtype}[{count}]" for name, (count, dtype, _) in about.bound.scratch.items()
        ]
        launch = [about.global_size, *([about.local_size] if about.local_size else [])]
        return KernelProblem(
            max((math.prod(buffer.shape) for buffer in about.bound.buffers), default=0),
            ", ".join(parts),
            " in groups of ".join(launch) + "".join(f" {option}" for option in about.text.options),
            sum(buffer.nbytes for buffer in about.bound.buffers),
        )

    @property
    def reference_is_first(self) -> bool:
        """Whether results are compared with those of the first configuration."""
        return self._description.expected is None

    @cached_property
    def _contents(self) -> str:
        """Return a digest of the data that results depend on."""
        about = self._description
        parts = about.tolerance, about.expected is None, about.bound.inout
        digest = hashlib.sha256(repr(parts).encode())
        for array in (*about.bound.data.values(), *(about.expected or {}).values()):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def names(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the names for expressions: parameters, and arguments that are numbers."""
        values = {name: value.item() for name, value in self._description.bound.values.items()}
        return {**values, **self._description.text.fixed, **config}

    def _constraint(self, restriction: str) -> Constraint:
        def holds(config: Config) -> bool:
            return bool(evaluate(restriction, self.names(config)))

        return Constraint(holds, f"not {restriction}")

    def plan(self, config: Config) -> Plan:
        """Return the launch of a configuration."""
        bound, names = self._description.bound, self.names(config)
        signature, params, options = self._description.text.launched(config)
        global_size, local_size = self._launch_sizes(signature, names)
        arguments: dict[str, Passed] = {}
        for name in (argument.name for argument in signature.arguments):
            if name in bound.local:
                count, itemsize = bound.local[name]
                arguments[name] = LocalMemory(_elements(name, count, names) * itemsize)
            else:
                arguments[name] = bound.values.get(name, name)
        launch = Launch(
            str(self._description.text.path),
            signature.kernel,
            params,
            global_size,
            local_size,
            arguments,
            options=options,
        )
        scratch = (
            Buffer(name, "scratch", (_elements(name, count, names) * stored,), dtype)
            for name, (count, dtype, stored) in bound.scratch.items()
        )
        return Plan((*bound.buffers, *scratch), (launch,))

    def _launch_sizes(
        self, signature: Signature, names: Mapping[str, Any]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the global size, rounded up, and the local size."""
        about = self._description
        global_size = whole_numbers_of(about.global_size, names)
        written = about.local_size or signature.group
        if not written:
            raise InvalidProblem(
                f"the kernel {signature.kernel} has no reqd_work_group_size, so that the local "
                "size must be given"
            )
        local_size = whole_numbers_of(written, names)
        if not about.local_size:  # reqd_work_group_size always has three dimensions
            local_size = local_size[: len(global_size)]
        if len(local_size) != len(global_size) or len(local_size) > 3 or min(local_size) < 1:
            raise InvalidConfig(
                f"the global size {about.global_size} is {global_size} and the local size "
                f"{written} is {local_size}: they must be positive, of one to three dimensions each"
            )
        if max(global_size) > MOST_ITEMS:
            raise InvalidConfig(
                f"the global size {about.global_size} exceeds what OpenCL can count"
            )
        return tuple(map(round_up, global_size, local_size)), local_size

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[KernelProblem, Arrays]:
        """Raise InvalidProblem: arrays do not say what else the kernel takes."""
        raise InvalidProblem(f"{self.name} takes a problem and its inputs; use `run`")

    def generate(self, problem: KernelProblem, seed: int, **options: Any) -> Arrays:
        """Return the arrays that the kernel reads."""
        return self._description.bound.data

    def expected(self, problem: KernelProblem, inputs: Arrays) -> Arrays:
        """Return the given results, else those of the first configuration."""
        self.make_reference(lambda phase: None)
        assert self._results is not None
        return self._results

    def make_reference(self, say: Callable[[str], None]) -> None:
        """Run the first configuration, if no expected result is given."""
        if self._results is None:
            name, device = self.algorithms[0].name, here(self._description.device)
            self._results = first_results(TuningTask(self, name, self.problem(), device), say)

    def compare(
        self, problem: KernelProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare every output within the tolerance."""
        return compare_outputs(expected, actual, self._description.tolerance)


def _elements(name: str, count: str, names: Mapping[str, Any]) -> int:
    elements = whole_numbers_of(count, names)
    if min(elements) < 1:
        raise InvalidConfig(f"{name!r} needs a positive size, not {count}")
    return math.prod(elements)


def kernel_file(
    text: KernelText,
    arguments: Mapping[str, Any],
    global_size: str,
    *,
    local_size: str | None = None,
    restrictions: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    inout: Sequence[str] = (),
    expected: Any = None,
    tolerance: float | None = None,
    device: str | int | Device | None = None,
) -> KernelFile:
    """Return the operation for a kernel in a file; parameters are those of `tune_kernel`."""
    signature = text.launched(text.first)[0]
    bound = bind_arguments(signature, arguments, outputs, inout)
    if expected is not None:
        expected = expected_for(expected, bound.written)
    if tolerance is None:
        kinds = [buffer.dtype for buffer in bound.written.values() if buffer.dtype.kind in "fc"]
        tolerance = max((math.sqrt(np.finfo(kind).eps) for kind in kinds), default=0.0)
    tolerance = real_number(tolerance, "tolerance")
    if not 0 <= tolerance < math.inf:
        raise InvalidProblem(f"tolerance must be finite and not negative, not {tolerance}")
    description = _Description(
        text,
        signature.kernel,
        bound,
        global_size,
        local_size,
        tuple(restrictions),
        expected,
        tolerance,
        select_device(device),
    )
    operation = KernelFile(description)
    for restriction in restrictions:  # report an error now, instead of an empty space later
        evaluate(restriction, operation.names(text.first))
    return operation
