"""Transforms along several axes as one plan, where a launch costs more than a small image.

On a device with one compute unit all axes share a launch, and on GPUs whose groups wait for others,
rows and columns of few data do. Else there is a plan for each axis, with the configuration that was
tuned for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.core.plan import Plan
from opencl_lab.ops.estimates import Estimates
from opencl_lab.ops.fft.estimates import FURTHER_LAUNCH_US
from opencl_lab.ops.fft.fast import FFT
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import planner_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.planner import How
from opencl_lab.ops.fft.problem import DftProblem, complex_dtype, scale_of
from opencl_lab.ops.fft.solver import DFT_SOLVER
from opencl_lab.ops.fft.transform import complex_type, finish, real_type
from opencl_lab.ops.solver import AUTO
from opencl_lab.runtime.arrays import AnyArray, contiguous, direct_target, fitted
from opencl_lab.runtime.call import Call


@dataclass(frozen=True)
class AxesProblem:
    """Transforms of a contiguous array along one axis after the other, each by a `DftProblem`."""

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

    def plan(self, device: Device) -> Plan:
        """Plan one transform after the other, in the configuration of the rows, if there are any.

        Those of columns are done in place.
        """
        turns = self.turns
        config = FFT.default_config(min(turns, key=lambda turn: turn.inner), device)
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

    def in_one_launch(self, device: Device) -> Plan | None:
        """Plan one launch for planes, along rows and then columns; None if there is no such."""
        if len(self.turns) > 2 or self.turns[0].inner > 1 or self.turns[1].kind != "c2c":
            return None
        rows, columns = self.turns
        n, (batch, m) = rows.n, (columns.batch, columns.n)
        if rows.kind != "c2c" or columns.inner != n:
            return None
        builder = PlanBuilder(rows.dtype)
        builder.add("signal", "in", *rows.signal)
        builder.add("spectrum", "out", *columns.spectrum)
        middle = builder.scratch("middle", rows.count * n)
        strides = Strides(m * n, 1, n)
        layouts = (
            BatchedLayout(n, batch, m, "signal", middle, strides, strides),
            BatchedLayout.columns(m, batch, n, middle, "spectrum"),
        )
        how = [How(turn.inverse, turn.scale) for turn in self.turns]
        planner = planner_of(FFT.default_config(rows, device), device)
        return builder.finish() if planner.planes(builder, *layouts, how) else None


class AxesEstimates(Estimates[AxesProblem]):
    """Times of transforms along several axes, with a launch for each axis on all threads."""

    def serial_us(self, problem: AxesProblem) -> float:
        """Return the estimated microseconds on one thread: those of all axes."""
        return sum(map(DFT_SOLVER.serial_us, problem.turns))

    def parallel_us(self, problem: AxesProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        launches = FURTHER_LAUNCH_US * units * (len(problem.turns) - 1)
        return launches + sum(DFT_SOLVER.parallel_us(turn, units) for turn in problem.turns)


def _plan_maker(problem: AxesProblem, device: Device) -> Callable[[], Plan] | None:
    """Return what plans all axes at once, or None; the device's transforms are right."""
    with suppress(InvalidConfig, LaunchError):
        DFT_SOLVER.choose(problem.turns[0], device, FFT.name, internal=True)
        if device.compute_units == 1:
            return partial(problem.plan, device)
        plan = problem.in_one_launch(device)
        return None if plan is None else lambda: plan
    return None


def _side(problem: AxesProblem, device: Device) -> Device:
    """Return where a call on host arrays is faster: a device, or its serial side."""
    serial = device.serial_side
    if serial is None or _plan_maker(problem, serial) is None:
        return device
    units = device.compute_units
    return serial if AxesEstimates().is_faster_alone(problem, units, AUTO) else device


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
    call.move(lambda device: _side(problem, device))
    plan = _plan_maker(problem, call.device)
    if plan is None:
        return None
    first, (flat, made) = problem.turns[0], problem.turns[-1].spectrum
    array = contiguous(fitted(array, call, array.shape[-1], -1, given, conjugate), call)
    shape = (*array.shape[:-1], math.prod(flat) // math.prod(array.shape[:-1]))
    target = direct_target(out, shape, made, (array,))
    executable = call.session.executable(problem, plan)
    inputs = {"signal": array.reshape(first.signal[0])}
    made_in = {} if target is None else {"spectrum": target.reshape(flat)}
    result = call.execute(executable, inputs, made_in).outputs["spectrum"].reshape(shape)
    return finish(result, out, call) if target is None else out
