"""The first few keys of long rows: a sample says which keys may be among them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit, index_type, lacks_barriers, largest_power
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.select.slices import POWER, check_group, largest_group
from opencl_lab.ops.select.topk import UINT, element_of, given
from opencl_lab.ops.solver import Algorithm

TEMPLATE = "select/sample_select.cl.mako"
STRETCH = 1 << 7
"""Most keys that a sample stands for, in rows of up to `STRETCH` * `MOST_SAMPLES`."""
MOST_SAMPLES = 1 << 19
"""Most samples of a row: each is a read of its own, but half as many let twice as many keys by."""
ITEM_SAMPLES = 4
LEAST = 1 << 14
"""Fewest keys of a row: the samples are a part of it."""
BESTS = 1 << 10
"""Most best samples of a row, which one group sorts."""
ROOM = 1 << 12
"""Most keys that a group sorts together, and twice the most that are to be found."""
SORTING = 1 << 9
"""Most items of a group that sorts: a launch waits for it, and all items for each other."""
RANKED = 32
"""Candidates that a group ranks at a time."""
GROUPS = 32
"""Groups per compute unit that look for candidates, and at most that rank them: several times as
many as it runs at once."""
UNLIKELY = math.log(1e-8)
"""How probable it may be that there are too few candidates, or too many."""


def _tail(count: float, mean: float) -> float:
    """Return Chernoff's bound of how probable it is that so many come, or even fewer or more.

    It is a logarithm, and holds for sums of any independent events of which `mean` are expected.
    """
    return count * (1 + math.log(mean / count)) - mean


class SampleSelect(Algorithm[TopkProblem]):
    """Take all keys up to one of a sample, and rank these few."""

    name = "sample-select"
    templates = (TEMPLATE,)
    version = 2
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (128, 256, 512), "items in a group that looks for candidates"),
            Parameter("ITEM_KEYS", (4, 8, 16), "keys that an item reads together"),
        ),
        POWER,
    )

    def supports(self, problem: TopkProblem, device: Device) -> str | None:
        """Need a GPU, and few keys of long rows."""
        if device.kind == "cpu":
            return "it is for GPUs, as it sorts by many items"
        if problem.n < LEAST:
            return f"it is for rows of at least {LEAST} keys"
        if 2 * problem.k > room(problem, device):
            return f"it is for at most {room(problem, device) // 2} keys on this device"
        return lacks_barriers(device)

    def default_config(self, problem: TopkProblem, device: Device) -> Config:
        """Return what was the fastest on an H200."""
        return Config(WG_SIZE=largest_group(device), ITEM_KEYS=8)

    def plan(self, problem: TopkProblem, config: Config, device: Device) -> Plan:
        """Plan a launch that samples, one that finds candidates, and one that ranks these."""
        check_group(config, device)
        n, k, rows = problem.n, problem.k, problem.rows
        if not rows * k:
            return Plan(given(problem), ())
        wg_size, index = config.integer("WG_SIZE"), index_type(n)
        most = room(problem, device)
        samples = min(largest_power(2 * n // STRETCH), MOST_SAMPLES)
        most_bests = min(BESTS, most)
        sorting = largest_power(SORTING, most_bests, group_limit(device))
        groups = min(max(samples // (sorting * ITEM_SAMPLES), 1), most_bests)  # each has one
        share = max(groups * sorting // most_bests, 1)
        bests = groups * sorting // share
        number, capacity = _candidates(n, k, groups * sorting * ITEM_SAMPLES, bests)
        tiles = ceil_divide(n, wg_size * config.integer("ITEM_KEYS"))
        most_groups = max(GROUPS * device.compute_units // rows, 1)  # for each row
        slices = min(most_groups, tiles)
        params: dict[str, Any] = {
            "ELEMENT": element_of(problem),
            "WIDE": index is np.uint64,
            **config,
            "SORTING": sorting,
            "RANKED": min(RANKED, sorting),
            "SAMPLES": ITEM_SAMPLES,
            "ROOM": most,
            "PTX": device.capabilities.inline_ptx,
        }
        local = most * _local_bytes(problem) + 4 * sorting + 16
        ranking = min(ceil_divide(capacity, params["RANKED"]), most_groups)

        def launch(kernel: str, number: int, /, **arguments: Argument) -> Launch:
            items, space = (wg_size, 0) if kernel == "take" else (sorting, local)
            size = (rows * number * items,)
            return Launch(TEMPLATE, kernel, params, size, (items,), arguments, space)

        few: dict[str, Argument] = {"capacity": np.uint32(capacity)}
        guessed = {**named("keys", "bests", "arrived", "found"), "n": index(n)}
        guessed |= {"groups": np.uint32(groups), "share": np.uint32(share)}
        taken = {**named("keys", "bests", "found", "candidates"), "n": index(n)}
        taken |= {"slices": np.uint32(slices), "stride": np.uint32(bests), **few}
        ranked = {**named("keys", "found", "candidates", "values", "places"), "n": index(n)}
        launches = (
            launch("guess", groups, **guessed, limit=np.uint32(number)),
            launch("take", slices, **taken),
            launch("rank", ranking, **ranked, k=np.uint32(k), groups=np.uint32(ranking), **few),
        )
        buffers = (
            Buffer("bests", "scratch", (rows, bests), np.dtype(index)),
            Buffer("candidates", "scratch", (rows, capacity), np.dtype(index)),
            Buffer("found", "scratch", (rows,), UINT),
            Buffer("arrived", "zeros", (rows,), UINT),
        )
        return Plan((*given(problem), *buffers), launches)


def _local_bytes(problem: TopkProblem) -> int:
    """Return the bytes of a code and its place."""
    place: np.dtype[Any] = np.dtype(index_type(problem.n))
    return problem.dtype.itemsize + place.itemsize


def room(problem: TopkProblem, device: Device) -> int:
    """Return how many keys a group sorts together."""
    return largest_power(ROOM, device.capabilities.local_memory * 3 // 4 // _local_bytes(problem))


def _candidates(n: int, k: int, samples: int, bests: int) -> tuple[int, int]:
    """Return how many best samples are before the limit, and the most candidates to expect."""
    mean = k * samples / n  # samples among the first k
    number = min(math.ceil(mean), bests - 1)
    while number + 1 < bests and _tail(number + 1, mean) > UNLIKELY:
        number += 1
    most = number + 1
    while _tail(number + 1, most) > UNLIKELY:
        most += 1
    # Of the samples that a best one stands for, most are not among the first.
    share = 1 - (1 - min(most / bests, 0.9)) ** (bests / samples)
    return number, min(n, math.ceil(share * n))
