"""A matrix times few vectors: the matrix is read once, at the speed of memory.

Numbers of items, and of bytes that are worth an item, were measured on an NVIDIA H200 and on Intel
Xeons with AVX-512, of 2 and of 16 cores.
"""

from __future__ import annotations

import math
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    INDEX_LIMIT,
    VECTOR_WIDTHS,
    group_limit,
    lacks_groups,
    largest_power,
    positive,
    power_of_two,
    sub_group,
    vector_width,
)
from opencl_lab.core.plan import Argument, Launch, Plan, ceil_divide, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.gemm import launches, split_k
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.thin import alone
from opencl_lab.ops.gemm.thin.lines import (
    Thin,
    few_of,
    is_along,
    is_other_along,
    joins,
    lines_of,
    worth_splits,
)

LOAD_BYTES = 16
"""Bytes that an item of a GPU loads at once."""
MOST_FEW = 16
"""Most vectors: their sums stay in registers."""
STACK = 128 << 10
"""Bytes of private arrays that fit the stack of a CPU's threads on any system."""
TWO_LAUNCHES_BYTES, ONE_LAUNCH_BYTES = 1 << 18, 32 << 10
"""Bytes of both factors per group that are worth splitting k: with a second launch that adds up,
and where the last group adds up."""
TURNED = range(4, MOST_FEW + 1, 2)
"""Numbers of vectors across k for which an item should not have several values of k: it would read
numbers far apart, which are often in the same bank of a cache."""
UNDER_WAY = 32
"""Words of a matrix, and of x, that an item of a group loads before it uses them."""
OWN_REGISTERS = 24
"""Registers of an item of a group besides its sums, and the numbers that it loads together."""
SECTOR = 32
"""Bytes of the smallest memory transaction."""
SPREAD, ENOUGH, WANTED = 384, 192, 1536
"""Items per compute unit: up to the first, more of them share a line; from the second on, k is not
split; if it is split, the third is the aim."""
LEAST_SLICES = 4
"""Fewer slices of k save less time than it takes to add them up."""


