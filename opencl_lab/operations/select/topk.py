"""The first k keys of rows, by radix select."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.operation import Algorithm, Solver
from opencl_lab.operations.select.parts import (
    PARAMETERS,
    POWER,
    check_group,
    index_of,
    largest_group,
    parts_of,
)
from opencl_lab.operations.select.problem import TopkProblem
from opencl_lab.operations.sort.problem import KEY_TYPES
from opencl_lab.plan import Argument, Buffer, Launch, Plan
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["TOPK", "RadixSelect"]

TEMPLATE = "select/radix_select.cl.mako"
UINT, LONG = np.dtype(np.uint32), np.dtype(np.int64)
WHOLE = 1 << 14
"""Keys of a row that a group reads alone: from a cache, after the first time."""
WHOLE_OF_MANY = 1 << 17
"""The same where there are rows for all units."""
SHORT = 1 << 12
"""Keys of a row for which counts of many values would take longer than another pass."""
FEW_SHARE = 4
"""A row's keys are written down as soon as no more than one of so many is left."""


class RadixSelect(Algorithm[TopkProblem]):
    """Radix select in one launch, or in one a digit and one more where rows are cut into parts.

    What it gives is in the order of the row, and to be sorted yet.
    """

    name = "radix-select"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (*PARAMETERS, Parameter("DIGIT_BITS", (4, 6, 8, 11), "bits of a digit")),
        (
            *POWER,
            Constraint(lambda c: 1 <= c.integer("DIGIT_BITS") <= 11, "DIGIT_BITS must be 1 to 11"),
        ),
    )

    def supports(self, problem: TopkProblem, device: Device) -> str | None:
        """Need barriers in loops on devices that are no CPUs."""
        if device.kind != "cpu" and not device.capabilities.barriers_in_loops:
            return "barriers in loops do not work on the device"
        return None

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return groups of one item and long digits for CPUs, unless rows are short."""
        if device.kind == "cpu":
            return Config(WG_SIZE=1, ITEM_KEYS=64, DIGIT_BITS=11 if problem.n > SHORT else 8)
        return Config(WG_SIZE=largest_group(device), ITEM_KEYS=4, DIGIT_BITS=8)

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan a launch for rows that a group reads alone, else the passes."""
        check_group(config, device)
        n, k, rows = problem.n, problem.k, problem.rows
        buffers = [
            Buffer("keys", "in", (rows, n), problem.dtype),
            Buffer("values", "out", (rows, k), problem.dtype),
            Buffer("places", "out", (rows, k), LONG),
        ]
        if not rows * k:
            return Plan(tuple(buffers), ())
        whole = n <= WHOLE or (n <= WHOLE_OF_MANY and rows >= 2 * device.compute_units)
        wide, index = index_of(n)
        wg_size, bits = config.integer("WG_SIZE"), config.integer("DIGIT_BITS")
        tile, radix = wg_size * config.integer("ITEM_KEYS"), 1 << bits
        params: dict[str, Any] = {
            "KEY_T": KEY_TYPES[problem.dtype.name],
            "DESCENDING": problem.largest,
            "ROWS": "whole" if whole else "cut",
            "WIDE": wide,
            **config,
            "PTX": device.capabilities.inline_ptx,
        }
        sums = 4 * (32 if params["PTX"] else 2 * wg_size)
        local = 4 * radix * (2 if wg_size == 1 else 1) + sums + 16 * wg_size + 64

        def launch(kernel: str, parts: int, arguments: dict[str, Argument]) -> Launch:
            groups = (rows * parts * wg_size,)
            return Launch(TEMPLATE, kernel, params, groups, (wg_size,), arguments, local)

        keys: dict[str, Argument] = {"keys": "keys"}
        results: dict[str, Argument] = {"values": "values", "places": "places"}
        sizes: dict[str, Argument] = {"n": index(n), "k": index(k)}
        if whole:
            return Plan(tuple(buffers), (launch("select_rows", 1, keys | results | sizes),))
        parts = parts_of(n, rows, tile, device)
        digits = -(-8 * problem.dtype.itemsize // bits)
        capacity = n // FEW_SHARE
        words = digits * radix * (2 if wide else 1)
        buffers += [
            Buffer("few_keys", "scratch", (rows, capacity), problem.dtype),
            Buffer("few_places", "scratch", (rows, capacity), LONG),
            Buffer("state", "scratch", (rows, digits, 4), np.dtype(np.uint64)),
            Buffer("table", "scratch", (rows, 2, radix + 1, parts), UINT),
            Buffer("histogram", "zeros", (rows, words), UINT),
            Buffer("leaving", "zeros", (rows,), UINT),
        ]
        between: dict[str, Argument] = {
            name: name for name in ("few_keys", "few_places", "state", "table")
        }
        where: dict[str, Argument] = {
            **sizes,
            "parts": np.uint32(parts),
            "capacity": index(capacity),
        }
        counts: dict[str, Argument] = {"histogram": "histogram"}
        launches = [
            launch(
                "narrow" if number else "narrow_first",
                parts,
                keys | between | counts | where | {"pass": np.uint32(number)},
            )
            for number in range(digits)
        ]
        counts |= {"leaving": "leaving"}
        where |= {"pass": np.uint32(digits)}
        launches.append(launch("gather", parts, keys | between | results | counts | where))
        return Plan(tuple(buffers), tuple(launches))


class Topk(Solver[TopkProblem]):
    """The first k keys of rows, unsorted."""

    name = "topk"
    algorithms = (RadixSelect(),)


TOPK = Topk()
