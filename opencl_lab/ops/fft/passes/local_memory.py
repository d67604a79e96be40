"""Plans of the FFT for GPUs: work-groups that transform in registers and local memory.

It decides three things, each in its own module:

1. `splits` chooses lengths: one where a group can hold the transform, else one for each step.
2. `steps` gives where steps read and write, and their arguments; `fusion`, whether two share a
   launch.
3. `local_schedule` gives what a group does in a step, which this module passes to the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import c_type, sub_group
from opencl_lab.core.plan import Argument, Launch, ceil_divide
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep, arguments_of
from opencl_lab.ops.fft.passes.factors import convolution_length, is_smooth, next_smooth
from opencl_lab.ops.fft.passes.fusion import (
    MAX_POLLS,
    TICKET_BYTES,
    Fusion,
    fusion_of,
    fusion_of_planes,
)
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.local_schedule import GroupPasses, LocalStep, Tiles
from opencl_lab.ops.fft.passes.planner import FORWARD, How, Planner, RealForm
from opencl_lab.ops.fft.passes.rows import columns_as_rows
from opencl_lab.ops.fft.passes.splits import (
    GroupLimits,
    cheapest_exchange,
    columns_of,
    lengths_of,
    middle_rows,
)
from opencl_lab.ops.fft.passes.steps import (
    Convolved,
    Step,
    constants_of,
    numbers_of,
    steps_of,
    tables_of,
)

TEMPLATE = "fourier/fft_local.cl.mako"
LONGER = 1.1
"""By how much a convolution may be longer than it must, so that its steps share a launch."""
CONVOLVED_BYTES = 72 << 10
"""Most bytes of a convolution that one group does. For more, four steps were faster on an H100, by
up to four times."""


class LocalMemoryPlanner(Planner):
    """Plans of work-groups that keep transforms in registers and local memory."""

    cooperative = True

    def transform(self, builder: PlanBuilder, layout: BatchedLayout, how: How = FORWARD) -> None:
        """Add the launches of transforms of a smooth length, as rows or as columns.

        There is one launch where a group can hold a transform. Else the transform is arranged as a
        matrix or a three-dimensional array, and each launch transforms along one axis or two.
        """
        n, rows, word = layout.n, layout.reads_rows, builder.real.itemsize
        batch, inner = (layout.count, 1) if rows else (layout.outer, layout.lanes)
        limits = GroupLimits.of(n, word, self.config, self.device)
        limits = cheapest_exchange(n, batch, inner, self.config, limits)
        arrays = BatchedLayout.columns(n, batch, inner, layout.source, layout.target)
        fusion = None
        if layout.source != layout.target:  # which the first step may read again
            fusion = fusion_of(n, batch, inner, self.config, limits, self.device)
        lengths = fusion.lengths if fusion else lengths_of(n, batch, inner, limits)
        if lengths is None:
            raise InvalidConfig(
                f"no lengths that fit a work-group multiply to {n}; "
                "try fewer POINTS or a larger LOCAL_LIMIT"
            )
        if len(lengths) > 2 and not rows:
            columns_as_rows(self, builder, layout, how)
            return
        if len(lengths) == 1:
            step = Step(layout, scale=how.scale, halved=how.halved)
            self._alone(builder, step, limits, how.inverse)
            return
        middles = _middles(builder, n, batch, inner, lengths)
        steps = steps_of(arrays, lengths, middles, how.scale, word, how.halved)
        self._launches(builder, steps, fusion, limits, how.inverse)

    def _launches(
        self,
        builder: PlanBuilder,
        steps: Sequence[Step],
        fusion: Fusion | None,
        limits: GroupLimits,
        inverse: bool,
    ) -> None:
        """Add a launch for each step of a transform, or one of both.

        The last step reads rows if the transform is of rows.
        """
        constant = steps[-1].orders[0] == "rows"
        if fusion:
            self._fused(builder, steps, fusion, inverse, constant)
        else:
            for step in steps:
                self._alone(builder, step, limits, inverse, constant)

    def planes(
        self, builder: PlanBuilder, rows: BatchedLayout, columns: BatchedLayout, how: Sequence[How]
    ) -> bool:
        """Add one launch, whose groups wait for the rows, where data are few."""
        count, m, n = rows.outer, columns.n, rows.n
        if not (is_smooth(m) and is_smooth(n)):
            return False
        limits = GroupLimits.of(max(m, n), builder.real.itemsize, self.config, self.device)
        fusion = fusion_of_planes((count, m, n), self.config, limits, self.device)
        if fusion is None:
            return False
        steps = [
            Step(layout, scale=each.scale)
            for layout, each in zip((rows, columns), how, strict=True)
        ]
        self._fused(builder, steps, fusion, how[0].inverse, True)
        return True

    def convolution(self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How) -> bool:
        """Add transforms as convolutions of length `m`, if a launch can do one, or four steps."""
        limits = self._convolution_limits(builder, m)
        if not _convolved_by_group(m, limits):
            return self._long_convolution(builder, layout, m, how)
        step = Step(
            replace(layout, n=m), scale=how.scale, convolved=Convolved(layout.n, how.inverse, m),
            halved=how.halved,
        )  # fmt: skip
        self._alone(builder, step, limits, False)
        return True

    def _long_convolution(
        self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How
    ) -> bool:
        """Add convolutions of rows whose transforms take two steps there, and two back.

        The first step multiplies by the chirp what it reads, the second one by the transform of the
        chirp what it writes, and the last one by the chirp again.
        """
        if not (layout.reads_rows and layout.writes_rows and layout.outer == 1):
            return False
        count, word = layout.count, builder.real.itemsize
        limits = GroupLimits.of(m, word, self.config, self.device)
        limits = replace(limits, longest=min(limits.longest, m // 2))
        m, fusion = self._fusible_length(m, count, limits)
        lengths = fusion.lengths if fusion else lengths_of(m, count, 1, limits)
        if lengths is None or len(lengths) != 2:
            return False
        middles = _middles(builder, m, count, 1, lengths)
        product = builder.scratch("rows", m * count)
        first = Convolved(layout.n, how.inverse, m, "first")
        there = BatchedLayout.columns(m, count, 1, layout.source, product)
        back = BatchedLayout.columns(m, count, 1, product, layout.target)
        steps = [
            *steps_of(there, lengths, middles, 1.0, word, how.halved),
            *steps_of(back, lengths, middles, how.scale, word, False),
        ]
        # Rows of the user's arrays are n elements apart, or more.
        steps[0] = replace(
            steps[0], convolved=first,
            grid=replace(steps[0].grid, source_stride=layout.source_strides.lane),
        )  # fmt: skip
        steps[1] = replace(steps[1], convolved=first._replace(part="product"))
        written = steps[3].layout.target_strides._replace(outer=layout.target_strides.lane)
        steps[3] = replace(
            steps[3], convolved=first._replace(part="last"),
            layout=replace(steps[3].layout, target_strides=written),
        )  # fmt: skip
        for each in (steps[:2], steps[2:]):
            self._launches(builder, each, fusion, limits, False)
        return True

    def _fusible_length(self, m: int, count: int, limits: GroupLimits) -> tuple[int, Fusion | None]:
        """Return the least length, not much above `m`, whose two steps share a launch, or `m`."""
        longer = m
        while longer <= LONGER * m:
            fusion = fusion_of(longer, count, 1, self.config, limits, self.device)
            if fusion:
                return longer, fusion
            longer = next_smooth(longer + 1, 64)
        return m, None

    def real(
        self, builder: PlanBuilder, layout: BatchedLayout, form: RealForm, scale: float
    ) -> bool:
        """Add one launch of transforms of real rows, or to them, if a group can do one."""
        packed, inverse = form.endswith("packed"), form.startswith("c2r")
        n, convolved = layout.n, None
        if is_smooth(n):
            limits = GroupLimits.of(n, builder.real.itemsize, self.config, self.device)
            fits = lengths_of(n, layout.count, 1, limits) == (n,)
        else:
            n, convolved = convolution_length(n), Convolved(n, inverse, convolution_length(n))
            limits = self._convolution_limits(builder, n)
            fits = not packed and _convolved_by_group(n, limits)
        # Opposite frequencies of packed signals are combined in local memory.
        if not fits or (packed and len(limits.radices(n)) == 1):
            return False
        step = Step(
            replace(layout, n=n), scale=scale, convolved=convolved, real=form,
            halved=form == "r2c-packed",
        )  # fmt: skip
        self._alone(builder, step, limits, inverse and convolved is None)
        return True

    def _convolution_limits(self, builder: PlanBuilder, m: int) -> GroupLimits:
        """Return the limits of convolutions of length `m`: interleaved is faster if it fits."""
        limits = GroupLimits.of(m, builder.real.itemsize, self.config, self.device)
        pairs = replace(limits, exchange="interleaved")
        return pairs if self.config["EXCHANGE"] == "auto" and pairs.fits(m, 1) else limits

    def _alone(
        self,
        builder: PlanBuilder,
        step: Step,
        limits: GroupLimits,
        inverse: bool,
        constant: bool | None = None,
    ) -> None:
        """Add a launch of one step; `constant` says whether strides follow from the length."""
        rows = step.layout.reads_rows if constant is None else constant
        group = limits.group(step.layout.n, self._transforms(step, limits), *step.orders)
        self._launch(builder, [self._planned(builder, step, group, rows)], inverse)

    def _fused(
        self,
        builder: PlanBuilder,
        steps: Sequence[Step],
        fusion: Fusion,
        inverse: bool,
        constant: bool,
    ) -> None:
        """Add a launch of two steps."""
        planned = []
        for step, columns, tiles in zip(steps, fusion.columns, fusion.tiles, strict=True):
            group = fusion.limits.group(step.layout.n, columns, *step.orders)
            planned.append(self._planned(builder, step, group, constant, tiles))
        self._launch(builder, planned, inverse, fusion)

    def _transforms(self, step: Step, limits: GroupLimits) -> int:
        """Return how many transforms of a step a group does at a time."""
        if step.shape is not None:
            return columns_of(step.shape, limits)
        # Rows gain nothing from neighbours: take as many as make a group of WG_SIZE items.
        n, least = step.layout.n, self.config.integer("WG_SIZE")
        transforms = max(1, min(step.layout.lanes, ceil_divide(least, limits.items_of(n))))
        while transforms > 1 and not limits.fits(n, transforms):
            transforms -= 1
        return transforms

    def _planned(
        self,
        builder: PlanBuilder,
        step: Step,
        group: GroupPasses,
        constant: bool,
        tiles: Tiles | None = None,
    ) -> PlannedStep[LocalStep]:
        """Return the template's and the kernel's parameters for a step."""
        layout, real = step.layout, step.real
        index = builder.index(
            *(b.nbytes // builder.dtype.itemsize for b in builder.buffers if b.role != "table")
        )
        tables, bits = tables_of(builder, step, group)
        numbers = numbers_of(step)
        constants = constants_of(step, constant)
        indices = {name: index(n) for name, n in numbers.items() if name not in constants}
        load, store = (
            "unaligned" if builder.is_unaligned(name) else "complex"
            for name in (layout.source, layout.target)
        )
        emitted = LocalStep(
            group=group,
            load_fragment=real if real in ("r2c-full", "c2r-full", "c2r-packed") else load,
            store_fragment=real if real in ("r2c-packed", "c2r-full") else store,
            tables=tuple(tables),
            numbers=tuple(indices),
            constants=tuple(constants.items()),
            convolved=step.convolved.n if step.convolved else 0,
            convolution=step.convolved.part if step.convolved else None,
            halved=step.halved,
            scaled=step.scale != 1,
            step_twiddle_bits=bits,
            single_batch=step.times == 1,
            partial_group=layout.lanes % group.transforms != 0,
            tiles=tiles,
        )
        groups = ceil_divide(layout.lanes, group.transforms) * step.times
        ends: dict[str, Argument] = {"source": layout.source, "target": layout.target}
        scale = {"scale": builder.real.type(step.scale)} if emitted.scaled else {}
        return PlannedStep(emitted, groups, index, {**ends, **tables, **indices, **scale})

    def _launch(
        self,
        builder: PlanBuilder,
        planned: Sequence[PlannedStep[LocalStep]],
        inverse: bool,
        fusion: Fusion | None = None,
    ) -> None:
        """Add one launch of one step, or of two that share it."""
        arguments = arguments_of(planned)
        if fusion:
            arguments["counters"] = builder.zeros("counters", fusion.parts + 1)
            arguments["parts"] = np.uint32(fusion.parts)
        steps = tuple(each.step for each in planned)
        reals = max(step.group.local_reals for step in steps)
        items = steps[0].group.work_group
        registers = max(step.registers(builder.real.itemsize) for step in steps)
        builder.launches.append(
            Launch(
                template=TEMPLATE,
                kernel="fft_local",
                params={
                    "ELEMENT": builder.element,
                    "INDEX_T": c_type(planned[0].index),
                    "INVERSE": inverse,
                    "LOCAL_REALS": reals,
                    "PTX": self.device.capabilities.inline_ptx,
                    "SUB_GROUP": sub_group(self.device, registers),
                    "LOOK_AHEAD": fusion.look_ahead if fusion else 0,
                    "MAX_POLLS": MAX_POLLS if fusion else 0,
                    "STEPS": steps,
                },
                # All in the first dimension: some devices limit the others to few groups.
                global_size=(sum(each.tasks for each in planned) * items,),
                local_size=(items,),
                arguments=arguments,
                local_bytes=reals * builder.real.itemsize + (TICKET_BYTES if fusion else 0),
            )
        )


def _convolved_by_group(m: int, limits: GroupLimits) -> bool:
    """Return whether a group should do convolutions of length `m`."""
    return 2 * limits.word * m <= CONVOLVED_BYTES and limits.fits(m, 1)


def _middles(
    builder: PlanBuilder, n: int, batch: int, inner: int, lengths: tuple[int, ...]
) -> list[str]:
    """Add the arrays between steps: one, or two that alternate, of the size needed."""
    word = builder.real.itemsize
    sizes = [rows * pitch for rows, pitch in middle_rows(n, inner, lengths, word)]
    alternating = (sizes[::2], sizes[1::2])
    return [builder.scratch("middle", batch * max(held)) for held in alternating if held]
