"""Plans of the FFT for GPUs: work-groups that transform in registers and local memory.

It decides three things, each in its own module:

1. `splits` chooses lengths: one where a group can hold the transform, else one for each step.
2. `steps` gives the strides by which steps read and write; `fusion`, whether two share a launch.
3. `local_schedule` gives what a group does in a step; this module passes it to the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import c_type
from opencl_lab.core.plan import Argument, Launch, ceil_divide
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep, arguments_of
from opencl_lab.ops.fft.passes.factors import convolution_length, is_smooth
from opencl_lab.ops.fft.passes.fusion import TICKET_BYTES, Fusion, fusion_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.local_schedule import GroupPasses, LocalStep
from opencl_lab.ops.fft.passes.planner import FORWARD, How, Planner, RealForm
from opencl_lab.ops.fft.passes.splits import Limits, columns_of, lengths_of, middle_rows
from opencl_lab.ops.fft.passes.steps import Convolved, Step, StepTwiddles, steps_of
from opencl_lab.ops.fft.passes.twiddles import (
    chirp,
    chirp_spectrum,
    local_twiddles,
    strided_twiddles,
)

TEMPLATE = "fourier/fft_local.cl.mako"
CONSTANTS = (
    "step_twiddle_lanes", "source_position", "source_lane", "target_position", "target_lane",
)  # fmt: skip
"""Arguments that follow from the length of rows; as constants, they make addresses simpler."""


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
        limits = Limits.of(n, word, self.config, self.device)
        lengths = lengths_of(n, batch, inner, limits)
        if lengths is None:
            raise InvalidConfig(
                f"no lengths that fit a work-group multiply to {n}; "
                "try fewer POINTS or a larger LOCAL_LIMIT"
            )
        if len(lengths) == 1:
            step = Step(layout, scale=how.scale, halved=how.halved)
            self._alone(builder, step, limits, how.inverse)
            return
        middles = _middles(builder, n, batch, inner, lengths)
        arrays = BatchedLayout.columns(n, batch, inner, layout.source, layout.target)
        steps = steps_of(arrays, lengths, middles, how.scale, word, how.halved)
        fusion = fusion_of(steps, self.config, limits, self.device)
        if fusion:
            self._fused(builder, steps, fusion, how.inverse)
            return
        for step in steps:
            self._alone(builder, step, limits, how.inverse, constant=inner == 1)

    def convolution(self, builder: PlanBuilder, layout: BatchedLayout, m: int, how: How) -> bool:
        """Add one launch of transforms as convolutions of length `m`, if it fits."""
        limits = self._convolution_limits(builder, m)
        if not limits.fits(m, 1):
            return False
        step = Step(
            replace(layout, n=m), scale=how.scale, convolved=Convolved(layout.n, how.inverse),
            halved=how.halved,
        )  # fmt: skip
        self._alone(builder, step, limits, False)
        return True

    def real(
        self, builder: PlanBuilder, layout: BatchedLayout, form: RealForm, scale: float
    ) -> bool:
        """Add one launch of transforms of real rows, or to them, if a group can do one."""
        packed, inverse = form.endswith("packed"), form.startswith("c2r")
        n, convolved = layout.n, None
        if is_smooth(n):
            limits = Limits.of(n, builder.real.itemsize, self.config, self.device)
            fits = lengths_of(n, layout.count, 1, limits) == (n,)
        else:
            n, convolved = convolution_length(n), Convolved(n, inverse)
            limits = self._convolution_limits(builder, n)
            fits = not packed and limits.fits(n, 1)
        # Opposite frequencies of packed signals are combined in local memory.
        if not fits or (packed and len(limits.radices(n)) == 1):
            return False
        step = Step(
            replace(layout, n=n), scale=scale, convolved=convolved, real=form,
            halved=form == "r2c-packed",
        )  # fmt: skip
        self._alone(builder, step, limits, inverse and convolved is None)
        return True

    def _convolution_limits(self, builder: PlanBuilder, m: int) -> Limits:
        """Return the limits of convolutions of length `m`, which are faster interleaved."""
        limits = Limits.of(m, builder.real.itemsize, self.config, self.device)
        chosen = self.config["EXCHANGE"] != "auto"
        return limits if chosen else replace(limits, exchange="interleaved")

    def _alone(
        self,
        builder: PlanBuilder,
        step: Step,
        limits: Limits,
        inverse: bool,
        constant: bool | None = None,
    ) -> None:
        """Add a launch of one step; `constant` says whether strides follow from the length."""
        rows = step.layout.reads_rows if constant is None else constant
        group = limits.group(step.layout.n, self._transforms(step, limits), *step.orders)
        self._launch(builder, [self._planned(builder, step, group, rows)], inverse)

    def _fused(
        self, builder: PlanBuilder, steps: Sequence[Step], fusion: Fusion, inverse: bool
    ) -> None:
        """Add a launch of two steps of rows."""
        planned = []
        for step, columns, tiles in zip(steps, fusion.columns, fusion.tiles, strict=True):
            group = fusion.limits.group(step.layout.n, columns, *step.orders)
            planned.append(self._planned(builder, step, group, True, tiles))
        self._launch(builder, planned, inverse, fusion)

    def _transforms(self, step: Step, limits: Limits) -> int:
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
        self, builder: PlanBuilder, step: Step, group: GroupPasses, constant: bool, tiles: int = 0
    ) -> PlannedStep[LocalStep]:
        """Return the template's and the kernel's parameters for a step."""
        layout, real = step.layout, step.real
        index = builder.index(
            *(b.nbytes // builder.dtype.itemsize for b in builder.buffers if b.role != "table")
        )
        tables, bits = _tables(builder, step, group)
        numbers = _numbers(step)
        constants = {name: numbers[name] for name in CONSTANTS if constant and name in numbers}
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
            halved=step.halved,
            scaled=step.scale != 1,
            step_twiddle_bits=bits,
            few_twiddles=bool(self.config["FEW_TWIDDLES"]),
            single_batch=step.times == 1,
            partial_group=layout.lanes % group.transforms != 0,
            tiles=tiles,
        )
        groups = ceil_divide(layout.lanes, group.transforms) * step.times
        ends: dict[str, Argument] = {"source": layout.source, "target": layout.target}
        scale = builder.real.type(step.scale)
        return PlannedStep(emitted, groups, index, {**ends, **tables, **indices, "scale": scale})

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
            arguments["counters"] = builder.zeros("counters", fusion.transforms + 1)
            arguments["transforms"] = np.uint32(fusion.transforms)
        steps = tuple(each.step for each in planned)
        reals = max(step.group.local_reals for step in steps)
        items = steps[0].group.work_group
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
                    "LOOK_AHEAD": fusion.look_ahead if fusion else 0,
                    "STEPS": steps,
                },
                # All in the first dimension: some devices limit the others to few groups.
                global_size=(sum(each.tasks for each in planned) * items,),
                local_size=(items,),
                arguments=arguments,
                local_bytes=reals * builder.real.itemsize + (TICKET_BYTES if fusion else 0),
            )
        )


def _middles(
    builder: PlanBuilder, n: int, batch: int, inner: int, lengths: tuple[int, ...]
) -> list[str]:
    """Add the arrays between steps: one, or two that alternate, of the size needed."""
    word = builder.real.itemsize
    sizes = [rows * pitch for rows, pitch in middle_rows(n, inner, lengths, word)]
    alternating = (sizes[::2], sizes[1::2])
    return [builder.scratch("middle", batch * max(held)) for held in alternating if held]


def _tables(
    builder: PlanBuilder, step: Step, group: GroupPasses
) -> tuple[dict[str, Argument], int]:
    """Add the tables of a step; return them by name, and `LocalStep.step_twiddle_bits`."""
    n, dtype, schedule = group.n, builder.dtype, group.schedule
    count = schedule.twiddle_count
    tables: dict[str, Argument] = {
        "twiddles": builder.table("twiddles", count, dtype, local_twiddles, schedule.radices, dtype)
    }
    bits = 0
    if step.twiddles is not None:
        finer, bits = _step_twiddles(builder, step.twiddles)
        tables |= finer
    if step.real in ("r2c-packed", "c2r-packed"):
        tables["real_twiddles"] = builder.table(
            "real_twiddles", n, dtype, strided_twiddles, n, 1, 2 * n, dtype
        )
    if step.convolved is not None:
        length, back = step.convolved
        tables["chirp"] = builder.table("chirp", length, dtype, chirp, length, back, dtype)
        tables["chirp_spectrum"] = builder.table(
            "chirp_spectrum", n, dtype, chirp_spectrum, length, n, back, dtype
        )
    return tables, bits


def _step_twiddles(builder: PlanBuilder, twiddles: StepTwiddles) -> tuple[dict[str, Argument], int]:
    """Add two tables of about sqrt(order) entries, whose products are all powers."""
    order, dtype = twiddles.order, builder.dtype
    bits = order.bit_length() // 2
    sizes = {"high": (ceil_divide(order, 1 << bits), 1 << bits), "low": (1 << bits, 1)}
    tables: dict[str, Argument] = {}
    for half, (count, distance) in sizes.items():
        name = f"step_twiddles_{half}"
        tables[name] = builder.table(
            name, count, dtype, strided_twiddles, count, distance, order, dtype
        )
    return tables, bits


def _numbers(step: Step) -> dict[str, int]:
    """Return the counts and distances of a step, in the order of the kernel's arguments."""
    layout, grid = step.layout, step.grid
    numbers = {} if step.twiddles is None else {"step_twiddle_lanes": step.twiddles.lanes}
    numbers |= {"outer": layout.outer, "lanes": layout.lanes}
    for side, strides, offset, batch in (
        ("source", layout.source_strides, grid.source_offset, grid.source_stride),
        ("target", layout.target_strides, grid.target_offset, grid.target_stride),
    ):
        numbers |= {f"{side}_offset": offset, f"{side}_batch": batch}
        numbers |= strides.named(side)
    return numbers
