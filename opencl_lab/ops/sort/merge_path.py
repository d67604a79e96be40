"""The algorithm `merge-path`."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_groups, positive
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import merge_cpu, merge_gpu
from opencl_lab.ops.sort.problem import PARTIAL_KEYS, SortProblem

SLOTS = 1 << 16
"""Most elements of a tile: positions in it have 16 bits."""


def _for_cpu(config: Config) -> bool:
    return config["FORM"] == "cpu"


def _power(number: int) -> bool:
    """Return whether a number is a power of two."""
    return number > 0 and not number & number - 1


class MergePath(Algorithm[SortProblem]):
    """Stable merge sort whose merges are divided into equal pieces of the result (merge path).

    It only compares keys. The form ``cpu`` is for CPUs and has no barriers; ``gpu`` sorts and
    merges tiles in registers and local memory.
    """

    name = "merge-path"
    templates = (merge_cpu.TEMPLATE, merge_gpu.TEMPLATE)
    space = SearchSpace(
        (
            Parameter("FORM", ("cpu", "gpu"), "cpu: single items merge; gpu: work-groups do"),
            Parameter("WG_SIZE", (1, 32, 64, 128, 256, 512), "items in a group; cpu: 1"),
            Parameter("ITEM_KEYS", (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 23), "gpu: keys of an item"),
            Parameter(
                "TILE", (1, 1024, 2048, 4096, 8192, 16384, 32768), "cpu: elements in a cache"
            ),
            Parameter(
                "STRETCH",
                (1, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
                "cpu: elements of the result that a merge task makes",
            ),
        ),
        (
            Constraint(
                lambda c: _for_cpu(c) == (c["WG_SIZE"] == 1),
                "WG_SIZE must be 1 if FORM is cpu, and only then",
            ),
            Constraint(
                lambda c: _for_cpu(c) == (c["ITEM_KEYS"] == 1),
                "ITEM_KEYS must be 1 if FORM is cpu, and only then",
            ),
            Constraint(
                lambda c: _for_cpu(c) == (c["TILE"] != 1) == (c["STRETCH"] != 1),
                "TILE and STRETCH must be 1 unless FORM is cpu, and only then",
            ),
            Constraint(
                lambda c: _power(c.integer("WG_SIZE")) and c["WG_SIZE"] != 2,
                "WG_SIZE must be a power of two, and 4 or more for gpu",
            ),
            positive("ITEM_KEYS"),
            Constraint(
                lambda c: c.integer("WG_SIZE") * c.integer("ITEM_KEYS") <= SLOTS,
                f"WG_SIZE * ITEM_KEYS must not be above {SLOTS}",
            ),
            Constraint(
                lambda c: _power(c.integer("TILE")) and _power(c.integer("STRETCH")),
                "TILE and STRETCH must be powers of two",
            ),
            Constraint(
                lambda c: not _for_cpu(c) or c.integer("TILE") >= 8,
                "TILE must be at least 8",
            ),
            Constraint(
                lambda c: c.integer("STRETCH") <= 2 * c.integer("TILE"),
                "STRETCH must not be more than two tiles",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need barriers in loops on devices other than CPUs, and keys of which all bits count."""
        if problem.bits is not None:
            return PARTIAL_KEYS
        return lacks_groups(device)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the form for the kind of device, and tiles that fit."""
        if device.kind == "cpu":
            chosen = merge_cpu.cpu_config(problem, device)
            return Config(FORM="cpu", WG_SIZE=1, ITEM_KEYS=1, **chosen)
        chosen = merge_gpu.gpu_config(problem, device)
        return Config(FORM="gpu", **chosen, TILE=1, STRETCH=1)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the form."""
        if _for_cpu(config):
            return merge_cpu.cpu_plan(problem, config, device)
        return merge_gpu.gpu_plan(problem, config, device)
