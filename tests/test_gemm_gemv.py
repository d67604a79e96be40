"""A matrix times few vectors: every layout, type and epilogue, by items alone and by groups."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pyopencl.array
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

from opencl_lab.core.errors import InvalidConfig
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


@pytest.mark.full
def test_built_in_forms_for_gpus_give_right_results(rng, queue):
    """What a GPU gets, on the device at hand: many rows in a row, one launch."""
    for shape, trans_b, dtype in (
        ((1, 520, 640), False, "float32"),
        ((3, 261, 333), False, "float32"),
        ((300, 5, 520), False, "float32"),
        ((100, 8, 520), False, "float32"),
        ((1, 1, 70_000), False, "float32"),
        ((4, 256, 512), True, "float16"),
        ((2, 256, 512), False, "complex64"),
    ):
        problem = GemmProblem(*shape, np.dtype(dtype), trans_b=trans_b)
        check(rng, problem, "gemv", dict(GEMV.default_config(problem, JOINED)), queue)


def test_most_that_are_few_of_any_layout_by_default(rng, queue):
    for m, n in ((16, 130), (130, 16)):
        for trans_a, trans_b in ((False, m == 16), (True, m != 16)):
            problem = GemmProblem(m, n, 67, trans_a=trans_a, trans_b=trans_b)
            check(rng, problem, "gemv", None, queue)


def test_arrays_that_are_aligned_to_their_elements_only(rng, queue):
    config = FORMS["group"]
    a, b, _ = matrices(rng, 24, 1, 32)
    for wide, narrow in ((a, b), (b.T.copy(), a.T.copy())):
        raw = np.zeros(wide.size + 1, np.float32)
        odd = raw[1:].reshape(wide.shape)
        odd[:] = wide
        assert_product(gemm(odd, narrow, algorithm="gemv", config=config, queue=queue), odd, narrow)


def test_a_long_sum_is_split_and_always_the_same(rng, queue):
    a, b, _ = matrices(rng, 1, 1, 1 << 20)
    problem = GemmProblem(1, 1, 1 << 20)
    device = made_device("cpu", 4096, 1 << 20, 2)
    assert len(GEMV.plan(problem, GEMV.default_config(problem, device), device).launches) == 2
    results = [gemm(a, b, algorithm="gemv", queue=queue) for _ in range(3)]
    assert_product(results[0], a, b)
    assert len({result.tobytes() for result in results}) == 1


def test_device_arrays_and_nothing_behind_the_result(rng, queue):
    for shape in ((50, 3, 33), (3, 50, 33)):
        a, b, c = matrices(rng, *shape)
        raw = cl.array.to_device(queue, np.full(400, 7e33, np.float32))
        out = raw[: c.size].reshape(c.shape)
        on_device = [cl.array.to_device(queue, x) for x in (a, b, c)]
        gemm(*on_device[:2], c=on_device[2], beta=2, out=out, algorithm="gemv")
        assert_product(out.get(), a, b, c, 1, 2)
        assert (raw.get()[c.size :] == np.float32(7e33)).all()


# ------------------------------------------------------------------ plans, without a device

GPU, CPU = made_device("gpu", 1024, 48 << 10, 132), made_device("cpu", 4096, 1 << 20, 16)


def groups_of(problem, device):
    """Return how many groups the first launch of the built-in configuration has."""
    launch = GEMV.plan(problem, GEMV.default_config(problem, device), device).launches[0]
    count = 1
    for items, local in zip(launch.global_size, launch.local_size, strict=True):
        count *= items // local
    return count


@pytest.mark.parametrize("made", [GPU, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize(
    "shape", [(1, 4096, 4096), (4096, 1, 4096), (1, 1, 1 << 24), (8, 64, 1 << 20)]
)
def test_large_problems_keep_all_units_busy(shape, made):
    for trans_b in (False, True):
        assert groups_of(GemmProblem(*shape, trans_b=trans_b), made) >= 0.9 * made.compute_units


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
    for shape in ((1, 512, 512), (1, 4096, 256), (8, 4096, 4096)):
        assert GEMV.default_config(GemmProblem(*shape), sees).integer("BLOCK") < max(shape)
    wide = GEMV.default_config(GemmProblem(1, 50_000, 1000), sees)
    assert (wide["BLOCK"], wide["SPLITS"]) == (8192, 2)
    many = GEMV.default_config(GemmProblem(1, 1000, 1000, batch=9), sees)
    assert many["SPLITS"] == 1  # each thread has products of its own
    threads = replace(sees, compute_units=16)
    assert GEMV.default_config(GemmProblem(1, 8192, 8192), threads)["BLOCK"] < 8192
    unseen = replace(sees, capabilities=replace(sees.capabilities, visible_writes=False))
    assert GEMV.default_config(GemmProblem(1, 8192, 8192), unseen)["BLOCK"] == 2048


def test_items_are_small_where_they_copy_nothing():
    for shape, trans_b, block in (
        ((3001, 1, 4097), False, 16), ((8192, 1, 1000), False, 64), ((100, 1, 100), False, 16),
        ((3001, 4, 4097), True, 16), ((3001, 4, 4097), False, 64),
    ):  # fmt: skip
        config = GEMV.default_config(GemmProblem(*shape, trans_b=trans_b), CPU)
        assert config["BLOCK"] == block


def test_slices_of_k_are_few_where_they_would_not_pay():
    """A group for each unit has enough loads under way, and a short dot product is soon read."""
    for shape in ((1, 1024, 1024), (1, 4096, 4096), (1024, 1, 1024), (1, 1, 8192)):
        config = GEMV.default_config(GemmProblem(*shape), JOINED)
        assert config["SPLITS"] == 1
        assert config.integer("LANES") * config.integer("PIECES") >= 128


def test_small_problems_take_one_launch():
    for device, shape in itertools.product((GPU, CPU), ((8, 8, 8), (1, 100, 100), (1, 1, 1000))):
        problem = GemmProblem(*shape)
        assert len(GEMV.plan(problem, GEMV.default_config(problem, device), device).launches) == 1


def test_loads_are_as_wide_as_rows_allow():
    config = {"LANES": 32, "PIECES": 8, "VECTOR": 4, "ROWS": 4, "UNROLL": 2}
    for shape, vector, wide in (
        ((1, 4096, 4096), 1, True),
        ((1, 4095, 4096), 1, False),
        ((4096, 1, 4096), 4, False),
        ((4096, 1, 4094), 2, False),
        ((4096, 1, 4095), 1, False),
    ):
        problem = GemmProblem(*shape)
        params = GEMV.plan(problem, GEMV.configure(problem, GPU, config), GPU).launches[0].params
        assert (params["VECTOR"], params["WIDE"]) == (vector, wide)


def test_slices_of_a_large_stack_stay_countable():
    problem = GemmProblem(1, 1 << 20, 64, batch=256)
    config = GEMV.configure(problem, CPU, {"SPLITS": 128})
    plan = GEMV.plan(problem, config, CPU)
    (partial,) = plan.with_role("scratch")
    assert 1 < math.prod(partial.shape) / math.prod(problem.shape) < 128
    assert math.prod(partial.shape) < 1 << 31
    assert {launch.params["INDEX_T"] for launch in plan.launches} == {"ulong"}


def test_what_it_does_not_do_is_said():
    assert "at most 16" in GEMV.supports(GemmProblem(17, 17, 1), GPU)
    no_barriers = made_device(barriers_in_loops=False)
    assert "barriers" in GEMV.supports(GemmProblem(1, 17, 1), no_barriers)
    cpu = made_device("cpu", barriers_in_loops=False)
    assert GEMV.supports(GemmProblem(1, 17, 1), cpu) is None
    with pytest.raises(InvalidConfig, match="do not stay in registers"):
        GEMV.configure(GemmProblem(1, 9, 9), GPU, {"VECTOR": 16, "ROWS": 8, "UNROLL": 8})


# ------------------------------------------------------------------ what auto takes

EXPECTED = {
    "gpu": [
        ((1, 4096, 4096), "gemv"), ((4096, 6, 4096), "gemv"), ((4096, 8, 4096), "blocked"),
        ((2048, 8, 2048), "gemv"), ((2048, 11, 2048), "blocked"),
        ((4, 4096, 4096), "gemv"), ((5, 4096, 4096), "blocked"), ((8, 1024, 1024), "gemv"),
        ((8, 2048, 2048), "gemv"), ((9, 2048, 2048), "blocked"),
        ((1000, 1000, 1000), "tensor"), ((127, 4096, 4096), "blocked"), ((8, 8, 8192), "gemv"),
        ((500, 500, 500), "blocked"), ((17, 17, 4096), "blocked"),
    ],
    "cpu": [
        ((1, 4096, 4096), "gemv"), ((8, 4096, 4096), "gemv"), ((4096, 8, 4096), "gemv"),
        ((8, 1000, 1000), "gemv"), ((9, 1000, 1000), "packed"), ((1000, 8, 1000), "gemv"),
        ((4, 500, 500), "gemv"), ((500, 8, 500), "direct"), ((16, 4096, 4096), "gemv"),
        ((4096, 9, 4096), "packed"), ((1, 1, 8192), "gemv"), ((16, 16, 8192), "direct"),
        ((64, 64, 64), "direct"), ((512, 512, 512), "packed"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("made", [GPU, CPU], ids=["gpu", "cpu"])
def test_shape_decides_what_comes_first(made):
    made = replace(made, compute_units=2) if made.kind == "cpu" else made
    for shape, first in EXPECTED[made.kind]:
        problem = GemmProblem(*shape)
        given = ranking.ranked(problem, made)
        first = "packed" if made.kind == "cpu" and first == "tensor" else first
        assert given[0] == first, shape
        known = list(dict.fromkeys(GEMM_SOLVER.ranked(problem, made)))
        assert set(known) == set(GEMM_SOLVER.registry)
        ours = [name for name in given if name in GEMM_SOLVER.registry]
        assert known[: len(ours)] == ours
        assert GEMM_SOLVER.choose(problem, made).supports(problem, made) is None


def test_layouts_decide_how_few_is_few_on_a_gpu():
    def first(shape, trans_a, trans_b):
        return ranking.ranked(GemmProblem(*shape, trans_a=trans_a, trans_b=trans_b), GPU)[0]

    assert first((8, 2048, 2048), False, False) == first((5, 2600, 2600), False, False) == "gemv"
    assert first((9, 2048, 2048), False, False) == first((6, 2600, 2600), False, False) == "blocked"
    assert first((10, 4096, 4096), False, True) == first((4096, 10, 4096), False, True) == "gemv"
    assert first((8, 4096, 4096), True, True) == first((4096, 5, 4096), True, True) == "blocked"
    assert first((1, 4096, 4096), True, False) == first((2, 2048, 2048), True, False) == "gemv"
    assert first((2, 4096, 4096), True, False) == first((4096, 2, 4096), True, False) == "blocked"


def test_matrix_units_need_large_products_and_are_not_the_fastest_in_double_everywhere():
    half, double = np.dtype("float16"), np.dtype("float64")
    data_centre = replace(GPU, compute_capability=(9, 0))
    units = replace(GPU.capabilities, warpgroup_matrix_units=True)
    hopper = replace(data_centre, capabilities=units)
    for shape, dtype, device, first in (
        ((64, 4096, 4096), half, GPU, "tensor"),
        ((512, 512, 512), half, GPU, "blocked"),
        ((512, 512, 512), half, hopper, "tensor"),
        ((512, 516, 512), half, hopper, "blocked"),
        ((16, 4096, 4096), half, hopper, "tensor"),
        ((16, 4095, 4095), half, hopper, "blocked"),
        ((300, 300, 3000), half, GPU, "tensor"),
        ((4096, 4096, 8), half, hopper, "blocked"),
        ((256, 256, 16384), half, hopper, "tensor"),
        ((256, 256, 16384), double, data_centre, "blocked"),
        ((1000, 1000, 1000), double, data_centre, "tensor"),
        ((64, 4096, 4096), double, data_centre, "blocked"),
        ((640, 640, 640), double, data_centre, "tensor"),
        ((500, 500, 500), double, data_centre, "blocked"),
        ((1000, 1000, 1000), double, GPU, "blocked"),
        ((1000, 1000, 1000), double, replace(GPU, compute_capability=(8, 9)), "blocked"),
    ):
        assert ranking.ranked(GemmProblem(*shape, dtype), device)[0] == first


def test_stacks_of_small_products_are_not_gemv():
    small = GemmProblem(4, 4, 4, batch=10_000)
    for device in (GPU, CPU):
        assert ranking.ranked(small, device)[0] != "gemv"
        assert ranking.ranked(replace(small, m=1, n=1000, k=1000), device)[0] == "gemv"
    units = replace(GPU, capabilities=replace(GPU.capabilities, warpgroup_matrix_units=True))
    for size, first in ((16, "blocked"), (32, "tensor")):
        stack = GemmProblem(size, size, size, np.dtype("float16"), batch=10_000)
        assert ranking.ranked(stack, units)[0] == first


def test_textbooks_are_tried_where_a_product_is_small():
    small, large = GemmProblem(100, 100, 100), GemmProblem(1000, 1000, 1000)
    assert {"naive", "tiled"} <= set(GEMM_SOLVER.promising(small, GPU))
    assert not {"naive", "tiled"} & set(GEMM_SOLVER.promising(large, GPU))
    assert "blocked" in GEMM_SOLVER.promising(large, GPU)
