"""Products of host matrices by several devices, which take tiles of C from one list.

       B0  B1  B2  B3                            device 0   A0: C00 C01 C02 C03 | A2: C23 C22 ...
   A0  C   C   C   C    0 ->                     device 1   A1: C10 C11 C12 C13 | A3: C33 C32 ...
   A1  C   C   C   C    1 ->
   A2  C   C   C   C                             A device keeps a panel of A while panels of B
   A3  C   C   C   C                             pass, which stay on the device if they fit.

A device that is done with its row takes the next one, and at last tiles of the others' rows. So a
faster device makes more of them. Tiles and their iterations are those of a product on one device
(`panels`, `streamed`), in one size that fits on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import ceil_divide
from opencl_lab.ops.gemm.host import panels
from opencl_lab.ops.gemm.host.panels import Panels, best_panels, plan_bytes
from opencl_lab.ops.gemm.host.streamed import (
    Arrays,
    items_of,
    solver,
    stack_bytes,
    stack_iterations,
)
from opencl_lab.ops.gemm.launches import is_empty
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.streams import largest_fitting, limit_of_parts, memory_limit
from opencl_lab.runtime.tile_schedule import Iteration, Schedule
from opencl_lab.runtime.tiles import run_tiles
from opencl_lab.runtime.together import HandOut, Stop, divided, new_result, on_each

Unit = tuple[Iteration, ...]
"""Iterations that make one tile of C, or a group of products of a stack."""
FEW = 4
"""Products of a stack for each device from which each is made by one device."""
GROUPS = 8
"""Groups of a stack for each device, so that it does not matter much who makes the last one."""
BANDED = 2e12
"""Operations of each device with memory of its own from which bands of rows take less time: two
H100 took 0.9 times as long as one for 16,384 rows and columns, and 1.7 times for 8,192."""
BANDS = (1, 2, 4, 8)
"""How many tiles of whole rows each device may get."""
HOST_BALANCE = 50.0
"""`panels.BALANCE` if all devices work on host memory."""
HOST_ITERATION_BYTES = 16 << 20
"""`panels.ITERATION_BYTES` then: threads hand a tile on, and kernels pack it again."""


@dataclass(frozen=True)
class _Shares:
    """What several devices make of a product; the first unit has the largest tiles."""

    rows: Sequence[Sequence[Unit]]
    slots: Mapping[str, int]  # number of tiles of each array on a device
    depth: int  # iterations of a unit


def multiply_together(
    problem: GemmProblem,
    inputs: Arrays,
    target: np.ndarray[Any, Any] | None,
    devices: Sequence[Device],
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
    function: Callable[..., Any],
) -> np.ndarray[Any, Any] | None:
    """Multiply host matrices on several devices; return None if one of them takes less time.

    Inputs and target are plain arrays that do not overlap. `function` is the public function, which
    multiplies bands of rows where all devices have memory of their own. After an error or an
    interrupt, only some parts of the target are written.

    Raises
    ------
    InvalidConfig
        If one of the devices cannot solve the problem, such as one without float64.
    OclabError
        An error of a device, which it names.
    """
    if algorithm == HYBRID:
        raise InvalidConfig(f"{HYBRID} is for one device; leave out devices= or algorithm=")
    for device in devices:  # before any of them starts
        GEMM_SOLVER.choose(problem, device, algorithm).configure(problem, device, config)
    if is_empty(problem) or not problem.depth:
        return None
    values = tuple(sorted(config.items())) if config else ()
    if not (problem.dimensions or any(device.unified_memory for device in devices)):
        if problem.work.flops < BANDED * len(devices) or problem.m < len(devices):
            return None
        result = new_result(devices, problem.shape, problem.dtype) if target is None else target
        how = {"algorithm": algorithm, "config": config}
        _multiply_bands(problem, inputs, result, devices, how, function)
        return result
    result = new_result(devices, problem.shape, problem.dtype) if target is None else target
    parts = [(problem, inputs, result)]
    if problem.dimensions and problem.dimensions[0][0] < FEW * len(devices):
        parts = list(items_of(problem, inputs, result))
    shares = _shares(parts[0][0], tuple(devices), algorithm, values, _room(devices))
    if shares is None and len(parts) > 1:
        parts = [(problem, inputs, result)]
        shares = _shares(problem, tuple(devices), algorithm, values, _room(devices))
    if shares is None:
        return None
    for _, given, out in parts:
        _run(shares, given, out, devices, algorithm, config)
    return result


def _multiply_bands(
    problem: GemmProblem,
    inputs: Arrays,
    result: np.ndarray[Any, Any],
    devices: Sequence[Device],
    how: Mapping[str, Any],
    function: Callable[..., Any],
) -> None:
    """Let each device multiply a band of rows, as long as it is fast, by a plain call."""
    bounds = divided(problem.m, devices)
    options = {
        "alpha": problem.alpha, "beta": problem.beta, "precision": problem.precision,
        "trans_a": "C" if problem.conj_a else problem.trans_a,
        "trans_b": "C" if problem.conj_b else problem.trans_b,
        "activation": problem.activation or None, "bias": inputs.get("bias"), **how,
    }  # fmt: skip

    def work(index: int, stop: Stop) -> None:
        rows = slice(*bounds[index : index + 2])
        if rows.start == rows.stop:
            return
        stop.check()
        a = inputs["a"][:, rows] if problem.trans_a else inputs["a"][rows]
        c = inputs["c"][rows] if "c" in inputs else None
        given = {"c": c, "out": result[rows], "device": devices[index]}
        function(a, inputs["b"], **options, **given)

    on_each(devices, work)


def _run(
    shares: _Shares,
    inputs: Arrays,
    result: np.ndarray[Any, Any],
    devices: Sequence[Device],
    algorithm: str,
    config: Mapping[str, Any] | None,
) -> None:
    hand_out = HandOut(shares.rows, devices)

    def work(index: int, stop: Stop) -> None:
        queue = devices[index].queue()
        multiply = solver(algorithm, config, queue)

        def solve(part: Any, given: Mapping[str, AnyArray], out: AnyArray) -> Any:
            stop.check()
            return multiply(part, given, out)

        def more(waiting: int) -> Unit:
            return hand_out.take(index, ceil_divide(waiting, shares.depth)) or ()

        plan, largest = Schedule(shares.slots), shares.rows[0][0]
        run_tiles(plan, inputs, result, solve, queue, more=more, largest=largest)

    on_each(devices, work)


def _room(devices: Sequence[Device]) -> float:
    """Return the bytes for tiles on each device; those on the host share its memory."""
    sharing = sum(device.unified_memory for device in devices)
    return min(
        limit_of_parts(device, memory_limit(device)) / (sharing if device.unified_memory else 1)
        for device in devices
    )


@lru_cache(maxsize=64)
def _shares(
    problem: GemmProblem,
    devices: tuple[Device, ...],
    algorithm: str,
    values: tuple[tuple[str, Any], ...],
    room: float,
) -> _Shares | None:
    """Return what devices make of a product or a stack; None if one device takes less time."""
    config = dict(values)
    if problem.dimensions:
        return _groups(problem, devices, algorithm, config, room)

    def planned(part: GemmProblem) -> float:
        return max(plan_bytes(part, device, algorithm, config) for device in devices)

    bands = _bands(problem, len(devices))
    found = best_panels(problem, room, planned, lambda item: _cost(item, devices), bands)
    alone = problem.work.flops / _rates(devices)[0] + problem.work.bytes
    if found is None or _cost(found, devices) > panels.WORTH * alone:
        return None
    m, n, depth = found.counts
    if m * n == 1:
        return None
    # Panels of the matrix that stays pass by those of the other one.
    pairs = [[(i, j) for i in range(m)] for j in range(n)]
    if found.kept != "a":
        pairs = [[(i, j) for j in range(n)] for i in range(m)]
    rows = [[tuple(found.tile(i, j)) for i, j in row] for row in pairs]
    return _Shares(rows, found.slots, depth)


def _groups(
    problem: GemmProblem,
    devices: tuple[Device, ...],
    algorithm: str,
    config: Mapping[str, Any],
    room: float,
) -> _Shares | None:
    """Return groups of products of a stack, along its first dimension."""
    count, work = problem.dimensions[0][0], problem.work
    balance, iteration = _rates(devices)
    if count == 1 or work.bytes + work.flops / balance < 2 * iteration * len(devices):
        return None

    def fits(size: int) -> bool:
        return all(
            stack_bytes(problem, size, device, algorithm, config) <= room for device in devices
        )

    together = largest_fitting(fits, ceil_divide(count, GROUPS * len(devices)))
    if not together:
        return None
    groups = [(group,) for group in stack_iterations(problem, together)]
    return _Shares([groups], dict.fromkeys(groups[0][0].inputs, 2), 1)


def _bands(problem: GemmProblem, count: int) -> list[Panels]:
    """Return panels with tiles of whole rows, which host memory holds as they are."""
    lengths = {ceil_divide(problem.m, count * each) for each in BANDS}
    return [
        Panels(problem, length, problem.n, problem.depth, "b", min(2, problem.m), 1)
        for length in sorted(lengths, reverse=True)
    ]


def _rates(devices: Sequence[Device]) -> tuple[float, int]:
    """Return `panels.BALANCE` and `panels.ITERATION_BYTES` for devices."""
    if _on_host(devices):
        return HOST_BALANCE, HOST_ITERATION_BYTES
    return panels.BALANCE, panels.ITERATION_BYTES


def _on_host(devices: Sequence[Device]) -> bool:
    return all(device.unified_memory for device in devices)


def _cost(found: Panels, devices: Sequence[Device]) -> float:
    """Return the estimated time on devices that are equally fast, in bytes copied meanwhile."""
    balance, iteration = _rates(devices)
    rows, columns, depth = found.counts
    tiles = rows * columns
    most = ceil_divide(tiles, len(devices))
    units = max(device.compute_units for device in devices)
    waves = max(found.m * found.n, 1) / (panels.GROUP_ELEMENTS * units)
    kernels = found.problem.work.flops / balance * math.ceil(waves) / waves / tiles
    # Half a tile: what the others wait for the last one.
    waiting = 0.5 * kernels * (tiles > 1)
    in_place = _on_host(devices) and found.n == found.problem.n
    sent, ends = (0, 0) if in_place else (found.sent, sum(found.tile_bytes))
    return max(sent, kernels * most) + waiting + iteration * most * depth + ends
