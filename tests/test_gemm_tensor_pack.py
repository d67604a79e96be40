"""How matrices are packed for matrix units, on any device, beside NumPy's packing.

The kernel holds no PTX. What it is compared with is written from the tables of PTX: which elements
of a fragment an item of a warp holds (ISA 9.0, sections on mma.m16n8k8, mma.m16n8k16), and how rows
of 128 bytes are swizzled for wgmma.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gemm_checks import generated
from test_gemm_tensor import ALGORITHM, AMPERE, HOPPER, problem_of

from opencl_lab.core.plan import Plan
from opencl_lab.ops.gemm.tensor.space import step_length, tile
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

CASES = [
    (("float16", "native"), HOPPER, {"trans_a": True}),
    (("float16", "native"), HOPPER, {"trans_b": True, "batch": 3, "stacks": ((3, False, True),)}),
    (("float16", "native"), AMPERE, {"trans_b": True, "batch": 6,
                                     "stacks": ((2, True, False), (3, False, True))}),
    (("float32", "tf32"), HOPPER, {"trans_b": True, "batch": 2}),
    (("float32", "tf32"), AMPERE, {"trans_a": True, "trans_b": True}),
    (("float32", "3xtf32"), HOPPER, {"batch": 3, "stacks": ((3, False, True),)}),
    (("float32", "3xtf32"), AMPERE, {"trans_a": True}),
    (("float64", "native"), HOPPER, {"trans_a": True, "trans_b": True, "batch": 2}),
    (("float64", "native"), AMPERE, {"trans_a": True, "batch": 3, "stacks": ((3, True, False),)}),
]  # fmt: skip
TINY = 2.0**-136
"""The distance of TF32 numbers around zero."""
LARGEST = (2 - 2.0**-10) * 2.0**127
"""The largest number of TF32."""
NANS = np.uint32([0x7FFFFFFF, 0xFFFFFFFF]).view(np.float32)
"""What is no number, and would be a zero if it were rounded as one."""
SPECIAL = np.float32([np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38, LARGEST, 1e-40, -3e-39,
                      2.0**-126, 1e-36, 0, *NANS])  # fmt: skip


def rounded(values, how=np.rint):
    """Return values rounded to the 11 bits of TF32, ties to even, in float64."""
    _, exponents = np.frexp(values)
    unit = np.maximum(np.ldexp(1.0, exponents - 11), TINY)
    return how(values / unit) * unit


def limbs_of(matrix):
    """Return both limbs of TF32: what has no finite one is cut, or has no second limb."""
    exact = matrix.astype(float)
    with np.errstate(invalid="ignore"):
        high = rounded(exact)
        high = np.where(np.isfinite(exact) & (abs(high) > LARGEST), rounded(exact, np.trunc), high)
        rest = np.where(np.isfinite(exact), exact - high, 0)
    high = np.where(np.isnan(exact), np.nan, high)
    low = np.where(abs(high) == LARGEST, rounded(rest, np.trunc), rounded(rest))
    return np.stack([high, low]).astype(np.float32)


def in_limbs(matrix, precision):
    """Return what is stored of a matrix: itself, or its limbs of TF32, along a new first axis."""
    if precision == "native":
        return matrix[None]
    return limbs_of(matrix)[: 1 if precision == "tf32" else 2]


def rows_of_chunks(extent, step, size):
    """Return row and place along k of each element: chunk c of 16 bytes of a row is at c ^ row."""
    row, at, e = np.ogrid[:extent, :8, : 16 // size]
    return row, (at ^ row % 8) * (16 // size) + e


def lines_of_chunks(extent):
    """Return the same for halves across k: in a line, one k of 64 rows, a chunk is 8 of them."""
    block, line, at, e = np.ogrid[: extent // 64, :64, :8, :8]
    return block * 64 + (at ^ line % 8) * 8 + e, line


def fragments(extent, step, size, left):
    """Return the same in fragments: a block of k, 16 rows, what a lane holds, 16 bytes at once.

    Lane 4r + c holds rows r and r + 8 of A, which alternate, at place c, then at c + 4; of B
    row r, its column, at both places, then row r + 8. A place is two elements of float16.
    """
    block, rows, half, lane, word, e = np.ogrid[
        : step * size // (64 if size == 8 else 32), : extent // 16, : 2 if size == 8 else 1, :32,
        : 2 if size == 8 else 4, : 2 if size == 2 else 1,
    ]  # fmt: skip
    number = half * 2 + word  # of the item's four words
    r, c = lane // 4, lane % 4
    below, right = (number % 2, number // 2) if left else (number // 2, number % 2)
    words = 2 if size == 2 else 1
    return rows * 16 + r + 8 * below, words * (block * 8 + c + 4 * right) + e


def packed(matrices, config, side, precision, across):
    """Return the bytes of packed matrices: tiles, steps of k, limbs, rows of op(A) or columns.

    `across` says whether neighbours in memory lie across k, which halves may for warpgroups.
    """
    size = matrices.dtype.itemsize
    extent, step = tile(config)[side], step_length(config, matrices.dtype)
    rows, depth = matrices.shape[1:]
    padding = [(0, 0), (0, -rows % extent), (0, -depth % step)]
    whole = in_limbs(np.pad(matrices, padding), precision)
    cut = whole.reshape(len(whole), len(matrices), -1, extent, whole.shape[-1] // step, step)
    if config["UNITS"] == "warpgroup" and size == 2 and across:
        row, place = lines_of_chunks(extent)
    elif config["UNITS"] == "warpgroup":
        row, place = rows_of_chunks(extent, step, size)
    else:
        row, place = fragments(extent, step, size, side == 0)
    # limbs, products, tiles, rows, steps, places: what is outermost in memory comes first.
    cut = cut.transpose(1, 2, 4, 0, 3, 5)[..., row, place]
    return np.frombuffer(np.ascontiguousarray(cut).tobytes(), np.uint8)


def packed_on(queue, problem, inputs, gpu):
    """Return the configuration, and both packed matrices, by the kernel that is for a GPU."""
    config = ALGORITHM.default_config(problem, gpu).replace(PACK=1)
    plan = ALGORITHM.plan(problem, config, gpu)
    names = ("a", "b", "packed_a", "packed_b")
    buffers = (replace(plan.by_name[name], role="out" if name[1:] else "in") for name in names)
    alone = Plan(tuple(buffers), plan.launches[:1])
    executable = session_of(queue).executable((problem, config), lambda: alone)
    outputs = execute(executable, inputs, queue).outputs
    return config, outputs["packed_a"], outputs["packed_b"]


ODD = (140, 270, 70)
HALVES = [(136, 264, 72), (136, 270, 72), (140, 264, 70), (140, 272, 72)]
"""Rows of whole 16 bytes: in both matrices however they lie, and in one of them."""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("case", "sizes"),
    [(case, ODD) for case in CASES] + [(case, sizes) for case in CASES[:2] for sizes in HALVES],
    ids=lambda item: "-".join(map(str, item if type(item[0]) is int else (*item[0], len(item[2])))),
)
def test_packed_as_by_numpy(case, sizes, rng, queue):
    """All types and layouts; edges of tiles, rests of k, shared matrices, the ends of float32."""
    kind, gpu, options = case
    if kind[0] == "float64" and not queue.device.double_fp_config:
        pytest.skip("no double precision")
    problem = problem_of(kind, *sizes, **options)
    inputs = generated(rng, problem)
    if kind[0] == "float32":
        for array in inputs.values():
            array.reshape(-1)[: SPECIAL.size] = SPECIAL
    config, *found = packed_on(queue, problem, inputs, gpu)
    for side, (name, actual) in enumerate(zip("ab", found, strict=True)):
        array = inputs[name].reshape(-1, *inputs[name].shape[-2:])
        across = getattr(problem, f"trans_{name}") != (name == "b")
        matrices = array.swapaxes(-1, -2) if across else array
        right = packed(matrices, config, side, problem.precision, across)
        np.testing.assert_array_equal(actual, right)
