"""Plans of the FFT for CPUs: vectors of transforms, or vectors of positions in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opencl_lab.device import Device
from opencl_lab.fourier.builder import PlanBuilder, index_t
from opencl_lab.fourier.costs import Shape, best_split, nanoseconds, worth_fetching
from opencl_lab.fourier.factors import radices_of
from opencl_lab.fourier.layout import BatchedLayout, Strides
from opencl_lab.fourier.planner import Planner
from opencl_lab.fourier.rows import columns_as_rows
from opencl_lab.fourier.schedule import Schedule
from opencl_lab.fourier.twiddles import vector_step_twiddles, vector_twiddles
from opencl_lab.plan import Argument, Launch
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "VectorPlanner"]

TEMPLATE = "fourier/fft_vector.cl.mako"
LONGEST = 1 << 13
"""Positions of a transform across lanes that the second cache holds twice."""
GAP = 9
"""Positions between the arrays of a block, which would fight for the same lines of the caches
where their lengths are powers of two."""
PATIENCE = 1
"""How often a unit looks whether others have finished, for each point of a task, before it
leaves them: some times as long as a task takes, as a look takes longer than a point."""


class VectorPlanner(Planner):
    """Plans of single items that work on vectors."""

    cooperative = False

    def transform(
        self,
        builder: PlanBuilder,
        layout: BatchedLayout,
        inverse: bool = False,
        scale: float = 1.0,
        halved: bool = False,
    ) -> None:
        """Add the launches of transforms of a smooth length.

        One step where a transform fits into the cache and there is one for every compute
        unit; else two, columns and rows of the transform arranged as a matrix.
        """
        config, device = self.config, self.device
        if layout.n > LONGEST and layout.lanes > 1 and layout.source_strides.lane == 1:
            columns_as_rows(self, builder, layout, inverse, scale, halved)
            return
        columns = _split(layout, builder.real.itemsize, config, device)
        if columns:
            _four_steps(builder, layout, columns, inverse, scale, halved, config, device)
            return
        radices = _within(layout.n, config) if _are_rows(layout) else None
        within = radices is not None
        radices = radices or radices_of(layout.n, config.integer("MAX_RADIX"))
        part = _step(builder, layout, radices, within, scale, config, device, halved=halved)
        _launch(builder, [part], inverse, config, device)


def _are_rows(layout: BatchedLayout) -> bool:
    return (
        layout.source_strides.position == layout.target_strides.position == 1 and layout.outer == 1
    )


def _split(layout: BatchedLayout, word: int, config: Config, device: Device) -> int:
    """Return the length of the first of two steps that are cheaper than one, or 0.

    SPLIT may say to split always where there are two lengths, or never.
    """
    if not _are_rows(layout) or config["SPLIT"] == "never":
        return 0
    width, largest = config.integer("VECTOR_WIDTH"), config.integer("MAX_RADIX")
    units, block = device.compute_units, config.integer("BLOCK")
    joined = _sees_writes(device)
    cost, split = best_split(
        layout.n, layout.count, width, block, largest, word, units, LONGEST, joined
    )
    if split is None or config["SPLIT"] == "always":
        return split[0] if split else 0
    radices = _within(layout.n, config)
    alone = Shape(
        layout.n, layout.count, radices or radices_of(layout.n, largest), width,
        radices is not None, word, transposed=0 if radices else 2,
    )  # fmt: skip
    return split[0] if cost < nanoseconds(alone, units) else 0


def _within(n: int, config: Config) -> tuple[int, ...] | None:
    """Return radices for vectors inside a transform, the first a multiple of the width."""
    width = config.integer("VECTOR_WIDTH")
    for first in (16, 8, 4, 2):
        if first % width == 0 and first <= max(width, config.integer("MAX_RADIX")):
            rest = n // first
            if n % first == 0 and rest >= width:
                return (first, *radices_of(rest, config.integer("MAX_RADIX")))
    return None


def _four_steps(
    builder: PlanBuilder,
    layout: BatchedLayout,
    columns: int,
    inverse: bool,
    scale: float,
    halved: bool,
    config: Config,
    device: Device,
) -> None:
    """Add columns, stored as rows; then columns again, each at its fraction of a frequency.

    The second step writes in place of what it reads, where its vectors do not overlap,
    so that the memory of the result is the only one that is passed twice. Both steps share a
    launch where units see what others have written.
    """
    n, count, rows = layout.n, layout.count, layout.n // columns
    largest = config.integer("MAX_RADIX")
    in_place = columns % config.integer("VECTOR_WIDTH") == 0
    middle = layout.target if in_place else builder.scratch("middle", n * count)
    across = Strides(n, columns, 1)
    first = BatchedLayout(
        columns, count, rows, layout.source, middle, Strides(n, rows, 1), Strides(n, 1, columns)
    )
    second = BatchedLayout(rows, count, columns, middle, layout.target, across, across)
    parts = [
        _step(
            builder, first, radices_of(columns, largest), False, 1.0, config, device, halved=halved
        ),
        _step(builder, second, radices_of(rows, largest), False, scale, config, device, twist=True),
    ]
    countable = all(part.tasks < 1 << 31 for part in parts)  # by 32-bit counters
    joined = _sees_writes(device) and countable
    for launch in [parts] if joined else [[part] for part in parts]:
        _launch(builder, launch, inverse, config, device)


def _sees_writes(device: Device) -> bool:
    """Return whether units see what others have written before the fence of this form.

    It is the one of OpenCL C, which NVIDIA compiles to a fence for the own group alone.
    """
    return device.capabilities.visible_writes and not device.capabilities.inline_ptx


def _block(lanes: int, width: int, most: int, fitting: int) -> int:
    """Return how many vectors of lanes go side by side: neighbours in memory, loaded at once.

    At most `most`, and no more than fit or than there are; rather fewer than some
    that overlap others.
    """
    able = [b for b in range(most, 0, -1) if b == 1 or (b <= fitting and b * width <= lanes)]
    return next((b for b in able if lanes % (b * width) == 0), able[0])


@dataclass(frozen=True)
class _Step:
    """Transforms of one length: what the template and the kernel take of them.

    An item does one of the `tasks` at a time, in arrays of `nbytes`.
    """

    tasks: int
    nbytes: int
    index: Any
    params: dict[str, Any]
    arguments: dict[str, Argument]


def _step(
    builder: PlanBuilder,
    layout: BatchedLayout,
    radices: tuple[int, ...],
    within: bool,
    scale: float,
    config: Config,
    device: Device,
    twist: bool = False,
    halved: bool = False,
) -> _Step:
    width = config.integer("VECTOR_WIDTH")
    unit = width if within else 1
    gap = 0 if within else GAP
    one = 2 * (layout.n // unit + gap) * width * builder.real.itemsize  # bytes of a vector's array
    block, tail = 1, "none"
    if not within and 1 in (layout.source_strides.lane, layout.target_strides.lane):
        fitting = device.capabilities.local_memory // one - 1
        block = _block(layout.lanes, width, config.integer("BLOCK"), fitting)
    if not within and layout.lanes % (width * block):
        tail = "overlap" if layout.lanes > width else "few"
    blocks = layout.lanes if within else -(-layout.lanes // (width * block))
    count = 2 * Schedule.of(radices).twiddle_count
    arguments: dict[str, Argument] = {
        "source": layout.source,
        "target": layout.target,
        "twiddles": builder.table(
            "twiddles", count, builder.real, vector_twiddles, radices, unit, builder.real
        ),
    }
    if twist:
        factors = 2 * sum(radix - 1 for radix in radices) * width * block * blocks
        arguments["twist"] = builder.table(
            "twist",
            factors,
            builder.real,
            vector_step_twiddles,
            radices,
            layout.lanes,
            width,
            block,
            builder.real,
        )
    load = "rows" if not within and layout.source_strides.lane != 1 else "columns"
    store = "rows" if not within and layout.target_strides.lane != 1 else "columns"
    fetch = "none"
    if device.kind == "cpu" and not device.simulated:
        moved = 2 * layout.n * layout.count * builder.dtype.itemsize
        columns = not within and store == "columns"
        fetch = worth_fetching(moved, (block + 1) * one, columns, device.compute_units)
    index = builder.index(layout.n * layout.count)
    numbers: dict[str, Any] = {"outer": layout.outer, "lanes": layout.lanes}
    for side, strides in (("source", layout.source_strides), ("target", layout.target_strides)):
        numbers |= {f"{side}_{axis}": stride for axis, stride in strides._asdict().items()}
    arguments |= {name: index(number) for name, number in numbers.items()}
    arguments["scale"] = builder.real.type(scale)
    params = {
        "BLOCK": block,
        "N": layout.n,
        "RADICES": radices,
        "LANES": "within" if within else "across",
        # A vector of positions is loaded and stored as neighbours are, in columns.
        "LOAD": load,
        "STORE": store,
        "TAIL": tail,
        "FEW": layout.lanes if tail == "few" else 0,
        "TWIST": twist,
        "HALVED": halved,
        "SCALED": scale != 1,
        "GAP": gap,
        "FETCH": fetch,
    }
    # Each vector of a block has an array, and they share one more.
    return _Step(layout.outer * blocks, (block + 1) * one, index, params, arguments)


def _launch(
    builder: PlanBuilder, parts: Sequence[_Step], inverse: bool, config: Config, device: Device
) -> None:
    """Add one launch of one step, or of several that follow each other."""
    joined = len(parts) > 1
    nbytes = max(part.nbytes for part in parts)
    local = nbytes <= device.capabilities.local_memory
    # Items that claim their tasks need no others that share a unit with them.
    each = 1 if joined else config.integer("ITEMS_PER_UNIT")
    items = min(max(part.tasks for part in parts), each * device.compute_units)
    points = nbytes // (2 * builder.real.itemsize)
    arguments = {
        f"{name}_{place}": argument
        for place, part in enumerate(parts)
        for name, argument in part.arguments.items()
    }
    if joined:
        arguments["counters"] = builder.zeros("counters", len(parts) * (items + 1) + 1)
    if not local:
        reals = items * nbytes // builder.real.itemsize
        arguments["work"] = builder.scratch("work", reals, builder.real)
    builder.launches.append(
        Launch(
            template=TEMPLATE,
            kernel="fft_vector",
            params={
                "REAL_T": builder.real_t,
                "INDEX_T": index_t(parts[0].index),
                "VECTOR_WIDTH": config.integer("VECTOR_WIDTH"),
                "WORK": "local" if local else "global",
                "INVERSE": inverse,
                "STEPS": tuple(part.params for part in parts),
                "PATIENCE": PATIENCE * points if joined else 0,
            },
            global_size=(items,),
            local_size=(1,),
            arguments=arguments,
            local_bytes=nbytes if local else 0,
        )
    )
