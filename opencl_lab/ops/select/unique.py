"""Distinct keys: the heads of the runs of equal keys in a sorted array."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import index_type, is_one_thread, lacks_groups
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, named
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.select.problem import UniqueProblem
from opencl_lab.ops.select.slices import PARAMETERS, POWER, check_group, largest_group, slices_of
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import SortElement

TEMPLATE = "select/unique.cl.mako"
SERIAL_TEMPLATE = "select/heads_serial.cl.mako"
LONG = np.dtype(np.int64)


class Heads(Algorithm[UniqueProblem]):
    """Count, slice by slice, the sorted keys that differ from the key before; then write them."""

    name = "heads"
    templates = (TEMPLATE, SERIAL_TEMPLATE)
    space = SearchSpace(PARAMETERS, POWER)

    def supports(self, problem: UniqueProblem, device: Device) -> str | None:
        """Need barriers in loops on devices other than CPUs."""
        return lacks_groups(device)

    def default_config(self, problem: UniqueProblem, device: Device) -> Config:
        """Return groups of one item for CPUs."""
        wg_size = largest_group(device)
        return Config(WG_SIZE=wg_size, ITEM_KEYS=64 if wg_size == 1 else 4)

    def plan(self, problem: UniqueProblem, config: Config, device: Device) -> Plan:
        """Plan two launches, and a third one for counts; for one thread, one for all."""
        check_group(config, device)
        n = problem.n
        buffers = [
            Buffer("keys", "in", (n,), problem.dtype),
            Buffer("values", "out", (n,), problem.dtype),
            Buffer("found", "out", (1,), LONG),
        ]
        places = ["first_places"] * problem.first + ["inverse"] * problem.inverse
        order = ["order"] * problem.placed
        buffers += [Buffer(name, "in", (n,), LONG) for name in order]
        buffers += [Buffer(name, "out", (n,), LONG) for name in places]
        if problem.counts:
            buffers.append(Buffer("counts", "out", (n,), LONG))
        if not n:
            return Plan(tuple(buffers), ())
        index = index_type(n)
        params: dict[str, Any] = {
            "ELEMENT": SortElement.of(problem.dtype),
            "WIDE": index is np.uint64,
            "COUNTS": problem.counts,
            "FIRST": problem.first,
            "INVERSE": problem.inverse,
            "EQUAL_NAN": problem.equal_nan,
        }
        if is_one_thread(device):
            counts = ["counts"] * problem.counts
            passed = named("keys", *order, "values", *places, *counts, "found") | {"n": index(n)}
            one = Launch(SERIAL_TEMPLATE, "heads_serial", params, (1,), (1,), passed)
            return Plan(tuple(buffers), (one,))
        params |= {**config, "PTX": device.capabilities.inline_ptx}
        wg_size = config.integer("WG_SIZE")
        slices = slices_of(n, 1, wg_size * config.integer("ITEM_KEYS"), device)
        local = 4 * max(2 * wg_size, 32) + 16 * wg_size + 8
        buffers.append(Buffer("table", "scratch", (slices,), np.dtype(np.uint32)))
        if problem.counts:
            buffers.append(Buffer("starts", "scratch", (n,), np.dtype(index)))

        def launch(kernel: str, names: tuple[str, ...], **sizes: Argument) -> Launch:
            arguments, groups = {**named(*names), **sizes}, (slices * wg_size,)
            return Launch(TEMPLATE, kernel, params, groups, (wg_size,), arguments, local)

        count, cut = index(n), np.uint32(slices)
        written = ("values", *places, *(["starts"] * problem.counts), "found")
        launches = [
            launch("count_heads", ("keys", "table"), n=count, slices=cut),
            launch("write_heads", ("keys", "table", *order, *written), n=count, slices=cut),
        ]
        if problem.counts:
            launches.append(launch("write_counts", ("starts", "found", "counts"), n=count))
        return Plan(tuple(buffers), tuple(launches))


HEADS = Heads()
