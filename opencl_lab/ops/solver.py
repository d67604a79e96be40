"""Problems, algorithms and solvers: the one way from a problem to its result.

Public functions, comparisons, the tuner and the tests all use it. What an operation needs in
addition to be compared and tuned is in `opencl_lab.lab.operation`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, LaunchError
from opencl_lab.core.kernels import NO_DOUBLE
from opencl_lab.core.plan import Plan, Work, check_plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.estimates import Estimates
from opencl_lab.ops.problem import Problem
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.execute import Execution
from opencl_lab.selftest import trust
from opencl_lab.selftest.verdicts import Family
from opencl_lab.tuned import database

__all__ = ["AUTO", "Algorithm", "Problem", "Registry", "Solver", "made"]

AUTO = "auto"
trust.handler = "opencl_lab.ops.selftest:SelfTest"


P = TypeVar("P", bound=Problem)


class Algorithm(ABC, Generic[P]):
    """One way to solve the problems of an operation on a device."""

    name: ClassVar[str]
    space: ClassVar[SearchSpace]
    templates: ClassVar[tuple[str, ...]] = ()
    """Templates of its kernels."""
    version: ClassVar[int] = 1
    """Raised when configurations come to mean something else: tuned ones name it, and those of
    other versions are not used."""
    replanned: ClassVar[bool] = False
    """Whether to plan anew at every call, since the code may change: for a user's own kernel."""
    modelled: ClassVar[bool] = False
    """Whether `default_config` uses a model of device and problem. Configurations tuned on other
    devices, or at sizes that are not nearly the same, need not be better then."""
    operation: str = ""
    """Name under which its configurations are tuned; set by its solver."""

    def on(self, kind: str) -> Algorithm[P]:
        """Return the algorithm for a kind of device: itself, unless there are two."""
        return self

    def supports(self, problem: P, device: Device) -> str | None:
        """Return why this algorithm cannot solve `problem` on `device`, or None if it can."""
        return None

    def too_slow(self, problem: P) -> str | None:
        """Return why it is too slow for comparisons, which then run it only by name; or None."""
        return None

    def work(self, problem: P) -> Work:
        """Return the least work that this algorithm does, to compare with the device's peaks."""
        return problem.work

    @abstractmethod
    def default_config(self, problem: P, device: Device) -> Config:
        """Return the built-in configuration for this kind of device."""

    def search_space(self, problem: P, device: Device) -> SearchSpace:
        """Return the parameters and values for a tuner to try: those that matter here."""
        return self.space

    @abstractmethod
    def plan(self, problem: P, config: Config, device: Device) -> Plan:
        """Return what to launch. Pure: no OpenCL call, no device handle."""

    def configure(
        self, problem: P, device: Device, values: Mapping[str, Any] | None = None
    ) -> Config:
        """Return the tuned or else the default configuration, updated with `values`.

        Raises
        ------
        InvalidConfig
            If the space does not allow the result, or `values` is no mapping.
        """
        if values is not None and not isinstance(values, Mapping):
            raise InvalidConfig(f"config must map parameters to values, not be {values!r}")
        if values:
            return self._configure(problem, device, values)
        # Every call that is not replayed needs this, so the result is cached.
        return database.remember(
            (self, self.version, problem, device, database.enabled()),
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
        """Return the best tuned configuration that is allowed here, and its origin.

        None if there is none, or with ``OCLAB_TUNING=off``; `values` override its own.
        """
        if not (database.enabled() and self.templates and self.operation):
            return None
        how = {"modelled": self.modelled, "own": self.replanned}
        known = database.lookup(device, self.operation, self.name, problem, self.version, **how)
        for match in known:
            config = self.allowed(problem, device, match.entry.config, values)
            if config is not None:
                return config, match
        return None

    def allowed(
        self,
        problem: P,
        device: Device,
        found: Mapping[str, Any],
        values: Mapping[str, Any] | None = None,
    ) -> Config | None:
        """Return the built-in configuration with what was found elsewhere, and then `values`.

        None if the space does not allow it, or it exceeds a limit of this device or problem. Of a
        user's own kernel, only listed values are allowed: the lists may have changed since.
        """
        if self.replanned and not self.space.lists(found):
            return None
        with suppress(InvalidConfig, InvalidProblem):
            default = self.default_config(problem, device)
            config = self.space.check({**found, **(values or {})}, default)
            check_plan(self.plan(problem, config, device), device)
            return config
        return None


Registry: TypeAlias = Mapping[str, str | Algorithm[Any]]


class Solver(Estimates[P], Generic[P]):
    """Solves the problems of one operation: its algorithms, and how one is chosen and run."""

    name: ClassVar[str]
    registry: ClassVar[Registry]
    """The algorithms by name, in order of preference: instances, or places ``"module:class"`` from
    which they are loaded lazily."""
    groups: ClassVar[tuple[str, ...]] = (AUTO,)
    """Names that stand for several algorithms each; see `ranked`."""
    choices: ClassVar[Mapping[str, str]] = {}
    """Further names that the public function accepts as `algorithm`, with their meanings."""
    tunable: ClassVar[bool] = True
    """Whether tuned configurations are looked for, under the name of this solver."""

    def __init__(self) -> None:
        self._loaded: dict[str, Algorithm[Any]] = {}

    @property
    def algorithms(self) -> tuple[Algorithm[Any], ...]:
        """All algorithms, in order of preference."""
        return tuple(map(self.algorithm, self.registry))

    def algorithm(self, name: str) -> Algorithm[P]:
        """Return an algorithm by name.

        Raises
        ------
        InvalidConfig
            If there is no algorithm of that name.
        """
        found = self._loaded.get(name)
        if found is not None:
            return found
        if name in self.choices:
            raise InvalidConfig(f"{name} cannot be run or tuned here: {self.choices[name]}")
        if name not in self.registry:
            names = ", ".join((AUTO, *self.registry, *self.choices))
            raise InvalidConfig(f"{self.name} has no algorithm {name!r}; it has: {names}")
        entry = self.registry[name]
        algorithm: Algorithm[Any] = made(entry) if isinstance(entry, str) else entry
        if self.tunable:
            algorithm.operation = self.name
        return self._loaded.setdefault(name, algorithm)

    def ranked(self, problem: P, device: Device, group: str = AUTO) -> Iterable[str]:
        """Return the names of a group's algorithms, probably the fastest first."""
        return self.registry

    def choose(
        self, problem: P, device: Device, name: str = AUTO, *, internal: bool = False
    ) -> Algorithm[P]:
        """Return the algorithm `name`.

        ``auto`` and other groups mean the first of their `ranked` algorithms that supports the
        problem on the device; if the self-test found that wrong, the next one, of the others too.
        A name with one class for CPUs and another one for GPUs means that for the kind of this
        device, see `Algorithm.on`.

        Raises
        ------
        InvalidConfig
            If there is no such algorithm, or it does not support this problem here.
        LaunchError
            If none of a group is right on this device, or an `internal` one is not: one that the
            library names, and not the user.
        """
        trust.admit(device)
        group = name in self.groups
        first = tuple(self.ranked(problem, device, name)) if group else (name,)
        reasons: dict[str, list[str]] = {}
        faults: list[tuple[Family, str]] = []
        for candidate in dict.fromkeys((*first, *self.registry)):
            if candidate not in first and not (group and faults):
                break
            algorithm = self.algorithm(candidate).on(device.kind)
            reason = algorithm.supports(problem, device)
            if reason is None and faults:
                reason = algorithm.too_slow(problem)
            if reason is not None:
                reasons.setdefault(reason, []).append(candidate)
                continue
            family = Family(self.name, candidate, problem.wide)
            fault = trust.fault(device, family, algorithm.templates)
            if fault and (group or internal):
                faults.append((family, fault))
                continue
            if fault:
                trust.warn(device, family, fault, "it runs, as it was asked for by name")
            for wrong, what in faults:
                trust.warn(device, wrong, what, f"{candidate} takes its place")
            return algorithm
        why = [f"{', '.join(named)}: {reason}" for reason, named in reasons.items()]
        if faults:
            raise trust.refusal(self.name, device, faults, why)
        if NO_DOUBLE in reasons:
            why.append("take another device (see `oclab devices`) or single precision")
        raise InvalidConfig(f"no algorithm for this {self.name} on {device}: {'; '.join(why)}")

    def side(self, problem: P, device: Device, algorithm: str = AUTO) -> Device:
        """Return where a call on host arrays is faster: a device, or its serial side."""
        serial = device.serial_side
        if serial is None:
            return device
        alone = self.is_faster_alone(problem, device.compute_units, algorithm)
        if not alone or algorithm in self.choices:
            return device
        try:
            self.choose(problem, serial, algorithm)
        except (InvalidConfig, LaunchError):  # there is none there, or it is wrong
            return device
        return serial

    def plan(
        self,
        problem: P,
        device: Device,
        algorithm: str = AUTO,
        config: Mapping[str, Any] | None = None,
    ) -> Plan:
        """Return the plan that `run` would execute on a device, configured by `configure`."""
        chosen = self.choose(problem, device, algorithm)
        return chosen.plan(problem, chosen.configure(problem, device, config), device)

    def run(
        self,
        problem: P,
        inputs: Mapping[str, Any],
        *,
        algorithm: str = AUTO,
        config: Mapping[str, Any] | None = None,
        queue: Any = None,
        out: Mapping[str, Any | None] | None = None,
        call: Call | None = None,
    ) -> Execution:
        """Solve a problem on contiguous host or device arrays.

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
            Arrays that receive outputs, and must not overlap the inputs; others are new.
        call : Call, optional
            The current call of a public function, in place of `queue`.

        Raises
        ------
        InvalidProblem, InvalidConfig, BuildError, LaunchError
        """
        given = {name: array for name, array in (out or {}).items() if array is not None}
        for name, array in {**inputs, **given}.items():
            if is_device_array(array) and array.size and array.offset:
                raise InvalidProblem(f"the device array {name!r} has an offset; pass a copy")
        call = Call(queue) if call is None else call
        if not (config or any(map(is_device_array, (*inputs.values(), *given.values())))):
            call.move(lambda device: self.side(problem, device, algorithm))
        session = call.session
        chosen = self.choose(problem, session.device, algorithm)
        configured = chosen.configure(problem, session.device, config)
        executable = session.executable(
            (chosen, problem, configured),
            lambda: chosen.plan(problem, configured, session.device),
            replan=chosen.replanned,
        )
        return call.execute(executable, inputs, given)


def made(place: str) -> Algorithm[Any]:
    """Import the class at ``"module:class"`` and return an instance."""
    module, _, name = place.partition(":")
    algorithm: Algorithm[Any] = getattr(import_module(module), name)()
    return algorithm
