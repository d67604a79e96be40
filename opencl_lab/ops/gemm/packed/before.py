"""Products by a B that is packed already, so that several processes pack it together, once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, LaunchError
from opencl_lab.ops.gemm.packed.algorithm import Packed, PackedBefore
from opencl_lab.ops.gemm.packed.tiles import Form
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.solver import Registry, Solver
from opencl_lab.runtime.arrays import AnyArray


class PackedProduct(Solver[GemmProblem]):
    """The matrix product by panels of B that are given."""

    name = "gemm"  # its kernel is that of the operation, and so are verdicts on it
    registry: ClassVar[Registry] = {"packed": PackedBefore()}
    tunable = False


PACKED_PRODUCT = PackedProduct()


def form_ahead(problem: GemmProblem, device: Device) -> Form | None:
    """Return the form of a product of real matrices that packs B ahead; None if it does not so."""
    with suppress(InvalidConfig, LaunchError):
        algorithm = GEMM_SOLVER.choose(problem, device)
        if isinstance(algorithm, Packed) and not problem.is_complex:
            form = Form.of(problem, algorithm.configure(problem, device))
            if form.pack_b == "ahead" and math.prod(form.packed_shape) < 1 << 32:
                return form
    return None


def multiply_packed(
    problem: GemmProblem, form: Form, inputs: Mapping[str, AnyArray], queue: Any
) -> AnyArray:
    """Multiply rows of A by ``packed_b``, whose panels are those of a form for as many or more."""
    how: dict[str, Any] = {"config": dict(form.config()), "queue": queue}
    return PACKED_PRODUCT.run(problem, inputs, **how).outputs["result"]
