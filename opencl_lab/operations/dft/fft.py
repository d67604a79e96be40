"""The algorithm `fft`: fast transforms of every length."""

from __future__ import annotations

from opencl_lab.device import Device
from opencl_lab.fourier.around import (
    BLUESTEIN,
    REAL,
    ROWS,
    SCALES,
    WIDEN,
    any_length,
    real_signal,
    real_spectrum,
)
from opencl_lab.fourier.builder import Ends, Steps
from opencl_lab.fourier.local_memory import TEMPLATE as GROUPS_TEMPLATE
from opencl_lab.fourier.local_memory import (
    can_join,
    groups_convolution,
    groups_real,
    groups_transform,
)
from opencl_lab.fourier.vector import TEMPLATE as LANES_TEMPLATE
from opencl_lab.fourier.vector import lanes_transform
from opencl_lab.kernels import lacks_type, not_negative, positive, vector_width
from opencl_lab.operation import Algorithm
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.plan import Plan
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["Fft"]


WHETHER = ("auto", "never", "always")
EXCHANGES = ("auto", "pairs", "parts", "turns")
LANES = ("VECTOR_WIDTH", "BLOCK", "ITEMS_PER_UNIT", "SPLIT")
GROUPS = (
    "WG_SIZE", "POINTS", "TRANSFORMS", "LAST_TRANSFORMS", "LOCAL_LIMIT", "LOCAL_PAD",
    "EXCHANGE", "FEW_ROOTS", "JOIN",
)  # fmt: skip
"""The parameters that one form alone has."""


def _whether(name: str) -> Constraint:
    return Constraint(lambda c: c[name] in WHETHER, f"{name} must be auto, never or always")


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
            Parameter("MAX_RADIX", (4, 8, 16, 32), "largest composite radix"),
            Parameter("ITEMS_PER_UNIT", (1, 4, 8, 16), "items for each compute unit"),
            Parameter("SPLIT", WHETHER, "rows in two steps; auto: by costs"),
            Parameter("WG_SIZE", (32, 64, 128, 256), "least items of a group with short rows"),
            Parameter("POINTS", (4, 8, 16, 32), "points of an item"),
            Parameter("TRANSFORMS", (0, 8, 16, 32), "columns of a group; 0: by costs"),
            Parameter("LAST_TRANSFORMS", (0, 4, 8, 16), "the same for the last of several steps"),
            Parameter("LOCAL_LIMIT", (1024, 4096, 16384), "longest transform of a group"),
            Parameter("LOCAL_PAD", (0, 32), "elements between gaps; 0: by the layout"),
            Parameter("EXCHANGE", EXCHANGES, "what goes through local memory; auto: by the length"),
            Parameter("FEW_ROOTS", (False, True), "load few roots and multiply the others"),
            Parameter("JOIN", WHETHER, "two steps of rows in one launch; auto: by estimate"),
        ),
        (
            Constraint(lambda c: c["FORM"] in ("lanes", "groups"), "FORM must be lanes or groups"),
            Constraint(
                lambda c: c["EXCHANGE"] in EXCHANGES, f"EXCHANGE must be one of {EXCHANGES}"
            ),
            *map(_whether, ("SPLIT", "JOIN")),
            vector_width("VECTOR_WIDTH", (2, 4, 8, 16)),
            Constraint(
                lambda c: 4 <= c.integer("MAX_RADIX") <= 32, "MAX_RADIX must be between 4 and 32"
            ),
            *map(positive, ("BLOCK", "ITEMS_PER_UNIT")),
            *map(positive, ("WG_SIZE", "POINTS")),
            Constraint(
                lambda c: c.integer("LOCAL_LIMIT") >= 16,
                "LOCAL_LIMIT must be at least 16, more than the largest prime radix",
            ),
            *map(not_negative, ("TRANSFORMS", "LAST_TRANSFORMS", "LOCAL_PAD")),
        ),
    )

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need double precision for complex128."""
        return lacks_type(device, problem.dtype)

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return vectors for CPUs, groups with local memory for others."""
        cpu = device.kind == "cpu" or not device.capabilities.barriers_in_loops
        word = problem.real.itemsize
        halved = problem.kind != "c2c" and problem.n % 2 == 0  # pairs are one complex number
        n = problem.n // 2 if halved else problem.n
        return Config(
            FORM="lanes" if cpu else "groups",
            WG_SIZE=64,
            POINTS=4,
            TRANSFORMS=0,
            LAST_TRANSFORMS=0,
            LOCAL_LIMIT=16384,
            LOCAL_PAD=0,
            EXCHANGE="auto",
            FEW_ROOTS=True,
            JOIN="auto",
            VECTOR_WIDTH=32 // word,
            BLOCK=4,
            MAX_RADIX=8 if cpu else 16 if n <= 4096 else 32,
            ITEMS_PER_UNIT=8,
            SPLIT="auto",
        )

    def search_space(self, problem: DftProblem, device: Device) -> SearchSpace:
        """Return the parameters of the form that suits the device, where they matter."""
        default = self.default_config(problem, device)
        idle = {"FORM", "LOCAL_LIMIT", *(GROUPS if default["FORM"] == "lanes" else LANES)}
        if default["FORM"] == "groups":
            launches = self.plan(problem, default, device).launches
            steps = [step for launch in launches for step in launch.params.get("STEPS", ())]
            alone = not any(step["SHIFT"] for step in steps)
            idle |= {"LAST_TRANSFORMS"} if alone else {"WG_SIZE"}
            idle |= set() if len(steps) == 2 and can_join(device) and not alone else {"JOIN"}
            idle |= {"TRANSFORMS"} if alone and problem.inner == 1 else set()
        elif problem.inner > 1:
            idle.add("SPLIT")
        return self.space.narrowed({name: default[name] for name in idle})

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of a transform, and of what is made ready for it."""
        steps = Steps.of(problem)
        if problem.n * problem.count:
            self.add(steps, problem, "signal", "spectrum", config, device)
        return steps.finish()

    def add(
        self,
        steps: Steps,
        problem: DftProblem,
        source: str,
        target: str,
        config: Config,
        device: Device,
    ) -> None:
        """Add the launches of a transform, which is not empty, from one buffer to another."""
        lanes = config["FORM"] == "lanes"
        form = lanes_transform if lanes else groups_transform

        def smooth(steps: Steps, ends: Ends, inverse: bool, scale: float) -> None:
            form(steps, ends, inverse, scale, config, device)

        def convolution(steps: Steps, ends: Ends, m: int, inverse: bool, scale: float) -> bool:
            return groups_convolution(steps, ends, m, inverse, scale, config, device)

        def real(steps: Steps, ends: Ends, packed: bool, inverse: bool, scale: float) -> bool:
            return groups_real(steps, ends, packed, inverse, scale, config, device)

        transform = any_length(smooth, None if lanes else convolution, device)
        whole = None if lanes else real
        if problem.kind == "r2c":
            real_signal(steps, problem, source, target, transform, whole, device)
        elif problem.kind == "c2r":
            real_spectrum(steps, problem, source, target, transform, whole, device)
        elif problem.inner == 1:
            ends = Ends.rows(problem.n, problem.batch, source, target)
            transform(steps, ends, problem.inverse, problem.scale)
        else:
            ends = Ends.columns(problem.n, problem.batch, problem.inner, source, target)
            transform(steps, ends, problem.inverse, problem.scale)
