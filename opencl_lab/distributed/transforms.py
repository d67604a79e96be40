"""How arrays over many ranks are transformed, along axes that are cut or whole.

All axes that are whole on each rank are transformed there by `opencl_lab.fft`. Then the array is
redistributed, so that others become whole. One row that is cut has no other axis to be cut along:
see `opencl_lab.distributed.four_step`.
"""

from __future__ import annotations

import math
from typing import Any

import opencl_lab.fft as single
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import lacks_type
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.device_exchange import placed
from opencl_lab.distributed.devices import device_of
from opencl_lab.distributed.four_step import one_row
from opencl_lab.distributed.layout import Distribution, blocks, slab
from opencl_lab.distributed.mpi import agreed, same, world
from opencl_lab.distributed.transform_task import Axes, TransformTask, fitting, task_of
from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import Norm, complex_dtype


def transform(
    name: str,
    a: DistArray,
    axes: Axes | None,
    norm: Norm,
    distribution: Distribution | int | None,
    device: DeviceSpec,
    natural: bool = True,
    n: int | None = None,
) -> DistArray:
    """Make the transform `name` of `opencl_lab.fft`; see `opencl_lab.distributed.fft.fft`."""
    comm = world(getattr(a, "comm", None))
    task = agreed(comm, lambda: task_of(name, a, axes, norm, n, distribution, natural))
    same(comm, task, "the arguments")
    where = agreed(comm, lambda: _where(a, device))
    uncut = all(a.layout.grid[axis] == 1 for axis in task.axes)
    if uncut and natural:
        return _uncut(a, name, task.axes, task, where).redistribute(task.wanted)
    # Parts of the host go to the devices once, and come back at the end.
    there = placed(comm, [a.local], where.get("device")) if natural else None
    x = a if there is None else a.like(there[0])
    if there is not None:
        where = {"queue": there[0].queue}
    made = one_row(x, task, where) if not natural or a.ndim == 1 else _in_stages(x, task, where)
    made = made.redistribute(task.wanted)
    if there is not None:
        made = a.like(made.host(), made.distribution, made.global_shape)
    return made


def _where(a: DistArray, device: DeviceSpec) -> dict[str, Any]:
    """Return the queue or the device of this rank's transforms, as arguments of `opencl_lab.fft`.

    One that lacks the precision is refused.
    """
    if a.on_device:
        return {"queue": a.local.queue}
    driven = device_of(a.comm, device)
    lacking = lacks_type(driven, complex_dtype(a.dtype))
    if lacking:
        raise InvalidConfig(f"{lacking}, in which {a.dtype} is transformed; convert it to float32")
    return {"device": driven}


def _in_stages(x: DistArray, task: TransformTask, where: dict[str, Any]) -> DistArray:
    """Transform along the axes of each stage, in any order, before those of the next."""
    name, last, others = task.name, task.axes[-1:], task.axes[:-1]
    stages = {
        "rfft": [("rfft", last), ("fft", others)],
        "irfft": [("ifft", others), ("irfft", last)],
    }.get(name, [(name, task.axes)])
    for number, (name, left) in enumerate(stages):
        later = [axis for _, axes in stages[number + 1 :] for axis in axes]
        while left:
            here = tuple(axis for axis in left if x.layout.grid[axis] == 1)
            if here:
                x = _uncut(x, name, here, task, where)
            left = tuple(axis for axis in left if axis not in here)
            if left:
                x = x.moved(_next(x, left, later, task.wanted))
    return x


def _uncut(
    x: DistArray, name: str, axes: Axes, task: TransformTask, where: dict[str, Any]
) -> DistArray:
    """Transform along axes that are whole on each rank."""
    function = getattr(single, name + "n")
    how = {"s": (*(-1 for _ in axes[1:]), task.n)} if name == "irfft" else {}
    local = function(x.local, axes=axes, norm=task.norm, **how, **where)
    shape = list(x.shape)
    if name in ("rfft", "irfft"):
        shape[axes[-1]] = local.shape[axes[-1]]
    after = fitting(x.distribution, tuple(shape))
    return x.like(local, global_shape=tuple(shape), distribution=after)


def _next(x: DistArray, left: Axes, later: Axes, wanted: Distribution) -> Distribution:
    """Return a distribution in which some of the axes `left` are whole.

    Of those that leave the fewest ranks without a part, it is one with the most whole axes of
    these, then of the later ones: slabs, or if their axis is too short for all ranks, pencils, in
    which an axis that is done takes the cuts of one that is left.
    """
    grid, size = x.layout.grid, x.comm.size
    found: list[Distribution] = [fitting(wanted, x.shape), *map(slab, range(x.ndim))]
    for axis in left:
        for other in range(x.ndim):
            swapped = list(grid)
            swapped[axis], swapped[other] = grid[other], grid[axis]
            found.append(blocks(swapped))

    def merit(one: Distribution) -> tuple[int, ...]:
        parts = one.layout(x.shape, size).grid
        busy = math.prod(map(min, parts, x.shape))
        ready, prepared = (sum(parts[axis] == 1 for axis in axes) for axes in (left, later))
        return min(ready, 1), busy, ready, prepared

    return max(found, key=merit)
