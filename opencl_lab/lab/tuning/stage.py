"""A problem with its data on the device, on which configurations are built, run and checked."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from opencl_lab.core.errors import BuildError, InvalidConfig
from opencl_lab.core.space import Config
from opencl_lab.lab.engine.row import Status
from opencl_lab.lab.measuring.guarded import Fingerprints, Guarded
from opencl_lab.lab.measuring.poison import POISON
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.solver import Problem
from opencl_lab.runtime.arrays import native
from opencl_lab.runtime.executable import Executable
from opencl_lab.runtime.execute import Execution, execute
from opencl_lab.runtime.session import session_of


class WrongResult(Exception):
    """A wrong result."""


def verdict(error: Exception) -> tuple[Status, str]:
    """Return the status of a configuration that raised an error, and the reason."""
    if isinstance(error, BuildError):
        return "compile", f"{error.sentence}{error.first_error}"
    if isinstance(error, InvalidConfig):
        return "constraints", str(error)
    if isinstance(error, MemoryError):
        return "runtime", "the host ran out of memory"
    return "correctness" if isinstance(error, WrongResult) else "runtime", str(error) or repr(error)


class Stage:
    """A problem with its data on the device and the expected results.

    `config` may be any configuration, as the arrays are the same for all.
    """

    def __init__(self, task: TuningTask, problem: Problem, config: Config, queue: Any):
        self.task, self.problem, self.queue = task, problem, queue
        self.inputs: Arrays = {
            name: native(np.ascontiguousarray(array))
            for name, array in task.operation.generate(problem, task.seed, **task.data).items()
        }
        plan = task.algorithm.plan(problem, config, task.device)
        self._in = {b.name: Guarded(queue, b.shape, b.dtype) for b in plan.with_role("in")}
        self._out = {b.name: Guarded(queue, b.shape, b.dtype) for b in plan.with_role("out")}
        self._held = {name: self.inputs[name] for name in self._out if name in self.inputs}
        self._loaded: tuple[int, ...] = ()
        self._right: set[tuple[int, ...]] = set()
        self.load()

    @cached_property
    def expected(self) -> Arrays:
        """The expected results, computed once."""
        return self.task.operation.expected(self.problem, self.inputs)

    def load(self) -> None:
        """Put the inputs on the device."""
        self._loaded = ()
        for name, guarded in self._in.items():
            guarded.poison()
            guarded.set(self.inputs[name])

    def build(self, config: Config) -> Executable:
        """Plan, check the limits and build; executables are cached."""
        task = self.task
        key = ("tuning", task.algorithm_name, self.problem, config)
        return session_of(self.queue).executable(key, lambda: task.plan(config, self.problem))

    def run(self, executable: Executable) -> Execution:
        """Run once and wait."""
        arrays = {name: guarded.array for name, guarded in self._in.items()}
        out = {name: guarded.array for name, guarded in self._out.items()}
        execution = execute(executable, arrays, self.queue, out)
        self.queue.finish()
        return execution

    def poison(self, pattern: int = POISON) -> None:
        """Overwrite outputs, so that earlier results cannot pass; restore in-out arrays."""
        self._loaded = self._loaded or self._prints(self._in)
        for guarded in self._out.values():
            guarded.poison(pattern)
        self.restore()
        self.queue.finish()

    def restore(self) -> None:
        """Restore the contents of in-out arrays."""
        for name, array in self._held.items():
            self._out[name].set(array)

    def results(self) -> Arrays:
        """Return the outputs of the last run."""
        return {name: guarded.get() for name, guarded in self._out.items()}

    def check(self, compared: bool = True) -> None:
        """Raise `WrongResult` if the last run changed inputs, wrote outside arrays, or is wrong.

        Results are only compared if `compared` is set. Results equal, bit by bit, to correct ones
        are accepted by their fingerprints, without copying them to the host, since most
        configurations form their sums in one of a few orders. Fingerprints also show that inputs
        are unchanged.
        """
        where = f"on {_sizes(self.problem)}"
        kept = self._prints(self._in) == self._loaded
        prints = self._prints(self._out) if compared else ()
        if kept and prints in self._right:
            return
        for name, guarded in self._out.items():
            damage = guarded.damage()
            if damage is not None:
                raise WrongResult(f"it writes outside the array {name!r} {where}: {damage}")
        if not kept:
            self._look_for_damage(where)
        if compared:
            self._compare(where)
            self._right.add(prints)

    def _prints(self, arrays: dict[str, Guarded]) -> tuple[int, ...]:
        """Return the fingerprint of each array with its guards."""
        return tuple(self._fingerprints.of(guarded.buffer) for guarded in arrays.values())

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        return Fingerprints(self.queue)

    def _look_for_damage(self, where: str) -> None:
        """Raise `WrongResult` for an input that was written to, and load the inputs again."""
        for name, guarded in self._in.items():
            if guarded.damage() is not None or not _same_bits(guarded.get(), self.inputs[name]):
                raise WrongResult(f"it writes to its input {name!r} {where}")
        self._loaded = self._prints(self._in)

    def _compare(self, where: str) -> None:
        compare = self.task.operation.compare
        difference = compare(self.problem, self.inputs, self.expected, self.results())
        if not difference.ok:
            raise WrongResult(f"wrong result {where}: {difference}")


def _same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays of one shape and type are equal as bytes, NaN included."""
    whole = one.reshape(-1).view(np.uint8), np.ascontiguousarray(other).reshape(-1).view(np.uint8)
    return bool(np.array_equal(*whole))


def _sizes(problem: Problem) -> str:
    return ", ".join(f"{name}={getattr(problem, name)}" for name in problem.sizes)
