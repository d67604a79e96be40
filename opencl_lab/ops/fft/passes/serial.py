"""Plans of the FFT whose items do several steps by themselves, one after the other, in one launch.

On one compute unit a single item does them all: there is nothing to share, to count or to wait
for. Steps are those of `passes.vector`, and what real signals and convolutions need before, between
and after transforms, for which other devices have launches of their own::

    real signal -> spectrum     transform of packed neighbours, to the spectrum | halves, in place
    spectrum -> real signal     halves, to the signal | transform, in place

A launch takes further steps until another one comes between, or the direction changes. So all axes
of a small image are one launch, if they are planned one after the other.

Convolutions do all their steps for one row after the other. Rows are independent, so that all
threads of a device can share them::

    any length n                chirp_in | transform of m | chirp_multiply | transform | chirp_out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.core.plan import Argument, Launch, round_up
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep
from opencl_lab.ops.fft.passes.costs import CostModel
from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.planner import How, RealForm
from opencl_lab.ops.fft.passes.row_passes import KERNEL as ROWS_KERNEL
from opencl_lab.ops.fft.passes.row_passes import rows_launch
from opencl_lab.ops.fft.passes.twiddles import chirp, chirp_spectrum, in_vectors, strided_twiddles
from opencl_lab.ops.fft.passes.vector import KERNEL, TEMPLATE, VectorPlanner, numbers_of
from opencl_lab.ops.fft.passes.vector_step import PointwiseStep

LONGEST_ROW = 64 << 10
"""Bytes of a row of complex numbers that is transformed in one step, as measured."""
SHARES = 2
"""Items of a unit that share rows: few, as each has scratch memory."""
BUSY = 0.75
"""Share of all threads that have a row, on average, where items do whole rows."""
ONE_ROW = Strides(0, 1, 0)
"""Strides of scratch memory for one row, which all rows go through."""


class SerialPlanner(VectorPlanner):
    """Plans of one item that does all steps, or all those of some rows."""

    def real(
        self, builder: PlanBuilder, layout: BatchedLayout, form: RealForm, scale: float
    ) -> bool:
        """Add transforms of packed real rows; see `Planner.real`."""
        if form not in ("r2c-packed", "c2r-packed"):
            return False
        inverse = form == "c2r-packed"
        h, count, target = layout.n, layout.count, layout.target
        table = (h // 2, strided_twiddles, h // 2, 1, 2 * h, builder.dtype, 1)
        step = PointwiseStep("halves", 0, self.width, inverse=inverse)
        if not inverse:
            any_length(self, builder, layout, How(scale=scale, halved=True))
            spectra = BatchedLayout.rows(h, count, target, target, (h + 1, h + 1))
            halves = self._pointwise(builder, spectra, table, step)
            self._join(builder, halves, inverse=False)
            return True
        # Two steps must not write where they read.
        passes = self.has_passes(h, count)
        in_place = not (passes and self.split(layout, builder.real.itemsize))
        half = target if in_place else builder.scratch("half_rows", h * count)
        halves = self._pointwise(builder, replace(layout, target=half), table, step)
        self._join(builder, halves, inverse=True)
        packed = BatchedLayout.rows(h, count, half, target)
        any_length(self, builder, packed, How(inverse=True, scale=scale))
        return True

    def splits(self, layout: BatchedLayout, model: CostModel, two_steps: float) -> bool:
        """Return whether rows take two steps: with vectors over the points, by their length."""
        if self.radices_over_points(layout.n) is None:
            return super().splits(layout, model, two_steps)
        return 2 * model.word * layout.n > LONGEST_ROW

    def convolution(self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How) -> bool:
        """Add transforms by convolutions, row by row; see `Planner.convolution`."""
        return self.convolved_rows(builder, layout, m, how, items=1)

    def convolved_rows(
        self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How, items: int
    ) -> bool:
        """Add one launch in which each item convolves its share of the rows; return whether it can.

        An item has scratch memory for one row, which mostly stays in the caches of its processor.
        """
        n, width = layout.n, self.width
        tried = self.steps(PlanBuilder(builder.dtype), BatchedLayout.rows(m, 1, "", ""))
        split = len(tried) > 1
        in_place = not split or tried[0].arguments["target"] == ""  # else another row is needed
        needed = max(each.step.nbytes for each in tried)
        if not in_place or needed > self.device.capabilities.local_memory:
            return False
        rows = builder.scratch("rows", m * items)
        other = builder.scratch("rows", m * items) if split else rows  # one step may overwrite it
        forth, back = (BatchedLayout.rows(m, 1, *ends) for ends in ((rows, other), (other, rows)))
        source = replace(layout, target=rows, target_strides=ONE_ROW)
        middle = BatchedLayout(m, 1, 1, other, other, ONE_ROW, ONE_ROW)
        target = replace(layout, source=rows, source_strides=ONE_ROW)
        wave = (n, chirp, n, how.inverse, builder.dtype)
        spectrum = (m, chirp_spectrum, n, m, how.inverse, builder.dtype)
        into = PointwiseStep("chirp_in", 0, width, m=m, rows=layout.reads_rows)
        out = PointwiseStep("chirp_out", 0, width, rows=layout.writes_rows)
        between = PointwiseStep("chirp_multiply", m, width)
        steps: list[PlannedStep[Any]] = [
            self._pointwise(builder, source, wave, into),
            *self.steps(builder, forth, How(halved=how.halved)),
            self._pointwise(builder, middle, spectrum, between),
            *self.steps(builder, back),
            self._pointwise(builder, target, wave, out, scale=how.scale),
        ]
        index = builder.index(*(builder.elements(buffer.name) for buffer in builder.buffers))
        shared = rows_launch(builder, steps, False, self.device) if items == 1 else None
        builder.launches.append(
            shared or self._in_turn(builder, steps, index, False, items, {rows: m, other: m})
        )
        builder.joined = []
        return True

    def _in_turn(
        self,
        builder: PlanBuilder,
        steps: Sequence[PlannedStep[Any]],
        index: Any,
        inverse: bool,
        items: int = 1,
        own: Mapping[str, int] | None = None,
    ) -> Launch:
        """Return a launch whose items do all steps, one after the other.

        Of the buffers in `own`, each item has so many numbers for itself; then items do all steps
        of one row after the other.
        """
        ends = [(each.arguments["source"], each.arguments["target"]) for each in steps]
        buffers = list(dict.fromkeys(buffer for pair in ends for buffer in pair))
        arguments: dict[str, Argument] = {
            f"{name}_{number}": index(value) if isinstance(value, np.unsignedinteger) else value
            for number, each in enumerate(steps)
            for name, value in each.arguments.items()
            if name not in ("source", "target")
        }
        params = {
            **self._params(builder, index, inverse),
            "STEPS": tuple(each.step for each in steps),
            "BUFFERS": tuple(tuple(map(buffers.index, pair)) for pair in ends),
            "OWN": own and tuple(own.get(str(buffer), 0) for buffer in buffers),
        }
        arguments |= {f"buffer_{number}": buffer for number, buffer in enumerate(buffers)}
        nbytes = max(each.step.nbytes for each in steps)
        return Launch(TEMPLATE, KERNEL, params, (items,), (1,), arguments, local_bytes=nbytes)

    def add(self, builder: PlanBuilder, planned: Sequence[PlannedStep[Any]], inverse: bool) -> None:
        """Add steps to the last launch, if it has the same direction; else to a new one."""
        for each in planned:
            self._join(builder, each, inverse)

    def _join(self, builder: PlanBuilder, each: PlannedStep[Any], inverse: bool) -> None:
        if each.step.nbytes > self.device.capabilities.local_memory:
            self._launch(builder, [each], inverse)
            return
        last = builder.launches[-1] if builder.launches else None
        single = self._in_turn(builder, [each], each.index, inverse)
        own = {"STEPS": None, "BUFFERS": None}
        same = {name: single.params[name] for name in ("INDEX_T", "INVERSE")}
        if (
            last
            and builder.joined
            and (
                (last.kernel == KERNEL and {**last.params, **own} == {**single.params, **own})
                or (last.kernel == ROWS_KERNEL and {**last.params, **same} == last.params)
            )
        ):
            builder.launches.pop()
        else:
            builder.joined = []
        builder.joined.append(each)
        shared = rows_launch(builder, builder.joined, inverse, self.device)
        builder.launches.append(
            shared or self._in_turn(builder, builder.joined, each.index, inverse)
        )

    def _pointwise(
        self,
        builder: PlanBuilder,
        layout: BatchedLayout,
        table: tuple[Any, ...],
        step: PointwiseStep,
        scale: float = 1.0,
    ) -> PlannedStep[PointwiseStep]:
        """Return a step with a table of complex numbers: its length, function and arguments."""
        count, *made = table
        index = builder.index(layout.extent)
        arguments: dict[str, Argument] = {
            "source": layout.source,
            "target": layout.target,
            "twiddles": builder.table(
                "vectors", 2 * round_up(count, self.width), builder.real,
                in_vectors, self.width, *made,
            ),
            **{name: index(number) for name, number in numbers_of(layout).items()},
            **({} if step.n else {"points": index(layout.n)}),
            "scale": builder.real.type(scale),
        }  # fmt: skip
        return PlannedStep(step, layout.count, index, arguments)


class ThreadsPlanner(VectorPlanner):
    """Plans of items for all threads of a device, which share steps, or whole rows."""

    def convolution(self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How) -> bool:
        """Add a launch in which items convolve whole rows, if few threads would be idle."""
        units, rows = self.device.compute_units, layout.count
        if not share_rows(rows, units):
            return False
        alone = SerialPlanner(self.config, replace(self.device, compute_units=1))
        items = min(rows, SHARES * units)
        return alone.convolved_rows(builder, layout, m, how, items)


def share_rows(rows: int, units: int) -> bool:
    """Return whether few compute units are idle if each takes whole rows."""
    return rows >= BUSY * round_up(rows, units)
