"""Plans of the matrix product for devices that are not there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gemm_checks import (
    ALGORITHMS,
    SMALL,
    assert_product,
    declared_bytes,
    made_device,
    matrices,
    skip_untaken,
)

from opencl_lab.core import kernels
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.ops.gemm.functions import gemm
from opencl_lab.ops.gemm.problem import GemmProblem

# ------------------------------------------------------------------ plans, without a device


DEVICES = [
    made_device("gpu", 1024, 48 << 10, 132),
    made_device("gpu", 256, 16 << 10),
    made_device("gpu", 64, 8 << 10),
    made_device("gpu", 1, 1 << 10),
    made_device("cpu", 4096, 1 << 20, 2, vector_bytes=32),
    made_device("cpu", 8192, 256 << 10, 64),
    made_device("accelerator", 128, 32 << 10),
]
PROBLEMS = [
    GemmProblem(*shape, dtype=np.dtype(dtype), trans_a=trans)
    for shape in (
        (0, 4, 4),
        (1, 1, 1),
        (4, 4, 0),
        (100, 100, 100),
        (4096, 4096, 4096),
        (9, 5000, 3),
        (2048, 8, 4096),
        (1, 1, 1 << 22),
        (16, 77, 1 << 16),
    )
    for dtype in ("float32", "float64")
    for trans in (False, True)
]


def test_small_products_of_many_shapes_share_a_program():
    made = made_device("cpu", 4096, 1 << 20, 2)
    algorithm = GEMM.algorithm("direct")
    shapes = (16, 16, 8), (100, 100, 100), (37, 200, 5), (8, 41, 900)
    texts = set()
    for shape in shapes:
        problem = GemmProblem(*shape, dtype=np.dtype("float32"))
        config = algorithm.default_config(problem, made)
        (launch,) = algorithm.plan(problem, config, made).launches
        texts.add(render(launch.template, launch.params).text)
    assert len(texts) == 1


@pytest.mark.few
@pytest.mark.parametrize("algorithm", GEMM.algorithms, ids=lambda item: item.name)
@pytest.mark.parametrize("made", DEVICES, ids=lambda d: f"{d.kind}-{d.max_work_items[0]}")
def test_default_plans_fit_any_device(algorithm, made):
    for problem in PROBLEMS:
        if algorithm.supports(problem, made) is not None:
            few = min(problem.m, problem.n) <= 16
            barred = algorithm.name in {"packed", "direct", "tensor", *([] if few else ["gemv"])}
            assert made.max_work_items[0] < 64 or barred
            continue
        config = algorithm.configure(problem, made)
        assert algorithm.search_space(problem, made).violation(config) is None
        plan = algorithm.plan(problem, config, made)
        check_plan(plan, made)
        # Parts of k are added in a second launch; packing takes launches of its own.
        most = {"gemv": 2, "blocked": 2, "packed": 4, "tensor": 4}.get(algorithm.name, 1)
        assert bool(problem.m * problem.n) <= len(plan.launches) <= most
        for launch in plan.launches:
            source = render(launch.template, launch.params).text
            assert launch.local_bytes == declared_bytes(source, problem)
            assert launch.local_memory <= made.capabilities.local_memory
            assert ("double" in source.split("*/")[1]) == (problem.dtype == np.float64)


def test_every_problem_has_an_algorithm_on_any_device():
    for made in (*DEVICES, made_device(barriers_in_loops=False)):
        for problem in PROBLEMS:
            GEMM.choose(problem, made)
    names = [a.name for a in GEMM.algorithms if a.supports(PROBLEMS[2], made) is None]
    assert names == ["naive"]
    with pytest.raises(InvalidConfig, match="no double precision"):
        GEMM.choose(GemmProblem(1, 1, 1, np.dtype("float64")), made_device(fp64=False))


CPU, GPU = DEVICES[4], DEVICES[0]
SQUARE = GemmProblem(8, 8, 8)
REFUSED = [
    ("direct", replace(SQUARE, dtype=np.dtype("float16")), CPU, "half precision"),
    ("direct", SQUARE, GPU, "for CPUs"),
    ("direct", GemmProblem(8, 8, 1 << 20, trans_b=True), CPU, "no room"),
    ("packed", SQUARE, GPU, "for CPUs"),
    ("packed", SQUARE, made_device("cpu", local_memory=1 << 10), "no room"),
    ("packed", replace(SQUARE, dtype=np.dtype("int8")), CPU, "multiplies no integers"),
    ("gemv", GemmProblem(17, 17, 1), GPU, "at most 16"),
    ("gemv", GemmProblem(1, 17, 1), made_device(barriers_in_loops=False), "barriers"),
    ("tiled", SQUARE, DEVICES[3], "no room for work-groups of 8 x 8"),
]


@pytest.mark.parametrize(("algorithm", "problem", "made", "reason"), REFUSED)
def test_what_an_algorithm_does_not_do_is_said(algorithm, problem, made, reason):
    assert reason in GEMM.algorithm(algorithm).supports(problem, made)
    with pytest.raises(InvalidConfig, match=reason):
        GEMM.choose(problem, made, algorithm)


def test_sums_of_a_group_must_fit_the_stack_of_a_thread():
    blocked = GEMM.algorithm("blocked")
    large = {"WORK_M": 16, "WORK_N": 8, "WG_M": 32, "WG_N": 32, "TILE_K": 128, "WG_K": 4}
    config = blocked.default_config(SQUARE, CPU).replace(**large)
    with pytest.raises(InvalidConfig, match="2,097,152 bytes of a thread's stack, more than"):
        blocked.plan(SQUARE, config, CPU)


def test_plan_chooses_the_width_of_indices():
    blocked = GEMM.algorithm("blocked")
    for shape, index in (((46_340,) * 3, "uint"), ((46_341,) * 3, "ulong")):
        for trans in (False, True):
            problem = GemmProblem(*shape, trans_a=trans, trans_b=trans)
            config = blocked.configure(problem, DEVICES[0])
            launch = blocked.plan(problem, config, DEVICES[0]).launches[0]
            assert launch.params["INDEX_T"] == index
            assert launch.arguments["m"].dtype.itemsize == {"uint": 4, "ulong": 8}[index]


@pytest.mark.few(2)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_64_bit_indices_give_the_same_result(algorithm, rng, queue, device, monkeypatch):
    skip_untaken(algorithm, device)
    monkeypatch.setattr(kernels, "INDEX_LIMIT", 1)
    n = 29 if algorithm != "gemv" else 13
    a, b, c = matrices(rng, 23, n, 31, trans_b=True)  # a shape that no other test has cached
    result = gemm(
        a, b, beta=1, c=c, trans_b=True, algorithm=algorithm, config=SMALL[algorithm], queue=queue
    )
    assert_product(result, a, b.T, c, 1, 1)
