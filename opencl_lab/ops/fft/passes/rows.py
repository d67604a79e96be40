"""Launches over the rows of arrays, an item per point, before and after transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type, group_limit, widening
from opencl_lab.core.plan import Argument, Launch, round_up
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.planner import How, Planner

ROWS = "fourier/rows.cl.mako"
WG_SIZES = (256, 128, 64)
"""Items of a group: the most with which at most a fifth of all items have no point."""

Arguments: TypeAlias = Mapping[str, Argument | int]


def over_rows(
    builder: PlanBuilder,
    device: Device,
    kernel: tuple[str, str],
    points: int,
    rows: int,
    arguments: Arguments,
    **params: int | str,
) -> None:
    """Add a launch with an item for each point of each row.

    The kernel is named by its template and its name there, and covers rows as ``grid.mako`` says.
    Of its arguments, plain numbers become indices. The template has `params` besides ELEMENT,
    INDEX_T and WG_SIZE.
    """
    index = builder.index(*(builder.elements(buffer.name) for buffer in builder.buffers))
    wg_size = min(_wg_size(points), group_limit(device))
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
