"""Binary search: where values would be inserted among sorted keys."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import index_type, item_launch, largest_power, not_negative, positive
from opencl_lab.core.plan import Argument, Buffer, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.estimates import on_threads
from opencl_lab.ops.select.problem import SearchProblem
from opencl_lab.ops.select.slices import largest_group
from opencl_lab.ops.solver import Algorithm, Registry, Solver
from opencl_lab.ops.sort.elements import SortElement

TEMPLATE = "select/search.cl.mako"
LONG = np.dtype(np.int64)
MANY = 1024
"""Values from which an item of a CPU makes many searches at once; the last item may have fewer."""
MANY_ALONE = 32
"""The same for one thread."""
MOST = 256
"""Most values of an item: each is a variable of its own in the kernel."""
BUSY = 2048
"""Items that a compute unit of a GPU runs at once."""
SPREAD_BYTES, SPREAD_VALUES = 1 << 25, 4
"""Bytes of keys from which entries pay, as looks at keys are far apart, if there is a value for so
many keys, as all entries are collected."""
LOOK_NS = 0.4, 0.6
"""A look of a search at a key of up to 4 bytes, and of 8."""
SORTER_LOOK_NS = 0.8
"""What a look takes longer with a sorter."""


class BinarySearch(Algorithm[SearchProblem]):
    """A binary search for each value, several at once."""

    name = "binary-search"
    templates = (TEMPLATE,)
    version = 2
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (1, 64, 128, 256, 512, 1024), "items in a group; CPUs: 1"),
            Parameter("VALUES", (1, 2, 4, 8, 16, 64), "values that an item searches for at once"),
            Parameter("TOP", (0, 1024, 2048, 4096, 8192), "keys in local memory, which many share"),
            Parameter("STEP", (0, 8, 16, 32), "keys for each one in an array of entries; 0: none"),
        ),
        (
            positive("WG_SIZE"),
            positive("VALUES"),
            not_negative("TOP"),
            not_negative("STEP"),
            Constraint(lambda c: c.integer("TOP") > 0 or not c.integer("STEP"), "STEP needs TOP"),
            Constraint(lambda c: c.integer("VALUES") <= MOST, f"VALUES must be at most {MOST}"),
        ),
    )

    def default_config(self, problem: SearchProblem, device: Device) -> Config:
        """Return groups of one item for CPUs, and enough items for all units of other devices.

        With `TOP` an H200 takes 65 and 1,800 us for 10^6 and 2^24 float32 among as many, not 69 and
        2,180, and with `STEP` 1,600 for 2^24.
        """
        wg_size = largest_group(device)
        if wg_size == 1:
            many = MANY if device.compute_units > 1 else MANY_ALONE
            return Config(WG_SIZE=1, VALUES=64 if problem.m >= many else 16, TOP=0, STEP=0)
        busy = BUSY * device.compute_units
        if device.capabilities.inline_ptx and min(problem.n, problem.m) >= 3 * busy:
            size = problem.dtype.itemsize
            if problem.n * size >= SPREAD_BYTES and SPREAD_VALUES * problem.m >= problem.n:
                local = max(device.capabilities.local_memory, device.capabilities.declared_memory)
                top = largest_power(8192, local * 3 // 4 // size)
                return Config(WG_SIZE=1024, VALUES=1, TOP=top, STEP=16)
            return Config(WG_SIZE=1024, VALUES=1, TOP=4096, STEP=0)
        return Config(WG_SIZE=wg_size, VALUES=4 if problem.m >= 4 * busy else 1, TOP=0, STEP=0)

    def plan(self, problem: SearchProblem, config: Config, device: Device) -> Plan:
        """Plan one launch that searches, and with `STEP` one before it that collects entries."""
        sorter = ["sorter"] * problem.sorter
        buffers: tuple[Buffer, ...] = (
            Buffer("keys", "in", (problem.n,), problem.dtype),
            Buffer("values", "in", (problem.m,), problem.dtype),
            *(Buffer(name, "in", (problem.n,), LONG) for name in sorter),
            Buffer("places", "out", (problem.m,), LONG),
        )
        if not problem.m:
            return Plan(buffers, ())
        index, top = index_type(problem.n), config.integer("TOP") if problem.n else 0
        step = config.integer("STEP") if problem.n >= config.integer("STEP") else 0
        entries = ["entries"] * (step > 0)
        params = {
            "ELEMENT": SortElement.of(problem.dtype),
            "RIGHT": problem.right,
            "SORTER": problem.sorter,
            "WIDE": index is np.uint64,
            **config,
            "TOP": top,
            "STEP": step,
        }
        arguments: dict[str, Argument] = {
            **named("keys", "values", *sorter, *entries, "places"),
            "n": index(problem.n),
        }
        items = ceil_divide(problem.m, config.integer("VALUES"))
        launches = []
        length = problem.n // step if step else problem.n
        if step:
            buffers += (Buffer("entries", "scratch", (length,), problem.dtype),)
            collected: dict[str, Argument] = {
                **named("keys", *sorter, *entries),
                "n": index(problem.n),
            }
            launches.append(item_launch(TEMPLATE, "collect", length, params, collected))
        if top:
            arguments["block"] = index(ceil_divide(length, top))
            items = min(items, BUSY * device.compute_units)
        arguments["m"] = np.uint64(problem.m)
        launch = item_launch(TEMPLATE, "search", items, params, arguments)
        launches.append(replace(launch, local_bytes=top * problem.dtype.itemsize))
        return Plan(buffers, tuple(launches))


class SearchSolver(Solver[SearchProblem]):
    """Where values would be inserted among sorted keys."""

    name = "searchsorted"
    registry: ClassVar[Registry] = {"binary-search": BinarySearch()}

    def serial_us(self, problem: SearchProblem) -> float:
        """Return the estimated microseconds on one thread."""
        look = LOOK_NS[problem.dtype.itemsize == 8] + SORTER_LOOK_NS * problem.sorter
        return 1e-3 * look * problem.m * problem.n.bit_length()

    def parallel_us(self, problem: SearchProblem, units: int) -> float:
        """Return the estimated microseconds on `units` threads."""
        return on_threads(self.serial_us(problem), units)


SEARCH = SearchSolver()
