"""The algorithm `fft`: fast transforms of every length."""

from __future__ import annotations

import numpy as np

from opencl_lab.device import Device
from opencl_lab.operation import Algorithm
from opencl_lab.operations.dft.around import (
    BLUESTEIN,
    REAL,
    ROWS,
    SCALES,
    WIDEN,
    any_length,
    real_signal,
    real_spectrum,
)
from opencl_lab.operations.dft.factors import RADICES
from opencl_lab.operations.dft.groups import TEMPLATE as GROUPS_TEMPLATE
from opencl_lab.operations.dft.groups import groups_convolution, groups_transform
from opencl_lab.operations.dft.lanes import TEMPLATE as LANES_TEMPLATE
from opencl_lab.operations.dft.lanes import lanes_transform
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.operations.dft.steps import Ends, Steps
from opencl_lab.plan import Plan
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["Fft"]


LARGEST = max(RADICES)
GROUP_LIMIT = 4096
"""Points of the longest transform that a group does alone, if no other limit is lower."""
LANES = ("VECTOR_WIDTH", "BLOCK", "ITEMS_PER_UNIT", "SPLIT")
GROUPS = (
    "WG_SIZE", "POINTS", "TRANSFORMS", "LOCAL_LIMIT", "LOCAL_PAD", "SPLIT_PARTS", "FEW_ROOTS",
    "CHUNK_KIB",
)  # fmt: skip
"""The parameters that one form alone has."""


def _positive(name: str) -> Constraint:
    return Constraint(lambda c: c.integer(name) > 0, f"{name} must be positive")


def _not_negative(name: str) -> Constraint:
    return Constraint(lambda c: c.integer(name) >= 0, f"{name} must not be negative")


class Fft(Algorithm[DftProblem]):
    """Stockham passes of small radices; four steps for long and Bluestein for other lengths."""

    name = "fft"
    templates = (LANES_TEMPLATE, GROUPS_TEMPLATE, BLUESTEIN, REAL, ROWS, SCALES, WIDEN)
    space = SearchSpace(
        (
            Parameter("FORM", ("lanes", "groups"), "vectors of single items, or local memory"),
            Parameter("VECTOR_WIDTH", (2, 4, 8, 16), "lanes of a vector, where items use vectors"),
            Parameter(
                "BLOCK", (1, 2, 4, 8), "vectors side by side, where they hold several columns"
            ),
            Parameter("MAX_RADIX", (4, 8, 16), "largest composite radix"),
            Parameter("ITEMS_PER_UNIT", (1, 4, 8, 16), "items for each compute unit"),
            Parameter("SPLIT", ("auto", "never", "always"), "rows in two steps; auto: by costs"),
            Parameter("WG_SIZE", (32, 64, 128, 256), "least items of a group with short rows"),
            Parameter("POINTS", (2, 4, 8, 16), "points of an item"),
            Parameter("TRANSFORMS", (1, 2, 4, 8, 16), "neighbouring columns of a group"),
            Parameter("LOCAL_LIMIT", (1024, 2048, 4096, 8192), "longest transform of a group"),
            Parameter("LOCAL_PAD", (0, 16, 32, 128), "elements between gaps in local memory"),
            Parameter("SPLIT_PARTS", (False, True), "exchange real and imaginary parts in turn"),
            Parameter("FEW_ROOTS", (False, True), "load few roots and multiply the others"),
            Parameter("CHUNK_KIB", (0, 8192, 32768), "part of a batch at a time; 0: all"),
        ),
        (
            Constraint(lambda c: c["FORM"] in ("lanes", "groups"), "FORM must be lanes or groups"),
            Constraint(
                lambda c: c["SPLIT"] in ("auto", "never", "always"),
                "SPLIT must be auto, never or always",
            ),
            Constraint(
                lambda c: c["VECTOR_WIDTH"] in (2, 4, 8, 16),
                "VECTOR_WIDTH must be a width of OpenCL's vectors: 2, 4, 8 or 16",
            ),
            Constraint(
                lambda c: 4 <= c.integer("MAX_RADIX") <= 16, "MAX_RADIX must be between 4 and 16"
            ),
            *map(_positive, ("BLOCK", "ITEMS_PER_UNIT")),
            *map(_positive, ("WG_SIZE", "POINTS", "TRANSFORMS")),
            Constraint(
                lambda c: c.integer("LOCAL_LIMIT") >= LARGEST,
                f"LOCAL_LIMIT must be at least {LARGEST}, the largest radix",
            ),
            *map(_not_negative, ("LOCAL_PAD", "CHUNK_KIB")),
        ),
    )

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need double precision for complex128."""
        if problem.dtype == np.complex128 and not device.capabilities.fp64:
            return "the device has no double precision"
        return None

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return vectors for CPUs, groups with local memory for others."""
        cpu = device.kind == "cpu" or not device.capabilities.barriers_in_loops
        n, word = problem.n, problem.real.itemsize
        alone = n <= GROUP_LIMIT and n * word * 17 // 8 <= device.capabilities.local_memory
        power_of_two = n & (n - 1) == 0
        # Columns in a group: full transactions while a few groups fit a processor's memory.
        length = n ** (1 / (2 if n <= 1 << 21 else 3))
        return Config(
            FORM="lanes" if cpu else "groups",
            WG_SIZE=64,
            POINTS=4,
            TRANSFORMS=16 if length <= 512 else 4,
            LOCAL_LIMIT=GROUP_LIMIT,
            LOCAL_PAD=32 if power_of_two else 64,
            SPLIT_PARTS=not alone,
            FEW_ROOTS=False,
            CHUNK_KIB=0,
            VECTOR_WIDTH=32 // word,
            BLOCK=4,
            MAX_RADIX=8 if cpu else 16,
            ITEMS_PER_UNIT=8,
            SPLIT="auto",
        )

    def search_space(self, problem: DftProblem, device: Device) -> SearchSpace:
        """Return the parameters of the form that suits the device, where they matter."""
        default = self.default_config(problem, device)
        idle = {"FORM", *(GROUPS if default["FORM"] == "lanes" else LANES)}
        if default["FORM"] == "groups":
            alone = problem.n <= GROUP_LIMIT
            idle |= {"CHUNK_KIB"} if alone or problem.batch == 1 else set()
            idle |= set() if alone else {"WG_SIZE"}
        elif problem.inner > 1:
            idle.add("SPLIT")
        return self.space.narrowed({name: default[name] for name in idle})

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of a transform, and of what is made ready for it."""
        steps = Steps.of(problem)
        if problem.n * problem.count == 0:
            return steps.finish()
        lanes = config["FORM"] == "lanes"
        form = lanes_transform if lanes else groups_transform

        def smooth(steps: Steps, ends: Ends, inverse: bool, scale: float) -> None:
            form(steps, ends, inverse, scale, config, device)

        def convolution(steps: Steps, ends: Ends, m: int, inverse: bool, scale: float) -> bool:
            return groups_convolution(steps, ends, m, inverse, scale, config, device)

        transform = any_length(smooth, None if lanes else convolution, device)
        if problem.kind == "r2c":
            real_signal(steps, problem, transform, device, not lanes)
        elif problem.kind == "c2r":
            real_spectrum(steps, problem, transform, device, not lanes)
        elif problem.inner == 1:
            ends = Ends.rows(problem.n, problem.batch, "signal", "spectrum")
            transform(steps, ends, problem.inverse, problem.scale)
        else:
            ends = Ends.columns(problem.n, problem.batch, problem.inner, "signal", "spectrum")
            transform(steps, ends, problem.inverse, problem.scale)
        return steps.finish()
