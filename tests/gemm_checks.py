"""What several tests of the matrix product share."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

ALGORITHMS = ("naive", "tiled", "blocked", "packed", "direct", "gemv")
# Small tiles, so that small matrices have inner tiles and edges; one program for many shapes.
SMALL = {
    "naive": {"WG_M": 2, "WG_N": 4},
    "tiled": {"TILE": 8, "UNROLL": 4},
    "blocked": {
        "WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "BUFFERS": 2, "LOCAL_PAD": 1,
        "SWIZZLE": 2, "SPLITS": 1,
    },
    "direct": {"ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4},
    "gemv": {"VECTOR": 4, "ROWS": 2, "BLOCK": 16, "STEP_K": 16, "SPLITS": 2},
    "packed": {
        "ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4, "PANELS_M": 2, "PANELS_N": 1, "TILE_K": 8,
        "UNROLL": 2, "PACK_A": True, "PACK_B": "ahead", "PRODUCTS": 1, "SPLITS": 1,
    },
}  # fmt: skip
PACKED_FORMS = {
    "ahead": {},
    "panel": {"PACK_B": "panel"},
    "in place": {"PACK_A": False, "PACK_B": "none", "PANELS_N": 2},
    "A in place": {"PACK_A": False, "PACK_B": "panel", "PRODUCTS": 2},
    "slices of k": {"PACK_A": False, "SPLITS": 3},
}


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


def skip_untaken(algorithm, device):
    """Skip a test of an algorithm that is not for this kind of device."""
    reason = GEMM_SOLVER.algorithm(algorithm).supports(GemmProblem(8, 8, 8), device)
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
TOLERANCES = {2: 2e-3, 4: 2e-6, 8: 1e-14}


def options_of(dtype, case):
    """Return the options of a case for elements of a type."""
    real = {"activation": "", "alpha": 0.5 - 1.5j} if dtype.startswith("complex") else {}
    return {**CASES[case], **real, "dtype": np.dtype(dtype)}


def generated(rng, problem):
    """Return random arrays for the inputs of a problem."""
    shapes = {"a": problem.shape_a, "b": problem.shape_b}
    shapes |= {"c": problem.shape} if problem.beta else {}
    sizes = {"row": (problem.m,), "column": (problem.n,)}
    shapes |= {"bias": sizes[problem.bias]} if problem.bias else {}
    parts = {name: rng.standard_normal((2, *shape)) for name, shape in shapes.items()}
    return {
        name: (part[0] + 1j * part[1] if problem.is_complex else part[0]).astype(problem.dtype)
        for name, part in parts.items()
    }


def expected(problem, inputs):
    """Return the result in twice the precision or so, by NumPy."""
    wide = {name: array.astype(np.result_type(array, float)) for name, array in inputs.items()}
    factors = []
    for place, name in enumerate("ab"):
        factor = wide[name]
        factor = factor.swapaxes(-1, -2) if getattr(problem, f"trans_{name}") else factor
        factor = factor.conj() if getattr(problem, f"conj_{name}") else factor
        for axis, stack in enumerate(problem.dimensions):
            factor = factor if stack[place + 1] else np.expand_dims(factor, axis)
        factors.append(factor)
    result = problem.alpha * np.matmul(*factors) + problem.beta * wide.get("c", 0)
    bias = wide.get("bias", np.zeros(1))
    result = result + (bias[:, None] if problem.bias == "row" else bias)
    if problem.activation == "relu":
        result = np.maximum(result, 0)
    if problem.activation == "gelu":
        result = result * (1 + np.vectorize(math.erf)(result / math.sqrt(2))) / 2
    return result


def assert_right(result, problem, inputs, tolerance=None):
    """Compare with NumPy by the precision of the type."""
    right = expected(problem, inputs)
    assert result.dtype == problem.dtype and result.shape == right.shape
    tolerance = tolerance or TOLERANCES[problem.dtype.itemsize // problem.components]
    assert abs(result - right).max(initial=0) <= tolerance * abs(right).max(initial=0)


def check(rng, problem, algorithm, config, queue, tolerance=None):
    """Run an algorithm on random arrays, and compare; return the result."""
    if problem.dtype.name in ("float64", "complex128") and not queue.device.double_fp_config:
        pytest.skip("no double precision")
    inputs = generated(rng, problem)
    how = {"algorithm": algorithm, "config": config, "queue": queue}
    result = GEMM_SOLVER.run(problem, inputs, **how).outputs["result"]
    assert_right(result, problem, inputs, tolerance)
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
