"""Merging sorted runs of any lengths on GPUs, by the kernel that also merges runs of tiles."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_groups
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.merge_path import TEMPLATE, MergePath, Merges
from opencl_lab.ops.sort.problem import RunsProblem


class MergeRunsGpu(Algorithm[RunsProblem]):
    """Merge pairs of runs, then of those, and so on; groups make tiles of each result."""

    name = "merge-path"
    templates = (TEMPLATE,)
    space = MergePath.space

    def supports(self, problem: RunsProblem, device: Device) -> str | None:
        """Need groups with barriers in loops."""
        return lacks_groups(device)

    def default_config(self, problem: RunsProblem, device: Device) -> Config:
        """Return that of the sort."""
        return MergePath().default_config(problem, device)

    def plan(self, problem: RunsProblem, config: Config, device: Device) -> Plan:
        """Plan one launch for each doubling of how many runs are in one."""
        made = Merges(Elements(problem), config, device, problem.runs)
        return made.plan() if problem.n else Plan(tuple(made.buffers.values()), ())
