"""The algorithm `radix`."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_groups, not_negative, positive
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace, Value
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort import radix_cpu, radix_gpu
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem

STREAMED = 8 << 20
"""Bytes of all elements from which stores past the caches are faster."""


WG_SIZES = (32, 64, 128, 256, 384, 512)

IDLE = (radix_gpu.PATIENCE, radix_gpu.LOOKS)


def _for_cpu(config: Config) -> bool:
    return config["FORM"] == "cpu"


class Radix(Algorithm[SortProblem]):
    """Stable radix sort in three forms, chosen by the device.

    ``cpu`` is for CPUs and has no barriers; ``onesweep`` has one launch per digit, whose groups
    look back at earlier ones; ``scan`` has three, and assumes nothing about other groups.
    """

    name = "radix"
    templates = (radix_cpu.TEMPLATE, radix_gpu.TEMPLATE, radix_gpu.ROWS)
    space = SearchSpace(
        (
            Parameter("FORM", ("cpu", "scan", "onesweep"), "how groups work together"),
            Parameter("DIGIT_BITS", (5, 6, 7, 8, 9, 10, 11), "bits of a digit, at most"),
            Parameter("WG_SIZE", (1, *WG_SIZES), "items in a group; cpu: 1"),
            Parameter("ITEM_KEYS", (1, *radix_gpu.ITEM_KEYS), "keys of an item in a tile"),
            Parameter("LOOKS", (1, 4, 8, 16), "tiles that onesweep looks back at together"),
            Parameter("PATIENCE", (0, 4096), "how often onesweep polls a tile before it counts"),
            Parameter("CAPACITY", (1, 8192, 16384, 32768, 65536), "cpu: elements in a cache"),
            Parameter("STREAM", (False, True), "cpu: write whole cache lines past the caches"),
        ),
        (
            Constraint(
                lambda c: _for_cpu(c) == (c["WG_SIZE"] == 1),
                "WG_SIZE must be 1 if FORM is cpu, and only then",
            ),
            Constraint(
                lambda c: 1 <= c.integer("DIGIT_BITS") <= (11 if _for_cpu(c) else 8),
                "DIGIT_BITS must be 1 to 11, and at most 8 unless FORM is cpu",
            ),
            Constraint(
                lambda c: _for_cpu(c) or c.integer("WG_SIZE") % 32 == 0 < c.integer("WG_SIZE"),
                "WG_SIZE must be a multiple of 32 unless FORM is cpu",
            ),
            Constraint(
                lambda c: _for_cpu(c) or 1 << c.integer("DIGIT_BITS") <= c.integer("WG_SIZE"),
                "WG_SIZE must not be less than 2 to the power of DIGIT_BITS",
            ),
            Constraint(
                lambda c: _for_cpu(c) or c.integer("ITEM_KEYS") >= 2,
                "ITEM_KEYS must be at least 2 unless FORM is cpu",
            ),
            positive("CAPACITY"),
            not_negative("PATIENCE"),
            positive("LOOKS"),
            Constraint(
                lambda c: not _for_cpu(c) or c["ITEM_KEYS"] == 1,
                "ITEM_KEYS must be 1 if FORM is cpu",
            ),
            Constraint(
                lambda c: c["FORM"] == "onesweep" or (c["PATIENCE"], c["LOOKS"]) == IDLE,
                f"PATIENCE must be {IDLE[0]} and LOOKS {IDLE[1]} unless FORM is onesweep",
            ),
            Constraint(
                lambda c: _for_cpu(c) or (c["CAPACITY"] == 1 and not c["STREAM"]),
                "CAPACITY must be 1 and STREAM False unless FORM is cpu",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need barriers in loops on devices other than CPUs."""
        return lacks_groups(device)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the form for the kind of device, and tiles that fit."""
        if device.kind == "cpu":
            total = problem.n * problem.rows * Elements(problem).nbytes
            return Config(
                FORM="cpu",
                DIGIT_BITS=radix_cpu.digit_bits(problem, device),
                WG_SIZE=1,
                ITEM_KEYS=1,
                LOOKS=radix_gpu.LOOKS,
                PATIENCE=radix_gpu.PATIENCE,
                CAPACITY=32768,
                STREAM=total >= STREAMED,
            )
        chosen = radix_gpu.gpu_config(problem, device)
        return Config(
            **chosen, LOOKS=radix_gpu.LOOKS, PATIENCE=radix_gpu.PATIENCE, CAPACITY=1, STREAM=False
        )

    def search_space(self, problem: SortProblem, device: Device) -> SearchSpace:
        """Return the forms for the kind of device, and the parameters that they use."""
        fixed: dict[str, tuple[Value, ...]] = {}
        if device.kind == "cpu":
            fixed |= {"FORM": ("cpu",), "WG_SIZE": (1,), "ITEM_KEYS": (1,)}
            fixed |= {"LOOKS": (radix_gpu.LOOKS,), "PATIENCE": (radix_gpu.PATIENCE,)}
        else:
            forms = ("scan", "onesweep") if device.capabilities.forward_progress else ("scan",)
            fixed |= {"FORM": forms, "CAPACITY": (1,), "STREAM": (False,)}
            fixed |= {"DIGIT_BITS": (5, 6, 7, 8), "WG_SIZE": WG_SIZES}
            fixed |= {"ITEM_KEYS": radix_gpu.ITEM_KEYS}
        return self.space.among(fixed)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of the form."""
        if _for_cpu(config):
            return radix_cpu.cpu_plan(problem, config, device)
        return radix_gpu.gpu_plan(problem, config, device)
