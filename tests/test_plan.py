"""Plans are pure data: written and checked without any OpenCL device."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.plan import (
    ARGUMENT_BYTES,
    Buffer,
    Launch,
    LocalMemory,
    Plan,
    check_plan,
)
from opencl_lab.core.template import render
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.sort.problem import SortProblem

INT32 = np.dtype(np.int32)
GPU = Device(
    "Paper GPU",
    "gpu",
    max_work_group=1024,
    max_work_items=(1024, 1024, 64),
    local_memory=48 << 10,
    capabilities=Capabilities(fp64=True, max_work_group=1024, local_memory=48 << 10),
)
CPU = replace(GPU, name="Paper CPU", kind="cpu")
(ODD_EVEN,) = (item for item in SORT.algorithms if item.name == "odd-even-merge")

BUFFERS = (Buffer("x", "in", (64,), INT32), Buffer("y", "out", (64,), INT32))


def launch(**changes):
    values = {
        "template": "a.cl.mako",
        "kernel": "f",
        "params": {},
        "global_size": (64,),
        "local_size": (32,),
        "arguments": {"x": "x", "y": "y"},
    }
    return Launch(**{**values, **changes})


# --------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"global_size": (2048,), "local_size": (2048,)}, "work-group of 2048 items.*most 1024"),
        ({"global_size": (64, 64), "local_size": (64, 32)}, "work-group of 2048 items"),
        ({"global_size": (1, 1, 128), "local_size": (1, 1, 128)}, "128 items in dimension 2.*64"),
        ({"global_size": (48,)}, "global size 48 is no positive multiple of the work-group's 32"),
        ({"global_size": (0,)}, "global size 0 is no positive multiple"),
        ({"global_size": (64, 3), "local_size": (32, 2)}, "global size 3.*dimension 1"),
        ({"local_bytes": (48 << 10) + 1}, "of local memory, the device has 48 KiB"),
        ({"arguments": {"t": LocalMemory((48 << 10) - ARGUMENT_BYTES + 1)}}, "of local memory"),
        (
            {
                "arguments": {"s": LocalMemory(24 << 10), "t": LocalMemory(1)},
                "local_bytes": 24 << 10,
            },
            "of local memory",
        ),
        ({"arguments": {"x": "z"}}, "argument x names no buffer of the plan: z"),
    ],
)
def test_launches_beyond_a_limit(changes, message):
    with pytest.raises(InvalidConfig, match=f"kernel f: .*{message}"):
        check_plan(Plan(BUFFERS, (launch(), launch(**changes))), GPU)


def test_cuda_devices_take_few_groups_beyond_the_first_dimension():
    nvidia = replace(GPU, compute_capability=(9, 0))
    check_plan(Plan(BUFFERS, (launch(global_size=(8 << 20, 65535), local_size=(8, 1)),)), nvidia)
    tall = Plan(BUFFERS, (launch(global_size=(8, 1, 65536), local_size=(8, 1, 1)),))
    check_plan(tall, GPU)
    with pytest.raises(InvalidConfig, match=r"65536 work-groups in dimension 2.*at most 65535"):
        check_plan(tall, nvidia)


def test_one_buffer_too_large():
    with pytest.raises(InvalidProblem, match=r"'x' takes 256 bytes.*Paper GPU.*at most 255 bytes"):
        check_plan(Plan(BUFFERS, ()), replace(GPU, max_allocation=255))


def test_all_buffers_too_large():
    with pytest.raises(InvalidProblem, match=r"needs 512 bytes of device memory.*has 511 bytes"):
        check_plan(Plan(BUFFERS, ()), replace(GPU, global_memory=511))


# ------------------------------------------------------- the plans of sorting

SIZES_OF_TYPES = {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8,
    "float": 4, "double": 8, "ulong2": 16,
}  # fmt: skip

KINDS = {
    "keys": {"dtype": INT32},
    "down": {"dtype": np.dtype(np.float64), "descending": True},
    "indices": {"dtype": np.dtype(np.int8), "indices": True},
    "pairs": {"dtype": np.dtype(np.uint16), "value_bytes": 16},
}
SHAPES = ((1, 1), (2, 1), (3, 5), (2047, 1), (2048, 1), (2049, 2), (3, 200_000), (50_000, 1))
SHAPES += ((2**31, 1),)
CONFIGS = {
    "default": (GPU, {}),
    "default-cpu": (CPU, {}),
    "no-tile": (GPU, {"TILE": 0}),
    "odd": (GPU, {"TILE": 0, "WG_SIZE": 6, "WORK_PER_ITEM": 5}),
    "narrow": (GPU, {"TILE": 64, "WG_SIZE": 8, "WORK_PER_ITEM": 1}),
    "wide": (GPU, {"TILE": 64, "WG_SIZE": 8, "WORK_PER_ITEM": 16}),
}


@pytest.fixture(params=KINDS)
def problems(request):
    return [SortProblem(n, rows=rows, **KINDS[request.param]) for n, rows in SHAPES]


@pytest.fixture(params=CONFIGS)
def plans(request, problems):
    """Pairs of problem and plan, for devices on paper: a plan that asked them anything fails."""
    paper, values = CONFIGS[request.param]
    assert paper.handle is None
    large = replace(paper, max_allocation=1 << 60, global_memory=1 << 61)
    made = []
    for problem in problems:
        config = ODD_EVEN.configure(problem, paper, values)
        plan = ODD_EVEN.plan(problem, config, paper)
        assert plan == ODD_EVEN.plan(problem, config, paper)
        check_plan(plan, large)
        made.append((problem, plan))
    return made


def declared_bytes(item):
    """Return the bytes of local memory that the kernel of a launch declares."""
    text = render(item.template, item.params).text
    aliases = {alias: name for name, alias in re.findall(r"typedef (\w+) (\w+);", text)}
    body = text[text.index(f"void {item.kernel}(") :]
    if item.kernel == "sort_tile":
        body = body[: body.index("void merge_pass(")]
    return sum(
        SIZES_OF_TYPES[aliases.get(c_type, c_type)] * math.prod(map(int, count.split("*")))
        for c_type, count in re.findall(r"__local (\w+) \w+\[([\d* ]+)\]", body)
    )


def test_local_memory_and_the_width_of_indices(plans):
    for problem, plan in plans:
        for item in plan.launches:
            assert item.local_memory == declared_bytes(item)
            assert item.params["INDEX_T"] == ("ulong" if problem.n >= 2**31 else "uint")


@pytest.mark.parametrize("max_work_group", [1, 2, 100, 4096])
@pytest.mark.parametrize("local_memory", [1 << 10, 16 << 10, 1 << 20])
@pytest.mark.parametrize("barriers", [False, True])
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_default_configurations_fit_weak_devices(
    max_work_group, local_memory, barriers, kind, problems
):
    weak = replace(
        GPU,
        kind=kind,
        max_allocation=1 << 60,
        global_memory=1 << 61,
        max_work_items=(max_work_group,) * 3,
        capabilities=Capabilities(
            max_work_group=max_work_group, local_memory=local_memory, barriers_in_loops=barriers
        ),
    )
    for problem in problems:
        config = ODD_EVEN.configure(problem, weak)
        check_plan(ODD_EVEN.plan(problem, config, weak), weak)
        if not barriers:
            assert config["TILE"] == 0 or config["WG_SIZE"] == 1


# ------------------------------------------------------------- strided copies
