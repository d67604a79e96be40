"""A matrix times few vectors: every layout, type and epilogue, by items alone and by groups."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from gemm_checks import (
    CASES,
    assert_product,
    assert_right,
    check,
    generated,
    made_device,
    matrices,
    options_of,
)

from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.ops.gemm import ranking
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.gemm.thin import gemv as module

GEMV = GEMM_SOLVER.algorithm("gemv")
FORMS = {
    "alone": {"VECTOR": 4, "ROWS": 2, "BLOCK": 16, "STEP_K": 16},
    "alone-split": {"VECTOR": 8, "ROWS": 4, "BLOCK": 16, "STEP_K": 32, "SPLITS": 3},
    "group": {"LANES": 4, "PIECES": 4, "VECTOR": 4, "ROWS": 2, "UNROLL": 2},
    "group-split": {"LANES": 2, "PIECES": 8, "VECTOR": 2, "ROWS": 4, "UNROLL": 1, "SPLITS": 3},
    "alone-last-group": {"VECTOR": 4, "ROWS": 4, "BLOCK": 16, "STEP_K": 16, "SPLITS": 3},
}
JOINED = made_device("gpu", 1024, 48 << 10, 132, visible_writes=True, inline_ptx=True)
WHOLE = {("complex64", "alone"), ("float32", "group")}
MORE = {*WHOLE, ("float64", "alone")}
SHAPES = [(37, 1, 44), (3, 40, 23), (3, 40, 50), (5, 1, 0), (1, 1, 99)]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "form"),
    [
        (dtype, form)
        for i, dtype in enumerate(ELEMENT_TYPES)
        for j, form in enumerate(FORMS)
        if (i + j) % 2 or (dtype, form) in MORE
    ],
)
def test_layouts_types_stacks_and_epilogues(dtype, form, rng, queue, monkeypatch):
    if form == "alone-split":  # a second launch adds up the slices
        monkeypatch.setattr(module, "joins", lambda device: False)
    # All layouts once by items alone and once by groups. What else there is differs by little: a
    # type and a form have one of these layouts.
    whole = (dtype, form) in WHOLE
    turn = (ELEMENT_TYPES.index(dtype) + 2 * list(FORMS).index(form)) % len(CASES)
    for case in range(len(CASES)) if whole else (turn,):
        for shape in SHAPES if whole else SHAPES[:3]:
            problem = GemmProblem(*shape, **options_of(dtype, case))
            check(rng, problem, "gemv", FORMS[form], queue)


@pytest.mark.full
@pytest.mark.parametrize("in_launch", [False, True])
def test_groups_add_up_slices_of_k_themselves_or_in_a_second_launch(
    in_launch, rng, queue, monkeypatch
):
    """With several items to a result, one, and several results to an item; twice, for counters.

    And by items alone, which add up whole rows of sums.
    """
    monkeypatch.setattr(module, "joins", lambda device: in_launch)
    for config, shape in (
        ({"ROWS": 2, "BLOCK": 16, "STEP_K": 16, "SPLITS": 5}, (2, 45, 301)),
        ({"LANES": 2, "PIECES": 16, "ROWS": 2, "UNROLL": 4, "SPLITS": 7}, (3, 10, 1001)),
        ({"LANES": 4, "PIECES": 4, "ROWS": 1, "UNROLL": 8, "SPLITS": 60}, (1, 30, 1000)),
        ({"LANES": 8, "PIECES": 1, "ROWS": 4, "UNROLL": 2, "SPLITS": 3}, (64, 2, 100)),
    ):
        for trans_a, trans_b in ((False, False), (True, True)):
            problem = GemmProblem(
                *shape, trans_a=trans_a, trans_b=trans_b, alpha=1 + in_launch, beta=0.5, bias="row",
                activation="relu",
            )  # fmt: skip
            inputs = generated(rng, problem)
            how = {"algorithm": "gemv", "config": {"VECTOR": 4, **config}, "queue": queue}
            runs = [GEMM_SOLVER.run(problem, inputs, **how) for _ in range(2)]
            device = GPU if "PIECES" in config else CPU
            plan = GEMV.plan(problem, GEMV.configure(problem, device, how["config"]), device)
            assert len(plan.launches) == (1 if in_launch else 2)
            for run in runs:
                assert_right(run.outputs["result"], problem, inputs)


def test_a_long_sum_is_split_and_always_the_same(rng, queue):
    a, b, _ = matrices(rng, 1, 1, 1 << 20)
    problem = GemmProblem(1, 1, 1 << 20)
    device = made_device("cpu", 4096, 1 << 20, 2)
    assert len(GEMV.plan(problem, GEMV.default_config(problem, device), device).launches) == 2
    results = [gemm(a, b, algorithm="gemv", queue=queue) for _ in range(3)]
    assert_product(results[0], a, b)
    assert len({result.tobytes() for result in results}) == 1


# ------------------------------------------------------------------ plans, without a device

GPU, CPU = made_device("gpu", 1024, 48 << 10, 132), made_device("cpu", 4096, 1 << 20, 16)


def groups_of(problem, device):
    """Return how many groups the first launch of the built-in configuration has."""
    launch = GEMV.plan(problem, GEMV.default_config(problem, device), device).launches[0]
    count = 1
    for items, local in zip(launch.global_size, launch.local_size, strict=True):
        count *= items // local
    return count


def test_groups_that_see_what_others_wrote_take_one_launch_and_share_k():
    for shape in ((1, 3001, 4097), (1, 100, 65_536), (8, 8, 8192), (1, 1, 1 << 20)):
        problem = GemmProblem(*shape)
        plan = GEMV.plan(problem, GEMV.default_config(problem, JOINED), JOINED)
        (launch,) = plan.launches
        check_plan(plan, JOINED)
        assert launch.params["SPLIT_K"] == "last group" and launch.params["PTX"]
        assert "membar.gl" in render(launch.template, launch.params).text
        assert len(plan.with_role("zeros")) == 1
        assert groups_of(problem, JOINED) >= 8


def test_threads_have_long_rows_of_a_matrix_across_k_and_share_k():
    """Where a row of sums stays in the first cache, and slices of k are long."""
    sees = made_device("cpu", 4096, 1 << 20, 2, visible_writes=True)
    for shape, splits in (
        ((1, 1000, 1000), 2), ((1, 8192, 8192), 8), ((4, 1000, 3001), 2), ((3001, 1, 4097), 4),
    ):  # fmt: skip
        problem = GemmProblem(*shape, trans_a=shape[1] == 1)
        config = GEMV.default_config(problem, sees)
        assert config.integer("BLOCK") >= max(shape[:2]) and config["SPLITS"] == splits
        plan = GEMV.plan(problem, config, sees)
        check_plan(plan, sees)
        (launch,) = plan.launches
        assert launch.params["SPLIT_K"] == "last group" and launch.global_size == (1, splits)
    for shape in ((1, 512, 512), (8, 4096, 4096)):
        assert GEMV.default_config(GemmProblem(*shape), sees).integer("BLOCK") < max(shape)
    threads = replace(sees, compute_units=16)
    assert GEMV.default_config(GemmProblem(1, 8192, 8192), threads)["BLOCK"] < 8192


def test_slices_of_a_large_stack_stay_countable():
    problem = GemmProblem(1, 1 << 20, 64, batch=256)
    config = GEMV.configure(problem, CPU, {"SPLITS": 128})
    plan = GEMV.plan(problem, config, CPU)
    (partial,) = plan.with_role("scratch")
    assert 1 < math.prod(partial.shape) / math.prod(problem.shape) < 128
    assert math.prod(partial.shape) < 1 << 31
    assert {launch.params["INDEX_T"] for launch in plan.launches} == {"ulong"}


# ------------------------------------------------------------------ what auto takes

EXPECTED = {
    "gpu": [
        ((1, 4096, 4096), "gemv"), ((4096, 6, 4096), "gemv"), ((4096, 8, 4096), "blocked"),
        ((2048, 8, 2048), "gemv"), ((2048, 11, 2048), "blocked"),
        ((4, 4096, 4096), "gemv"), ((5, 4096, 4096), "blocked"), ((8, 1024, 1024), "gemv"),
        ((8, 2048, 2048), "gemv"), ((9, 2048, 2048), "blocked"),
        ((1000, 1000, 1000), "blocked"), ((127, 4096, 4096), "blocked"), ((8, 8, 8192), "gemv"),
        ((500, 500, 500), "blocked"), ((17, 17, 4096), "blocked"),
    ],
    "cpu": [
        ((1, 4096, 4096), "gemv"), ((8, 4096, 4096), "gemv"), ((4096, 8, 4096), "gemv"),
        ((8, 1000, 1000), "gemv"), ((9, 1000, 1000), "packed"), ((1000, 8, 1000), "gemv"),
        ((4, 500, 500), "gemv"), ((500, 8, 500), "direct"), ((16, 4096, 4096), "gemv"),
        ((4096, 9, 4096), "packed"), ((1, 1, 8192), "gemv"), ((16, 16, 8192), "direct"),
        ((64, 64, 64), "direct"), ((320, 320, 320), "packed"), ((40, 320, 320), "direct"),
    ],
    "one thread": [
        ((64, 64, 64), "direct"), ((1, 100, 100), "gemv"), ((4, 64, 64), "direct"),
        ((4, 64, 64, "turned"), "gemv"), ((100, 4, 100), "gemv"), ((100, 8, 100), "direct"),
        ((4, 4, 4), "direct"), ((64, 64, 8192), "packed"),
    ],
}  # fmt: skip
MADE = {
    "gpu": GPU,
    "cpu": replace(CPU, compute_units=2),
    "one thread": replace(CPU, compute_units=1, native_vector_bytes=64),
}


@pytest.mark.parametrize("name", MADE)
def test_shape_decides_what_comes_first(name):
    made = MADE[name]
    for shape, first in EXPECTED[name]:
        problem = GemmProblem(*shape[:3], trans_b=len(shape) > 3)
        given = ranking.ranked(problem, made)
        assert given[0] == first, shape
        known = list(dict.fromkeys(GEMM_SOLVER.ranked(problem, made)))
        assert set(known) == set(GEMM_SOLVER.registry)
        ours = [name for name in given if name in GEMM_SOLVER.registry]
        assert known[: len(ours)] == ours
        assert GEMM_SOLVER.choose(problem, made).supports(problem, made) is None
