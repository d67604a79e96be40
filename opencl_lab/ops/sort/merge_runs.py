"""Merging sorted runs of any lengths on CPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import WORD_TYPES, c_type, index_type, power_of_two
from opencl_lab.core.plan import Argument, Buffer, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm, Registry, Solver
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.phases import phased_plan
from opencl_lab.ops.sort.problem import SortProblem

TEMPLATE = "sort/merge_runs_cpu.cl.mako"

MOST_RUNS = 8
"""Runs up to which three levels of merges take a CPU less time than a sort."""
MAX_POLLS = 1 << 20


@dataclass(frozen=True)
class RunsProblem(SortProblem):
    """Merge the sorted runs that make a row of `n` keys; equal keys are taken run by run."""

    runs: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runs < 2 or self.rows != 1 or self.indices or self.bits is not None:
            raise InvalidProblem("at least two runs of one row are merged, by whole keys")


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

    def supports(self, problem: RunsProblem, device: Device) -> str | None:
        """Need caches, and items that are threads."""
        return None if device.kind == "cpu" else "only CPUs merge runs; others sort them"

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


class Merge(Solver[RunsProblem]):
    """Merging of sorted runs."""

    name = "merge"
    registry: ClassVar[Registry] = {"merge-path": MergePathRuns()}
    tunable = False


MERGE = Merge()
