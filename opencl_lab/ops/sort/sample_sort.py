"""The sort of short rows in two launches, by regular samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import lacks_groups, positive, sub_group
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.radix_gpu_sizes import WARP, moved_bytes

TEMPLATE = "sort/sample_sort.cl.mako"
GROUP, SPACING = 512, 64
LOADS = (
    {"ITEM_KEYS": 8, "TILE_ITEMS": 4},
    {"ITEM_KEYS": 8, "TILE_ITEMS": 8},
    {"ITEM_KEYS": 16, "TILE_ITEMS": 16, "BUCKET_ITEMS": 4, "SPACING": 128},
)
"""Keys and samples for longer and longer rows: with 512 items up to 2^16, 2^17 and 2^18 keys. An
H200 has a unit for each bucket; more would wait for the others."""
SAMPLE_ITEMS = 4
"""Most samples of an item."""
OWN_REGISTERS = 32
"""Registers of an item besides its keys, their places and their values."""


@dataclass(frozen=True)
class Division:
    """How a row is divided into tiles, which are sorted, and then into buckets."""

    tile: int  # keys of a tile
    spacing: int = 1  # keys of a tile for each of its samples
    bucket_samples: int = 1
    buckets: int = 1
    one_launch: bool = True  # whether a group sorts the row

    @classmethod
    def of(cls, n: int, config: Config) -> Division | None:
        """Return that of a row, or None if a bucket might have more keys than a group holds."""
        wg_size, spacing = config.integer("WG_SIZE"), config.integer("SPACING")
        room = wg_size * config.integer("ITEM_KEYS")
        if n <= room:
            return cls(room)
        tile = wg_size * config.integer("TILE_ITEMS")
        tiles = ceil_divide(n, tile)
        last = n - (tiles - 1) * tile
        samples = (tiles - 1) * ceil_divide(tile, spacing) + ceil_divide(last, spacing)
        most = room // spacing - tiles  # samples of a bucket: see the template
        if tiles > wg_size or samples > SAMPLE_ITEMS * wg_size or most < 1:
            return None
        taken = max(min(wg_size * config.integer("BUCKET_ITEMS") // spacing, most), 1)
        return cls(tile, spacing, taken, ceil_divide(samples, taken), False)


class SampleSort(Algorithm[SortProblem]):
    """Stable sort by regular samples: tiles are sorted, then buckets of the result.

    It is for rows that a few tiles hold: two launches sort them, whatever the keys are.
    """

    name = "sample-sort"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (256, 512, 768, 1024), "items in a group"),
            Parameter("ITEM_KEYS", (8, 12, 16, 20, 24), "most keys of an item"),
            Parameter("TILE_ITEMS", (2, 4, 6, 8, 12, 16), "keys of an item in a tile"),
            Parameter("BUCKET_ITEMS", (1, 2, 3, 4, 6, 8), "keys of an item in a bucket, about"),
            Parameter("DIGIT_BITS", (6, 7, 8), "bits of a digit"),
            Parameter("SPACING", (32, 64, 96, 128, 192, 256), "keys of a tile for each sample"),
        ),
        (
            Constraint(
                lambda c: c.integer("WG_SIZE") % WARP == 0 < c.integer("WG_SIZE"),
                f"WG_SIZE must be a multiple of {WARP}",
            ),
            Constraint(lambda c: 1 <= c.integer("DIGIT_BITS") <= 8, "DIGIT_BITS must be 1 to 8"),
            Constraint(
                lambda c: 1 << c.integer("DIGIT_BITS") <= c.integer("WG_SIZE"),
                "WG_SIZE must not be less than 2 to the power of DIGIT_BITS",
            ),
            Constraint(
                lambda c: c.integer("ITEM_KEYS") >= SAMPLE_ITEMS,
                f"ITEM_KEYS must be at least {SAMPLE_ITEMS}",
            ),
            Constraint(
                lambda c: 1 <= c.integer("TILE_ITEMS") <= c.integer("ITEM_KEYS"),
                "TILE_ITEMS must be 1 to ITEM_KEYS",
            ),
            positive("BUCKET_ITEMS"),
            positive("SPACING"),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need groups with barriers in loops, and rows that a few tiles hold."""
        if device.kind == "cpu":
            return "it is for groups of GPUs"
        if Division.of(problem.n, self.default_config(problem, device)) is None:
            return "it is for rows that a few groups hold"
        return lacks_groups(device)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the smallest tiles with which two launches sort a row, else the largest.

        Small tiles and buckets have all compute units at work.
        """
        limits = device.capabilities
        wg_size = min(GROUP, limits.max_work_group // WARP * WARP or WARP)
        room = max(limits.local_memory, limits.declared_memory)
        while True:
            found = Config(
                WG_SIZE=wg_size, ITEM_KEYS=SAMPLE_ITEMS, TILE_ITEMS=SAMPLE_ITEMS, BUCKET_ITEMS=3,
                SPACING=SPACING, DIGIT_BITS=min(8, wg_size.bit_length() - 1),
            )  # fmt: skip
            if wg_size == WARP or _local_bytes(problem, found, device) <= room:
                break
            wg_size = max(wg_size // 2 // WARP, 1) * WARP
        for load in LOADS:
            config = found.replace(**load)
            if _local_bytes(problem, config, device) > room:
                break
            found = config
            if Division.of(problem.n, config) is not None:
                break
        return found

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch that sorts tiles, and one that sorts buckets, if there are several."""
        elements = Elements(problem)
        buffers = elements.buffers
        if problem.n * problem.rows == 0:
            return Plan(tuple(buffers), ())
        division = Division.of(problem.n, config)
        if division is None:
            raise InvalidConfig(
                f"{problem.n:,} keys of a row are too many: a bucket might not fit a group; try "
                "larger ITEM_KEYS or TILE_ITEMS, or another SPACING"
            )
        shape, value = (problem.rows, problem.n), elements.value_dtype
        result = {} if problem.indices else {"": "sorted"}
        middle = {"": "spare"}
        if value is not None:
            result["_values"], middle["_values"] = "sorted_values", "spare_values"
        given = named("keys", *["values"] * bool(problem.value_bytes))
        tile: dict[str, Argument] = {"n": np.uint32(problem.n), "tile": np.uint32(division.tile)}
        into = result if division.one_launch else middle
        target: dict[str, Argument] = {f"target{end}": name for end, name in into.items()}
        tiles = ceil_divide(problem.n, division.tile)
        launches = [("sort_tiles", tiles, {**given, **target, **tile})]
        if not division.one_launch:
            for name, dtype in zip(middle.values(), (problem.dtype, value), strict=False):
                assert dtype is not None
                buffers.append(Buffer(name, "scratch", shape, dtype))
            source: dict[str, Argument] = {f"source{end}": name for end, name in middle.items()}
            sizes = {
                **tile,
                "spacing": np.uint32(division.spacing),
                "bucket_samples": np.uint32(division.bucket_samples),
            }
            found = {**source, **named(*result.values()), **sizes}
            launches.append(("sort_buckets", division.buckets, found))
        wg_size = config.integer("WG_SIZE")
        params = self._params(elements, config, device, division.one_launch)
        return Plan(
            tuple(buffers),
            tuple(
                Launch(
                    template=TEMPLATE,
                    kernel=kernel,
                    params=params,
                    global_size=(groups * problem.rows * wg_size,),
                    local_size=(wg_size,),
                    arguments=arguments,
                    local_bytes=_local_bytes(problem, config, device),
                )
                for kernel, groups, arguments in launches
            ),
        )

    @staticmethod
    def _params(
        elements: Elements, config: Config, device: Device, one_launch: bool
    ) -> dict[str, Any]:
        problem, value = elements.problem, elements.value_dtype
        words = (problem.dtype.itemsize, 4, 0 if value is None else value.itemsize)
        registers = config.integer("ITEM_KEYS") * sum(ceil_divide(n, 4) for n in words)
        return {
            "ELEMENT": elements.element,
            "WG_SIZE": config.integer("WG_SIZE"),
            "ITEM_KEYS": config.integer("ITEM_KEYS"),
            "SAMPLE_ITEMS": SAMPLE_ITEMS,
            "DIGIT_BITS": config.integer("DIGIT_BITS"),
            "ONE_LAUNCH": one_launch,
            "ROOM": _room(problem, config, device),
            "PTX": device.capabilities.inline_ptx,
            "SUB_GROUP": sub_group(device, OWN_REGISTERS + registers),
        }


def _room(problem: SortProblem, config: Config, device: Device) -> int:
    """Return the local memory, in bytes, in which keys are ranked and then exchanged."""
    wg_size = config.integer("WG_SIZE")
    words = 1 if device.capabilities.inline_ptx else 2
    ranks = 4 * (wg_size // WARP) * words << config.integer("DIGIT_BITS")
    samples = SAMPLE_ITEMS * wg_size * max(4, problem.dtype.itemsize)
    return max(ranks, samples, wg_size * config.integer("ITEM_KEYS") * moved_bytes(problem))


def _local_bytes(problem: SortProblem, config: Config, device: Device) -> int:
    """Return the local memory, in bytes, of the kernel that needs the most."""
    wg_size = config.integer("WG_SIZE")
    sums = 4 * (WARP if device.capabilities.inline_ptx else 2 * wg_size)
    samples = SAMPLE_ITEMS * wg_size * problem.dtype.itemsize
    return _room(problem, config, device) + sums + samples + 8 * wg_size + 64
