"""Launches over the rows of arrays, an item per point, before and after transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type, group_limit, widening
from opencl_lab.core.plan import Argument, Launch, Plan, ceil_divide, round_up
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.planner import How, Planner

MIRROR = "fourier/mirror.cl.mako"
ROWS = "fourier/rows.cl.mako"
SCALES = "fourier/scales.cl.mako"
WG_SIZES = (256, 128, 64)
"""Items of a group: the most with which at most a fifth of all items have no point."""
VECTOR_BYTES = 32
GROUPS_PER_UNIT = 8
LEAST_SECTION = 4096
"""Numbers of a row that are worth a group of their own."""

Arguments: TypeAlias = Mapping[str, Argument | int]


def over_rows(
    builder: PlanBuilder,
    device: Device,
    kernel: tuple[str, str],
    points: int,
    rows: int,
    arguments: Arguments,
    wg_size: int | None = None,
    local_bytes: int = 0,
    **params: int | str,
) -> None:
    """Add a launch with an item for each point of each row.

    The kernel is named by its template and its name there, and covers rows as ``grid.mako`` says.
    Of its arguments, plain numbers become indices. The template has `params` besides ELEMENT,
    INDEX_T and WG_SIZE.
    """
    index = builder.index(*(builder.elements(buffer.name) for buffer in builder.buffers))
    wg_size = min(wg_size or _wg_size(points), group_limit(device))
    template, name = kernel
    builder.launches.append(
        Launch(
            template=template,
            kernel=name,
            params={
                "ELEMENT": builder.element,
                "INDEX_T": c_type(index),
                "WG_SIZE": wg_size,
                **params,
            },
            # All in the first dimension: some devices limit the others to few groups.
            global_size=(round_up(points, wg_size) * rows,),
            local_size=(wg_size,),
            arguments={
                name: index(value) if isinstance(value, int) else value
                for name, value in arguments.items()
            },
            local_bytes=local_bytes,
        )
    )


def _wg_size(points: int) -> int:
    """Return the items of a group: many, as a device starts about one group per clock."""
    return next(
        (size for size in WG_SIZES if 5 * points >= 4 * round_up(points, size)), WG_SIZES[-1]
    )


def columns_as_rows(
    planner: Planner, builder: PlanBuilder, layout: BatchedLayout, how: How
) -> None:
    """Add transforms of contiguous columns by way of rows in scratch memory."""
    n, count, device = layout.n, layout.count, planner.device
    rows, other = (builder.scratch("rows", n * count) for _ in range(2))
    sizes = {"n": n, "lanes": layout.lanes}
    gathered: Arguments = {"source": layout.source, "rows": rows, **sizes}
    over_rows(builder, device, (ROWS, "rows_in"), n, count, gathered)
    planner.transform(builder, BatchedLayout.rows(n, count, rows, other), how)
    scattered: Arguments = {"rows": other, "target": layout.target, **sizes}
    over_rows(builder, device, (ROWS, "rows_out"), n, count, scattered)


def widened(builder: PlanBuilder, device: Device, source: str) -> str:
    """Return the name of a buffer, or of its copy in float32 if it holds float16."""
    if builder.buffer(source).dtype != np.float16:
        return source
    count = builder.elements(source)
    wide = builder.scratch("wide", count, builder.real)
    if count:
        wg_size = min(_wg_size(count), group_limit(device))
        builder.launches.append(widening(source, wide, count, wg_size))
    return wide


def scales_of(
    builder: PlanBuilder, planner: Planner, source: str, count: int, first: int, batch: int
) -> str:
    """Add the scales of `batch` rows, as ``scales.cl.mako`` defines them; return their name.

    The source has rows of `count` real numbers, of which number 0 counts, and those from `first`
    on. If the planner is cooperative, a group weighs a section of a row, else an item.
    """
    device = planner.device
    # Not more items than numbers, unless there are very few numbers.
    most = 1 << min(8, max(5, count.bit_length() - 1))
    wg_size = min(most, group_limit(device)) if planner.cooperative else 1
    groups = GROUPS_PER_UNIT * device.compute_units
    sections = max(1, min(ceil_divide(groups, batch), count // LEAST_SECTION))
    if sections > 1:
        largest = builder.scratch("largest", batch * sections, builder.real)
        _weigh(builder, device, wg_size, (source, largest), count, sections, first, batch)
        source, count, first = largest, sections, 1
    scales = builder.scratch("scales", batch, builder.real)
    _weigh(builder, device, wg_size, (source, scales), count, 1, first, batch)
    return scales


def _weigh(
    builder: PlanBuilder,
    device: Device,
    wg_size: int,
    ends: tuple[str, str],
    count: int,
    sections: int,
    first: int,
    batch: int,
) -> None:
    """Add a launch that finds the largest of each of the `sections` of rows, or their scales."""
    word, alone = builder.real.itemsize, wg_size == 1
    arguments: Arguments = {
        "numbers": ends[0], "results": ends[1], "count": count, "sections": sections, "from": first,
    }  # fmt: skip
    over_rows(
        builder, device, (SCALES, "weigh"), wg_size * sections, batch, arguments,
        wg_size=wg_size, local_bytes=0 if alone else wg_size * word,
        VECTOR_WIDTH=VECTOR_BYTES // word if alone else 1,
    )  # fmt: skip


def mirror(n: int, rows: int, dtype: np.dtype[Any], conjugate: bool, device: Device) -> Plan:
    """Return the plan that makes the ``whole`` spectra of real signals, or their conjugates.

    ``half_rows`` holds the first n // 2 + 1 frequencies of each row.
    """
    builder = PlanBuilder(dtype)
    builder.add("half_rows", "in", (rows, n // 2 + 1))
    builder.add("whole", "out", (rows, n))
    arguments: Arguments = {"half_rows": "half_rows", "whole": "whole", "n": n}
    over_rows(builder, device, (MIRROR, "mirror"), n, rows, arguments, CONJUGATE=conjugate)
    return builder.finish()