class Gemv(launches.Product):
    """One read of a matrix for a few vectors, with enough slices of k to keep a device busy."""

    name = "gemv"
    templates = ("gemm/gemv_cpu.cl.mako", "gemm/gemv_gpu.cl.mako", split_k.REDUCTION)
    space = SearchSpace(
        (
            Parameter("LANES", (1, 2, 4, 8, 16, 32, 64, 128, 256), "items across the lines"),
            Parameter("PIECES", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), "items along k"),
            Parameter("VECTOR", (1, 2, 4, 8, 16), "numbers of a load"),
            Parameter("ROWS", (1, 2, 4, 8), "rows read together; lines of an item of a group"),
            Parameter("UNROLL", (1, 2, 4, 8), "loads along k before their use, in groups"),
            Parameter(
                "BLOCK",
                (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
                "lines of an item without a group",
            ),
            Parameter("STEP_K", (256, 512, 1024, 2048), "values of k at a time, without a group"),
            Parameter("SPLITS", (1, 2, 4, 8, 16, 32, 64, 128), "slices of k, summed at the end"),
        ),
        (
            positive("LANES"),
            power_of_two("PIECES"),
            vector_width("VECTOR"),
            positive("ROWS"),
            positive("UNROLL"),
            positive("BLOCK"),
            positive("STEP_K"),
            positive("SPLITS"),
            Constraint(
                lambda c: c.integer("ROWS") * c.integer("UNROLL") * c.integer("VECTOR") <= 256,
                "more than 256 loaded numbers do not stay in registers",
            ),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need few rows or few columns, and work-groups with barriers where these share sums."""
        if few_of(problem) > MOST_FEW:
            return f"neither m nor n is at most {MOST_FEW}"
        return self.lacks_type(problem, device) or lacks_groups(device)

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return items that work alone for CPUs, and groups that share sums for other devices."""
        form = alone.built_in if device.kind == "cpu" else _grouped
        return form(problem, device)

    def search_space(self, problem: GemmProblem, device: Device) -> SearchSpace:
        """Leave out parameters that the form for this kind of device does not have."""
        if device.kind == "cpu":
            return self.space.narrowed({"LANES": 1, "PIECES": 1, "UNROLL": 1})
        return self.space.narrowed({"BLOCK": 256, "STEP_K": 1024})

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, and a second one that adds up slices of k where groups cannot."""
        buffers = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(buffers, ())
        items = config.integer("LANES") * config.integer("PIECES")
        is_alone = device.kind == "cpu" and items == 1
        params = (_alone_params if is_alone else _group_params)(problem, config, device)
        covered = params["BLOCK"] if is_alone else params["LANES"] * params["LINES"]
        results = problem.batch * problem.m * problem.n
        depth, splits = _slices(problem, config, results)
        blocks = ceil_divide(lines_of(problem), covered)
        index = launches.index_of(problem)
        way = split_k.way(splits, joins(device))
        in_launch = way == "last group"
        if not is_alone:
            params["PTX"] = in_launch and device.capabilities.inline_ptx
        partial: dict[str, Argument] = {"partial": split_k.PARTIAL} if splits > 1 else {}
        partial |= {"arrived": "arrived"} if in_launch else {}
        shared = launches.params(problem)
        launch = Launch(
            template=self.templates[0 if is_alone else 1],
            kernel="gemv_cpu" if is_alone else "gemv_gpu",
            params={
                **{name: shared[name] for name in ("ELEMENT", "INDEX_T", "EPILOGUE", "STACKS")},
                "THIN": Thin.of(problem),
                "SPLIT_K": way,
                **params,
            },
            global_size=(blocks * problem.batch * items, splits),
            local_size=(items, 1),
            arguments={
                **launches.arguments(problem),
                **partial,
                "blocks": index(blocks),
                "depth": index(depth),
            },
            local_bytes=0 if is_alone else _tree(config, problem) + 4 * in_launch,
        )
        if splits == 1:
            return Plan(buffers, (launch,))
        if in_launch:
            groups = blocks * problem.batch
            # Products by real and by imaginary components are apart where lines lie across k.
            apart = problem.components if is_alone and not is_along(problem) else 1
            sums = covered * few_of(problem) * apart
            left = split_k.by_last_group(problem, groups, splits, sums)
            return Plan((*buffers, *left), (launch,))
        left_sums, adding = split_k.reduction(problem, device, splits)
        return Plan((*buffers, left_sums), (launch, adding))


def _slices(problem: GemmProblem, config: Config, results: int) -> tuple[int, int]:
    """Return how many values of k a slice has, whole vectors of them, and the number of slices."""
    most = max(1, (INDEX_LIMIT - 1) // results)
    splits = min(config.integer("SPLITS"), most)
    # Slices of whole vectors of any width, so that all of them are aligned alike.
    depth = round_up(ceil_divide(problem.depth, splits), VECTOR_WIDTHS[-1])
    return depth, max(1, ceil_divide(problem.depth, depth) if depth else 1)


def _alone_params(problem: GemmProblem, config: Config, device: Device) -> dict[str, Any]:
    """Return the parameters of items on their own, with arrays that fit any stack."""
    components = problem.components
    vector = max(config.integer("VECTOR"), components)
    room = STACK // (few_of(problem) * components * problem.sum_type.itemsize)
    return {
        "VECTOR": vector,
        "LOAD": min(vector, launches.builtin_width(problem, device)),
        "ROWS": config["ROWS"],
        "BLOCK": min(config.integer("BLOCK"), room),
        "STEP_K": min(config.integer("STEP_K"), room // vector * vector),
    }


def _group_params(problem: GemmProblem, config: Config, device: Device) -> dict[str, Any]:
    """Return the parameters of groups: loads as wide as the rows of the matrix allow."""
    along = is_along(problem)
    widest = 8 if problem.is_complex or problem.dtype.itemsize == 2 else 16
    rows = config.integer("ROWS")
    vector = min(config.integer("VECTOR"), widest)
    while problem.k % vector:
        vector //= 2
    wide = rows in VECTOR_WIDTHS[1:] and rows <= widest and lines_of(problem) % rows == 0
    vector = vector if along else 1
    few, unroll = few_of(problem), config.integer("UNROLL")
    words = max(1, problem.sum_type.itemsize // 4)
    numbers = rows * few + unroll * vector * (rows + few)
    return {
        "LANES": config["LANES"],
        "PIECES": config["PIECES"],
        "LINES": rows,
        "VECTOR": vector,
        "WIDE": wide and not along,
        "UNROLL": unroll,
        "X_VECTOR": _x_vector(problem, vector if along else unroll),
        "SUB_GROUP": sub_group(device, OWN_REGISTERS + words * numbers),
    }


def _x_vector(problem: GemmProblem, together: int) -> int:
    """Return how many numbers of x to load at once, if `together` values of k are needed."""
    few = few_of(problem)
    if not is_other_along(problem):
        return math.gcd(together * few, LOAD_BYTES // problem.dtype.itemsize)
    if is_along(problem):
        return together
    row = problem.k if few > 1 else together
    return math.gcd(together, row, LOAD_BYTES // problem.dtype.itemsize)


def _tree(config: Config, problem: GemmProblem) -> int:
    """Return the bytes of local memory of a group."""
    if config["PIECES"] == 1:
        return 0
    sums = config.integer("ROWS") * few_of(problem) * problem.sum_type.itemsize
    return sums * config.integer("LANES") * config.integer("PIECES")


def _grouped(problem: GemmProblem, device: Device) -> Config:
    """Return the built-in configuration of groups: loads of 16 bytes, several in flight."""
    form = _grouped_along if is_along(problem) else _grouped_across
    lanes, pieces, vector, rows, unroll = form(problem, device)
    sums = rows * few_of(problem) * problem.sum_type.itemsize
    room = min(32 << 10, device.capabilities.local_memory - 4)
    while lanes * pieces > 1 and sums * lanes * pieces > room:
        if lanes > 8 or pieces == 1:
            lanes //= 2
        else:
            pieces //= 2
    groups = ceil_divide(lines_of(problem), lanes * rows) * max(1, problem.batch)
    return Config(
        LANES=lanes,
        PIECES=pieces,
        VECTOR=vector,
        ROWS=rows,
        UNROLL=unroll,
        BLOCK=256,
        STEP_K=1024,
        SPLITS=_splits_of_groups(problem, groups, groups * lanes * pieces, device),
    )


def _grouped_along(problem: GemmProblem, device: Device) -> tuple[int, int, int, int, int]:
    """Return lanes, pieces, vector, rows, unroll for lines along k: two lines per item.

    More items share a line where there are few lines, until each has one load.
    """
    few, lines, itemsize = few_of(problem), lines_of(problem), problem.dtype.itemsize
    vector = math.gcd(max(1, min(8, LOAD_BYTES // itemsize)), problem.k)
    rows = min(2, lines)
    unroll = largest_power(8, max(2, UNDER_WAY * 4 // (rows * vector * itemsize * few)))
    if itemsize >= 4 and few in TURNED and not is_other_along(problem):
        words = max(1, problem.sum_type.itemsize // 4)
        vector, rows, unroll = 1, largest_power(4, max(2, UNDER_WAY // (few * words))), 4
    limit = min(256, group_limit(device))
    shares = ceil_divide(lines, rows) * max(1, problem.batch)
    pieces = largest_power(limit, 128, max(8, problem.depth // (4 * vector)))
    while (
        2 * pieces <= min(limit, problem.depth // vector)
        and shares * pieces < SPREAD * device.compute_units
    ):
        pieces *= 2
    lanes = largest_power(max(1, min(limit, 128) // pieces), shares)
    return lanes, pieces, vector, rows, unroll


def _grouped_across(problem: GemmProblem, device: Device) -> tuple[int, int, int, int, int]:
    """Return lanes, pieces, vector, rows, unroll for lines across k: a group per compute unit.

    So all groups run at once. Many items share a few lines, at least as many as a memory sector
    has. Where rows are not whole vectors, neighbouring items of a group read neighbours.
    """
    few, lines = few_of(problem), lines_of(problem)
    words = max(1, problem.sum_type.itemsize // 4)
    rows = largest_power(
        max(1, min(8, LOAD_BYTES // problem.dtype.itemsize)), max(1, UNDER_WAY // few), lines
    )
    whole = lines % rows == 0
    limit = min(512, group_limit(device))
    least = SECTOR * (2 if few == 1 else 1) // LOAD_BYTES
    if not whole:
        least = 4 * SECTOR // problem.dtype.itemsize
    blocks = ceil_divide(lines, rows) * max(1, problem.batch)
    lanes = max(least, 1 << max(0, ceil_divide(blocks, device.compute_units) - 1).bit_length())
    lanes = largest_power(limit, 32, lanes, max(1, 2 * lines // rows - 1))
    pieces = largest_power(limit // lanes, max(1, problem.depth // 4))
    unroll = largest_power(8, max(2, UNDER_WAY // (words * max(rows, few))))
    return lanes, pieces, 1, rows, min(unroll, 4) if whole and few == 1 else unroll


def _splits_of_groups(problem: GemmProblem, groups: int, items: int, device: Device) -> int:
    """Return the slices of k with which enough items share the work; few slices do not pay."""
    units = device.compute_units
    if items >= ENOUGH * units:
        return 1
    least = ONE_LAUNCH_BYTES if joins(device) else TWO_LAUNCHES_BYTES
    splits = worth_splits(problem, groups, ceil_divide(WANTED * units * groups, items), least)
    return splits if splits >= LEAST_SLICES else 1
