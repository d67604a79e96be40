r"""Plans of the FFT for CPUs: single items that work on explicit vectors, without a barrier.

A launch does one *step*: transforms of one length. `passes.vector_step` describes how points lie in
vectors; this module decides how many steps there are, and where they read and write.

One step is enough where a transform fits into a cache and there is work for every compute unit.
Else a row of n = n1 * n2 points takes two, by D. H. Bailey's *four-step* transform ("FFTs in
external or hierarchical memory", 1990). With w_m = exp(-2 pi i / m), and
j = n2 * j1 + j2, k = k1 + n1 * k2,

    X[k1 + n1 k2]  =  sum over j2 of  w_n2^(j2 k2)  w_n^(j2 k1)  sum over j1 of  w_n1^(j1 k1) x[j]
                      \__________________________/  \_________/  \_____________________________/
                         n1 transforms of n2          twiddles        n2 transforms of n1 points

where x, an intermediate y and X are matrices whose rows lie one after the other::

    x, n1 x n2               y, n2 x n1               X, n2 x n1
    +-- j2 --->              +-- k1 --->              +-- k1 --->
    |  |  |  |   step 1      |  -------   step 2      |  |  |  |
    j1 |  |  |  --------->   j2 -------  --------->   k2 |  |  |
    v  v  v  v               v  -------               v  v  v  v
       columns                  stored as rows           columns of y, and of X in their place

Bailey's four steps are the transforms on the right, the multiplication by the twiddle factors
between, a transposition, and the transforms on the left. Here *step* means one length of these
two, n1 or n2, whether it has a launch of its own or not. The transposition is done in registers as
rows of y are stored. The *step twiddles* w_n^(j2 k1) take no step of their own either:

    w_n2^(j2 k2) w_n^(j2 k1)  =  w_n2^(j2 (k2 + k1 / n1)),

so the second step evaluates transform k1 at frequencies k2 + k1 / n1. Each of its passes multiplies
by a factor that depends on the position and by one that depends on k1
(`opencl_lab.ops.fft.passes.twiddles`).

For 2^20 points on two units with vectors of 8 floats, the costs choose n1 = 2048 and n2 = 512:

    step   transforms          radices    reads          writes                        tasks
    0      512 of 2048 points  8 8 8 4    columns of x   rows of y, where X will be    16
    1      2048 of 512 points  8 8 8      columns of y   columns of X, in place        64

A task is 4 vectors of 8 columns, if 1 MiB of local memory holds its arrays.

Where units see what others have written, both steps share a launch: they are *fused*, and
``clkernels/common/work_stealing.mako`` says how items go from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import c_type
from opencl_lab.core.plan import Argument, Launch
from opencl_lab.ops.fft.passes.builder import PlanBuilder, PlannedStep, arguments_of
from opencl_lab.ops.fft.passes.costs import CostModel, StepCost, best_split, worth_fetching
from opencl_lab.ops.fft.passes.factors import LARGE_PRIMES, radices_of
from opencl_lab.ops.fft.passes.layout import BatchedLayout, Strides
from opencl_lab.ops.fft.passes.planner import FORWARD, How, Planner
from opencl_lab.ops.fft.passes.rows import columns_as_rows
from opencl_lab.ops.fft.passes.schedule import Schedule
from opencl_lab.ops.fft.passes.twiddles import vector_step_twiddles, vector_twiddles
from opencl_lab.ops.fft.passes.vector_step import Fetch, Vectors, VectorStep

TEMPLATE = "fourier/fft_vector.cl.mako"
KERNEL = "fft_vector"
LONGEST = 1 << 13
"""Points of a transform over the batch, of which the level-2 cache holds two arrays."""
POLLS_PER_POINT = 1
"""How often an item reads the counter of those that have finished before it ends, per point of its
work arrays. To read it takes longer than to work on a point, so the item waits longer than a task
takes."""


class VectorPlanner(Planner):
    """Plans of single items that work on vectors."""

    cooperative = False
    large_primes = LARGE_PRIMES[-1]  # a pass costs a point as many operations as its radix

    @property
    def width(self) -> int:
        """Lanes of a vector."""
        return self.config.integer("VECTOR_WIDTH")

    def transform(self, builder: PlanBuilder, layout: BatchedLayout, how: How = FORWARD) -> None:
        """Add the launches of transforms that have passes; see `Planner.transform`.

        Columns that no cache holds become rows first.
        """
        if layout.n > LONGEST and layout.lanes > 1 and layout.source_strides.lane == 1:
            columns_as_rows(self, builder, layout, how)
            return
        self.add(builder, self.steps(builder, layout, how), how.inverse)

    def steps(
        self, builder: PlanBuilder, layout: BatchedLayout, how: How = FORWARD
    ) -> list[PlannedStep[VectorStep]]:
        """Return the steps of transforms. Rows take one step or two, by their costs."""
        n1 = self.split(layout, builder.real.itemsize)
        if n1:
            return self._two_steps(builder, layout, n1, how)
        return [self._one_step(builder, layout, how)]

    def add(
        self, builder: PlanBuilder, planned: Sequence[PlannedStep[VectorStep]], inverse: bool
    ) -> None:
        """Add the launches of steps that follow each other."""
        countable = all(each.tasks < 1 << 31 for each in planned)  # by 32-bit counters
        fused = _sees_writes(self.device) and countable
        for launch in [planned] if fused else [[each] for each in planned]:
            self._launch(builder, launch, inverse)

    def _radices(self, n: int) -> tuple[int, ...]:
        return radices_of(n, self.config.integer("MAX_RADIX"))

    def radices_over_points(self, n: int) -> tuple[int, ...] | None:
        """Return radices for vectors over the points, or None where lanes would stay empty.

        The first is a multiple of the width, and the others have at least as many points as lanes.
        """
        width, largest = self.width, self.config.integer("MAX_RADIX")
        for first in (16, 8, 4, 2):
            if first % width == 0 and first <= max(width, largest):
                rest = n // first
                if n % first == 0 and rest >= width:
                    return (first, *self._radices(rest))
        return None

    def split(self, layout: BatchedLayout, word: int) -> int:
        """Return the length n1 of the first of two steps that are cheaper than one, or 0.

        The parameter SPLIT may ask for two steps wherever possible, or never.
        """
        if not _are_rows(layout) or self.config["SPLIT"] == "never":
            return 0
        model = CostModel(
            width=self.width,
            block=self.config.integer("BLOCK"),
            max_radix=self.config.integer("MAX_RADIX"),
            word=word,
            units=self.device.compute_units,
            fused=_sees_writes(self.device),
        )
        cost, split = best_split(model, layout.n, layout.count, LONGEST)
        n1 = split[0] if split else 0
        if not n1 or self.config["SPLIT"] == "always":
            return n1
        return n1 if self.splits(layout, model, cost) else 0

    def splits(self, layout: BatchedLayout, model: CostModel, two_steps: float) -> bool:
        """Return whether two steps of rows, of that cost, are better than one."""
        over_points = self.radices_over_points(layout.n)
        radices = over_points or self._radices(layout.n)
        alone = StepCost(layout.n, layout.count, radices, over_points=over_points is not None)
        if over_points is None:
            alone = replace(alone, transposed=2)
        return two_steps < model.nanoseconds(alone)

    def _one_step(
        self, builder: PlanBuilder, layout: BatchedLayout, how: How
    ) -> PlannedStep[VectorStep]:
        """Return a transform in one step, with vectors over the points where rows allow it."""
        radices = self.radices_over_points(layout.n) if _are_rows(layout) else None
        vectors = Vectors.over_points(self.width) if radices else None
        schedule = Schedule.of(radices or self._radices(layout.n))
        return self._planned(builder, layout, schedule, vectors, scale=how.scale, halved=how.halved)

    def _two_steps(
        self, builder: PlanBuilder, layout: BatchedLayout, n1: int, how: How
    ) -> list[PlannedStep[VectorStep]]:
        """Return a four-step transform: columns of n1 points, stored as rows; columns of n2 points.

        The second step writes where it has read if none of its vectors overlap. Then the memory of
        the result is the only memory that is gone through twice.
        """
        n, count, n2 = layout.n, layout.count, layout.n // n1
        in_place = n1 % self.width == 0
        middle = layout.target if in_place else builder.scratch("middle", n * count)
        from_row, to_row = layout.source_strides.lane, layout.target_strides.lane
        middle_row = to_row if in_place else n
        columns_of_x, rows_of_y = Strides(from_row, n2, 1), Strides(middle_row, 1, n1)
        columns_of_y, columns_of_result = Strides(middle_row, n1, 1), Strides(to_row, n1, 1)
        first = BatchedLayout(n1, count, n2, layout.source, middle, columns_of_x, rows_of_y)
        second = BatchedLayout(
            n2, count, n1, middle, layout.target, columns_of_y, columns_of_result
        )
        return [
            self._planned(builder, first, Schedule.of(self._radices(n1)), halved=how.halved),
            self._planned(
                builder, second, Schedule.of(self._radices(n2)), scale=how.scale, step_twiddles=True
            ),
        ]

    def _over_batch(self, layout: BatchedLayout, word: int) -> Vectors:
        """Return vectors over the batch, in blocks whose arrays local memory holds."""
        one = Vectors.over_batch(layout.lanes, self.width)
        if 1 not in (layout.source_strides.lane, layout.target_strides.lane):
            return one
        nbytes = one.array(layout.n) * self.width * 2 * word
        fitting = self.device.capabilities.local_memory // nbytes - 1  # and one is free
        block = _block(layout.lanes, self.width, self.config.integer("BLOCK"), fitting)
        return Vectors.over_batch(layout.lanes, self.width, block)

    def _planned(
        self,
        builder: PlanBuilder,
        layout: BatchedLayout,
        schedule: Schedule,
        vectors: Vectors | None = None,
        scale: float = 1.0,
        halved: bool = False,
        step_twiddles: bool = False,
    ) -> PlannedStep[VectorStep]:
        """Return one step; its vectors are over the batch by default."""
        word = builder.real.itemsize
        vectors = vectors or self._over_batch(layout, word)
        batch = vectors.over == "batch"
        step = VectorStep(
            schedule,
            vectors,
            word,
            load="rows" if batch and layout.source_strides.lane != 1 else "columns",
            store="rows" if batch and layout.target_strides.lane != 1 else "columns",
            step_twiddles=step_twiddles,
            halved=halved,
            scaled=scale != 1,
        )
        step = replace(step, fetch=self._fetch(step, layout))
        index = builder.index(layout.extent)
        tasks = layout.outer * vectors.blocks(layout.lanes)
        arguments: dict[str, Argument] = {
            "source": layout.source,
            "target": layout.target,
            **_tables(builder, step, layout.lanes),
            **{name: index(number) for name, number in numbers_of(layout).items()},
            "scale": builder.real.type(scale),
        }
        return PlannedStep(step, tasks, index, arguments)

    def _fetch(self, step: VectorStep, layout: BatchedLayout) -> Fetch:
        """Return what the passes of a step prefetch."""
        if self.device.kind != "cpu" or self.device.simulated:
            return "none"
        moved = 2 * layout.n * layout.count * 2 * step.word  # in and out, real and imaginary
        columns = step.vectors.over == "batch" and step.store == "columns"
        return worth_fetching(moved, step.nbytes, columns, self.device.compute_units)

    def _launch(
        self, builder: PlanBuilder, planned: Sequence[PlannedStep[VectorStep]], inverse: bool
    ) -> None:
        """Add one launch of one step, or of several that follow each other."""
        fused = len(planned) > 1
        nbytes = max(each.step.nbytes for each in planned)
        local = nbytes <= self.device.capabilities.local_memory
        # Items that claim their tasks share the load evenly: one per unit is enough.
        per_unit = 1 if fused else self.config.integer("ITEMS_PER_UNIT")
        items = min(max(each.tasks for each in planned), per_unit * self.device.compute_units)
        word = builder.real.itemsize
        arguments = arguments_of(planned)
        if fused:
            arguments["counters"] = builder.zeros("counters", len(planned) * (items + 1) + 1)
        if not local:
            arguments["work"] = builder.scratch("work", items * nbytes // word, builder.real)
        builder.launches.append(
            Launch(
                template=TEMPLATE,
                kernel=KERNEL,
                params={
                    **self._params(builder, planned[0].index, inverse),
                    "WORK": "local" if local else "global",
                    "STEPS": tuple(each.step for each in planned),
                    "MAX_POLLS": POLLS_PER_POINT * (nbytes // (2 * word)) if fused else 0,
                },
                global_size=(items,),
                local_size=(1,),
                arguments=arguments,
                local_bytes=nbytes if local else 0,
            )
        )

    def _params(self, builder: PlanBuilder, index: Any, inverse: bool) -> dict[str, Any]:
        """Return the parameters of a launch of one step in local memory, but for that step."""
        return {
            "ELEMENT": builder.element,
            "INDEX_T": c_type(index),
            "VECTOR_WIDTH": self.width,
            "WORK": "local",
            "INVERSE": inverse,
            "BUFFERS": None,
            "OWN": None,
            "MAX_POLLS": 0,
        }


def _are_rows(layout: BatchedLayout) -> bool:
    """Return whether transforms are contiguous rows, in and out, without gaps."""
    return layout.reads_rows and layout.writes_rows and layout.outer == 1


def _sees_writes(device: Device) -> bool:
    """Return whether compute units see what others have written before the fence of this form.

    That is the fence of OpenCL C, which NVIDIA compiles to a fence for the own work-group only.
    """
    return device.capabilities.visible_writes and not device.capabilities.inline_ptx


def _block(lanes: int, width: int, most: int, fitting: int) -> int:
    """Return how many vectors of lanes are side by side: neighbours in memory, loaded together.

    They are at most `most`, at most `fitting`, and not more than there are. Fewer are better than a
    last block that overlaps the one before it.
    """
    fits = [b for b in range(most, 0, -1) if b == 1 or (b <= fitting and b * width <= lanes)]
    return next((b for b in fits if lanes % (b * width) == 0), fits[0])


def _tables(builder: PlanBuilder, step: VectorStep, lanes: int) -> dict[str, Argument]:
    """Add the twiddle factors of a step; return them as arguments."""
    schedule, vectors, real = step.schedule, step.vectors, builder.real
    found: dict[str, Argument] = {
        "twiddles": builder.table(
            "twiddles", 2 * schedule.twiddle_count, real,
            vector_twiddles, schedule, vectors.positions, real,
        )
    }  # fmt: skip
    if step.step_twiddles:
        count = 2 * step.step_twiddle_count * vectors.transforms * vectors.blocks(lanes)
        found["step_twiddles"] = builder.table(
            "step_twiddles", count, real,
            vector_step_twiddles, schedule, vectors, lanes, real,
        )  # fmt: skip
    return found


def numbers_of(layout: BatchedLayout) -> dict[str, int]:
    """Return the counts and strides of a layout, by the names of the kernel's parameters."""
    read, written = layout.source_strides.named("source"), layout.target_strides.named("target")
    return {"outer": layout.outer, "lanes": layout.lanes, **read, **written}
