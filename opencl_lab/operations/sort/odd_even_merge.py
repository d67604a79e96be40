"""The algorithm `odd-even-merge`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.kernels import WORD_TYPES, c_type, index_type, lacks_type, largest_power, positive
from opencl_lab.operation import Algorithm
from opencl_lab.operations.sort.half_keys import widened, with_half_keys
from opencl_lab.operations.sort.problem import PARTIAL_KEYS, SortProblem
from opencl_lab.plan import Argument, Buffer, Launch, Plan, round_up
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["OddEvenMerge"]


def _span(config: Config) -> int:
    """Elements of a work-group in a merge pass."""
    return config.integer("WG_SIZE") * config.integer("WORK_PER_ITEM")


class OddEvenMerge(Algorithm[SortProblem]):
    """Merge sort in which every element finds its place by binary search."""

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
            Parameter("NARROW", (False, True), "bound the searches of a group first"),
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
                "NARROW is of no use where items merge (BLOCKED)",
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
        """Need double precision for float64 keys, and keys of which all bits count."""
        if problem.bits is not None:
            return PARTIAL_KEYS
        return lacks_type(device, problem.dtype)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return long runs an item on CPUs, short ones in large groups elsewhere."""
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
        """Plan one launch of `sort_tile`, then a `merge_pass` a doubling of the blocks.

        Keys of half precision are converted before and after.
        """
        wide = widened(problem)
        plan = self._plan(wide, config)
        return plan if wide is problem else with_half_keys(problem, plan, device)

    def _plan(self, problem: SortProblem, config: Config) -> Plan:
        shape = (problem.rows, problem.n)
        values = self._values(problem)
        buffers = [Buffer("keys", "in", shape, problem.dtype)]
        buffers.append(
            Buffer("sorted", "scratch" if problem.indices else "out", shape, problem.dtype)
        )
        if problem.value_bytes:
            buffers.append(Buffer("values", "in", shape, values.dtype))
        if values.present:
            buffers.append(Buffer("sorted_values", "out", shape, values.out_dtype))
        if problem.n * problem.rows == 0:
            return Plan(tuple(buffers), ())

        passes = self._passes(problem.n, config)
        if len(passes) > 1:
            buffers.append(Buffer("spare", "scratch", shape, problem.dtype))
            if values.present:
                buffers.append(Buffer("spare_values", "scratch", shape, values.dtype))
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
        """Return the width of the sorted blocks before each launch, 0 for `sort_tile`."""
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
        values = self._values(problem)
        index = index_type(problem.n)
        arguments: dict[str, Argument] = {"source": source, "target": target}
        if values.present:
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
                "VALUE_T": values.type,
                "VALUE_IN_T": None if first and problem.indices else values.type,
                "VALUE_OUT_T": "long" if last and problem.indices else values.type,
                "INDEX_T": c_type(index),
            },
            global_size=(round_up(problem.n, span) // span * wg_size * problem.rows,),
            local_size=(wg_size,),
            arguments=arguments,
            local_bytes=local_bytes,
        )

    @staticmethod
    def _tile_element(problem: SortProblem) -> int:
        """Local memory of one element of the tile: both halves, key and value."""
        value_bytes = problem.value_bytes
        if problem.indices:
            value_bytes = 4 if problem.n < 2**32 else 8
        return 2 * (widened(problem).dtype.itemsize + value_bytes)

    @staticmethod
    def _values(problem: SortProblem) -> _Values:
        if problem.indices:
            # Positions travel in the smallest type; the last launch widens them.
            dtype = np.dtype(np.uint32 if problem.n < 2**32 else np.uint64)
            return _Values(WORD_TYPES[dtype.itemsize], dtype, np.dtype(np.int64))
        if problem.value_bytes:
            dtype = np.dtype(f"V{problem.value_bytes}")
            return _Values(WORD_TYPES[problem.value_bytes], dtype, dtype)
        return _Values(None, np.dtype("V1"), np.dtype("V1"))


@dataclass(frozen=True)
class _Values:
    """What travels with the keys: its type in OpenCL C, on the way and at the end."""

    type: str | None
    dtype: np.dtype[Any]
    out_dtype: np.dtype[Any]

    @property
    def present(self) -> bool:
        return self.type is not None
