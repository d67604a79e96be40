"""Products of host arrays that are not a single plan: those in parts, and those of `hybrid`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.wording import plain
from opencl_lab.ops.gemm.host.blas import lacks_blas, multiply_by_blas
from opencl_lab.ops.gemm.host.streamed import (
    multiply_in_parts_or_at_once,
    multiply_streamed,
    parts_text,
)
from opencl_lab.ops.gemm.launches import buffers
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.ops.solver import AUTO
from opencl_lab.runtime.arrays import AnyArray, is_device_array
from opencl_lab.runtime.call import Call

TIMED, MOST_CALLS = 0.02, 20
"""Seconds of calls, and most calls, by which `hybrid` times a side."""


def multiply_by_blas_or_in_parts(
    problem: GemmProblem,
    inputs: Mapping[str, AnyArray],
    target: AnyArray | None,
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
    call: Call,
) -> tuple[AnyArray | None, str]:
    """Return the result, or None and the algorithm to run."""
    if algorithm == HYBRID and config:
        raise InvalidConfig(f"{HYBRID} takes no config: {GEMM_SOLVER.choices[HYBRID]}")
    if is_device_array(inputs["a"]):
        return None, AUTO if algorithm == HYBRID else algorithm
    if algorithm == HYBRID:
        if faster_side(problem, call.device).host:
            return multiply_by_blas(problem, inputs, target), algorithm
        algorithm = AUTO
    how: dict[str, Any] = {"algorithm": algorithm, "config": config, "queue": call.queue}
    return multiply_streamed(problem, inputs, target, **how), algorithm


def how_made(
    problem: GemmProblem, device: Device, algorithm: str, config: Mapping[str, Any] | None
) -> str:
    """Return how a product of host arrays is computed; empty for a single plan."""
    if algorithm != HYBRID:
        return parts_text(problem, device, algorithm, config)
    return str(faster_side(problem, device))


@dataclass(frozen=True)
class Side:
    """Who multiplies: NumPy's BLAS on the host, or the device; and why."""

    host: bool
    why: str

    def __str__(self) -> str:
        taken = "by NumPy's BLAS" if self.host else "by the device"
        return f"{taken}: {self.why}"


def faster_side(problem: GemmProblem, device: Device) -> Side:
    """Return which side multiplies host arrays faster, copies included.

    The first time that a process asks, both multiply random numbers. Other factors than 0 and 1
    take as long as each other.
    """
    alpha, beta = (
        each if each in (0, 1) else type(each)(2) for each in (problem.alpha, problem.beta)
    )
    return _faster_side(replace(problem, alpha=alpha, beta=beta), device)


@lru_cache(maxsize=4096)
def _faster_side(problem: GemmProblem, device: Device) -> Side:
    reason = lacks_blas(problem)
    if reason is not None:
        return Side(False, reason)
    if not problem.work.flops:
        return Side(True, "nothing is multiplied")
    rng = np.random.default_rng(0)
    inputs = {
        buffer.name: rng.random(buffer.shape, np.float32).astype(buffer.dtype, copy=False)
        for buffer in buffers(problem)
        if buffer.role == "in"
    }
    host = _milliseconds(partial(multiply_by_blas, problem, inputs))
    queue = device.queue()
    there = _milliseconds(partial(multiply_in_parts_or_at_once, problem, inputs, None, queue=queue))
    return Side(host < there, f"{plain(host)} ms on the host, {plain(there)} with the device")


def _milliseconds(multiply: Callable[[], object]) -> float:
    """Return the least time of a few calls after the first one, which may build kernels."""
    multiply()
    times: list[float] = []
    while not times or (sum(times) < TIMED and len(times) < MOST_CALLS):
        begin = time.perf_counter()
        multiply()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)
