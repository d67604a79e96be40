"""Algorithms that sort, with further launches before or after the sort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import index_type, is_one_thread, lacks_groups
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, named
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.select import topk
from opencl_lab.ops.select.problem import TopkProblem, UniqueProblem
from opencl_lab.ops.select.slices import PARAMETERS, POWER, check_group, largest_group, slices_of
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import gather
from opencl_lab.ops.sort.elements import SortElement
from opencl_lab.ops.sort.gather import GATHER, GatherProblem
from opencl_lab.ops.sort.solver import SORT_SOLVER

HEADS_TEMPLATE = "select/unique.cl.mako"


def _sort_templates() -> tuple[str, ...]:
    """Return the templates of a sort by whichever algorithm is the fastest."""
    sorts = (sort.on(kind) for sort in SORT_SOLVER.algorithms for kind in ("cpu", "gpu"))
    return tuple(dict.fromkeys(name for sort in sorts for name in sort.templates))


def _followed(
    first: Plan,
    second: Plan,
    handed: Mapping[str, str],
    results: Mapping[str, tuple[str, np.dtype[Any]]],
) -> Plan:
    """Return one plan with the launches of `first`, then those of `second`.

    The inputs of `first` are those of the new plan. `handed` maps inputs of `second` to the buffers
    of `first` that they are, and `results` maps outputs of `second` to their names and types in the
    new plan.
    """
    inner = {b.name: b.name if b.role == "in" else f"first_{b.name}" for b in first.buffers}
    outer = {b.name: f"then_{b.name}" for b in second.buffers}
    outer |= {name: result for name, (result, _) in results.items()}
    outer |= {name: inner[given] for name, given in handed.items()}
    types = {name: dtype for name, (_, dtype) in results.items()}
    buffers = [
        replace(b, name=inner[b.name], role="scratch" if b.role == "out" else b.role)
        for b in first.buffers
    ]
    buffers += [
        replace(b, name=outer[b.name], dtype=types.get(b.name, b.dtype))
        for b in second.buffers
        if b.name not in handed
    ]
    launches = [launch.renamed(inner) for launch in first.launches]
    launches += [launch.renamed(outer) for launch in second.launches]
    return Plan(tuple(buffers), tuple(launches))


class BySort(Algorithm[TopkProblem]):
    """Sort positions by their keys, and take the first `k`."""

    name = "sort"
    space = SearchSpace(())

    def __init__(self) -> None:
        vars(self).update(templates=(*_sort_templates(), gather.TEMPLATE))

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return an empty configuration: the sort has its own."""
        return Config()

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the sort and one more."""
        n, k, rows, dtype = problem.n, problem.k, problem.rows, problem.dtype
        first = GatherProblem(n, rows, dtype.itemsize, k, places=True)
        sorting = SORT_SOLVER.plan(problem.order, device)
        if not rows * k:
            sorting = replace(sorting, launches=())
        return _followed(
            sorting,
            GATHER.plan(first, device),
            {"source": "keys", "order": "sorted_values"},
            {"target": ("values", dtype), "places": ("places", np.dtype(np.int64))},
        )


class RadixSelect(topk.UnsortedSelect):
    """Select the first `k` keys, then sort them with their positions."""

    def __init__(self) -> None:
        vars(self).update(templates=(topk.TEMPLATE, *_sort_templates()))

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the selection, and those of the sort unless `k` is 1."""
        selected = super().plan(problem, config, device)
        k, rows = problem.k, problem.rows
        if k < 2 or not rows:
            return selected
        return _followed(
            selected,
            SORT_SOLVER.plan(problem.selected, device),
            {"keys": "values", "values": "places"},
            {"sorted": ("values", problem.dtype), "sorted_values": ("places", topk.LONG)},
        )


