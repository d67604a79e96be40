"""The matrix product by register blocking, for GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import largest_power, not_negative, one_of, positive, sub_group
from opencl_lab.core.plan import Launch, Plan, ceil_divide, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace, Value
from opencl_lab.ops.gemm import launches, split_k
from opencl_lab.ops.gemm.blocked.model import (
    REGISTERS,
    GroupTile,
    best_tiles,
    load_widths,
    reduces_in_launch,
    registers_of,
    registers_of_line,
)
from opencl_lab.ops.gemm.launches import vector_width
from opencl_lab.ops.gemm.problem import GemmProblem

NEIGHBOURS = 32
"""Items that read neighbouring numbers of local memory together: the banks of most devices."""
UNROLLED = 1024
"""Products per iteration of the inner loop: more overflow the instruction caches of GPUs."""
LATE_LOADS, EARLY_REGISTERS = 24, 192
"""Numbers of the next k tile from which on NVIDIA's compiler loads an item's share of them late, in
float32, where a k tile of so many products is unrolled as a whole; registers of an item if not."""
MOST_SUMS = 1 << 20
"""Most bytes of the sums of a group on CPUs: PoCL keeps them, and what it copies of them, on the
stack of a thread, which has 8 MiB."""


@dataclass(frozen=True)
class StagedTile:
    """The tiles of A or of B: TILE_K lines in local memory, each of `extent` elements.

    The items of a group load them `width` elements at once, the same number of loads each.
    """

    name: str  # of the matrix in OpenCL C
    size: str  # OpenCL C: rows or columns of the whole matrix
    first: str  # OpenCL C: the first of them in the tile
    extent: int  # rows of A, or columns of B, in a tile
    depth: int  # values of k in a tile
    items: int  # of a group
    along: bool  # rows in memory lie along the lines of the tile, and not across
    conjugated: bool  # elements count by their complex conjugates
    width: int  # elements of a load
    line: int  # elements from line to line in local memory: `extent`, and a gap

    @property
    def loads(self) -> int:
        """Loads of an item for a tile."""
        return self.depth * self.extent // self.width // self.items

    @property
    def beside(self) -> int:
        """Loads side by side in memory."""
        return (self.extent if self.along else self.depth) // self.width


def _tile(config: Config) -> GroupTile:
    return GroupTile(*map(config.integer, GroupTile.__dataclass_fields__))


class Blocked(launches.Product):
    """A block of the result in the registers of each item, tiles in local memory."""

    name = "blocked"
    templates = ("gemm/blocked.cl.mako", split_k.REDUCTION)
    version = 2
    kernel = "gemm_blocked"
    space = SearchSpace(
        (
            Parameter("WORK_M", (1, 2, 4, 6, 8, 16), "rows of an item"),
            Parameter("WORK_N", (1, 2, 4, 8, 16, 32), "columns of an item"),
            Parameter("WG_M", (1, 2, 4, 8, 16, 32), "items of a group along the rows"),
            Parameter("WG_N", (1, 2, 4, 8, 16, 32), "items of a group along the columns"),
            Parameter("TILE_K", (4, 8, 16, 32, 128), "values of k in a k tile"),
            Parameter("WG_K", (1, 2, 4), "items of a group along k"),
            Parameter("BUFFERS", (1, 2), "2: the next k tile is loaded during this one"),
            Parameter("LOCAL_PAD", (0, 1), "vectors between the lines of a tile"),
            Parameter("SWIZZLE", (1, 8), "rows of tiles in a strip that groups go down"),
            Parameter("SPLITS", (1, 2, 4, 8, 16, 64), "slices of k, summed at the end"),
        ),
        (
            *map(
                positive,
                ("WORK_M", "WORK_N", "WG_M", "WG_N", "WG_K", "TILE_K", "SWIZZLE", "SPLITS"),
            ),
            one_of("BUFFERS", (1, 2)),
            not_negative("LOCAL_PAD"),
            Constraint(
                lambda c: _tile(c).rows * c.integer("TILE_K") % _tile(c).items == 0,
                "the items must share the loads of A evenly: "
                "WORK_M * TILE_K must be a multiple of WG_N * WG_K",
            ),
            Constraint(
                lambda c: _tile(c).columns * c.integer("TILE_K") % _tile(c).items == 0,
                "the items must share the loads of B evenly: "
                "WORK_N * TILE_K must be a multiple of WG_M * WG_K",
            ),
            Constraint(
                lambda c: (
                    math.gcd(c.integer("TILE_K"), c.integer("WORK_M")) % c.integer("WG_K") == 0
                ),
                "items along k share the values of a k tile and the sums evenly: "
                "TILE_K and WORK_M must be multiples of WG_K",
            ),
            Constraint(
                lambda c: c.integer("WORK_M") * c.integer("WORK_N") <= 256,
                "more than 256 sums per item do not fit in registers",
            ),
            Constraint(
                lambda c: c["BUFFERS"] == 1 or _tile(c).prefetched <= 64,
                "with two buffers an item holds its share of the next tiles, and more than 64 "
                "elements do not stay in registers",
            ),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need the local memory and work-group of the smallest built-in configuration."""
        reason = super().supports(problem, device)
        if reason is None and not best_tiles(problem, device):
            return "the device has no room for the smallest tiles"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the configuration with the least time by a model of the device."""
        tile, splits = best_tiles(problem, device)[0]
        return Config(
            **{name: getattr(tile, name) for name in GroupTile.__dataclass_fields__},
            BUFFERS=1 if device.kind == "cpu" else 2,
            LOCAL_PAD=1,
            SWIZZLE=1,
            SPLITS=splits,
        )

    def search_space(self, problem: GemmProblem, device: Device) -> SearchSpace:
        """Return the values that suit the kind of device, splits only where they may pay."""
        _, splits = best_tiles(problem, device)[0]
        cpu = device.kind == "cpu"
        least = {} if cpu else {"WORK_M": 2, "WORK_N": 2, "WG_M": 4, "WG_N": 4, "TILE_K": 8}
        most = {"WG_K": 1, "BUFFERS": 1, "SWIZZLE": 1} if cpu else {"WORK_N": 16, "TILE_K": 32}

        def values(item: Parameter) -> tuple[Value, ...]:
            if item.name == "SPLITS":
                more = (splits // 2, splits, 2 * splits) if splits > 1 else ()
                return tuple(dict.fromkeys((1, *more)))
            low, high = least.get(item.name, 0), most.get(item.name, 1 << 30)
            return tuple(value for value in item.values if low <= int(value) <= high)

        parameters = (replace(item, values=values(item)) for item in self.space.parameters)
        return replace(self.space, parameters=tuple(parameters))

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan a work-group for every tile and slice of k, and the sum of the slices.

        The last group of a tile sums them where groups see what others have written and that is
        little work; else a second launch does.
        """
        buffers = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(buffers, ())
        tile = _tile(config)
        sums = tile.items * tile.WORK_M * tile.WORK_N * problem.sum_type.itemsize
        if device.kind == "cpu" and sums > MOST_SUMS:
            raise InvalidConfig(
                f"the sums of a group take {sums:,} bytes of a thread's stack, more than "
                f"{MOST_SUMS:,}: take smaller groups or fewer sums"
            )
        slice_k = round_up(ceil_divide(problem.depth, config.integer("SPLITS")), tile.TILE_K)
        splits = max(1, ceil_divide(problem.depth, max(1, slice_k)))
        groups = tile.count(problem) * problem.batch * splits
        arguments = launches.arguments(problem)
        in_launch = splits > 1 and reduces_in_launch(tile, splits, problem, device)
        if splits > 1:
            arguments |= {"partial": split_k.PARTIAL}
            arguments |= {"arrived": "arrived"} if in_launch else {}
            arguments |= {"splits": np.uint32(splits)}
            arguments |= {"slice_k": launches.index_of(problem)(slice_k)}
        product = Launch(
            template=self.templates[0],
            kernel=self.kernel,
            params={
                **_params(problem, config, groups, device),
                "SPLIT_K": split_k.way(splits, in_launch),
                "PTX": in_launch and device.capabilities.inline_ptx,
            },
            global_size=(groups * tile.items,),
            local_size=(tile.items,),
            arguments=arguments,
            local_bytes=_local_bytes(problem, config, device) + 4 * in_launch,
        )
        if splits == 1:
            return Plan(buffers, (product,))
        if in_launch:
            tiles = tile.count(problem) * problem.batch
            left = split_k.by_last_group(problem, tiles, splits, tile.rows, tile.columns)
            return Plan((*buffers, *left), (product,))
        partial, adding = split_k.reduction(problem, device, splits)
        return Plan((*buffers, partial), (product, adding))


