"""The two forms of the FFT, their tuning parameters, and the built-in configurations."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import (
    WIDEN,
    group_limit,
    largest_power,
    not_negative,
    one_of,
    positive,
    vector_width,
)
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.fft.passes.bluestein import BLUESTEIN
from opencl_lab.ops.fft.passes.factors import convolution_length, is_smooth
from opencl_lab.ops.fft.passes.local_memory import TEMPLATE as LOCAL_MEMORY_TEMPLATE
from opencl_lab.ops.fft.passes.local_memory import LocalMemoryPlanner
from opencl_lab.ops.fft.passes.local_schedule import most_points
from opencl_lab.ops.fft.passes.planner import Planner
from opencl_lab.ops.fft.passes.real_transforms import REAL
from opencl_lab.ops.fft.passes.row_passes import TEMPLATE as SHARED
from opencl_lab.ops.fft.passes.rows import ROWS, SCALES
from opencl_lab.ops.fft.passes.serial import SerialPlanner, ThreadsPlanner
from opencl_lab.ops.fft.passes.vector import TEMPLATE as VECTOR_TEMPLATE

TEMPLATES = (VECTOR_TEMPLATE, SHARED, LOCAL_MEMORY_TEMPLATE, BLUESTEIN, REAL, ROWS, SCALES, WIDEN)
"""All templates that a plan of either form may use."""
PLANNERS: dict[str, type[Planner]] = {"vector": ThreadsPlanner, "local-memory": LocalMemoryPlanner}
FORMS = tuple(PLANNERS)
NARROW = {4: 1 << 12, 2: 1 << 10}
"""Lanes of vectors of less than 32 bytes, and the longest rows for which they are worth it."""
WHETHER = ("auto", "never", "always")
EXCHANGES = ("auto", "interleaved", "split", "two-phase")
VECTOR_PARAMETERS = ("VECTOR_WIDTH", "BLOCK", "ITEMS_PER_UNIT", "SPLIT")
LOCAL_MEMORY_PARAMETERS = (
    "WG_SIZE", "POINTS", "TRANSFORMS", "LAST_TRANSFORMS", "LOCAL_LIMIT", "EXCHANGE", "FUSED",
)  # fmt: skip
"""The parameters that only one of the forms uses."""


SPACE = SearchSpace(
    (
        Parameter("FORM", FORMS, "vectors of single items, or groups with local memory"),
        Parameter("VECTOR_WIDTH", (2, 4, 8, 16), "lanes of a vector, where items use vectors"),
        Parameter("BLOCK", (1, 2, 4, 8), "vectors side by side, if they hold columns"),
        Parameter("MAX_RADIX", (4, 8, 16, 32), "largest composite radix"),
        Parameter("ITEMS_PER_UNIT", (1, 4, 8, 16), "items for each compute unit"),
        Parameter("SPLIT", WHETHER, "rows in two steps; auto: by estimated cost"),
        Parameter("WG_SIZE", (32, 64, 128, 256), "least items of a group with short rows"),
        Parameter("POINTS", (4, 8, 16, 32), "points of an item, at least; more for a large radix"),
        Parameter("TRANSFORMS", (0, 8, 16, 32), "columns of a group that reads them; 0: by cost"),
        Parameter(
            "LAST_TRANSFORMS", (0, 4, 8, 16), "columns of a group that reads rows; 0: by cost"
        ),
        Parameter("LOCAL_LIMIT", (1024, 4096, 16384), "most points of a group's transform"),
        Parameter("EXCHANGE", EXCHANGES, "how points go through local memory; auto: by the length"),
        Parameter("FUSED", WHETHER, "two steps in one launch; auto: by estimate"),
    ),
    (
        one_of("FORM", FORMS),
        one_of("EXCHANGE", EXCHANGES),
        one_of("SPLIT", WHETHER),
        one_of("FUSED", WHETHER),
        vector_width("VECTOR_WIDTH", (2, 4, 8, 16)),
        Constraint(
            lambda c: 4 <= c.integer("MAX_RADIX") <= 32, "MAX_RADIX must be between 4 and 32"
        ),
        *map(positive, ("BLOCK", "ITEMS_PER_UNIT", "WG_SIZE", "POINTS")),
        Constraint(
            lambda c: c.integer("LOCAL_LIMIT") >= 16,
            "LOCAL_LIMIT must be at least 16, more than the largest prime radix of a group",
        ),
        *map(not_negative, ("TRANSFORMS", "LAST_TRANSFORMS")),
    ),
)
"""The tuning parameters of both forms; a planner uses MAX_RADIX and those of its own form."""


def default_config(
    n: int, real: np.dtype[Any], device: Device, columns: bool = False, few: bool = False
) -> Config:
    """Return vectors for CPUs, groups with local memory for other devices.

    Devices on which barriers in loops do not work get vectors, too. Vectors have 32 bytes, whatever
    the width of the processor's own; those of a single compute unit are as wide as these, if rows
    fill them, and narrower if few rows fill only such.

    `n` is the length of the complex transforms, half of that of packed real rows; `real` is the
    type of the real and imaginary components; `columns`, whether they are not rows; `few`, whether
    they are too few rows to fill vectors over the batch.
    """
    form = _form(device)
    cpu = form == "vector"
    length = n if cpu or not n or is_smooth(n) else convolution_length(n)
    largest = 8
    if not cpu:
        largest = _largest_radix(length, real.itemsize, device, columns, convolved=length != n)
    return Config(
        FORM=form,
        WG_SIZE=64,
        POINTS=4,
        TRANSFORMS=0,
        LAST_TRANSFORMS=0,
        LOCAL_LIMIT=16384,
        EXCHANGE="auto",
        FUSED="auto",
        VECTOR_WIDTH=_width(n, real, device, few) if cpu else 32 // real.itemsize,
        BLOCK=4,
        MAX_RADIX=largest,
        ITEMS_PER_UNIT=8,
        SPLIT="auto",
    )


def _largest_radix(length: int, word: int, device: Device, columns: bool, convolved: bool) -> int:
    """Return the largest composite radix of groups: the points of most items.

    It is less where registers are known to be too few for these points, the roots of a butterfly,
    and those between two steps, if a group cannot do a whole row, or of a chirp, if it convolves.
    """
    radix = 16 if length <= (1024 if columns else 4096) else 32
    registers = device.capabilities.item_registers
    if not registers:
        return radix
    multiplied = columns or convolved or length > radix * group_limit(device)
    return max(4, largest_power(radix, most_points(registers, word, multiplied)))


def _width(n: int, real: np.dtype[Any], device: Device, few: bool) -> int:
    """Return the lanes of a vector: those of 32 bytes, or others on a single compute unit."""
    least = 32 // real.itemsize
    alone = device.compute_units == 1
    widest = device.native_vector_bytes // real.itemsize if alone else least
    widths = [width for width in (16, 8, 4) if least <= width <= widest] or [least]
    if few and alone and is_smooth(n):
        widths += [width for width in NARROW if width < least and n <= NARROW[width]]
    # Over the points the first pass fills vectors, and the others have at least as many points.
    return next((width for width in widths if n % width == 0 and n >= width**2), widths[0])


def _form(device: Device) -> str:
    cpu = device.kind == "cpu" or not device.capabilities.barriers_in_loops
    return "vector" if cpu else "local-memory"


def planner_for(device: Device, form: str | None = None) -> type[Planner]:
    """Return the planner of a form, by default the one for a device.

    Vectors have one for a single compute unit.
    """
    found = PLANNERS[form or _form(device)]
    return SerialPlanner if found is ThreadsPlanner and device.compute_units == 1 else found


def planner_of(config: Config, device: Device) -> Planner:
    """Return the planner of a configuration."""
    return planner_for(device, str(config["FORM"]))(config, device)
