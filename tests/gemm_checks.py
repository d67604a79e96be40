"""What several tests of the matrix product share."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

ALGORITHMS = ("naive", "tiled", "blocked", "packed", "direct", "gemv")
# Small tiles, so that small matrices have inner tiles and edges; one program for many shapes.
SMALL = {
    "naive": {"WG_M": 2, "WG_N": 4},
    "tiled": {"TILE": 8, "UNROLL": 4},
    "blocked": {
        "WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "WG_K": 1, "BUFFERS": 2,
        "LOCAL_PAD": 1, "SWIZZLE": 2, "SPLITS": 1,
    },
    "direct": {"ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4},
    "gemv": {"VECTOR": 4, "ROWS": 2, "BLOCK": 16, "STEP_K": 16, "SPLITS": 2},
    "packed": {
        "ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4, "PANELS_M": 2, "PANELS_N": 1, "TILE_K": 8,
        "UNROLL": 2, "PACK_A": True, "PACK_B": "ahead", "PRODUCTS": 1, "SPLITS": 1,
    },
}  # fmt: skip
# Each algorithm in its forms: the name of the algorithm comes first.
FORMS = {
    **SMALL,
    "packed, panel": {**SMALL["packed"], "PACK_B": "panel"},
    "packed, in place": {**SMALL["packed"], "PACK_A": False, "PACK_B": "none", "PANELS_N": 2},
    "packed, A in place": {**SMALL["packed"], "PACK_A": False, "PACK_B": "panel", "PRODUCTS": 2},
    "packed, slices": {**SMALL["packed"], "PACK_A": False, "SPLITS": 3},
}
PACKED_FORMS = [form for form in FORMS if form.startswith("packed")]


DECLARED = re.compile(r"__local (\w+) \w+((?:\[[\w *]+\])*)(?: __attribute__[^;]+)?;")
"""Local memory of a kernel, and not a pointer there."""
WORDS = {"uchar": 1, "uint": 4, "ulong": 8}


def declared_bytes(source, problem):
    """Return the bytes of local memory that a kernel's source declares."""
    macros = dict(re.findall(r"^#define (\w+) (\d+)$", source, re.MULTILINE))
    sizes = {**WORDS, "sum_t": problem.sum_type.itemsize, "real_t": problem.real_type.itemsize}
    total = 0
    for name, lengths in DECLARED.findall(source):
        factors = re.findall(r"\w+", lengths)
        total += sizes[name] * math.prod(int(macros.get(factor, factor)) for factor in factors)
    return total


def skip_untaken(form, device):
    """Skip a test of a form of an algorithm that is not for this kind of device."""
    reason = GEMM_SOLVER.algorithm(form.partition(",")[0]).supports(GemmProblem(8, 8, 8), device)
    if reason is not None:
        pytest.skip(reason)


def matrices(rng, m, n, k, dtype="float32", trans_a=False, trans_b=False):
    a = rng.uniform(-1, 1, (k, m) if trans_a else (m, k)).astype(dtype)
    b = rng.uniform(-1, 1, (n, k) if trans_b else (k, n)).astype(dtype)
    c = rng.uniform(-1, 1, (m, n)).astype(dtype)
    return a, b, c


def assert_product(result, a, b, c=None, alpha=1.0, beta=0.0):
    """Compare with NumPy in long double, within the bound of a sum of k products."""
    wide = np.longdouble
    right = alpha * (a.astype(wide) @ b.astype(wide))
    size = abs(alpha) * (abs(a).astype(wide) @ abs(b).astype(wide))
    if c is not None:
        right, size = right + beta * c.astype(wide), size + abs(beta) * abs(c).astype(wide)
    assert result.dtype == a.dtype
    assert result.shape == right.shape
    bound = (a.shape[1] + 4) * np.finfo(a.dtype).eps * size
    assert (abs(result - right) <= bound).all()


# ------------------------------------------------- every type, stack and epilogue

CASES = [
    {},
    {
        "alpha": 1.5, "beta": 0.5, "trans_a": True, "conj_a": True, "batch": 3, "bias": "row",
        "activation": "relu",
    },
    {
        "beta": -1.0, "trans_b": True, "conj_b": True, "batch": 6, "bias": "column",
        "stacks": ((2, True, False), (3, False, True)), "activation": "gelu",
    },
    {
        "trans_a": True, "trans_b": True, "batch": 4, "stacks": ((2, False, True), (2, True, True)),
        "bias": "row",
    },
]  # fmt: skip


def options_of(dtype, case):
    """Return the options of a case for elements of a type."""
    real = {"activation": "", "alpha": 0.5 - 1.5j} if dtype.startswith("complex") else {}
    return {**CASES[case], **real, "dtype": np.dtype(dtype)}


def generated(rng, problem):
    """Return random arrays for the inputs of a problem."""
    return GEMM.generate(problem, int(rng.integers(1 << 30)))


def assert_right(result, problem, inputs):
    """Compare with NumPy in double precision, within the bound of the lab."""
    found = GEMM.compare(problem, inputs, GEMM.expected(problem, inputs), {"result": result})
    assert found.ok, (problem.title, str(found))


def check(rng, problem, algorithm, config, queue):
    """Run an algorithm on random arrays, and compare; return the result."""
    if problem.dtype.name in ("float64", "complex128") and not queue.device.double_fp_config:
        pytest.skip("no double precision")
    inputs = generated(rng, problem)
    how = {"algorithm": algorithm, "config": config, "queue": queue}
    result = GEMM_SOLVER.run(problem, inputs, **how).outputs["result"]
    assert_right(result, problem, inputs)
    return result


# ------------------------------------------------------------ devices on paper


def made_device(kind="gpu", max_work_group=256, local_memory=32 << 10, units=8, **capabilities):
    return Device(
        "made", kind, compute_units=units, max_work_items=(max_work_group,) * 3,
        capabilities=Capabilities(
            **{"fp64": True, **capabilities},
            max_work_group=max_work_group, local_memory=local_memory,
        ),
    )  # fmt: skip
