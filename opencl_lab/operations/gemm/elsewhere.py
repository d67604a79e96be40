"""Products that are not one run of a plan: of large host matrices, and by the host's BLAS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.operations.gemm.streamed import multiply_streamed
from opencl_lab.runtime.arrays import AnyArray, is_device_array

__all__ = ["multiply_elsewhere"]


def multiply_elsewhere(
    problem: GemmProblem,
    inputs: Mapping[str, AnyArray],
    target: AnyArray | None,
    *,
    algorithm: str,
    config: Mapping[str, Any] | None,
    queue: Any,
) -> tuple[AnyArray | None, str]:
    """Return the result, and the algorithm to run where there is none yet."""
    if is_device_array(inputs["a"]):
        return None, algorithm
    how: dict[str, Any] = {"algorithm": algorithm, "config": config, "queue": queue}
    return multiply_streamed(problem, inputs, target, **how), algorithm
