"""Transforms along several axes as one plan, for a device with one compute unit.

There a launch costs more than the transform of a small image, and all axes share one. Other devices
have a plan for each axis, with the configuration that was tuned for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.core.plan import Plan, Work
from opencl_lab.core.space import Config
from opencl_lab.ops.fft.estimates import FURTHER_LAUNCH_US
from opencl_lab.ops.fft.fast import FFT
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import SPACE, TEMPLATES
from opencl_lab.ops.fft.problem import DftProblem, complex_dtype, scale_of
from opencl_lab.ops.fft.solver import DFT_SOLVER, DftSolver
from opencl_lab.ops.fft.transform import complex_type, finish, real_type
from opencl_lab.ops.solver import Algorithm, Problem, Registry, Solver
from opencl_lab.runtime.arrays import AnyArray, contiguous, direct_target, fitted
from opencl_lab.runtime.call import Call


@dataclass(frozen=True)
class AxesProblem(Problem):
    """Transforms of a contiguous array along one axis after the other, each by a `DftProblem`."""

    sizes = ()
    layout = ()

    turns: tuple[DftProblem, ...]

    @classmethod
    def of(
        cls,
        kind: str,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        axes: Sequence[int],
        lengths: Sequence[int | None],
        norm: str | None,
        inverse: bool,
    ) -> AxesProblem | None:
        """Return transforms along `axes`, in this order; None if they need several plans.

        These are lengths other than those of the array, and a real axis other than the last one,
        which is the first of `axes` in ``r2c`` and their last one in ``c2r``. Then its length is
        that of the real side.
        """
        sizes: list[int] = list(shape)
        turns: list[DftProblem] = []
        last = len(sizes) - 1
        for place, (axis, length) in enumerate(zip(axes, lengths, strict=True)):
            real = kind != "c2c" and place == (0 if kind == "r2c" else len(axes) - 1)
            n = sizes[axis] if length is None else length
            needed = n // 2 + 1 if real and kind == "c2r" else n
            if needed != sizes[axis] or n < 1 or (real and axis != last):
                return None
            batch, inner = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
            scale = scale_of(n, norm, inverse)
            turns.append(
                DftProblem(n, dtype, batch, inner, inverse, scale, kind if real else "c2c")
            )
            if real:
                sizes[axis] = n // 2 + 1 if kind == "r2c" else n
        return cls(tuple(turns)) if len(turns) > 1 and 0 not in sizes else None

    @property
    def wide(self) -> bool:
        """Whether components have eight bytes."""
        return self.turns[0].wide

    @property
    def work(self) -> Work:
        """The arithmetic of all axes, one read and one write."""
        first, last = self.turns[0].signal, self.turns[-1].spectrum
        moved = sum(math.prod(shape) * dtype.itemsize for shape, dtype in (first, last))
        return Work(flops=sum(turn.work.flops for turn in self.turns), bytes=float(moved))


class AlongAxes(Algorithm[AxesProblem]):
    """One transform after the other. Those of columns are done in place."""

    name = "fft"
    templates = TEMPLATES
    space = SPACE

    def supports(self, problem: AxesProblem, device: Device) -> str | None:
        """Need a single compute unit, and what each transform needs."""
        if device.compute_units > 1:
            return "it is for devices with one compute unit"
        return FFT.supports(problem.turns[0], device)

    def default_config(self, problem: AxesProblem, device: Device) -> Config:
        """Return that of the rows, if there are any: one launch has one configuration."""
        rows = min(problem.turns, key=lambda turn: turn.inner)
        return FFT.default_config(rows, device)

    def plan(self, problem: AxesProblem, config: Config, device: Device) -> Plan:
        """Plan all transforms."""
        turns = problem.turns
        builder = PlanBuilder(turns[0].dtype)
        builder.add("signal", "in", *turns[0].signal)
        builder.add("spectrum", "out", *turns[-1].spectrum)
        source = "signal"
        for number, turn in enumerate(turns, 1):
            in_place = all(later.inner > 1 for later in turns[number:])
            size = math.prod(turn.spectrum[0])
            target = "spectrum" if in_place else builder.scratch("middle", size, turn.spectrum[1])
            FFT.add(builder, turn, source, target, config, device)
            source = target
        return builder.finish()


class AxesSolver(Solver[AxesProblem]):
    """Transforms along several axes."""

    name = DftSolver.name
    registry: ClassVar[Registry] = {"fft": AlongAxes()}
    tunable = False

    def serial_us(self, problem: AxesProblem) -> float:
        """Return the estimated microseconds on one thread: those of all axes."""
        return sum(map(DFT_SOLVER.serial_us, problem.turns))

    def parallel_us(self, problem: AxesProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads, with a launch for each axis."""
        launches = FURTHER_LAUNCH_US * units * (len(problem.turns) - 1)
        return launches + sum(DFT_SOLVER.parallel_us(turn, units) for turn in problem.turns)


AXES_SOLVER = AxesSolver()


def at_once(
    call: Call,
    array: AnyArray,
    kind: str,
    axes: Sequence[int],
    lengths: Sequence[int | None],
    norm: str | None,
    out: AnyArray | None,
    *,
    inverse: bool = False,
    conjugate: bool = False,
) -> AnyArray | None:
    """Transform an array, or its conjugates, along `axes`, in this order, by one plan.

    Return None if that needs several. All of them run on the same side of the device then, too.
    """
    given = real_type(array) if kind == "r2c" else complex_type(array)
    dtype = complex_dtype(given)
    problem = AxesProblem.of(kind, array.shape, dtype, axes, lengths, norm, inverse)
    if problem is None or given == np.float16:
        return None
    call.move(lambda device: AXES_SOLVER.side(problem, device))
    try:
        AXES_SOLVER.choose(problem, call.device)
    except (InvalidConfig, LaunchError):  # not for this device, or wrong there
        return None
    first, (flat, made) = problem.turns[0], problem.turns[-1].spectrum
    array = contiguous(fitted(array, call, array.shape[-1], -1, given, conjugate), call)
    shape = (*array.shape[:-1], math.prod(flat) // math.prod(array.shape[:-1]))
    target = direct_target(out, shape, made, (array,))
    run = AXES_SOLVER.run(
        problem,
        {"signal": array.reshape(first.signal[0])},
        call=call,
        out={"spectrum": None if target is None else target.reshape(flat)},
    )
    result = run.outputs["spectrum"].reshape(shape)
    return finish(result, out, call) if target is None else out
