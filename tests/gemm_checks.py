"""What several tests of the matrix product share."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER

ALGORITHMS = ("naive", "tiled", "blocked", "packed", "gemv")
# Small tiles, so that small matrices have inner tiles and edges; one program for many shapes.
SMALL = {
    "naive": {"WG_M": 2, "WG_N": 4},
    "tiled": {"TILE": 8, "UNROLL": 4},
    "blocked": {
        "WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "BUFFERS": 2, "LOCAL_PAD": 1,
        "SWIZZLE": 2, "SPLITS": 1,
    },
    "gemv": {"VECTOR": 4, "ROWS": 2, "BLOCK": 16, "STEP_K": 16, "SPLITS": 2},
    "packed": {
        "ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4, "PANELS_M": 2, "PANELS_N": 1, "TILE_K": 8,
        "UNROLL": 2, "PACK_A": True, "PACK_B": "ahead", "PRODUCTS": 1, "SPLITS": 1,
    },
}  # fmt: skip


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


def takes(algorithm, m, n):
    """Whether an algorithm takes products of this shape; `gemv` is for few rows or columns."""
    return algorithm != "gemv" or min(m, n) <= 16


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
