"""Tuning a kernel in a file, described by plain data: parameters, arguments, sizes of the launch.

The kernel itself says what its arguments are (`opencl_lab.tuning.signature`). What this cannot
describe, such as several launches, is a `KernelOperation`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.device import Device, select_device
from opencl_lab.errors import BuildError, InvalidConfig, InvalidProblem, LaunchError, OclabError
from opencl_lab.operation import Difference, Option
from opencl_lab.plan import Argument as Passed
from opencl_lab.plan import Buffer, Launch, LocalMemory, Plan, Work, check_plan, round_up
from opencl_lab.reference.descriptor import Arrays
from opencl_lab.runtime.session import default_queue
from opencl_lab.solver import Problem
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace, Value
from opencl_lab.template import kernel_digest, render
from opencl_lab.tuning.custom import KernelOperation
from opencl_lab.tuning.expressions import evaluate, whole_numbers_of
from opencl_lab.tuning.guarded import POISON, Guarded
from opencl_lab.tuning.result import Progress, TuneResult
from opencl_lab.tuning.signature import Argument, Signature, signature
from opencl_lab.tuning.tuner import tune

__all__ = ["KernelFile", "KernelText", "kernel_file", "tune_kernel"]

PLAIN = "common/plain.cl.mako"
MOST_ITEMS = 1 << 62  # in a dimension; rounded up it must still be a number of 64 bits
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ARGUMENTS = re.compile(r": arguments (?:missing ([\w, ]+?))?(?: and )?(?:unknown ([\w, ]+))?$")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\"<>\n]+)[\">]", re.MULTILINE)
FOLDER = re.compile(r"(?:^|\s)-I\s*(\"[^\"]*\"|\S+)")
OTHER_POISON = 0x3C  # positive and no NaN for any type, so that what is added to it shows


@dataclass(frozen=True)
class KernelProblem(Problem):
    """What a kernel is tuned for: the sizes of its arrays, its other arguments, its launch."""

    sizes = ("elements",)
    layout = ("arguments", "launch")

    elements: int = 0
    arguments: str = ""
    launch: str = ""
    nbytes: int = 0

    @property
    def work(self) -> Work:
        """Each array once; nobody has said how much arithmetic there is."""
        return Work(flops=0.0, bytes=float(self.nbytes))

    @property
    def title(self) -> str:
        """The arguments, and how many work-items there are."""
        return f"{self.arguments}; work-items {self.launch}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-able values."""
        return {name: getattr(self, name) for name in (*self.sizes, *self.layout)}


