"""What the child process of the self-test runs: the trials of all operations, on one device.

`opencl_lab.selftest` starts it and keeps the verdicts.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, product
from typing import Any

import numpy as np

import opencl_lab.ops
from opencl_lab.core.device import Device
from opencl_lab.core.errors import (
    InvalidConfig,
    InvalidProblem,
    LaunchError,
    OclabError,
)
from opencl_lab.drivers.discovery import here
from opencl_lab.drivers.pocl import linker_missing, no_room
from opencl_lab.drivers.processes import default_threads
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.ops.trial import Array, Trial, Trials
from opencl_lab.runtime.arrays import contiguous, is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.exchange import to_device
from opencl_lab.selftest import trust
from opencl_lab.selftest.basics import CHECKS
from opencl_lab.selftest.child import Child, TrialError, Trying, spread
from opencl_lab.selftest.examination import Examination
from opencl_lab.selftest.kernels import Wrong, why
from opencl_lab.selftest.verdicts import DEVICE, Family, keep

SEED, DRAWN = 2026, 32
"""Seed of data, and how many trials of an operation the whole self-test draws."""
LEAST_CHILDREN, MOST_CHILDREN = 2, 4
"""Bounds of the number of children that test a device anew, which is half that of the processors:
they mostly build."""


def all_trials() -> Iterator[Trials]:
    """Yield the trials of every operation: those of the module `trials` in its package.

    A package without one has no algorithms of its own.
    """
    for package in pkgutil.iter_modules(opencl_lab.ops.__path__):
        name = f"opencl_lab.ops.{package.name}"
        if package.ispkg and find_spec(f"{name}.trials"):
            yield from import_module(f"{name}.trials").TRIALS


class SelfTest:
    """Tests kernel families on one device."""

    def __init__(self, device: Device, full: bool, say: Callable[[Trying], None]):
        self.device = here(device)
        version = self.device.platform_version
        lack = linker_missing(version) or no_room(version)
        if lack is not None:
            raise LaunchError(lack)  # nothing can be built, and that says nothing about kernels
        self.device.queue()  # raises an error if others have the device for themselves
        self._full, self._say = full, say

    def families(self) -> Verdict:
        """Return the families to test, and the templates of each.

        These are all of them for a full test, else those of typical problems.
        """
        found = {}
        for trials in all_trials():
            for problem in () if self._full else trials.typical:
                with suppress(InvalidConfig):  # such as a type that the device lacks
                    algorithm = trials.solver.choose(problem, self.device)
                    family = Family(trials.solver.name, algorithm.name, problem.wide)
                    found[family] = algorithm.templates
            for wide, name in product((False, True), trials.solver.registry if self._full else ()):
                algorithm = trials.solver.algorithm(name).on(self.device.kind)
                found[Family(trials.solver.name, name, wide)] = algorithm.templates
        # The alphabet has those that are built longest at its end; they come first.
        return Verdict("ok", value=list(found.items())[::-1])

    def test(self, family: Family) -> Verdict:
        """Return the verdict on a family; its value is how many trials ran.

        If the few trials of a first use are not for this device, another one is taken.
        """
        fault, count = self._basics() if family == DEVICE else self._test(family, self._full, 0)
        if not count and not self._full:
            fault, count = self._test(family, True, 1)
        if fault:
            return Verdict("broken", fault, count)
        return Verdict("ok", "", count) if count else Verdict("no", "no trial is for it", 0)

    def _test(self, family: Family, full: bool, enough: int) -> tuple[str, int]:
        count = 0
        for trials in all_trials():
            how = trials.how(family.algorithm)
            if trials.solver.name != family.operation or how is None:
                continue
            drawn = trials.drawn(self.device, DRAWN if full else 0)
            for trial in chain(trials.trials, drawn):
                if trial.wide != family.wide:
                    continue
                self._say(Trying(trial.title))
                try:
                    fault = self.fault(trial, how)
                except (InvalidConfig, InvalidProblem):  # it is not for this problem or device
                    continue
                except OclabError as error:
                    if "memory" in error.sentence:  # which says nothing about the kernels
                        raise
                    raise TrialError(f"{trial.title}: {error.sentence}") from error
                count += 1
                if fault or count == enough:
                    return (f"{trial.title}: {fault}" if fault else ""), count
        return "", count

    def _basics(self) -> tuple[str, int]:
        """Check what any kernel needs; those that need barriers have trials of their own."""
        for name, check in CHECKS.items():
            self._say(Trying(name))
            try:
                check(self.device)
            except Wrong as error:
                return str(error), len(CHECKS)
            except Exception as error:  # of the driver, which may have no memory left
                if isinstance(error, MemoryError) or "MemoryError" in type(error).__name__:
                    raise
                raise TrialError(f"{name}: {why(error)}") from error
        self._say(Trying("strided copies"))
        return _copies(self.device), len(CHECKS) + 1

    def fault(self, trial: Trial, how: dict[str, Any]) -> str:
        """Return what is wrong with the results, on arrays of the host and of the device."""
        call, arrays, expected = trial.task(np.random.default_rng(SEED))
        queue = self.device.queue()
        first = _results(call(*arrays, **how, queue=queue))
        second = _results(call(*(to_device(array, self.device) for array in arrays), **how))
        fault = trial.error(first, expected) or trial.error(second, expected)
        bits = [[array.tobytes() for array in results] for results in (first, second)]
        return fault or ("two runs differ" if bits[0] != bits[1] else "")


def _results(given: Any) -> tuple[Array, ...]:
    """Return the results of a call as arrays of the host."""
    results = given if isinstance(given, tuple) else (given,)
    return tuple(array.get() if is_device_array(array) else np.asarray(array) for array in results)


def _copies(device: Device) -> str:
    """Return what is wrong with copies of strided views, or ""."""
    rng, call = np.random.default_rng(SEED), Call(device.queue())
    for dtype in (np.uint8, np.int32, np.complex64):
        whole = rng.integers(0, 200, (37, 66)).astype(dtype)
        view = to_device(whole, device)[3::2, 1::5]
        if not np.array_equal(contiguous(view, call).get(), whole[3::2, 1::5]):
            return f"a strided view of {np.dtype(dtype)} is copied wrongly"
    return ""


def examine(
    device: Device, progress: Callable[[Family, Verdict], None], *, full: bool = False
) -> dict[Family, Verdict]:
    """Test a device anew, whatever is known of it, and return the verdicts, which are kept."""
    trust.mode()  # a wrong word in the environment is an error here, too
    handler = trust.handler or f"{__name__}:{SelfTest.__name__}"
    examination = Examination(device, handler, full=full, fresh=True)
    count = max(LEAST_CHILDREN, min(default_threads() // 2, MOST_CHILDREN))
    children = [examination.child() for _ in range(count)]

    def test(child: Child, one: tuple[Family, tuple[str, ...]]) -> tuple[Family, Verdict]:
        return one[0], examination.verdict(*one, child)

    try:
        keep(device, None)
        basics = examination.verdict(DEVICE, (), children[0])
        found = {DEVICE: basics}
        listed = children[0].ask("families") if basics.word == "ok" else basics
        if basics.word != "broken" and listed.word != "ok":  # to list them compares nothing
            raise LaunchError(f"the kernels of {device} cannot be tested: {listed.detail}")
        progress(DEVICE, basics)
        if basics.word == "ok":
            families = [(Family(*one), tuple(names)) for one, names in listed.value]
            for family, verdict in spread(test, families, children):
                found[family] = verdict
                progress(family, verdict)
        return found
    finally:
        children[0].end()
        trust.forget()