class Heads(Algorithm[UniqueProblem]):
    """Count, slice by slice, the sorted keys that differ from the key before; then write them."""

    name = "heads"
    templates = (HEADS_TEMPLATE,)
    space = SearchSpace(PARAMETERS, POWER)

    def supports(self, problem: UniqueProblem, device: Device) -> str | None:
        """Need barriers in loops on devices other than CPUs."""
        return lacks_groups(device)

    def default_config(self, problem: UniqueProblem, device: Device) -> Config:
        """Return groups of one item for CPUs."""
        wg_size = largest_group(device)
        return Config(WG_SIZE=wg_size, ITEM_KEYS=64 if wg_size == 1 else 4)

    def plan(self, problem: UniqueProblem, config: Config, device: Device) -> Plan:
        """Plan a launch that counts, unless there is one slice, one that writes, one of lengths."""
        check_group(config, device)
        n = problem.n
        buffers = [
            Buffer("keys", "in", (n,), problem.dtype),
            Buffer("values", "out", (n,), problem.dtype),
            Buffer("found", "out", (1,), topk.LONG),
        ]
        places = ["first_places"] * problem.first + ["inverse"] * problem.inverse
        order = ["order"] * problem.placed
        buffers += [Buffer(name, "in", (n,), topk.LONG) for name in order]
        buffers += [Buffer(name, "out", (n,), topk.LONG) for name in places]
        if problem.counts:
            buffers.append(Buffer("counts", "out", (n,), topk.LONG))
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
            **config,
            "PTX": device.capabilities.inline_ptx,
        }
        wg_size = config.integer("WG_SIZE")
        tile = wg_size * config.integer("ITEM_KEYS")
        slices = 1 if is_one_thread(device) else slices_of(n, 1, tile, device)
        local = 4 * max(2 * wg_size, 32) + 16 * wg_size + 8
        buffers.append(Buffer("table", "scratch", (slices,), topk.UINT))
        if problem.counts:
            buffers.append(Buffer("starts", "scratch", (n,), np.dtype(index)))

        def launch(kernel: str, names: tuple[str, ...], **sizes: Argument) -> Launch:
            arguments, groups = {**named(*names), **sizes}, (slices * wg_size,)
            return Launch(HEADS_TEMPLATE, kernel, params, groups, (wg_size,), arguments, local)

        count, cut = index(n), np.uint32(slices)
        written = ("values", *places, *(["starts"] * problem.counts), "found")
        launches = []
        if slices > 1:
            launches.append(launch("count_heads", ("keys", "table"), n=count, slices=cut))
        launches.append(
            launch("write_heads", ("keys", "table", *order, *written), n=count, slices=cut)
        )
        if problem.counts:
            launches.append(launch("write_counts", ("starts", "found", "counts"), n=count))
        return Plan(tuple(buffers), tuple(launches))


HEADS = Heads()


class UniqueBySort(Algorithm[UniqueProblem]):
    """Sort, then take the first key of each run of equal ones."""

    name = "sort"
    space = SearchSpace(())

    def __init__(self) -> None:
        vars(self).update(templates=(*_sort_templates(), gather.TEMPLATE, *HEADS.templates))

    def supports(self, problem: UniqueProblem, device: Device) -> str | None:
        """Need what the launches after the sort need."""
        return HEADS.supports(problem, device)

    def default_config(self, problem: UniqueProblem, device: Device) -> Config:
        """Return an empty configuration: the sort has its own."""
        return Config()

    def plan(self, problem: UniqueProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the sort, and one to four more.

        Where positions of keys are wanted, these are sorted, and the keys gathered afterwards.
        """
        found = HEADS.plan(problem, HEADS.default_config(problem, device), device)
        outputs = {buffer.name: (buffer.name, buffer.dtype) for buffer in found.with_role("out")}
        sorting = SORT_SOLVER.plan(problem.sorting, device)
        handed = {"keys": "sorted"}
        if problem.placed:
            gathering = GatherProblem(problem.n, 1, problem.dtype.itemsize, problem.n)
            sorting = _followed(
                sorting,
                GATHER.plan(gathering, device),
                {"source": "keys", "order": "sorted_values"},
                {"target": ("sorted", problem.dtype)},
            )
            handed["order"] = "first_sorted_values"
        plan = _followed(sorting, found, handed, outputs)
        # The sort has one row of keys; here the array has one dimension.
        flat = (replace(b, shape=(problem.n,)) if b.role == "in" else b for b in plan.buffers)
        return replace(plan, buffers=tuple(flat))
