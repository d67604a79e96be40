"""Configurations of the matrix product by matrix units: sizes, limits, built-in ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import one_of, positive
from opencl_lab.core.plan import ceil_divide
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.gemm.problem import GemmProblem

INSTRUCTIONS = 4
"""Instructions along k for a k tile of warpgroups, whose rows in local memory have 128 bytes."""
STAGE_BARRIERS = 16
"""Bytes of the barriers of a stage."""
CHUNK, LINE_HALVES = 16, 64
"""Bytes that are copied at once from matrices in place; elements of float16 in a cache line."""
WARPGROUP_TILES = {
    ((128, 128), 2): 1.0,
    ((64, 192), 3): 1.01,
    ((64, 256), 2): 1.09,
    ((64, 192), 2): 1.07,
    ((64, 128), 2): 1.21,
    ((64, 64), 2): 1.9,
    ((64, 256), 1): 1.67,
    ((64, 128), 1): 2.3,
    ((64, 64), 1): 3.4,
}
"""By rows and columns of a warpgroup and the number of warpgroups: relative time for the same work,
measured in float16 and TF32."""
PACK_START, PACK_ROW = 440_000, 2.7
"""Time to pack: once, and per row of a k tile. The unit is the time of one sum of a tile for a k
tile; fitted on an H200."""
DOUBLE_SUM = 2.7
"""How many of these units a sum in float64 takes."""
UNPACKED_DOUBLES = 1.18
"""How much longer a k tile of float64 takes that is not packed."""
REDUCE_START, REDUCE_SUM = 130_000, 2.5
"""Time to add up slices of k: once, and per sum of a tile and slice; in the same unit."""
LEAST_STEPS, MOST_SPLITS = 4, 128
"""Fewest k tiles of a slice of k, and most slices."""
REGISTERS = 1 << 16
"""32-bit registers of a compute unit."""
OTHER_REGISTERS = 24
"""Fewest registers of an item of a warpgroup besides its sums."""


def row_lengths(problem: GemmProblem) -> tuple[int, int]:
    """Return the elements of a row of a and of b in memory."""
    depth = problem.depth
    return (problem.m if problem.trans_a else depth, depth if problem.trans_b else problem.n)


def reads_in_place(problem: GemmProblem, device: Device) -> bool:
    """Return whether both matrices can be read in place, without packing.

    Warpgroups read half precision along or across rows, 16 bytes at a time, and warps float64.
    """
    size = problem.dtype.itemsize
    return (
        (size == 8 or (size == 2 and device.capabilities.warpgroup_matrix_units))
        and device.aligns_vectors
        and all(length * size % CHUNK == 0 for length in row_lengths(problem))
    )


def items(config: Config) -> int:
    """Return the work-items of a group; warpgroups have one or four warps besides, which copy."""
    owners = config.integer("GROUPS_M") * config.integer("GROUPS_N")
    if config["UNITS"] == "warp":
        return 32 * owners
    return 128 * owners + (32 if is_packed(config) else 128)


def is_packed(config: Config) -> bool:
    """Return whether both matrices are packed first."""
    return bool(config["PACK"])


def tile(config: Config) -> tuple[int, int]:
    """Return rows and columns of the result that a group owns."""
    rows = config.integer("BLOCK_M") * config.integer("GROUPS_M")
    return rows, config.integer("BLOCK_N") * config.integer("GROUPS_N")


def stored(problem: GemmProblem) -> tuple[int, int]:
    """Return how many matrices the arrays a and b hold."""
    return math.prod(problem.shape_a[:-2]), math.prod(problem.shape_b[:-2])


def step_length(config: Config, dtype: np.dtype[Any]) -> int:
    """Return the values of k in a k tile."""
    return config.integer("INSTRUCTIONS") * (16 if dtype.itemsize == 2 else 8)


def steps_of(config: Config, problem: GemmProblem) -> int:
    """Return how many k tiles there are."""
    return ceil_divide(problem.depth, step_length(config, problem.dtype))


def tiles_of(config: Config, problem: GemmProblem) -> int:
    """Return how many tiles all results of the stack have."""
    tile_m, tile_n = tile(config)
    return ceil_divide(problem.m, tile_m) * ceil_divide(problem.n, tile_n) * problem.batch


def limbs_of(problem: GemmProblem) -> int:
    """Return into how many TF32 numbers each number is split; 1: it is not split."""
    return 2 if problem.precision == "3xtf32" else 1


def stages_bytes(config: Config, problem: GemmProblem) -> int:
    """Return the bytes of local memory of all stages: k tiles of both factors, and barriers."""
    step = sum(tile(config)) * step_length(config, problem.dtype) * problem.dtype.itemsize
    return config.integer("STAGES") * (step * limbs_of(problem) + STAGE_BARRIERS)


def _is_even(config: Config) -> bool:
    """Return whether items copy a k tile of float16 or wider evenly, 16 bytes each."""
    extents, step = tile(config), config.integer("INSTRUCTIONS") * 32
    return all(extent * step % (16 * items(config)) == 0 for extent in extents)


def _sums(config: Config) -> int:
    """Return how many sums an item of warpgroups has, the fresh ones of SUM_STEPS included."""
    rows = config.integer("BLOCK_M") + (64 if config["SUM_STEPS"] else 0)
    return rows * config.integer("BLOCK_N") // 128


SPACE = SearchSpace(
    (
        Parameter("UNITS", ("warpgroup", "warp"), "instructions: wgmma or mma.sync"),
        Parameter("BLOCK_M", (32, 64, 128), "rows of a warpgroup or warp"),
        Parameter("BLOCK_N", (32, 64, 128, 192, 256), "columns of a warpgroup or warp"),
        Parameter("GROUPS_M", (1, 2, 3, 4), "warpgroups or warps along the rows"),
        Parameter("GROUPS_N", (1, 2, 4), "warps along the columns"),
        Parameter("INSTRUCTIONS", (2, 4), "instructions along k for a k tile"),
        Parameter("STAGES", (2, 3, 4, 5, 6), "k tiles in local memory"),
        Parameter(
            "SUM_STEPS",
            (0, 1, 2, 4),
            "instructions along k until sums leave the unit; 0: at the end",
        ),
        Parameter("BAND", (4, 8, 16), "rows of tiles that groups go through together"),
        Parameter(
            "SPLITS", (1, 2, 4, 8, 16, 32), "slices of k, summed by the last group of a tile"
        ),
        Parameter(
            "PACK", (1, 0), "1: matrices are packed first; 0: not if they can be read in place"
        ),
    ),
    (
        one_of("UNITS", ("warpgroup", "warp")),
        *map(positive, ("BLOCK_M", "BLOCK_N", "GROUPS_M", "GROUPS_N", "STAGES", "BAND", "SPLITS")),
        one_of("INSTRUCTIONS", (2, 4)),
        one_of("SUM_STEPS", (0, 1, 2, 4)),
        one_of("PACK", (0, 1)),
        Constraint(lambda c: c.integer("SPLITS") <= 1024, "k is split into at most 1024 slices"),
        Constraint(lambda c: c.integer("STAGES") >= 2, "a k tile is copied while another is read"),
        Constraint(
            lambda c: all(extent % 64 == 0 for extent in tile(c)),
            "tiles are packed in blocks of 64 rows and columns",
        ),
        Constraint(
            lambda c: c.integer("SUM_STEPS") <= c.integer("INSTRUCTIONS"),
            "sums leave the unit at least once per k tile",
        ),
        Constraint(
            lambda c: (
                c["UNITS"] == "warp"
                or (
                    c.integer("BLOCK_M") % 64 == 0
                    and c["GROUPS_N"] == 1
                    and c["INSTRUCTIONS"] == INSTRUCTIONS
                    and c.integer("BLOCK_N") <= 256
                )
            ),
            "a warpgroup owns multiples of 64 rows and at most 256 columns of a tile, "
            "in k tiles of 4 instructions",
        ),
        Constraint(
            lambda c: c["UNITS"] == "warp" or (_sums(c) + OTHER_REGISTERS) * items(c) <= REGISTERS,
            "sums and what else an item holds must fit in the registers of a compute unit",
        ),
        Constraint(
            lambda c: c["UNITS"] == "warp" or _sums(c) <= 160,
            "more than 160 sums per item do not stay in registers",
        ),
        Constraint(
            lambda c: (
                c["UNITS"] == "warpgroup"
                or (
                    c.integer("BLOCK_M") % 16 == 0
                    and c.integer("BLOCK_N") % 16 == 0
                    and c.integer("BLOCK_M") * c.integer("BLOCK_N") <= 4096
                )
            ),
            "a warp owns multiples of 16 rows and columns, at most 4096 elements",
        ),
        Constraint(
            lambda c: c["UNITS"] == "warpgroup" or _is_even(c),
            "the items must share the copies of a k tile evenly",
        ),
        Constraint(
            lambda c: (
                c["UNITS"] == "warpgroup"
                or is_packed(c)
                or all(2 * items(c) % extent == 0 for extent in tile(c))
            ),
            "items of warps that read matrices in place must copy whole lines of a tile",
        ),
        Constraint(lambda c: items(c) <= 1024, "a group has at most 1024 items"),
    ),
)


def _config(units: str, block: tuple[int, int], groups: tuple[int, int], **others: int) -> Config:
    """Return a built-in configuration; values not in `others` are the same for all."""
    return Config(
        UNITS=units,
        BLOCK_M=block[0],
        BLOCK_N=block[1],
        GROUPS_M=groups[0],
        GROUPS_N=groups[1],
        **{
            "INSTRUCTIONS": INSTRUCTIONS,
            "STAGES": 4,
            "SUM_STEPS": 0,
            "BAND": 8,
            "PACK": 1,
            **others,
        },
    )


def _candidates(problem: GemmProblem, device: Device) -> Iterator[tuple[Config, float]]:
    """Yield built-in configurations, and their measured relative time for the same work."""
    split = problem.precision == "3xtf32"
    if problem.dtype.itemsize == 8:
        yield _config("warp", (64, 32), (2, 2), INSTRUCTIONS=2), 1.0
        for stages, cost in ((3, 1.06), (2, 1.3)):
            small = _config("warp", (32, 32), (2, 2), INSTRUCTIONS=2, STAGES=stages)
            yield small, cost
            if reads_in_place(problem, device):
                yield small.replace(PACK=0), cost * UNPACKED_DOUBLES
    elif not device.capabilities.warpgroup_matrix_units:
        sums = {"SUM_STEPS": 2} if split else {}
        for stages in (4, 3, 2):
            more = {"INSTRUCTIONS": 2, "STAGES": stages, **sums}
            if not split:
                yield _config("warp", (64, 32), (2, 4), **more), 1.0
            yield _config("warp", (32, 32), (2, 2), **more), 1.2
    elif split:
        yield _config("warpgroup", (64, 128), (2, 1), STAGES=3, SUM_STEPS=4), 1.0
        yield _config("warpgroup", (64, 64), (2, 1), SUM_STEPS=4), 1.3
    else:
        for (block, groups), cost in WARPGROUP_TILES.items():
            yield _config("warpgroup", block, (groups, 1)), cost
            if reads_in_place(problem, device):
                yield _config("warpgroup", block, (groups, 1), PACK=0), cost * _unpacked(problem)


def _unpacked(problem: GemmProblem) -> float:
    """Return how much longer k tiles take that are copied from unpacked matrices."""
    return 1.12 if all(length % LINE_HALVES == 0 for length in row_lengths(problem)) else 1.55


def _local_memory(device: Device) -> int:
    return max(device.capabilities.local_memory, device.capabilities.declared_memory)


def _splits(problem: GemmProblem, config: Config, device: Device) -> list[int]:
    """Return into how many slices k may be split to give all units work, if tiles are few."""
    if config["UNITS"] == "warp" or not device.capabilities.visible_writes:
        return [1]
    tiles, steps = max(1, tiles_of(config, problem)), steps_of(config, problem)
    most = min(device.compute_units // tiles, steps // LEAST_STEPS, MOST_SPLITS)
    return sorted({1, *(most >> halved for halved in range(4) if most >> halved > 1)})


def _time(problem: GemmProblem, config: Config, cost: float, splits: int, device: Device) -> float:
    """Return the expected time, by waves of tiles.

    All compute units start their tiles together, so that a wave of few tiles takes as long as a
    full one.
    """
    tile_m, tile_n = tile(config)
    steps = steps_of(config, problem)
    waves = ceil_divide(tiles_of(config, problem) * splits, device.compute_units)
    time = waves * tile_m * tile_n * cost * ceil_divide(steps, splits)
    if splits > 1:
        time += REDUCE_START + REDUCE_SUM * tile_m * tile_n * splits
    if is_packed(config):
        rows = problem.m * stored(problem)[0] + problem.n * stored(problem)[1]
        unit = DOUBLE_SUM if problem.dtype.itemsize == 8 else 1.0
        time += (PACK_START + PACK_ROW * rows * steps) / unit
    return time


def built_in(problem: GemmProblem, device: Device) -> Config | None:
    """Return the built-in configuration with the least expected time; None if none fits."""
    found = [
        (_time(problem, config, cost, splits, device), config.replace(SPLITS=splits))
        for config, cost in _candidates(problem, device)
        if stages_bytes(config, problem) <= _local_memory(device)
        and items(config) <= device.capabilities.max_work_group
        for splits in _splits(problem, config, device)
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _more_or_fewer(problem: GemmProblem, device: Device) -> tuple[int, ...]:
    """Return numbers of slices of k worth trying: the built-in one, half, double, and one."""
    default = built_in(problem, device)
    built = 1 if default is None else default.integer("SPLITS")
    return tuple(sorted({1, max(1, built // 2), built, *([2 * built] if built > 1 else [])}))


def problem_space(problem: GemmProblem, device: Device) -> SearchSpace:
    """Return the parameters that matter for a type and precision, and their values."""
    groups = device.capabilities.warpgroup_matrix_units and problem.dtype.itemsize < 8
    split = problem.precision == "3xtf32"
    kept: dict[str, tuple[Any, ...]] = {
        "UNITS": ("warpgroup",) if groups else ("warp",),
        "SUM_STEPS": (1, 2, 4) if split else (0,),
        "GROUPS_N": (1,) if groups else (1, 2, 4),
        "INSTRUCTIONS": (4,) if groups else (2, 4),
        "BLOCK_M": (64, 128) if groups else (32, 64),
        "BLOCK_N": (64, 128, 192, 256) if groups else (32, 64),
        "PACK": (0, 1) if reads_in_place(problem, device) else (1,),
        "SPLITS": _more_or_fewer(problem, device),
    }
    limit, most = _local_memory(device), 2 * device.compute_units
    return SearchSpace(
        tuple(
            Parameter(parameter.name, kept.get(parameter.name, parameter.values), parameter.meaning)
            for parameter in SPACE.parameters
        ),
        (
            *SPACE.constraints,
            Constraint(
                lambda c: stages_bytes(c, problem) <= limit,
                "the k tiles must fit in local memory",
            ),
            Constraint(
                lambda c: c["SPLITS"] == 1 or tiles_of(c, problem) * c.integer("SPLITS") <= most,
                "k is split only where tiles are too few for all compute units",
            ),
        ),
    )
