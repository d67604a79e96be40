"""Plans of the FFT for one compute unit: the steps of a plan follow each other in one launch.

A single item does them all: there is nothing to share, to count or to wait for. Steps are those of
`passes.vector`, and what real signals and convolutions need before, between and after transforms,
for which other devices have launches of their own::

    real signal -> spectrum     transform of packed neighbours, to the spectrum | halves, in place
    spectrum -> real signal     halves, to the signal | transform, in place
    any length n                chirp_in | transform of m | chirp_multiply | transform | chirp_out

A launch takes further steps until another one comes between, or the direction changes. So all axes
of a small image are one launch, if they are planned one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opencl_lab.core.kernels import c_type
from opencl_lab.core.plan import Argument, Launch, round_up
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep
from opencl_lab.ops.fft.passes.costs import CostModel
from opencl_lab.ops.fft.passes.factors import is_smooth
from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.planner import How, RealForm
from opencl_lab.ops.fft.passes.twiddles import chirp, chirp_spectrum, strided_twiddles
from opencl_lab.ops.fft.passes.vector import KERNEL, TEMPLATE, VectorPlanner, numbers_of
from opencl_lab.ops.fft.passes.vector_step import PointwiseStep
from opencl_lab.ops.fft.passes.vector_twiddles import in_vectors

LONGEST_ROW = 64 << 10
"""Bytes of a row of complex numbers that is transformed in one step, as measured."""


class SerialPlanner(VectorPlanner):
    """Plans of one item that does all steps."""

    def real(
        self, builder: PlanBuilder, layout: BatchedLayout, form: RealForm, scale: float
    ) -> bool:
        """Add transforms of packed real rows; see `Planner.real`."""
        if form not in ("r2c-packed", "c2r-packed"):
            return False
        inverse = form == "c2r-packed"
        h, count, target = layout.n, layout.count, layout.target
        table = (h // 2, strided_twiddles, h // 2, 1, 2 * h, builder.dtype, 1)
        step = PointwiseStep("halves", h, self.width, inverse=inverse)
        if not inverse:
            any_length(self, builder, layout, How(scale=scale, halved=True))
            spectra = BatchedLayout.rows(h, count, target, target, (h + 1, h + 1))
            self._pointwise(builder, spectra, table, step)
            return True
        # Two steps must not write where they read.
        in_place = not (is_smooth(h) and self.split(layout, builder.real.itemsize))
        half = target if in_place else builder.scratch("half_rows", h * count)
        self._pointwise(builder, replace(layout, target=half), table, step, inverse=True)
        packed = BatchedLayout.rows(h, count, half, target)
        any_length(self, builder, packed, How(inverse=True, scale=scale))
        return True

    def splits(self, layout: BatchedLayout, model: CostModel, two_steps: float) -> bool:
        """Return whether rows take two steps: with vectors over the points, by their length."""
        if self.radices_over_points(layout.n) is None:
            return super().splits(layout, model, two_steps)
        return 2 * model.word * layout.n > LONGEST_ROW

    def convolution(self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How) -> bool:
        """Add transforms by convolutions; see `Planner.convolution`."""
        n, count, width = layout.n, layout.count, self.width
        rows, other = builder.scratch("rows", m * count), builder.scratch("rows", m * count)
        forth = BatchedLayout.rows(m, count, rows, other)
        between = BatchedLayout.rows(m, count, other, other)
        back = BatchedLayout.rows(m, count, other, rows)
        wave = (n, chirp, n, how.inverse, builder.dtype)
        spectrum = (m, chirp_spectrum, n, m, how.inverse, builder.dtype)
        into = PointwiseStep("chirp_in", n, width, m=m, rows=layout.reads_rows)
        out = PointwiseStep("chirp_out", n, width, rows=layout.writes_rows)
        source = replace(layout, target=rows, target_strides=_in_rows(layout, m))
        target = replace(layout, source=rows, source_strides=_in_rows(layout, m))
        self._pointwise(builder, source, wave, into)
        self.transform(builder, forth, How(halved=how.halved))
        self._pointwise(builder, between, spectrum, PointwiseStep("chirp_multiply", m, width))
        self.transform(builder, back)
        self._pointwise(builder, target, wave, out, scale=how.scale)
        return True

    def add(self, builder: PlanBuilder, planned: Sequence[PlannedStep[Any]], inverse: bool) -> None:
        """Add steps to the last launch, if it has the same direction; else to a new one."""
        for each in planned:
            self._join(builder, each, inverse)

    def _join(self, builder: PlanBuilder, each: PlannedStep[Any], inverse: bool) -> None:
        nbytes = each.step.nbytes
        if nbytes > self.device.capabilities.local_memory:
            self._launch(builder, [each], inverse)
            return
        params: dict[str, Any] = {
            "ELEMENT": builder.element,
            "INDEX_T": c_type(each.index),
            "VECTOR_WIDTH": self.width,
            "WORK": "local",
            "INVERSE": inverse,
            "MAX_POLLS": 0,
        }
        launch = Launch(TEMPLATE, KERNEL, {**params, "STEPS": (), "BUFFERS": ()}, (1,), (1,), {})
        last = builder.launches[-1] if builder.launches else None
        if last and last.kernel == KERNEL and last.params.items() >= params.items():
            launch = builder.launches.pop()
        known, own = dict(launch.arguments), dict(each.arguments)
        ends = own.pop("source"), own.pop("target")
        buffers = [known.pop(name) for name in launch.arguments if name.startswith("buffer_")]
        buffers = list(dict.fromkeys([*buffers, *ends]))
        numbers = tuple(map(buffers.index, ends))
        steps, sides = launch.params["STEPS"], launch.params["BUFFERS"]
        arguments = {
            **known,
            **{f"{name}_{len(steps)}": value for name, value in own.items()},
            **{f"buffer_{number}": buffer for number, buffer in enumerate(buffers)},
        }
        builder.launches.append(
            replace(
                launch,
                params={**params, "STEPS": (*steps, each.step), "BUFFERS": (*sides, numbers)},
                arguments=arguments,
                local_bytes=max(launch.local_bytes, nbytes),
            )
        )

    def _pointwise(
        self,
        builder: PlanBuilder,
        layout: BatchedLayout,
        table: tuple[Any, ...],
        step: PointwiseStep,
        inverse: bool = False,
        scale: float = 1.0,
    ) -> None:
        """Add a step with a table of complex numbers, given as its length, function, arguments."""
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
            "scale": builder.real.type(scale),
        }  # fmt: skip
        self._join(builder, PlannedStep(step, layout.count, index, arguments), inverse)


def _in_rows(layout: BatchedLayout, m: int) -> Strides:
    """Return the strides of the transforms of a layout as rows of `m` numbers."""
    return Strides(m * layout.lanes, 1, m)
