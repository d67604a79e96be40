"""The matrix product by matrix units: plans everywhere, results where a device has such units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from device_records import CPU, NVIDIA
from gemm_checks import declared_bytes

from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import BuildError, InvalidConfig
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.gemm.tensor.algorithm import Tensor
from opencl_lab.runtime import ptx

HOPPER = replace(
    NVIDIA,
    max_work_group=1024,
    max_work_items=(1024, 1024, 64),
    global_memory=1 << 37,
    max_allocation=1 << 35,
    capabilities=Capabilities(
        fp64=True,
        inline_ptx=True,
        visible_writes=True,
        matrix_units=True,
        warpgroup_matrix_units=True,
        declared_memory=226 << 10,
        local_memory=48 << 10,
        max_work_group=1024,
    ),
)
AMPERE = replace(
    HOPPER,
    compute_capability=(8, 6),
    compute_units=84,
    capabilities=replace(
        HOPPER.capabilities, warpgroup_matrix_units=False, declared_memory=98 << 10
    ),
)
KINDS = [
    ("float16", "native"),
    ("float32", "tf32"),
    ("float32", "3xtf32"),
    ("float64", "native"),
]
ALGORITHM = Tensor()
WARPS = {
    "UNITS": "warp", "BLOCK_M": 32, "BLOCK_N": 32, "GROUPS_M": 2, "GROUPS_N": 2, "STAGES": 3,
    "INSTRUCTIONS": 4,
}  # fmt: skip


def problem_of(kind, m=100, n=200, k=300, **options):
    dtype, precision = kind
    return GemmProblem(m, n, k, np.dtype(dtype), precision=precision, **options)


@pytest.mark.parametrize("gpu", [HOPPER, AMPERE], ids=["warpgroups", "warps"])
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_built_in_configurations_fit_and_render(kind, gpu):
    for sizes in ((1, 1, 1), (1000, 1000, 1000), (4096, 4096, 4096), (60, 70, 16384)):
        problem = problem_of(kind, *sizes, beta=1.0, bias="row", activation="gelu", batch=2)
        assert ALGORITHM.supports(problem, gpu) is None
        config = ALGORITHM.default_config(problem, gpu)
        assert ALGORITHM.space.violation(config) is None
        assert ALGORITHM.search_space(problem, gpu).violation(config) is None
        plan = ALGORITHM.plan(problem, config, gpu)
        check_plan(plan, gpu)
        assert plan.launches[-1].global_size[1] == problem.batch
        *_, text = (render(launch.template, launch.params).text for launch in plan.launches)
        groups = kind[0] != "float64" and gpu is HOPPER
        assert ptx.is_specific(text) == groups == ("wgmma" in text)


def test_aligned_halves_are_read_where_they_lie():
    """One launch and no scratch memory; where packing costs less than it gains, it is done."""
    for sizes, launches in (((1000, 512, 256), 1), ((1001, 512, 260), 2), ((3000, 3000, 3000), 2)):
        problem = problem_of(KINDS[0], *sizes)
        plan = ALGORITHM.plan(problem, ALGORITHM.default_config(problem, HOPPER), HOPPER)
        assert len(plan.launches) == launches
        assert bool(plan.with_role("scratch")) == (launches == 2)
    # Which rows lie along memory is what counts: 260 is no multiple of 8.
    turned = problem_of(KINDS[0], 1000, 512, 260, trans_a=True)
    assert ALGORITHM.default_config(turned, HOPPER)["PACK"] == 0


@pytest.mark.parametrize(
    ("kind", "sizes", "gpu"),
    [
        (KINDS[0], (64, 64, 60), HOPPER),
        (KINDS[0], (64, 60, 64), HOPPER),
        (KINDS[1], (64, 64, 64), HOPPER),
        (KINDS[0], (64, 64, 64), replace(HOPPER, unified_memory=True)),
    ],
    ids=["odd rows of a", "odd rows of b", "float32", "memory of the host"],
)
def test_other_matrices_are_packed(kind, sizes, gpu):
    problem = problem_of(kind, *sizes)
    config = ALGORITHM.default_config(problem, gpu)
    assert config["PACK"] == 1
    assert {point["PACK"] for point in ALGORITHM.search_space(problem, gpu)} == {1}
    assert len(ALGORITHM.plan(problem, config.replace(PACK=0), gpu).launches) == 2


@pytest.mark.parametrize(
    ("shape", "dtype", "gpu", "pays"),
    [
        ((64, 4096, 4096), "float16", AMPERE, True),
        ((512, 512, 512), "float16", AMPERE, False),
        ((512, 512, 512), "float16", HOPPER, True),
        ((512, 516, 512), "float16", HOPPER, False),
        ((16, 4095, 4095), "float16", HOPPER, False),
        ((4096, 4096, 8), "float16", HOPPER, False),
        ((1000, 1000, 1000), "float64", HOPPER, True),
        ((256, 256, 16384), "float64", HOPPER, False),
        ((1000, 1000, 1000), "float64", AMPERE, False),
    ],
)
def test_they_are_taken_where_work_fills_them(shape, dtype, gpu, pays):
    problem = GemmProblem(*shape, np.dtype(dtype))
    assert (GEMM_SOLVER.choose(problem, gpu).name == "tensor") == pays
    assert GEMM_SOLVER.choose(GemmProblem(1, *shape[1:], np.dtype(dtype)), gpu).name == "gemv"


def test_few_tiles_split_k():
    """So that all units have a slice; none is empty."""
    problem = problem_of(KINDS[0], 64, 64, 65536)
    config = ALGORITHM.default_config(problem, HOPPER)
    assert 1 < config["SPLITS"] <= 64
    (launch,) = ALGORITHM.plan(problem, config, HOPPER).launches
    assert launch.global_size[2] == launch.arguments["splits"]
    problem = problem_of(KINDS[0], 64, 64, 64 * 10)
    for splits, share, number in ((3, 4, 3), (4, 3, 4), (6, 2, 5), (16, 1, 10)):
        config = ALGORITHM.default_config(problem, HOPPER).replace(SPLITS=splits)
        given = ALGORITHM.plan(problem, config, HOPPER).launches[0].arguments
        assert (given["slice_steps"], given["splits"]) == (share, number)


def test_slices_need_writes_that_others_see():
    blind = replace(HOPPER, capabilities=replace(HOPPER.capabilities, visible_writes=False))
    problem = problem_of(KINDS[0], 64, 64, 65536)
    config = ALGORITHM.default_config(problem, blind)
    assert config["SPLITS"] == 1
    with pytest.raises(InvalidConfig, match="SPLITS must be 1"):
        ALGORITHM.plan(problem, config.replace(SPLITS=2), blind)
    # Warps have no slices, whatever the parameter says.
    doubles = problem_of(KINDS[3], 64, 64, 65536)
    config = ALGORITHM.default_config(doubles, HOPPER).replace(SPLITS=8)
    assert ALGORITHM.plan(doubles, config, HOPPER).launches[-1].global_size[2] == 1


def test_larger_products_take_larger_tiles():
    small = ALGORITHM.default_config(problem_of(KINDS[2], 1000, 1000), HOPPER)
    large = ALGORITHM.default_config(problem_of(KINDS[2], 8192, 8192), HOPPER)
    assert small["BLOCK_N"] < large["BLOCK_N"]


@pytest.mark.parametrize(
    ("problem", "gpu", "reason"),
    [
        (problem_of(KINDS[0]), CPU, "the device has no matrix units that OpenCL reaches"),
        (GemmProblem(8, 8, 8), HOPPER, "matrix units have no float32; precision 3xtf32 comes as"),
        (GemmProblem(8, 8, 8, np.dtype("complex64")), HOPPER, "no matrices of complex64"),
        (problem_of(KINDS[3], batch=70000), HOPPER, "at most 65535 pairs of matrices at once"),
        (
            problem_of(KINDS[3]),
            replace(HOPPER, capabilities=replace(HOPPER.capabilities, declared_memory=0,
                                                 local_memory=1 << 12)),
            "the device has no room for the smallest tiles",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_in_words(problem, gpu, reason):
    assert reason in ALGORITHM.supports(problem, gpu)


def test_empty_sums_pack_nothing():
    for kind in KINDS:
        problem = problem_of(kind, k=0, beta=2.0)
        plan = ALGORITHM.plan(problem, ALGORITHM.default_config(problem, HOPPER), HOPPER)
        assert [launch.kernel for launch in plan.launches] == ["gemm_tensor"]
        scratch = plan.with_role("scratch")
        assert bool(scratch) == kind[0].startswith("float32")  # others are read in place
        assert all(buffer.nbytes for buffer in scratch)  # OpenCL has no empty ones
    nothing = problem_of(KINDS[3], m=0)
    config = ALGORITHM.default_config(nothing, HOPPER)
    assert ALGORITHM.plan(nothing, config, HOPPER).launches == ()


@pytest.mark.parametrize("gpu", [HOPPER, AMPERE], ids=["warpgroups", "warps"])
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_kernels_take_the_local_memory_that_plans_say(kind, gpu):
    problem = problem_of(kind)
    config = ALGORITHM.default_config(problem, gpu)
    for launch in ALGORITHM.plan(problem, config, gpu).launches:
        declared = declared_bytes(render(launch.template, launch.params).text, problem)
        # Of two barriers a stage, kernels of warps have one or none.
        more = 16 * config.integer("STAGES") if launch.kernel == "gemm_tensor" else 0
        assert declared <= launch.local_bytes <= declared + more


def test_marked_instructions_come_into_force():
    text = b".version 9.0\n.target sm_90, debug\n mov.u32 %r1, 1;\n//sm_90a: wgmma.x;\n\0\0"
    changed = b".version 9.0\n.target sm_90a, debug\n mov.u32 %r1, 1;\nwgmma.x;\n"
    assert ptx.specific_ptx(text) == changed
    assert ptx.specific_ptx(changed) == changed
    with pytest.raises(BuildError, match="the driver gives no PTX for sm_90"):
        ptx.specific_ptx(text.replace(b".target sm_90", b".target sm_80"))
