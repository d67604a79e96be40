"""The product by packed panels: edges, element types, stacks, and how it is cut for devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gemm_checks import SMALL, check, made_device, skip_untaken

from opencl_lab.core.plan import check_plan
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.packed.default import built_in
from opencl_lab.ops.gemm.packed.tiles import Form
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, GemmProblem

PACKED = GEMM.algorithm("packed")
PLAIN = SMALL["packed"]


@pytest.fixture
def queue(queue, device):
    """A queue of a device that the algorithm is for."""
    skip_untaken("packed", device)
    return queue


def cpu(units=2, vector_bytes=64, local_memory=256 << 10, **capabilities):
    made = made_device("cpu", 4096, local_memory, units, **capabilities)
    return replace(
        made, native_vector_bytes=vector_bytes, global_memory=64 << 30, max_allocation=16 << 30
    )


# ------------------------------------------------------------------ results


def test_halves_are_summed_up_in_float32_over_all_steps(queue):
    # 3000 ones: a sum in float16 would stop at 2048, and one stored between steps be rounded.
    problem = GemmProblem(4, 8, 3000, np.dtype("float16"), alpha=1 / 8)
    inputs = {name: np.ones(getattr(problem, f"shape_{name}"), np.float16) for name in "ab"}
    inputs["b"][-1] = 2
    config = {**PLAIN, "TILE_K": 1000, "PACK_B": "panel"}
    run = GEMM.run(problem, inputs, algorithm="packed", config=config, queue=queue)
    assert (run.outputs["result"] == np.float16(3001 / 8)).all()


# ------------------------------------------------------------------ plans, without a device


@pytest.mark.few
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("units", [1, 2, 64])
def test_built_in_configurations(units, vector_bytes):
    device = cpu(units, vector_bytes)
    for dtype in ELEMENT_TYPES:
        empty = [(0, 5, 5), (5, 0, 5), (5, 5, 0)]
        for shape in [*empty, (1, 1, 1), (64,) * 3, (1000,) * 3, (4096,) * 3]:
            problem = GemmProblem(*shape, dtype=np.dtype(dtype), trans_a=units == 2)
            config = PACKED.configure(problem, device)
            check_plan(PACKED.plan(problem, config, device), device)
            form = Form.of(problem, config)
            registers = 32 if vector_bytes == 64 else 16
            assert form.rows * form.vectors + form.vectors + 1 <= registers
            assert form.width * form.real_type.itemsize <= max(vector_bytes, 2 * 8)
            if min(shape) >= 1000:  # all units have work, and about as much
                tiles = form.tiles_m * form.tiles_n
                assert -(-tiles // units) * units <= 1.4 * tiles


def test_indices_of_large_products_do_not_wrap(device):
    """Panels hold four real numbers for a complex one, and slices of k as many sums as results."""

    def products(problem, **values):
        config = replace(built_in(problem, device), **values).fitted().config()
        return PACKED.plan(problem, config, device)

    complex64 = np.dtype(np.complex64)
    for size, index in ((1 << 14, "uint"), (1 << 15, "ulong")):
        plan = products(GemmProblem(64, size, size, complex64), pack_b="ahead", splits=1)
        packed = next(buffer for buffer in plan.buffers if buffer.name == "packed_b")
        assert (packed.nbytes // 4 < 1 << 32) == (index == "uint")
        assert {launch.params["INDEX_T"] for launch in plan.launches} == {index}
    plan = products(GemmProblem(1 << 14, 1 << 14, 1 << 14), splits=32)
    sums = max(buffer.nbytes // 4 for buffer in plan.buffers)
    assert 1 << 30 <= sums < 1 << 31


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("changes", "config"),
    [
        ({"bias": "column", "activation": "gelu"}, {}),
        ({"beta": 1.0, "trans_b": True, "activation": "gelu"}, {}),
        ({"beta": 1.0, "bias": "column"}, {"ROWS": 10, "VECTORS": 3}),
    ],
)
def test_halves_in_whole_blocks_of_many_sums(changes, config, queue, rng):
    """LLVM crashed on these where all vectors of a block were converted one after the other."""
    problem = GemmProblem(33, 70, 30, np.dtype("float16"), **changes)
    check(rng, problem, "packed", config, queue)