def _gap(problem: GemmProblem, config: Config, device: Device) -> int:
    """Return the elements between the lines of a tile in local memory."""
    return config.integer("LOCAL_PAD") * vector_width(problem, device)


def _local_bytes(problem: GemmProblem, config: Config, device: Device) -> int:
    gap = _gap(problem, config, device)
    itemsize = problem.sum_type.itemsize
    tile, vector = _tile(config), math.gcd(vector_width(problem, device), config.integer("WORK_N"))
    # Items with the same sums exchange at least one vector each.
    exchanged = tile.WG_K * tile.items * vector * itemsize if tile.WG_K > 1 else 0
    return max(tile.local_bytes(config.integer("BUFFERS"), gap, itemsize), exchanged)


def _params(problem: GemmProblem, config: Config, groups: int, device: Device) -> dict[str, Any]:
    """Return the parameters of the template, without those of splitting k."""
    tile, vector = _tile(config), vector_width(problem, device)
    gap = _gap(problem, config, device)
    line_a, line_b = tile.rows + gap, tile.columns + gap
    most = launches.builtin_width(problem, device)
    columns = math.gcd(vector, tile.WORK_N)
    # Items of a CPU run one after the other: their reads need not be spread over banks.
    rows = 1 if device.kind == "cpu" else math.gcd(vector, tile.WORK_M)
    lanes_n = math.gcd(8, tile.WG_N)
    of_a, of_b = load_widths(tile, problem, device)
    shared, trip = launches.params(problem), _unrolled(tile, groups, problem, device)
    registers = registers_of(tile, problem, device) + trip * registers_of_line(tile, problem)
    return {
        **{name: shared[name] for name in ("ELEMENT", "INDEX_T", "EPILOGUE", "STACKS")},
        **{name: config[name] for name in GroupTile.__dataclass_fields__},
        "TILE_A": StagedTile(
            "a", "m", "first_row", tile.rows, tile.TILE_K, tile.items,
            along=problem.trans_a, conjugated=problem.conj_a, width=of_a, line=line_a,
        ),
        "TILE_B": StagedTile(
            "b", "n", "first_column", tile.columns, tile.TILE_K, tile.items,
            along=not problem.trans_b, conjugated=problem.conj_b, width=of_b, line=line_b,
        ),
        "LOCAL": _local_bytes(problem, config, device) // problem.sum_type.itemsize,
        "BUFFERS": config["BUFFERS"],
        "SWIZZLE": config["SWIZZLE"],
        "VECTOR_WIDTH": columns,
        "ROW_WIDTH": rows,
        "LANES_M": math.gcd(NEIGHBOURS // lanes_n, tile.WG_M),
        "LANES_N": lanes_n,
        "STORE_WIDTH": math.gcd(columns, problem.n, most),
        "ALIGNED": device.aligns_vectors,
        "MOST": most,
        "UNROLL": trip,
        "SUB_GROUP": sub_group(device, registers),
    }  # fmt: skip


def _unrolled(tile: GroupTile, groups: int, problem: GemmProblem, device: Device) -> int:
    """Return the values of p in a trip of the inner loop.

    Compilers that know a k tile as a whole may read all of it into registers first: AMD's do. Or
    they load the next one late; then less is unrolled where all groups run at once even so.
    """
    if device.kind == "cpu":
        return 1
    own = tile.TILE_K // tile.WG_K
    products = tile.WORK_M * tile.WORK_N * (4 if problem.is_complex else 1)
    trip, registers = UNROLLED // products, device.capabilities.item_registers
    late = problem.sum_type.itemsize == 4 and tile.prefetched >= LATE_LOADS
    if device.capabilities.inline_ptx and products * own == UNROLLED and late:
        at_once = device.compute_units * (REGISTERS // (tile.items * EARLY_REGISTERS))
        trip = own // 2 if groups <= at_once else trip
    if registers:
        left = registers - registers_of(tile, problem, device)
        trip = min(trip, own // 2, left // registers_of_line(tile, problem))
    return math.gcd(own, largest_power(trip))
