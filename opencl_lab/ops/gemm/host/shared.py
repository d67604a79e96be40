"""Products of host matrices by several devices: each multiplies a band of rows, as one call would.

Of a stack, the products along its first dimension are divided instead. Bands are as long as devices
are estimated to be fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.ops.gemm.host.streamed import (
    Arrays,
    moving,
    multiply_in_parts_or_at_once,
    products,
    work_of_tiles,
)
from opencl_lab.ops.gemm.launches import is_empty
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.runtime.staging import Stop
from opencl_lab.runtime.together import divided, new_result, on_each, run_tiles_together, speed

LEAST, LEAST_SENT = 1e8, 2e12
"""Operations for each device from which several take less time than one: on host memory, and where
arrays are sent to a device. Two H100 took 0.9 times as long as one for 16,384 rows and columns, and
1.7 times for 8,192."""
LEAST_MORE = 2.5e13
"""Operations for each device from which more than two take less time, where arrays are sent. Four
H200 took twice as long as two for 16,384 rows and columns, and 1.1 times for 24,576: copies of one
process on the host do not keep up."""


def multiply_together(
    problem: GemmProblem,
    inputs: Arrays,
    target: np.ndarray[Any, Any] | None,
    devices: Sequence[Device],
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
) -> np.ndarray[Any, Any] | None:
    """Multiply host matrices on several devices; return None if they are small.

    Inputs and target are plain arrays that do not overlap. After an error or an interrupt, only
    some rows of the target are written.

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
    flops, sent = problem.work.flops, not all(device.unified_memory for device in devices)
    if sent and flops < LEAST_MORE * len(devices):
        devices = sorted(devices, key=speed)[-2:]
    if is_empty(problem) or flops < (LEAST_SENT if sent else LEAST) * len(devices):
        return None
    result = new_result(devices, problem.shape, problem.dtype) if target is None else target
    bounds = divided(problem.dimensions[0][0] if problem.dimensions else problem.m, devices)

    cut = [_band(problem, inputs, begin, end) for begin, end in pairwise(bounds)]
    rows = [result[begin:end] for begin, end in pairwise(bounds)]
    how: dict[str, Any] = {"algorithm": algorithm, "config": config}
    queues = [device.queue() for device in devices]
    if len({device.handle for device in devices}) == len(devices) and all(map(np.size, rows)):
        tiled = [
            work_of_tiles(*cut[index], rows[index], **how, queue=queue)
            for index, queue in enumerate(queues)
        ]
        works = [work for work in tiled if work is not None]
        if len(works) == len(devices):
            run_tiles_together(works, devices)
            return result

    def work(index: int, stop: Stop) -> None:
        if not rows[index].size:
            return
        band, views = cut[index]
        given = {name: np.ascontiguousarray(view) for name, view in views.items()}
        stop.check()
        multiply_in_parts_or_at_once(band, given, rows[index], **how, queue=queues[index])

    on_each(devices, work)
    return result


def _band(
    problem: GemmProblem, inputs: Arrays, begin: int, end: int
) -> tuple[GemmProblem, dict[str, np.ndarray[Any, Any]]]:
    """Return the problem of rows of the result, or of products of a stack, and views of inputs."""
    if problem.dimensions:
        band, cut = products(problem, end - begin), moving(problem)
    else:
        band = replace(problem, m=end - begin)
        cut = {"a": not problem.trans_a, "c": True, "bias": problem.bias == "row"}
    given = {name: array[begin:end] if cut.get(name) else array for name, array in inputs.items()}
    if not problem.dimensions and problem.trans_a:
        given["a"] = inputs["a"][:, begin:end]
    return band, given
