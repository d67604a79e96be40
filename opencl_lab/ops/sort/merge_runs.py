"""Merging sorted runs of any lengths: on CPUs here, on GPUs by `merge_runs_gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig, InvalidProblem, LaunchError
from opencl_lab.core.kernels import WORD_TYPES, c_type, index_type, power_of_two
from opencl_lab.core.plan import Argument, Buffer, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm, Registry, Solver
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.merge_runs_gpu import MergeRunsGpu
from opencl_lab.ops.sort.phases import phased_plan
from opencl_lab.ops.sort.problem import RunsProblem
from opencl_lab.runtime.arrays import is_device_array
from opencl_lab.runtime.exchange import to_device
from opencl_lab.runtime.session import queue_or_default

TEMPLATE = "sort/merge_runs_cpu.cl.mako"

MOST_RUNS = 8
"""Runs up to which three levels of merges take a CPU less time than a sort."""
MAX_POLLS = 1 << 20


def _moved_as(elements: Elements) -> tuple[str, str | None, int]:
    """Return how elements are stored meanwhile, the C type of their values, and their bytes."""
    if elements.value_type:
        return "pairs", elements.value_type, elements.nbytes
    item = elements.problem.dtype.itemsize
    if elements.problem.dtype.kind == "f":  # codes take longer to compute than to move
        return "codes", WORD_TYPES[item], 2 * item
    return "keys", None, item


class MergePathRuns(Algorithm[RunsProblem]):
    """Merge pairs of runs, then of those, and so on; every merge is divided into stretches."""

    name = "merge-path"
    templates = (TEMPLATE,)
    space = SearchSpace(
        (Parameter("STRETCH", (4096, 8192, 16384, 32768), "elements that a task makes"),),
        (power_of_two("STRETCH"),),
    )

    def on(self, kind: str) -> Algorithm[RunsProblem]:
        """Return this for CPUs, as it needs caches and items that are threads; else another."""
        return self if kind == "cpu" else GROUPS

    def default_config(self, problem: RunsProblem, device: Device) -> Config:
        """Return stretches that fit a cache."""
        return Config(STRETCH=8192)

    def plan(self, problem: RunsProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, or one per phase where items do not see what others have written."""
        elements, long = Elements(problem), np.dtype(np.int64)
        buffers = [*elements.buffers, Buffer("ends", "in", (problem.runs,), long)]
        n, stretch = problem.n, config.integer("STRETCH")
        if not n:
            return Plan(tuple(buffers), ())
        moved, value_type, nbytes = _moved_as(elements)
        merges = (problem.runs - 1).bit_length()
        items = min(device.compute_units, ceil_divide(n, stretch))
        element = np.dtype(f"V{nbytes}")
        scratch = {"first": n if merges > 1 or value_type else 1}
        if value_type:
            scratch |= {"second": n if merges > 1 else 1, "spares": items * stretch}
        buffers += [Buffer(name, "scratch", (size,), element) for name, size in scratch.items()]
        arguments: dict[str, Argument] = {
            **elements.arguments,
            **named("ends", *scratch),
            "runs": np.uint32(problem.runs),
        }
        params: dict[str, Any] = {
            "ELEMENT": replace(elements.element, value=value_type),
            "MOVED": moved,
            "INDEX_T": c_type(index_type(n)),
            "STRETCH": stretch,
            "MAX_POLLS": MAX_POLLS,
        }
        return phased_plan(
            problem, device, buffers, arguments, phases=merges + bool(value_type), items=items,
            template=TEMPLATE, kernel="merge_runs", params=params,
        )  # fmt: skip


GROUPS = MergeRunsGpu()


class Merge(Solver[RunsProblem]):
    """Merging of sorted runs."""

    name = "merge"
    registry: ClassVar[Registry] = {"merge-path": MergePathRuns()}
    tunable = False


MERGE = Merge()


def merges(device: Device, lengths: Sequence[int], *arrays: Any) -> bool:
    """Return whether to merge runs of keys, with values if there are any, beats sorting all."""
    lengths = [length for length in lengths if length]
    if len(lengths) < 2:
        return True
    with suppress(InvalidProblem, InvalidConfig, LaunchError):  # of values, or of the device
        if len(lengths) <= MOST_RUNS:
            MERGE.choose(_problem(arrays, lengths), device)
            return True
    return False


def _problem(
    arrays: Sequence[Any], lengths: Sequence[int], descending: bool = False
) -> RunsProblem:
    keys, *values = arrays
    width = values[0].dtype.itemsize if values else 0
    return RunsProblem(
        keys.size, keys.dtype, descending=descending, value_bytes=width, runs=len(lengths)
    )


def merge_runs(
    arrays: Sequence[Any], lengths: Sequence[int], *, descending: bool = False, queue: Any = None
) -> list[Any]:
    """Return keys, and values if there are any, that lie in sorted runs, merged stably.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray or pyopencl.array.Array
        Keys, one-dimensional and of a dtype of `opencl_lab.sort`, and perhaps values.
    lengths : sequence of int
        Of the runs.
    descending : bool
    queue : pyopencl.CommandQueue, optional
        Where to merge arrays of the host; those of a device are merged on their own queue.

    Raises
    ------
    InvalidConfig
        If the device merges no runs, see `merges`.
    """
    lengths = [length for length in lengths if length]
    if len(lengths) < 2:
        return [array.copy() for array in arrays]
    keys, *values = arrays
    on_device = is_device_array(keys)
    queue = keys.queue if on_device else queue_or_default(queue)
    problem = _problem(arrays, lengths, descending)
    ends = np.cumsum(lengths, dtype=np.int64)
    given = {"keys": keys, "ends": to_device(ends, queue=queue) if on_device else ends}
    given |= {"values": values[0]} if values else {}
    made = MERGE.run(problem, given, queue=queue).outputs
    found = [made["sorted"].reshape(-1)]
    if values:
        found.append(made["sorted_values"].reshape(-1).view(values[0].dtype))
    return found
