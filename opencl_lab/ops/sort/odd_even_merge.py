"""The algorithm `odd-even-merge`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    c_type,
    index_type,
    item_launch,
    lacks_type,
    largest_power,
    positive,
)
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import PARTIAL_KEYS, SortProblem

HALF_TEMPLATE = "sort/half_keys.cl.mako"
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
WIDE = {"keys": "wide_keys", "sorted": "wide_sorted"}
WG_SIZE = 64  # most work-items of a group that converts keys


def _span(config: Config) -> int:
    """Return the elements of a work-group in a merge pass."""
    return config.integer("WG_SIZE") * config.integer("WORK_PER_ITEM")


class OddEvenMerge(Algorithm[SortProblem]):
    """Merge sort in which every element finds its position by binary search."""

    name = "odd-even-merge"
    templates = ("sort/odd_even_merge.cl.mako",)
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), "items in a group"),
            Parameter(
                "TILE",
                (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
                "elements sorted in local memory first; 0 for none",
            ),
            Parameter(
                "WORK_PER_ITEM", (1, 2, 4, 8, 16, 64, 256, 1024, 4096), "elements of one item"
            ),
            Parameter("BLOCKED", (False, True), "an item's elements are consecutive"),
            Parameter("NARROW", (False, True), "first find bounds for all searches of a group"),
        ),
        (
            positive("WG_SIZE"),
            positive("WORK_PER_ITEM"),
            Constraint(
                lambda c: c.integer("TILE") >= 0 and not c.integer("TILE") & c.integer("TILE") - 1,
                "TILE must be 0 or a power of two",
            ),
            Constraint(
                lambda c: c.integer("TILE") % c.integer("WG_SIZE") == 0,
                "TILE must be a multiple of WG_SIZE",
            ),
            Constraint(
                lambda c: not (c["NARROW"] and c["BLOCKED"]),
                "NARROW has no effect where items merge (BLOCKED)",
            ),
            Constraint(
                lambda c: not c["NARROW"] or c.integer("WG_SIZE") >= 2,
                "NARROW needs two items in a group",
            ),
            Constraint(
                lambda c: not (c["NARROW"] and _span(c) & (_span(c) - 1)),
                "NARROW needs WG_SIZE * WORK_PER_ITEM to be a power of two",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need double precision for float64 keys; sort by all bits of a key only."""
        if problem.bits is not None:
            return PARTIAL_KEYS
        return lacks_type(device, problem.dtype)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return long runs per item for CPUs, short ones in large groups for other devices."""
        if device.kind == "cpu":
            config = Config(WG_SIZE=1, TILE=4096, WORK_PER_ITEM=4096, BLOCKED=True, NARROW=False)
        else:
            config = Config(WG_SIZE=512, TILE=2048, WORK_PER_ITEM=4, BLOCKED=True, NARROW=False)
        wg_size = largest_power(config.integer("WG_SIZE"), device.capabilities.max_work_group)
        tile = config.integer("TILE")
        while tile * self._tile_element(problem) > device.capabilities.local_memory:
            tile //= 2
        if tile < wg_size or (wg_size > 1 and not device.capabilities.barriers_in_loops):
            tile = 0
        return config.replace(WG_SIZE=wg_size, TILE=tile)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch of `sort_tile`, then a `merge_pass` per doubling of the sorted blocks.

        Keys in half precision are converted to float32 before, and back afterwards.
        """
        wide = _widened(problem)
        plan = self._plan(wide, config)
        return plan if wide is problem else _with_half_keys(problem, plan, device)

    def _plan(self, problem: SortProblem, config: Config) -> Plan:
        shape = (problem.rows, problem.n)
        value = Elements(problem).value_dtype
        buffers = [Buffer("keys", "in", shape, problem.dtype)]
        buffers.append(
            Buffer("sorted", "scratch" if problem.indices else "out", shape, problem.dtype)
        )
        if problem.value_bytes and value is not None:
            buffers.append(Buffer("values", "in", shape, value))
        if value is not None:
            # Positions have the smallest type that holds them; the last launch widens them.
            out = np.dtype(np.int64) if problem.indices else value
            buffers.append(Buffer("sorted_values", "out", shape, out))
        if problem.n * problem.rows == 0:
            return Plan(tuple(buffers), ())

        passes = self._passes(problem.n, config)
        if len(passes) > 1:
            buffers.append(Buffer("spare", "scratch", shape, problem.dtype))
            if value is not None:
                buffers.append(Buffer("spare_values", "scratch", shape, value))
        launches = []
        source = "keys"
        for index, width in enumerate(passes):
            left = len(passes) - 1 - index
            target = "spare" if left % 2 else "sorted"  # so that the last one is "sorted"
            launches.append(
                self._launch(problem, config, width, source, target, index == 0, left == 0)
            )
            source = target
        return Plan(tuple(buffers), tuple(launches))

    @staticmethod
    def _passes(n: int, config: Config) -> list[int]:
        """Return the length of the sorted blocks before each launch, 0 for `sort_tile`."""
        tile = config.integer("TILE")
        passes, width = ([0], tile) if tile else ([], 1)
        while width < n:
            passes.append(width)
            width *= 2
        return passes or [1]  # a single element still has to be copied

    def _launch(
        self,
        problem: SortProblem,
        config: Config,
        width: int,
        source: str,
        target: str,
        first: bool,
        last: bool,
    ) -> Launch:
        value_type = Elements(problem).value_type
        index = index_type(problem.n)
        arguments: dict[str, Argument] = {"source": source, "target": target}
        if value_type:
            if not (first and problem.indices):
                arguments["source_values"] = "values" if first else f"{source}_values"
            arguments["target_values"] = f"{target}_values"
        arguments["n"] = index(problem.n)
        wg_size, tile = config.integer("WG_SIZE"), config.integer("TILE")
        if width == 0:
            span, local_bytes = tile, tile * self._tile_element(problem)
        else:
            arguments["width"] = index(width)
            span = wg_size * config.integer("WORK_PER_ITEM")
            local_bytes = 2 * index().itemsize if config["NARROW"] else 0
        return Launch(
            template=self.templates[0],
            kernel="merge_pass" if width else "sort_tile",
            params={
                **config,
                "KEY_T": c_type(problem.dtype),
                "KEY_IS_FLOAT": problem.dtype.kind == "f",
                "DESCENDING": problem.descending,
                "VALUE_T": value_type,
                "VALUE_IN_T": None if first and problem.indices else value_type,
                "VALUE_OUT_T": "long" if last and problem.indices else value_type,
                "INDEX_T": c_type(index),
            },
            global_size=(round_up(problem.n, span) // span * wg_size * problem.rows,),
            local_size=(wg_size,),
            arguments=arguments,
            local_bytes=local_bytes,
        )

    @staticmethod
    def _tile_element(problem: SortProblem) -> int:
        """Return the local memory, in bytes, of an element of the tile, which is stored twice."""
        value = Elements(problem).value_dtype
        return 2 * (_widened(problem).dtype.itemsize + (0 if value is None else value.itemsize))


# Keys in half precision are sorted as float32, which every device can compare.


def _widened(problem: SortProblem) -> SortProblem:
    """Return the problem that kernels solve, with keys of a type that they can compare."""
    return replace(problem, dtype=SINGLE) if problem.dtype == HALF else problem


def _with_half_keys(problem: SortProblem, wide: Plan, device: Device) -> Plan:
    """Return the plan for keys in half precision, around the plan `wide` for float32."""
    shape = (problem.rows, problem.n)
    buffers = [Buffer("keys", "in", shape, HALF)]
    if not problem.indices:
        buffers.append(Buffer("sorted", "out", shape, HALF))
    buffers += [
        replace(buffer, name=WIDE[buffer.name], role="scratch") if buffer.name in WIDE else buffer
        for buffer in wide.buffers
    ]
    if not wide.launches:
        return Plan(tuple(buffers), ())
    launches = [_convert("widen_keys", "keys", problem, device)]
    launches += [launch.renamed(WIDE) for launch in wide.launches]
    if not problem.indices:
        launches.append(_convert("narrow_keys", "sorted", problem, device))
    return Plan(tuple(buffers), tuple(launches))


def _convert(kernel: str, keys: str, problem: SortProblem, device: Device) -> Launch:
    """Return the launch that converts the user's array `keys` to float32 or back."""
    source, target = (keys, WIDE[keys]) if kernel == "widen_keys" else (WIDE[keys], keys)
    wg_size = min(WG_SIZE, device.capabilities.max_work_group)
    count = problem.rows * problem.n
    arguments: dict[str, Argument] = {"source": source, "target": target, "count": np.uint64(count)}
    return item_launch(HALF_TEMPLATE, kernel, count, {"WG_SIZE": wg_size}, arguments)