@dataclass(frozen=True)
class KernelText:
    """A kernel in a file: a Mako template, or plain OpenCL C that gets its parameters by ``-D``.

    Parameters
    ----------
    path : Path
        A name that ends in ``.mako`` is a template.
    kernel : str or None
        Name of the kernel; None if the file has one only.
    params : mapping
        Values of each parameter.
    fixed : mapping
        Parameters that do not vary.
    options : tuple of str
        Build options.
    """

    path: Path
    kernel: str | None
    params: Mapping[str, tuple[Value, ...]]
    fixed: Mapping[str, Any]
    options: tuple[str, ...] = ()

    def launched(self, config: Mapping[str, Value]) -> tuple[str, dict[str, Any], tuple[str, ...]]:
        """Return template, its arguments and build options of a configuration.

        Raises
        ------
        BuildError, InvalidProblem
            If the template does not render, or its folder cannot be an option of a build.
        """
        given = {**self.fixed, **config}
        include = self._include_options(config)
        if self.path.suffix == ".mako":
            return str(self.path), given, (*self.options, *include)
        macros = tuple(
            f"-D{name}={int(value) if isinstance(value, bool) else value}"
            for name, value in given.items()
        )
        return PLAIN, {"SOURCE": self._text}, (*self.options, *include, *macros)

    def signature(self, config: Mapping[str, Value]) -> Signature:
        """Return what the kernel says of itself.

        Raises
        ------
        BuildError, InvalidProblem
            If the template does not render, or has no such kernel.
        """
        return signature(self._rendered(config), self.kernel, self.path.name)

    def included(self, config: Mapping[str, Value]) -> tuple[str, ...]:
        """Return the paths of all files that ``#include`` brings in, as far as they are found."""
        given = [Path(path.strip('"')) for path in FOLDER.findall(" ".join(self.options))]
        folders = [*given, self.path.parent]
        found: dict[Path, None] = {}
        waiting = [(self.path.parent, self._rendered(config))]
        while waiting:
            folder, text = waiting.pop(0)
            for name in INCLUDE.findall(text):
                places = (place.resolve() / name for place in (folder, *folders))
                path = next((place for place in places if place.is_file()), None)
                if path is not None and path not in found:
                    found[path] = None
                    waiting.append((path.parent, _read(path)))
        return tuple(map(str, found))

    def _include_options(self, config: Mapping[str, Value]) -> tuple[str, ...]:
        """Return options that say where included files are, and what is in them.

        Neither a session nor the cache of a driver looks into them: a macro that nobody
        uses makes a program with other contents another program.
        """
        if not INCLUDE.search(self._rendered(config)):
            return ()
        folder = str(self.path.parent)
        if re.search(r"\s", folder):
            raise InvalidProblem(
                f"{self.path.name} includes files from {folder!r}, and OpenCL takes no folder "
                "with a space in its name: rename it"
            )
        included = self.included(config)
        digest = (f"-DOCLAB_INCLUDED=0x{kernel_digest(included)}",) if included else ()
        return (f"-I{folder}", *digest)

    def _rendered(self, config: Mapping[str, Value]) -> str:
        """Return the OpenCL C of a configuration, before the preprocessor."""
        text = self._text
        if self.path.suffix != ".mako":
            return text
        try:
            return render(str(self.path), {**self.fixed, **config}).text
        except BuildError as error:
            wrong = ARGUMENTS.search(error.sentence)
            if wrong is None:
                raise
            parts = [f"it needs no parameter {wrong[2]}"] if wrong[2] else []
            parts += [f"it {'also ' * bool(parts)}needs {wrong[1]}"] if wrong[1] else []
            raise InvalidProblem(f"{self.path.name}: {', and '.join(parts)}") from error

    @property
    def first(self) -> dict[str, Value]:
        """The first value of each parameter."""
        return {name: values[0] for name, values in self.params.items()}

    @property
    def _text(self) -> str:
        return _read(self.path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidProblem(f"cannot read {path}: {reason}") from error


@dataclass(frozen=True, eq=False)
class _Description:
    """All that makes a `KernelFile`, as plain data that goes to the worker."""

    text: KernelText
    kernel: str
    buffers: tuple[Buffer, ...]
    data: Arrays
    values: Mapping[str, Any]
    local: Mapping[str, tuple[str, int]]
    threes: tuple[str, ...]
    global_size: str
    local_size: str | None
    restrictions: tuple[str, ...]
    expected: Arrays | None
    tolerance: float
    device: str


class KernelFile(KernelOperation[KernelProblem]):
    """The operation that `kernel_file` makes; it goes to the worker as its description."""

    default_name = "first"

    def __init__(self, description: _Description):
        told = self._told = description
        text = told.text
        parameters = (
            Parameter(name, tuple(values), f"parameter of {text.path.name}")
            for name, values in text.params.items()
        )
        super().__init__(
            text.path.name,
            algorithm=told.kernel,
            problem=KernelProblem,
            template=str(text.path),
            space=SearchSpace(tuple(parameters), tuple(map(self._constraint, told.restrictions))),
            default=self._first,
            plan=self._planned,
            inputs=lambda problem, rng: told.data,
            reference=self._right,
            check_cases={},
            tolerance=told.tolerance,
            summary=f"The kernel {told.kernel} in {text.path}.",
            work=lambda problem: Work(0.0, 0.0),  # it may need a part of its arrays only
        )
        contents = Option("contents", str, self._contents, "digest of the data", about_data=True)
        vars(self)["options"] = (contents,)
        only = vars(self.algorithms[0])
        only["templates"] = (*only["templates"], *text.included(text.first))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of."""
        return KernelFile, (self._told,)

    def problem(self, **options: Any) -> KernelProblem:
        """Return the one problem that there is."""
        told = self._told
        parts = [f"{b.name} {b.dtype}{list(b.shape)}" for b in told.buffers]
        parts += [f"{name}={value}" for name, value in {**told.values, **told.text.fixed}.items()]
        parts += [f"{name} local[{count}]" for name, (count, _) in told.local.items()]
        launch = [told.global_size, *([told.local_size] if told.local_size else [])]
        return KernelProblem(
            max((math.prod(buffer.shape) for buffer in told.buffers), default=0),
            ", ".join(parts),
            " in groups of ".join(launch) + "".join(f" {option}" for option in told.text.options),
            sum(buffer.nbytes for buffer in told.buffers),
        )

    @property
    def reference_is_first(self) -> bool:
        """Whether results are compared with that of the first configuration, and nothing else."""
        return self._told.expected is None

    @cached_property
    def _contents(self) -> str:
        """Digest of what results depend on beside the kernel and its sizes."""
        told = self._told
        digest = hashlib.sha256(repr((told.tolerance, told.expected is None)).encode())
        for array in (*told.data.values(), *(told.expected or {}).values()):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def names(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return what expressions may name: parameters, and arguments that are numbers."""
        values = {name: value.item() for name, value in self._told.values.items()}
        return {**values, **self._told.text.fixed, **config}

    def _constraint(self, restriction: str) -> Constraint:
        return Constraint(
            lambda config: bool(evaluate(restriction, _Named(config, self.names({})))),
            f"not {restriction}",
        )

    def _first(self, problem: KernelProblem, device: Device) -> Config:
        """Return the first configuration that can run on a device."""
        refused: OclabError | None = None
        for config in self.algorithms[0].space:
            try:
                check_plan(self._planned(problem, config, device), device)
            except InvalidConfig as error:
                refused = refused or error
            else:
                return config
        reason = "the restrictions leave none" if refused is None else refused.sentence
        raise InvalidConfig(f"no configuration of {self.name} can run on {device.name}: {reason}")

    def _planned(self, problem: KernelProblem, config: Config, device: Device) -> Plan:
        told, names = self._told, self.names(config)
        template, params, options = told.text.launched(config)
        known = told.text.signature(config)
        global_size = whole_numbers_of(told.global_size, names)
        written = told.local_size or ", ".join(known.group[: len(global_size)])
        if not written:
            raise InvalidProblem(
                f"the kernel {told.kernel} has no reqd_work_group_size, so that the local size "
                "must be given"
            )
        local_size = whole_numbers_of(written, names)
        if len(local_size) != len(global_size) or len(local_size) > 3 or min(local_size) < 1:
            raise InvalidConfig(
                f"the global size {told.global_size} is {global_size} and the local size "
                f"{written} is {local_size}: they must be positive, of one to three dimensions each"
            )
        if max(global_size) > MOST_ITEMS:
            raise InvalidConfig(f"the global size {told.global_size} is more than OpenCL can count")
        arguments: dict[str, Passed] = {}
        for argument in known.arguments:
            name = argument.name
            if name in told.values:
                arguments[name] = told.values[name]
            elif name in told.local:
                count, itemsize = told.local[name]
                elements = whole_numbers_of(count, names)
                if min(elements) < 1:
                    raise InvalidConfig(f"{name!r} needs a positive size, not {count}")
                arguments[name] = LocalMemory(math.prod(elements) * itemsize)
            else:
                arguments[name] = name
        pairs = zip(global_size, local_size, strict=True)
        rounded = tuple(round_up(items, local) for items, local in pairs)
        launch = Launch(
            template, told.kernel, params, rounded, local_size, arguments, options=options
        )
        return Plan(told.buffers, (launch,))

    def _right(self, problem: KernelProblem, inputs: Arrays) -> Arrays:
        return self._told.expected if self._told.expected is not None else self._first_result

    @cached_property
    def _first_result(self) -> Arrays:
        """What the first configuration gives, on the device that is tuned."""
        device = select_device(self._told.device)
        queue = default_queue(device, profiling=True)
        problem = self.problem()
        config = self._first(problem, device)
        placed = {b.name: Guarded(queue, b.shape, b.dtype) for b in self._told.buffers}
        arrays = {name: guarded.array for name, guarded in placed.items()}
        inputs = {name: arrays.pop(name) for name in self._told.data}
        what = f"the first configuration {config}, with which all others are compared,"

        def results(pattern: int) -> Arrays:
            for guarded in placed.values():
                guarded.poison(pattern)
            for name, array in self._told.data.items():
                placed[name].set(array)
            try:
                self.run(problem, inputs, config=config, queue=queue, out=arrays)
            except BuildError as error:
                reason = f"{self.name}: {what} did not build{error.first_error}"
                raise BuildError(reason, **vars(error)) from error
            except OclabError as error:
                raise type(error)(f"{what} does not run: {error.sentence}") from error
            for name, guarded in placed.items():
                damage = guarded.damage()
                if damage is not None:
                    raise LaunchError(f"{what} writes outside the array {name!r}: {damage}")
            return {name: placed[name].get() for name in arrays}

        # An element that keeps both patterns is not written; one that merely differs depends
        # on what was there.
        first, second = results(POISON), results(OTHER_POISON)
        counted = {name: self._counted(name, first[name]) for name in first}
        for name, result in counted.items():
            other = self._counted(name, second[name])
            missed = int((_holds(result, POISON) & _holds(other, OTHER_POISON)).sum())
            if missed:
                raise LaunchError(
                    f"{what} leaves {missed} elements of {name!r} unwritten; if it is only read, "
                    "declare it const, give its data, or leave it out of the outputs"
                )
        if not self.compare(problem, self._told.data, first, second).ok:
            raise LaunchError(
                "a kernel that reads what it writes cannot be tuned, as each run would find other "
                f"data: {what} gives another result where {' and '.join(first)} held other "
                "values before; let it write to an array of its own"
            )
        return first

    def compare(
        self, problem: KernelProblem, inputs: Arrays, expected: Arrays, actual: Arrays
    ) -> Difference:
        """Compare every output; what lies between vectors of three numbers does not count."""
        right = {name: self._counted(name, array) for name, array in expected.items()}
        given = {name: self._counted(name, array) for name, array in actual.items()}
        return super().compare(problem, inputs, right, given)

    def _counted(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the part of an array that a result is made of."""
        return array[..., :3] if name in self._told.threes else array


class _Named(Mapping[str, Any]):
    """The values of a configuration and others; those of the configuration are asked for alone.

    A search asks constraints of configurations that have a part of their parameters yet.
    """

    def __init__(self, config: Mapping[str, Any], others: Mapping[str, Any]):
        self._config, self._others = config, others

    def __getitem__(self, name: str) -> Any:
        return self._others[name] if name in self._others else self._config[name]

    def __iter__(self) -> Any:
        return iter((*self._others, *self._config))

    def __len__(self) -> int:
        return len(self._others) + len(self._config)


def _holds(result: np.ndarray[Any, Any], pattern: int) -> np.ndarray[Any, Any]:
    """Return which elements still are the poison that was there before the run."""
    words = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
    return np.asarray(np.all(words.reshape(-1, result.dtype.itemsize) == pattern, axis=1))


def kernel_file(
    text: KernelText,
    arguments: Mapping[str, Any],
    global_size: str,
    *,
    local_size: str | None = None,
    restrictions: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    expected: Any = None,
    tolerance: float | None = None,
    device: str | int | Device | None = None,
) -> KernelFile:
    """Return the operation for a kernel in a file; parameters are those of `tune_kernel`.

    Raises
    ------
    InvalidProblem
        If the arguments are not those of the kernel.
    OclabError
        Of the kind that says what is wrong.
    """
    for name, choices in text.params.items():
        if not choices:
            raise InvalidProblem(f"the parameter {name} has no values")
    for name in (*text.params, *text.fixed):
        if not NAME.fullmatch(name):
            raise InvalidProblem(f"{name!r} is no name of a parameter: take letters, digits and _")
        if name in text.params and name in text.fixed:
            raise InvalidProblem(f"the parameter {name} is fixed, and has values to try too")
    known = text.signature(text.first)
    by_name = {argument.name: argument for argument in known.arguments}
    unknown = ", ".join(sorted({*arguments, *(outputs or ())} - set(by_name)))
    missing = ", ".join(name for name in by_name if name not in arguments)
    if unknown or missing:
        wrong = f"has no argument {unknown}" if unknown else f"needs a value for {missing}"
        told = ", ".join(argument.text for argument in known.arguments)
        raise InvalidProblem(f"the kernel {known.kernel} {wrong}; it takes: {told}")
    buffers: list[Buffer] = []
    data: Arrays = {}
    values: dict[str, Any] = {}
    local: dict[str, tuple[str, int]] = {}
    for name, argument in by_name.items():
        given = arguments[name]
        if argument.space == "local":
            local[name] = (str(given), _itemsize(argument))
        elif argument.space:
            array = _array(argument, given)
            writes = name in outputs if outputs is not None else not argument.const
            buffers.append(Buffer(name, "out" if writes else "in", array.shape, array.dtype))
            if not writes:
                data[name] = np.ascontiguousarray(array)
        else:
            values[name] = _number(argument, given)
    written = {buffer.name: buffer for buffer in buffers if buffer.role == "out"}
    if not written:
        raise InvalidProblem(
            f"the kernel {known.kernel} writes to no array: there is no result to check"
        )
    threes = tuple(name for name, argument in by_name.items() if argument.width == 3)
    if expected is not None:
        expected = _expected(expected, written, threes)
    if tolerance is None:
        kinds = [buffer.dtype for buffer in written.values() if buffer.dtype.kind in "fc"]
        tolerance = max((math.sqrt(np.finfo(kind).eps) for kind in kinds), default=0.0)
    description = _Description(
        text,
        known.kernel,
        tuple(buffers),
        data,
        values,
        local,
        threes,
        global_size,
        local_size,
        tuple(restrictions),
        expected,
        tolerance,
        select_device(device).spec,
    )
    operation = KernelFile(description)
    for restriction in restrictions:  # a slip in one is told now, and not as an empty space
        evaluate(restriction, operation.names(text.first))
    return operation


def _itemsize(argument: Argument) -> int:
    if argument.dtype is None:
        raise InvalidProblem(f"the type of {argument.text!r} is none of OpenCL's own")
    return argument.dtype.itemsize * argument.stored


def _array(argument: Argument, given: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(given)
    if array.ndim == 0 or not array.size or array.dtype.kind not in "biufc":
        raise InvalidProblem(f"{argument.text!r} needs an array of numbers that is not empty")
    real = array.real.dtype
    if argument.dtype is not None and (real.kind, real.itemsize) != (
        argument.dtype.kind,
        argument.dtype.itemsize,
    ):
        raise InvalidProblem(f"{argument.text!r} cannot be an array of {array.dtype}")
    return _padded(array, argument.text) if argument.width == 3 else array


def _padded(array: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """Return vectors of three numbers as OpenCL stores them, with a fourth one."""
    if array.ndim < 2 or array.shape[-1] not in (3, 4):
        raise InvalidProblem(
            f"{what!r} needs an array of shape (..., 3), or (..., 4) as OpenCL stores vectors of "
            f"three, not {array.shape}"
        )
    missing = [(0, 0)] * (array.ndim - 1) + [(0, 4 - array.shape[-1])]
    return np.pad(array, missing)


def _number(argument: Argument, given: Any) -> Any:
    if argument.width > 1 or (argument.dtype is None and not isinstance(given, np.generic)):
        raise InvalidProblem(
            f"{argument.text!r} is no number of a type of OpenCL's own; pass vectors by a "
            "pointer, and numbers of other types as a scalar of NumPy"
        )
    if argument.dtype is None:
        return given
    try:
        number = argument.dtype.type(given)
        exact = argument.dtype.kind == "f" or number == given
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact:
        raise InvalidProblem(f"{argument.text!r} cannot be {given!r}")
    return number


def _expected(given: Any, written: Mapping[str, Buffer], threes: Sequence[str]) -> Arrays:
    if not isinstance(given, Mapping):
        if len(written) > 1:
            names = ", ".join(written)
            raise InvalidProblem(f"the kernel writes {names}: map each to its expected array")
        given = {next(iter(written)): given}
    arrays = {name: np.asarray(array) for name, array in given.items()}
    if set(arrays) != set(written):
        raise InvalidProblem(
            f"expected results are given for {', '.join(arrays) or 'none'}, and the kernel "
            f"writes {', '.join(written)}"
        )
    for name, array in arrays.items():
        if name in threes:
            arrays[name] = array = _padded(array, f"expected {name}")
        if array.shape != written[name].shape:
            raise InvalidProblem(
                f"the expected {name} has shape {array.shape}, the array {written[name].shape}"
            )
    return {name: array.astype(written[name].dtype) for name, array in arrays.items()}


def tune_kernel(
    file: str | Path,
    params: Mapping[str, Sequence[Value]],
    arguments: Mapping[str, Any],
    global_size: str | int | Sequence[str | int],
    *,
    local_size: str | int | Sequence[str | int] | None = None,
    kernel: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    restrictions: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    expected: Any = None,
    tolerance: float | None = None,
    options: Sequence[str] = (),
    device: str | int | Device | None = None,
    strategy: str = "local-search",
    budget: int | None = None,
    time_limit: float | None = None,
    timeout: float | None = None,
    seed: int = 0,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> TuneResult:
    """Find the fastest parameters of a kernel of your own, in a file.

    Each configuration is built, checked and timed in a process of its own, as `tune` does it
    for the operations of the package. Sizes of the launch are expressions of parameters and of
    arguments that are numbers, with ``+ - * // %``, `min`, `max`, ``ceil_div(a, b)`` and
    ``round_up(a, multiple)``. Results are checked at the sizes that are timed: take sizes that no
    tile divides, or a missing check of bounds stays unseen.

    Parameters
    ----------
    file : str or Path
        A Mako template, ``*.mako``; else OpenCL C that gets its parameters as macros.
    params : mapping
        The values to try for each parameter. The first ones make the configuration that
        the gain is told against.
    arguments : mapping
        A value for each argument of the kernel by its name there: arrays of any shape, of outputs
        only shape and type count; numbers; for ``__local`` pointers how many elements, which
        may be an expression. Vectors of three numbers are arrays of shape ``(..., 3)``.
    global_size, local_size : str, int or sequence of these
        Work-items in all and per group, for one to three dimensions. The global size is rounded
        up to a multiple of the local one. The local one defaults to ``reqd_work_group_size``.
    kernel : str, optional
        Name of the kernel; needed where the file has several.
    fixed : mapping, optional
        Parameters that do not vary.
    restrictions : sequence of str
        Conditions on parameters, such as ``"WG_SIZE * WORK <= 4096"``.
    outputs : sequence of str, optional
        The arrays that the kernel writes, every element of them, and does not read; by default
        those whose pointer is not ``const``.
    expected : array or mapping of arrays, optional
        The right output, or outputs by name. Without it every configuration is compared with
        the result of the first one, which must run.
    tolerance : float, optional
        How far a result may be from the right one, relative to the largest magnitude in it; by
        default the square root of the type's precision. Integers must be equal.
    options : sequence of str
        Build options.
    device, strategy, budget, time_limit, timeout, seed, fresh, progress
        As for `tune`.

    Returns
    -------
    TuneResult

    Raises
    ------
    InvalidProblem
        If the arguments are not those of the kernel.
    OclabError
        Of the kind that says what is wrong.
    KeyboardInterrupt
        After what was found so far has been stored.

    Examples
    --------
    >>> result = tune_kernel(
    ...     "scale.cl",
    ...     {"WG": (16, 64, 256)},
    ...     {"x": x, "y": np.empty_like(x), "n": x.size},
    ...     "n",
    ...     local_size="WG",
    ... )  # doctest: +SKIP
    """
    text = KernelText(
        Path(file).resolve(),
        kernel,
        {name: tuple(values) for name, values in params.items()},
        dict(fixed or {}),
        tuple(options),
    )
    operation = kernel_file(
        text,
        arguments,
        _expression(global_size),
        local_size=None if local_size is None else _expression(local_size),
        restrictions=restrictions,
        outputs=outputs,
        expected=expected,
        tolerance=tolerance,
        device=device,
    )
    return tune(
        operation,
        device=device,
        strategy=strategy,
        budget=budget,
        time_limit=time_limit,
        timeout=timeout,
        seed=seed,
        fresh=fresh,
        progress=progress,
    )


def _expression(sizes: str | int | Sequence[str | int]) -> str:
    if isinstance(sizes, (str, int)):
        return str(sizes)
    return ", ".join(map(str, sizes))
