"""What kernels of AMD's and Intel's GPUs have in registers: the choice by what the device tells."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from device_records import CPU

from opencl_lab.core.device import Capabilities
from opencl_lab.core.template import render
from opencl_lab.drivers import driver_records
from opencl_lab.drivers.pretend import LIMITS, pretended
from opencl_lab.lab.offline import TARGETS, compile_for, missing
from opencl_lab.lab.registry import operations
from opencl_lab.ops.gemm.blocked.model import best_tiles, registers_of
from opencl_lab.runtime.programs import FLAGS

LARGE = replace(
    CPU,
    max_allocation=1 << 40,
    global_memory=1 << 40,
    local_memory=1 << 20,
    max_work_group=4096,
    max_work_items=(4096,) * 3,
    capabilities=Capabilities(fp64=True, max_work_group=4096, local_memory=1 << 20),
)
COMPILED = ("gfx900", "gfx90a", "gfx1030", "tgllp", "dg2-g10", "pvc")
PROBLEMS = (
    ("gemm", {"size": 4096}),
    ("gemm", {"size": 1000, "dtype": "complex64"}),
    ("gemm", {"size": 7}),
    ("sort", {"n": 50_000_000}),
    ("dft", {"n": 8192, "batch": 100}),
    ("dft", {"n": 131, "batch": 128}),
    ("dft", {"n": 1 << 20}),
    ("conv2d", {"size": 1024, "ksize": 9, "dtype": "uint8"}),
    ("conv2d", {"size": 1024, "ksize": 15}),
    ("conv2d", {"size": 1024, "ksize": 7, "channels": 3, "dtype": "uint8"}),
)


def planned(name, operation, options):
    """Return the problem, the configuration and the launches on a pretended device."""
    device = pretended(LARGE, LIMITS[name])
    solver, problem = operations()[operation].solver, operations()[operation].problem(**options)
    algorithm = solver.choose(problem, device).on("gpu")
    config = algorithm.default_config(problem, device)
    return problem, config, algorithm.plan(problem, config, device).launches


@pytest.mark.parametrize(
    ("name", "options", "tile", "unrolled", "asked"),
    [
        ("amd-gcn", {"size": 4096}, (8, 8, 8, 16, 8), 1, 0),
        ("amd-rdna", {"size": 4096}, (8, 8, 8, 16, 8), 1, 0),
        ("amd-gcn", {"size": 4096, "dtype": "float64"}, (8, 4, 8, 16, 8), 1, 0),
        ("amd-gcn", {"size": 4096, "dtype": "complex64"}, (8, 4, 8, 16, 8), 1, 0),
        ("intel-xe", {"size": 1000}, (8, 4, 8, 16, 16), 2, 0),
        ("intel-xe", {"size": 4096, "dtype": "complex64"}, (4, 4, 8, 16, 16), 1, 0),
        ("intel-hpc", {"size": 4096}, (8, 4, 16, 8, 16), 2, 16),
        ("intel-hpc", {"size": 4096, "dtype": "float64"}, (4, 4, 8, 16, 16), 1, 16),
        ("apple", {"size": 4096}, (16, 8, 4, 16, 16), 8, 0),  # which tells nothing
    ],
)
def test_tiles_of_products_fit_the_registers(name, options, tile, unrolled, asked):
    _, config, (launch,) = planned(name, "gemm", options)
    assert tuple(map(config.integer, ("WORK_M", "WORK_N", "WG_M", "WG_N", "TILE_K"))) == tile
    assert (launch.params["UNROLL"], launch.params["SUB_GROUP"]) == (unrolled, asked)


@pytest.mark.parametrize("name", ["amd-gcn", "amd-rdna", "intel-xe", "intel-hpc"])
def test_no_tile_needs_more_registers_than_an_item_has(name):
    device = pretended(LARGE, LIMITS[name])
    problem = operations()["gemm"].problem(size=1000)
    for tile, _ in best_tiles(problem, device):
        assert registers_of(tile, problem, device) <= LIMITS[name].registers


@pytest.mark.parametrize(
    ("name", "options", "radix", "asked"),
    [
        ("amd-gcn", {"n": 1024}, 16, 0),
        ("amd-gcn", {"n": 8192}, 32, 0),  # a row, which one group does
        ("amd-gcn", {"n": 1 << 20}, 16, 0),  # roots between two steps take registers, too
        ("amd-gcn", {"n": 1 << 20, "dtype": "complex128"}, 8, 0),
        ("amd-gcn", {"n": 4096, "dtype": "complex128"}, 16, 0),
        ("intel-xe", {"n": 8192}, 16, 0),
        ("intel-hpc", {"n": 8192}, 16, 16),
        ("intel-hpc", {"n": 64}, 16, 0),  # items of 8 points need few registers
        ("intel-hpc", {"n": 131, "batch": 128}, 16, 16),  # but not where a chirp multiplies them
        ("amd-gcn", {"n": 8191, "dtype": "complex128"}, 8, 0),
        ("apple", {"n": 1 << 20}, 32, 0),
    ],
)
def test_butterflies_fit_the_registers(name, options, radix, asked):
    _, config, launches = planned(name, "dft", options)
    assert config["MAX_RADIX"] == radix
    assert {launch.params["SUB_GROUP"] for launch in launches} == {asked}


@pytest.mark.parametrize(("name", "points"), [("intel-hpc", [13, 11]), ("amd-gcn", [15, 13])])
def test_items_have_fewer_butterflies_where_registers_are_few(name, points):
    _, _, launches = planned(name, "dft", {"n": 30_030, "batch": 3, "dtype": "complex128"})
    assert [step.group.points for each in launches for step in each.params["STEPS"]] == points


@pytest.mark.parametrize(
    ("name", "operation", "options", "asked"),
    [
        ("intel-hpc", "sort", {"n": 50_000_000}, 16),
        ("intel-hpc", "sort", {"n": 5000}, 16),
        ("intel-hpc", "gemm", {"size": 7}, 16),
        ("intel-hpc", "gemm", {"m": 1, "n": 1, "k": 7}, 0),  # a single sum
        ("amd-gcn", "sort", {"n": 50_000_000}, 0),
    ],
)
def test_keys_and_sums_of_thin_products_fit_the_registers(name, operation, options, asked):
    for launch in planned(name, operation, options)[2]:
        assert launch.params["SUB_GROUP"] == asked


@pytest.mark.parametrize(
    ("name", "options", "rows", "asked"),
    [
        ("amd-gcn", {"ksize": 5}, 8, 0),
        ("intel-xe", {"ksize": 7}, 3, 0),
        ("intel-hpc", {"ksize": 31, "dtype": "int16", "filter": "gaussian"}, 3, 16),
        ("intel-hpc", {"ksize": 3}, 8, 16),
        ("apple", {"ksize": 7, "channels": 3}, 8, 0),
    ],
)
def test_strips_of_filters_fit_the_registers(name, options, rows, asked):
    _, config, launches = planned(name, "conv2d", {"size": 1024, **options})
    assert config["ROWS"] == rows
    assert {launch.params["SUB_GROUP"] for launch in launches} == {asked}


def test_a_step_is_inlined_but_where_ptx_is_taken():
    _, _, (launch,) = planned("amd-gcn", "dft", {"n": 1024})
    assert "\nINLINE void step_0(" in render(launch.template, launch.params).text
    ours = {**launch.params, "PTX": True}
    assert "\nvoid step_0(" in render(launch.template, ours).text


@pytest.mark.parametrize(
    ("kind", "extension", "sub_groups", "registers", "asked"),
    [
        ("gpu", "cl_amd_device_attribute_query", 0, 128, 0),
        ("gpu", "cl_intel_required_subgroup_size", 64, 116, 16),
        ("gpu", "cl_intel_required_subgroup_size", 128, 116, 0),  # the narrowest have 8 items
        ("gpu", "cl_nv_device_attribute_query", 32, 0, 0),
        ("cpu", "cl_intel_required_subgroup_size", 64, 0, 0),
    ],
)
def test_what_the_driver_tells_of_registers(kind, extension, sub_groups, registers, asked):
    handle = SimpleNamespace(max_num_sub_groups=sub_groups, max_work_group_size=1024)
    found = driver_records.registers_told(handle, kind, {extension, "cl_khr_fp64"})
    assert found == (registers, asked)


@pytest.mark.full
@pytest.mark.parametrize(("operation", "options"), PROBLEMS, ids=str)
@pytest.mark.parametrize("target", COMPILED)
def test_the_makers_compilers_spill_nothing(target, operation, options):
    if missing(TARGETS[target]):
        pytest.skip(missing(TARGETS[target]))
    for launch in planned(TARGETS[target].pretended, operation, options)[2]:
        text = render(launch.template, launch.params).text
        for kernel in compile_for(TARGETS[target], text, (*launch.options, *FLAGS)):
            assert not kernel.spilled, kernel
            assert kernel.waves >= 2, kernel
