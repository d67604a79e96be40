"""The matrix product by matrix units: results, where a device has such units."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_checks import CASES, check, generated
from test_gemm_tensor import ALGORITHM, KINDS, WARPS, problem_of

from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.runtime.session import session_of


@pytest.fixture
def units(queue):
    """Skip where the device has no matrix units; return a queue on it."""
    if not session_of(queue).device.capabilities.matrix_units:
        pytest.skip("no matrix units")
    return queue


def configs(problem, queue):
    """Return the built-in configuration, and others that take another way."""
    default = ALGORITHM.default_config(problem, session_of(queue).device)
    sums = {"SUM_STEPS": 2} if problem.precision == "3xtf32" else {}
    warps = [WARPS | sums] if default["UNITS"] == "warpgroup" else []
    packed = [] if default["PACK"] else [default.replace(PACK=1)]
    return [None, *warps, *packed]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_results_with_stacks_edges_and_epilogues(kind, case, rng, units):
    for sizes in ((7, 9, 11), (130, 258, 70), (136, 264, 72)):
        problem = problem_of(kind, *sizes, **CASES[case])
        for config in configs(problem, units):
            check(rng, problem, "tensor", config, units)


@pytest.fixture
def groups(units):
    """Skip where the device has no matrix units of warpgroups; return a queue on it."""
    if not session_of(units).device.capabilities.warpgroup_matrix_units:
        pytest.skip("no warpgroups")
    return units


STAGED = [(128, 128, 2, 2), (64, 192, 3, 3), (64, 256, 2, 4), (64, 64, 1, 6)]
"""BLOCK_M, BLOCK_N, GROUPS_M, STAGES."""


@pytest.mark.parametrize("trans", range(4))
@pytest.mark.parametrize("depth", [64, 128, 64 * 11 + 8])
def test_steps_go_round_in_local_memory(depth, trans, rng, groups):
    """Few and many stages, one step and several rounds, edges a chunk past a tile, both ways."""
    problem = problem_of(
        KINDS[0], 264, 392, depth, trans_a=bool(trans & 1), trans_b=bool(trans & 2)
    )
    default = ALGORITHM.default_config(problem, session_of(groups).device)
    for block_m, block_n, groups_m, stages in STAGED:
        for pack, splits in ((0, 1), (1, 1), (0, 3), (1, 5)):
            config = default.replace(
                BLOCK_M=block_m, BLOCK_N=block_n, GROUPS_M=groups_m, STAGES=stages, PACK=pack,
                SPLITS=splits,
            )  # fmt: skip
            check(rng, problem, "tensor", config, groups)


@pytest.mark.parametrize("kind", KINDS[:3], ids="-".join)
def test_slices_of_k_are_added_in_one_order(kind, groups):
    """Stacks too, with C and a bias. Each call finds counters at zero, and gives the same bits."""
    for options in ({}, {"batch": 3, "beta": 0.5, "bias": "column", "activation": "relu"}):
        problem = problem_of(kind, 100, 70, 2000, **options)
        results = [
            check(np.random.default_rng(1), problem, "tensor", {"SPLITS": 7}, groups)
            for _ in range(4)
        ]  # fmt: skip
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("scale", ["normal", "uniform", "wide"])
def test_three_products_are_as_exact_as_float32(scale, rng, units):
    a, b = (rng.standard_normal((600, 600)) for _ in range(2))
    if scale == "uniform":
        a, b = (rng.uniform(0, 1, (600, 600)) for _ in range(2))
    if scale == "wide":
        a, b = (matrix * 10.0 ** rng.uniform(-8, 8, (600, 600)) for matrix in (a, b))
    a, b = a.astype("float32"), b.astype("float32")
    problem = problem_of(KINDS[2], 600, 600, 600)
    right = a.astype(float) @ b
    for config in configs(problem, units):
        run = GEMM_SOLVER.run(
            problem, {"a": a, "b": b}, algorithm="tensor", config=config, queue=units
        )
        error = np.linalg.norm(run.outputs["result"] - right) / np.linalg.norm(right)
        assert error < 6e-7


def test_infinities_nan_and_the_largest_numbers(rng, units):
    a, b = (rng.uniform(0.5, 1, (200, 200)).astype("float32") for _ in range(2))
    a[3, 5], a[70, 9], a[130, 7] = np.inf, np.nan, -np.inf
    a[140, 0], b[:, 20] = 3.4e38, 1.0
    a[141], b[0, 21] = 0.0, 3.4028235e38
    a[141, 0] = 1.0
    problem = problem_of(KINDS[2], 200, 200, 200)
    with np.errstate(all="ignore"):
        right = (a.astype(float) @ b).astype("float32")
    for config in (*configs(problem, units), {"SPLITS": 3}):
        run = GEMM_SOLVER.run(
            problem, {"a": a, "b": b}, algorithm="tensor", config=config, queue=units
        )
        np.testing.assert_allclose(run.outputs["result"], right, rtol=1e-5)


def test_a_sum_of_nothing_is_beta_c(rng, units):
    for kind in KINDS:
        problem = problem_of(kind, 70, 80, 0, beta=2.0)
        inputs = generated(rng, problem)
        run = GEMM_SOLVER.run(problem, inputs, algorithm="tensor", queue=units)
        np.testing.assert_allclose(run.outputs["result"], 2 * inputs["c"], rtol=1e-3)
