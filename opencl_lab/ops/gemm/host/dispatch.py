"""Products that are not a single plan: those in parts, and those by the host's BLAS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.ops.gemm.host.blas import multiply_by_blas
from opencl_lab.ops.gemm.host.hybrid import Choice, choose_side, still_chosen
from opencl_lab.ops.gemm.host.streamed import multiply_streamed, parts_text
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER, HYBRID
from opencl_lab.ops.solver import AUTO
from opencl_lab.runtime.arrays import AnyArray, is_device_array
from opencl_lab.runtime.call import Call

Function: TypeAlias = Callable[..., Any]


def multiply_by_blas_or_in_parts(
    problem: GemmProblem,
    inputs: Mapping[str, AnyArray],
    target: AnyArray | None,
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
    call: Call,
    function: Function,
) -> tuple[AnyArray | None, str]:
    """Return the result, or None and the algorithm to run.

    `function` is the public function, which is measured; the other parameters are its own.
    """
    if algorithm == HYBRID and config:
        raise InvalidConfig(f"{HYBRID} takes no config: {GEMM_SOLVER.choices[HYBRID]}")
    if is_device_array(inputs["a"]):
        return None, AUTO if algorithm == HYBRID else algorithm
    if algorithm == HYBRID:
        if _side(problem, call.device, call.queue, function).host:
            return multiply_by_blas(problem, inputs, target), algorithm
        call.condition(still_chosen())  # replay is valid only while this holds
        algorithm = AUTO
    how: dict[str, Any] = {"algorithm": algorithm, "config": config, "queue": call.queue}
    return multiply_streamed(problem, inputs, target, **how), algorithm


def _side(problem: GemmProblem, device: Device, queue: Any, function: Function) -> Choice:
    def multiply(sample: GemmProblem, arrays: Mapping[str, Any], algorithm: str) -> object:
        return function(arrays["a"], arrays["b"], algorithm=algorithm, queue=queue)

    return choose_side(problem, device, multiply)


def how_made(
    problem: GemmProblem,
    device: Device,
    algorithm: str,
    config: Mapping[str, Any] | None,
    function: Function,
) -> str:
    """Return how `function` computes a product of host arrays; empty for a single plan."""
    if algorithm != HYBRID:
        return parts_text(problem, device, algorithm, config)
    return str(_side(problem, device, device.queue(), function))
