"""Products of large host matrices in tiles: copies and kernels overlap, and matrices need not fit.

`panels` chooses the tiles; `opencl_lab.runtime.tiles` runs the iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.wording import counted
from opencl_lab.ops.gemm.host import panels
from opencl_lab.ops.gemm.host.panels import Panels, panels_of, plan_bytes
from opencl_lab.ops.gemm.launches import buffers, is_empty
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.session import queue_or_default, session_of
from opencl_lab.runtime.streams import largest_fitting, limit_of_parts, memory_limit
from opencl_lab.runtime.tile_schedule import Iteration, Tile, schedule
from opencl_lab.runtime.tiles import TileWork, run_tiles

Arrays = Mapping[str, np.ndarray[Any, Any]]
Found = Panels | int | None
"""Tiles of one product, or the number of products of a stack per iteration; None: all at once."""


def multiply_streamed(
    problem: GemmProblem,
    inputs: Arrays,
    target: np.ndarray[Any, Any] | None,
    *,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    queue: Any = None,
) -> np.ndarray[Any, Any] | None:
    """Multiply large host matrices in tiles; return None where they are multiplied at once.

    Tiles are used if the matrices need more memory than the device has (or than
    ``OCLAB_DEVICE_BYTES``), and if copies to a device with its own memory take long. Inputs
    and target are plain arrays that do not overlap. After an error or an interrupt, only some tiles
    of the target are written.
    """
    if _nbytes(problem) < panels.SMALL or is_empty(problem):
        return None
    if not isinstance(config, Mapping | None):
        return None
    queue = queue_or_default(queue)
    device = session_of(queue).device
    found = _parts(problem, device, algorithm, config)
    if found is None:
        return None
    result = np.empty(problem.shape, problem.dtype) if target is None else target
    _multiply(found, problem, inputs, result, algorithm=algorithm, config=config, queue=queue)
    return result


def multiply_in_parts_or_at_once(
    problem: GemmProblem, inputs: Arrays, target: np.ndarray[Any, Any] | None, **how: Any
) -> np.ndarray[Any, Any]:
    """Multiply host matrices in tiles where that pays or is necessary; else by a single plan."""
    result = multiply_streamed(problem, inputs, target, **how)
    if result is None:
        run = GEMM_SOLVER.run(problem, inputs, out={"result": target}, **how)
        result = run.outputs["result"]
    return result


def parts_text(
    problem: GemmProblem, device: Device, algorithm: str, config: Mapping[str, Any] | None
) -> str:
    """Return a description of the parts of a product that does not fit; "" if it fits."""
    limit = memory_limit(device)
    if is_empty(problem) or _quickly_fits(problem, device, limit):
        return ""
    if plan_bytes(problem, device, algorithm, config or {}) <= limit:
        return ""
    found = _parts(problem, device, algorithm, config)
    if isinstance(found, Panels):
        return str(found)
    if not found:
        return "tiles of each product"
    return f"{counted(ceil_divide(problem.dimensions[0][0], found), 'part')} of the stack"


def _nbytes(problem: GemmProblem) -> int:
    return sum(buffer.nbytes for buffer in buffers(problem))


def _quickly_fits(problem: GemmProblem, device: Device, limit: float) -> bool:
    """Return whether a product is so small that it fits, without making a plan."""
    room = panels.ROOM * _nbytes(problem) + panels.ROOM_ASIDE
    return room <= min(limit, device.largest_buffer)


def _parts(
    problem: GemmProblem, device: Device, algorithm: str, config: Mapping[str, Any] | None
) -> Found:
    limit = memory_limit(device)
    large = not device.unified_memory and _nbytes(problem) >= panels.LEAST
    if not large and _quickly_fits(problem, device, limit):
        return None
    if not problem.dimensions:
        return panels_of(problem, device, algorithm, config, limit)
    return _products(problem, device, algorithm, config, limit)


def _products(
    problem: GemmProblem,
    device: Device,
    algorithm: str,
    config: Mapping[str, Any] | None,
    limit: float,
) -> int | None:
    """Return how many products along the first dimension of a stack are done at a time.

    None: all at once. 0: not even one product fits.
    """
    count = problem.dimensions[0][0]
    if plan_bytes(problem, device, algorithm, config or {}) <= limit:
        if device.unified_memory or count < panels.FEW:
            return None
        return ceil_divide(count, panels.FEW)
    room = limit_of_parts(device, limit)

    def fits(size: int) -> bool:
        part = products(problem, size)
        # Two buffers for inputs and three for results: see `tiles`.
        return plan_bytes(part, device, algorithm, config or {}) + 2 * _nbytes(part) <= room

    return largest_fitting(fits, ceil_divide(count, 2))


def moving(problem: GemmProblem) -> dict[str, bool]:
    """Return which inputs move along the first dimension of a stack."""
    _, moves_a, moves_b = problem.dimensions[0]
    return {"a": moves_a, "b": moves_b, "c": True, "bias": False}


def products(problem: GemmProblem, count: int) -> GemmProblem:
    """Return the product of `count` items along the first dimension of a stack."""
    (whole, moves_a, moves_b), *rest = problem.dimensions
    stacks = ((count, moves_a, moves_b), *rest)
    return replace(problem, stacks=stacks, batch=problem.batch // whole * count)


def _multiply(
    found: Found, problem: GemmProblem, inputs: Arrays, result: np.ndarray[Any, Any], **how: Any
) -> None:
    if isinstance(found, Panels):
        run_tiles(_work(found, inputs, result, **how))
    elif found:
        iterations = _stack_iterations(problem, found)
        slots = dict.fromkeys(inputs, 2)
        plan = schedule(iterations, slots)
        run_tiles(TileWork(plan, inputs, result, _solver(**how), how["queue"]))
    else:
        _one_by_one(problem, inputs, result, **how)


def _work(found: Panels, inputs: Arrays, result: np.ndarray[Any, Any], **how: Any) -> TileWork:
    plan = schedule(tuple(found.iterations()), found.slots)
    return TileWork(plan, inputs, result, _solver(**how), how["queue"])


def work_of_tiles(
    problem: GemmProblem, inputs: Arrays, result: np.ndarray[Any, Any], **how: Any
) -> TileWork | None:
    """Return the tiles of one product that is sent to its device once; None if it is not."""
    device = session_of(how["queue"]).device
    if device.unified_memory or problem.dimensions:
        return None
    found = _parts(problem, device, how["algorithm"], how["config"])
    if not isinstance(found, Panels) or found.kept != "ab":
        return None
    return _work(found, inputs, result, **how)


def _solver(algorithm: str, config: Mapping[str, Any] | None, queue: Any) -> Any:
    def solve(part: GemmProblem, given: Mapping[str, AnyArray], out: AnyArray) -> Any:
        run = GEMM_SOLVER.run(
            part, given, algorithm=algorithm, config=config, queue=queue, out={"result": out}
        )
        return run.kernel_events

    return solve


def _stack_iterations(problem: GemmProblem, together: int) -> tuple[Iteration, ...]:
    count = problem.dimensions[0][0]
    iterations = []
    for begin in range(0, count, together):
        end = min(begin + together, count)
        part = products(problem, end - begin)
        inputs = {
            name: Tile(name, ((begin, end),) if moves else ())
            for name, moves in moving(problem).items()
            if any(name == buffer.name for buffer in buffers(problem))
        }
        shape = (end - begin, *problem.shape[1:])
        iterations.append(Iteration(part, inputs, Tile("result", ((begin, end),)), shape))
    return tuple(iterations)


def _one_by_one(
    problem: GemmProblem, inputs: Arrays, result: np.ndarray[Any, Any], **how: Any
) -> None:
    """Multiply the items along the first dimension of a stack one by one."""
    single, moves = replace(products(problem, 1), stacks=problem.dimensions[1:]), moving(problem)
    for index in range(problem.dimensions[0][0]):
        given = {name: array[index] if moves[name] else array for name, array in inputs.items()}
        multiply_in_parts_or_at_once(single, given, result[index], **how)
