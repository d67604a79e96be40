"""The algorithm `odd-even-merge`."""

from __future__ import annotations

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    c_type,
    index_type,
    lacks_type,
    largest_power,
    positive,
)
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import PARTIAL_KEYS, SortProblem


class OddEvenMerge(Algorithm[SortProblem]):
    """Merge sort in which each item finds what it merges by binary search."""

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
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need keys that the device compares; sort by all bits of a key only."""
        if problem.bits is not None:
            return PARTIAL_KEYS
        if problem.dtype == np.float16:
            return "few devices compare half precision"
        return lacks_type(device, problem.dtype)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return long runs per item for CPUs, short ones in large groups for other devices."""
        if device.kind == "cpu":
            config = Config(WG_SIZE=1, TILE=4096, WORK_PER_ITEM=4096)
        else:
            config = Config(WG_SIZE=512, TILE=2048, WORK_PER_ITEM=4)
        wg_size = largest_power(config.integer("WG_SIZE"), device.capabilities.max_work_group)
        tile = config.integer("TILE")
        while tile * self._tile_element(problem) > device.capabilities.local_memory:
            tile //= 2
        if tile < wg_size or (wg_size > 1 and not device.capabilities.barriers_in_loops):
            tile = 0
        return config.replace(WG_SIZE=wg_size, TILE=tile)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch of `sort_tile`, then a `merge_pass` per doubling of the sorted blocks."""
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
        elements, index = Elements(problem), index_type(problem.n)
        arguments: dict[str, Argument] = {"source": source, "target": target}
        if elements.value_type:
            if not (first and problem.indices):
                arguments["source_values"] = "values" if first else f"{source}_values"
            arguments["target_values"] = f"{target}_values"
        arguments["n"] = index(problem.n)
        wg_size, tile = config.integer("WG_SIZE"), config.integer("TILE")
        if width == 0:
            span, local_bytes = tile, tile * self._tile_element(problem)
        else:
            arguments["width"] = index(width)
            span, local_bytes = wg_size * config.integer("WORK_PER_ITEM"), 0
        return Launch(
            template=self.templates[0],
            kernel="merge_pass" if width else "sort_tile",
            params={
                **config,
                "ELEMENT": elements.element,
                "POSITIONS_IN": first and problem.indices,
                "INDICES_OUT": last and problem.indices,
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
        return 2 * (problem.dtype.itemsize + (0 if value is None else value.itemsize))
