"""Plans of the FFT for CPUs: vectors of transforms, or vectors of positions in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.operations.dft.around import columns_as_rows
from opencl_lab.operations.dft.factors import balanced, radices_of
from opencl_lab.operations.dft.steps import Ends, Steps
from opencl_lab.operations.dft.tables import pass_roots, shift_far, shift_near
from opencl_lab.plan import Argument, Launch
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "lanes_transform"]

TEMPLATE = "dft/fft_lanes.cl.mako"
LONGEST = 1 << 13
"""Positions of a transform across lanes that the second cache holds twice."""


def lanes_transform(
    steps: Steps, ends: Ends, inverse: bool, scale: float, config: Config, device: Device
) -> None:
    """Add the launches of transforms of a smooth length.

    One launch where a transform fits into the cache and there is one for every
    compute unit; else two, columns and rows of the transform arranged as a matrix.
    """
    if ends.n > LONGEST and ends.lanes > 1 and ends.source_strides[2] == 1:

        def transform(steps: Steps, ends: Ends, inverse: bool, scale: float) -> None:
            lanes_transform(steps, ends, inverse, scale, config, device)

        columns_as_rows(steps, ends, inverse, scale, transform, device)
        return
    width = config.integer("VECTOR_WIDTH")
    rows = ends.source_strides[1] == ends.target_strides[1] == 1
    if rows and ends.outer == 1:
        split = balanced(ends.n, LONGEST)
        shared = ends.count < device.compute_units and ends.n >= config.integer("SPLIT_FROM")
        too_long = ends.n > config.integer("ROW_LIMIT")
        radices = _within(ends.n, width, config)
        if split is not None and (too_long or shared):
            _four_steps(steps, ends, split, inverse, scale, config, device)
            return
        if radices is not None:
            _launch(steps, ends, radices, True, inverse, scale, config, device)
            return
        if split is not None and ends.count < width and ends.n > width * width:
            _four_steps(steps, ends, split, inverse, scale, config, device)
            return
    radices = radices_of(ends.n, config.integer("MAX_RADIX"))
    _launch(steps, ends, radices, False, inverse, scale, config, device)


def _within(n: int, width: int, config: Config) -> tuple[int, ...] | None:
    """Return radices for vectors inside a transform, the first a multiple of the width."""
    for first in (16, 8, 4, 2):
        if first % width == 0 and first <= max(width, config.integer("MAX_RADIX")):
            rest = n // first
            if n % first == 0 and rest >= width:
                return (first, *radices_of(rest, config.integer("MAX_RADIX")))
    return None


def _four_steps(
    steps: Steps,
    ends: Ends,
    split: tuple[int, int],
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
) -> None:
    """Add columns with a multiplication by roots, then rows whose results become columns."""
    columns, rows = split
    n, count = ends.n, ends.count
    # Rows a power of two apart would meet in the same few lines of a cache.
    pitch = rows + config.integer("VECTOR_WIDTH")
    middle = steps.scratch("middle", columns * pitch * count)
    largest = config.integer("MAX_RADIX")
    between = columns * pitch
    first = Ends(columns, count, rows, ends.source, middle, (n, rows, 1), (between, pitch, 1))
    second = Ends(rows, count, columns, middle, ends.target, (between, 1, pitch), (n, columns, 1))
    radices = radices_of(columns, largest)
    _launch(steps, first, radices, False, inverse, 1.0, config, device, shift=True)
    _launch(steps, second, radices_of(rows, largest), False, inverse, scale, config, device)


def _launch(
    steps: Steps,
    ends: Ends,
    radices: tuple[int, ...],
    within: bool,
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
    shift: bool = False,
) -> None:
    width = config.integer("VECTOR_WIDTH")
    unit = width if within else 1
    tail = "none"
    if not within and ends.lanes % width:
        tail = "overlap" if ends.lanes > width else "few"
    blocks = ends.lanes if within else -(-ends.lanes // width)
    items = min(ends.outer * blocks, config.integer("ITEMS_PER_UNIT") * device.compute_units)
    work = steps.scratch("work", items * 4 * ends.n // unit * width, steps.real)
    roots_count = 2 * sum(
        int(np.prod(radices[:place])) * (radix - 1) for place, radix in enumerate(radices) if place
    )
    roots = steps.table("roots", roots_count, steps.real, pass_roots, radices, unit, steps.real)
    index = steps.index(ends.n * ends.count, ends.n * items * 4)
    arguments: dict[str, Argument] = {
        "source": ends.source,
        "target": ends.target,
        "work": work,
        "roots": roots,
    }
    if shift:
        shape = (ends.n, ends.lanes, width, steps.real)
        arguments["shift_near"] = steps.table(
            "shift_near", 2 * ends.n * width, steps.real, shift_near, *shape
        )
        arguments["shift_far"] = steps.table(
            "shift_far", ends.n * blocks, steps.dtype, shift_far, *shape[:3], steps.dtype
        )
    numbers: dict[str, Any] = {"outer": ends.outer, "lanes": ends.lanes}
    for side, strides in (("source", ends.source_strides), ("target", ends.target_strides)):
        for axis, stride in zip(("outer", "position", "lane"), strides, strict=True):
            numbers[f"{side}_{axis}"] = stride
    arguments |= {name: index(number) for name, number in numbers.items()}
    arguments["scale"] = steps.real.type(scale)
    steps.launches.append(
        Launch(
            template=TEMPLATE,
            kernel="fft_lanes",
            params={
                "REAL_T": steps.real_t,
                "INDEX_T": "uint" if index is np.uint32 else "ulong",
                "VECTOR_WIDTH": width,
                "N": ends.n,
                "RADICES": radices,
                "LANES": "within" if within else "across",
                # A vector of positions is loaded and stored as neighbours are, in columns.
                "LOAD": "rows" if not within and ends.source_strides[2] != 1 else "columns",
                "STORE": "rows" if not within and ends.target_strides[2] != 1 else "columns",
                "TAIL": tail,
                "FEW": ends.lanes if tail == "few" else 0,
                "SHIFT": shift,
                "INVERSE": inverse,
                "SCALED": scale != 1,
            },
            global_size=(items,),
            local_size=(1,),
            arguments=arguments,
        )
    )
