"""Plans of the FFT for GPUs: work-groups that transform in local memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.fourier.builder import PlanBuilder, index_t
from opencl_lab.fourier.factors import convolution_length, is_smooth, radices_of
from opencl_lab.fourier.layout import BatchedLayout, Strides
from opencl_lab.fourier.planner import Planner, RealForm
from opencl_lab.fourier.schedule import Schedule
from opencl_lab.fourier.splits import (
    Limits,
    StepShape,
    columns_of,
    gap_of,
    items_of,
    lengths_of,
    middle_rows,
    paired_columns,
    worth_joining,
)
from opencl_lab.fourier.twiddles import chirp, chirp_spectrum, local_twiddles, strided_twiddles
from opencl_lab.plan import Argument, Launch
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "LocalMemoryPlanner", "can_fuse"]

TEMPLATE = "fourier/fft_local.cl.mako"
KNOWN = ("shift_inner", "source_position", "source_lane", "target_position", "target_lane")
"""Numbers that follow from the length of transforms of rows: compilers make good use of them."""
AHEAD_POINTS = 1 << 12
"""Points a unit by which the first of two steps in a launch is ahead: those it works on."""
TICKET_BYTES = 4
LEAST_TIMES = 4
"""How many times as far as the first step is ahead there must be to go, to share a launch."""


@dataclass(frozen=True)
class _Grid:
    """The slowest axis of a launch: how often all is repeated, how far apart, from where."""

    count: int = 1
    source_stride: int = 0
    target_stride: int = 0
    source_offset: int = 0
    target_offset: int = 0


@dataclass(frozen=True)
class _Part:
    """One step of a transform: where it reads and writes, and what else it does.

    `shift` is the order of the roots between steps, and how many lanes share one;
    `chirped` the length and direction of a transform that is done as a convolution; `real` is
    the parameter REAL of the template.
    """

    layout: BatchedLayout
    grid: _Grid = _Grid()
    scale: float = 1.0
    shift: tuple[int, int] | None = None
    chirped: tuple[int, bool] | None = None
    real: RealForm | None = None
    last: bool = False
    halved: bool = False

    @property
    def times(self) -> int:
        """How often there are so many neighbouring lanes."""
        return self.layout.outer * self.grid.count

    @property
    def maps(self) -> tuple[str, str]:
        """Whether neighbouring items take rows or columns, on the way in and out."""
        layout = self.layout
        load, store = (
            "columns" if strides.lane == 1 and layout.lanes > 1 else "rows"
            for strides in (layout.source_strides, layout.target_strides)
        )
        return load, store

    @property
    def shape(self) -> StepShape | None:
        """What the cost of columns depends on, or None for rows."""
        load, store = self.maps
        if load == store == "rows":
            return None
        layout = self.layout
        pitch = math.gcd(
            layout.target_strides.position, layout.source_strides.position if load == store else 0
        )
        return StepShape(layout.n, layout.lanes, self.times, load == "columns", pitch, self.last)


@dataclass(frozen=True)
class _Joint:
    """How two steps share a launch: columns of a group in each, and groups of a transform.

    The first one is `ahead` transforms in front.
    """

    limits: Limits
    columns: tuple[int, int]
    tiles: tuple[int, int]
    transforms: int
    ahead: int


@dataclass(frozen=True)
class _Step:
    """One step: what the template and the kernel take of it."""

    groups: int
    items: int
    reals: int
    index: Any
    params: dict[str, Any]
    arguments: dict[str, Argument]


class LocalMemoryPlanner(Planner):
    """Plans of work-groups that keep transforms in registers and local memory."""

    cooperative = True

    def transform(
        self,
        builder: PlanBuilder,
        layout: BatchedLayout,
        inverse: bool = False,
        scale: float = 1.0,
        halved: bool = False,
    ) -> None:
        """Add the launches of transforms of a smooth length, as rows or as columns.

        One launch where a group can hold a transform; else the transform is arranged as a
        matrix, or as a box, and each launch transforms along one of its axes, or
        along both.
        """
        config, device = self.config, self.device
        n, word = layout.n, builder.real.itemsize
        rows = layout.reads_rows
        batch, inner = (layout.count, 1) if rows else (layout.outer, layout.lanes)
        limits = Limits.of(n, word, config, device)
        lengths = lengths_of(n, batch, inner, limits)
        if lengths is None:
            raise InvalidConfig(
                f"no lengths that fit a work-group multiply to {n}; "
                "try fewer POINTS or a larger LOCAL_LIMIT"
            )
        if len(lengths) == 1:
            part = _Part(layout, scale=scale, halved=halved)
            _launch(builder, [_step(builder, part, config, limits, rows)], inverse, device)
            return
        sizes = [rows * pitch for rows, pitch in middle_rows(n, inner, lengths, word)]
        middles = [
            builder.scratch("middle", batch * max(part))
            for part in (sizes[::2], sizes[1::2])
            if part
        ]
        base = BatchedLayout.columns(n, batch, inner, layout.source, layout.target)
        parts = _parts(base, lengths, middles, scale, word, halved)
        joint = _joint(parts, config, limits, device)
        if joint:
            pair = [
                _step(builder, part, config, joint.limits, inner == 1, columns)
                for part, columns in zip(parts, joint.columns, strict=True)
            ]
            _launch(builder, pair, inverse, device, joint)
            return
        for part in parts:
            step = _step(builder, part, config, limits, inner == 1)
            _launch(builder, [step], inverse, device)

    def convolution(
        self,
        builder: PlanBuilder,
        layout: BatchedLayout,
        m: int,
        inverse: bool,
        scale: float,
        halved: bool,
    ) -> bool:
        """Add one launch of transforms as convolutions of length `m`, if it fits."""
        limits = _chirp_limits(m, builder, self.config, self.device)
        if not limits.fits(m, 1):
            return False
        chirped = (layout.n, inverse)
        part = _Part(replace(layout, n=m), scale=scale, chirped=chirped, halved=halved)
        step = _step(builder, part, self.config, limits, layout.reads_rows)
        _launch(builder, [step], False, self.device)
        return True

    def real(
        self, builder: PlanBuilder, layout: BatchedLayout, form: RealForm, scale: float
    ) -> bool:
        """Add one launch of transforms of real rows, or to them, if a group can do one."""
        config, device = self.config, self.device
        packed, inverse = form.endswith("packed"), form.startswith("c2r")
        n, chirped = layout.n, None
        limits = Limits.of(n, builder.real.itemsize, config, device)
        if not is_smooth(n):
            if packed:
                return False
            n, chirped = convolution_length(n), (n, inverse)
            limits = _chirp_limits(n, builder, config, device)
            if not limits.fits(n, 1):
                return False
        elif lengths_of(n, layout.count, 1, limits) != (n,):
            return False
        if packed and len(radices_of(n, limits.max_radix)) == 1:  # no local memory to meet in
            return False
        part = _Part(
            replace(layout, n=n), scale=scale, chirped=chirped, real=form,
            halved=form == "r2c-packed",
        )  # fmt: skip
        step = _step(builder, part, config, limits, True)
        _launch(builder, [step], inverse and chirped is None, device)
        return True


def _chirp_limits(m: int, builder: PlanBuilder, config: Config, device: Device) -> Limits:
    """Return the limits of convolutions of length `m`, which gain from pairs."""
    limits = Limits.of(m, builder.real.itemsize, config, device)
    return replace(limits, exchange="interleaved") if config["EXCHANGE"] == "auto" else limits


def _parts(
    base: BatchedLayout,
    lengths: tuple[int, ...],
    middles: list[str],
    scale: float,
    word: int,
    halved: bool,
) -> list[_Part]:
    """Return the steps, an axis each: digits of the position become digits of the frequency.

    Before step s, the array of a transform is [k1]...[k(s-1)][j(s)][rest], with frequency
    digits in front; all steps but the last keep that order, in scratch memory whose rows
    of [rest] are aligned, and the last one writes the frequency digits in reverse order,
    [k(last)]...[k1].
    """
    n, batch, inner = base.n, base.outer, base.lanes
    done = 1
    parts: list[_Part] = []
    source, row, pitch = base.source, n * inner, n * inner
    middle = middle_rows(n, inner, lengths, word)
    for place, (length, (rows, padded)) in enumerate(zip(lengths[:-1], middle, strict=True)):
        rest = n // rows * inner
        target = middles[place % 2]
        from_strides, to_strides = Strides(pitch, rest, 1), Strides(length * padded, padded, 1)
        layout = BatchedLayout(length, done, rest, source, target, from_strides, to_strides)
        grid = _Grid(batch, row, rows * padded)
        first = halved and not parts
        parts.append(_Part(layout, grid, shift=(n // done, inner), halved=first))
        source, row, pitch, done = target, rows * padded, padded, rows
    last = lengths[-1]
    axes = [(batch, row, n * inner)]
    before = 1
    for length in lengths[:-1]:
        before *= length
        axes.append((length, pitch * (done // before), inner * (before // length)))
    # Neighbouring lanes are neighbours in the result: those of the user, or else k1.
    lanes = axes.pop(1) if inner == 1 else (inner, 1, 1)
    # A launch has two more axes; a loop of launches has those of fewest steps.
    axes.sort(reverse=True)
    outer, grid_axis, *looped = axes if len(axes) > 1 else [*axes, (1, 0, 0)]
    for digits in itertools.product(*(range(count) for count, _, _ in looped)):
        moved = list(zip(digits, looped, strict=True))
        grid = _Grid(
            *grid_axis,
            sum(digit * axis[1] for digit, axis in moved),
            sum(digit * axis[2] for digit, axis in moved),
        )
        from_strides = Strides(outer[1], inner, lanes[1])
        to_strides = Strides(outer[2], done * inner, lanes[2])
        layout = BatchedLayout(
            last, outer[0], lanes[0], source, base.target, from_strides, to_strides
        )
        parts.append(_Part(layout, grid, scale, last=inner == 1))
    return parts


def can_fuse(device: Device) -> bool:
    """Return whether two steps can share a launch.

    CPUs cannot: PoCL's compiler, which makes loops of what lies between barriers, makes wrong
    code of some barriers in conditions.
    """
    able = device.capabilities.forward_progress and device.capabilities.visible_writes
    return able and device.kind != "cpu"


def _joint(parts: list[_Part], config: Config, limits: Limits, device: Device) -> _Joint | None:
    """Return how two steps of rows share a launch, or None if they had better not.

    FUSED may say to share always where that can be, or never.
    """
    if len(parts) != 2 or not parts[1].last or config["FUSED"] == "never" or not can_fuse(device):
        return None
    first, second = parts[0].shape, parts[1].shape
    assert first is not None and second is not None  # columns in, or columns out
    exchanges = ("split", "two-phase") if config["EXCHANGE"] == "auto" else (limits.exchange,)
    room = limits.local_memory - TICKET_BYTES
    limited = [replace(limits, exchange=exchange, local_memory=room) for exchange in exchanges]
    found = [(*paired_columns(first, second, each), each) for each in limited]
    if config["FUSED"] == "auto":
        found = [each for each in found if worth_joining(first, second, *each[1:])]
    cost, columns, chosen = min(found, key=lambda each: each[0], default=(math.inf, (1, 1), limits))
    transforms = first.times
    tiles = tuple(-(-shape.lanes // c) for shape, c in zip((first, second), columns, strict=True))
    ahead = 1 + round(device.compute_units * AHEAD_POINTS / (first.n * first.lanes))
    countable = max(transforms, tiles[0]) * sum(tiles) < 1 << 32
    if math.isinf(cost) or transforms < LEAST_TIMES * ahead or not countable:
        return None
    return _Joint(chosen, columns, (tiles[0], tiles[1]), transforms, ahead)


def _step(
    builder: PlanBuilder, part: _Part, config: Config, limits: Limits, known: bool, columns: int = 0
) -> _Step:
    """Return one step, with so many `columns` a group, or as many as are best.

    `known` says whether distances follow from the length of the transforms.
    """
    layout, grid, shape = part.layout, part.grid, part.shape
    n, (load, store) = layout.n, part.maps
    radices, items = radices_of(n, limits.max_radix), items_of(n, limits)
    if columns:
        transforms = columns
    elif shape is None:  # no use but full groups
        transforms = max(1, min(layout.lanes, -(-config.integer("WG_SIZE") // items)))
        while transforms > 1 and not limits.fits(n, transforms):
            transforms -= 1
    else:
        transforms = columns_of(shape, limits)
    index = builder.index(
        *(b.nbytes // builder.dtype.itemsize for b in builder.buffers if b.role != "table")
    )
    count = Schedule.of(radices).twiddle_count
    arguments: dict[str, Argument] = {
        "source": layout.source,
        "target": layout.target,
        "twiddles": builder.table(
            "twiddles", count, builder.dtype, local_twiddles, radices, builder.dtype
        ),
    }
    numbers: dict[str, int] = {}
    bits = 0
    if part.shift is not None:
        order, inner = part.shift
        bits = order.bit_length() // 2
        high = -(-order // (1 << bits))
        for name, count, step in (("shift_high", high, 1 << bits), ("shift_low", 1 << bits, 1)):
            arguments[name] = builder.table(
                name, count, builder.dtype, strided_twiddles, count, step, order, builder.dtype
            )
        numbers["shift_inner"] = inner
    if part.real in ("r2c-packed", "c2r-packed"):
        arguments["real_roots"] = builder.table(
            "real_roots", n, builder.dtype, strided_twiddles, n, 1, 2 * n, builder.dtype
        )
    if part.chirped is not None:
        length, back = part.chirped
        arguments["chirp"] = builder.table(
            "chirp", length, builder.dtype, chirp, length, back, builder.dtype
        )
        arguments["chirp_spectrum"] = builder.table(
            "chirp_spectrum", n, builder.dtype, chirp_spectrum, length, n, back, builder.dtype
        )
    numbers |= {"outer": layout.outer, "lanes": layout.lanes}
    for side, strides, offset, batch in (
        ("source", layout.source_strides, grid.source_offset, grid.source_stride),
        ("target", layout.target_strides, grid.target_offset, grid.target_stride),
    ):
        numbers |= {f"{side}_offset": offset, f"{side}_batch": batch}
        numbers |= {f"{side}_{axis}": stride for axis, stride in strides._asdict().items()}
    fixed = {name: numbers[name] for name in KNOWN if known and name in numbers}
    arguments |= {name: index(number) for name, number in numbers.items() if name not in fixed}
    arguments["scale"] = builder.real.type(part.scale)
    params = {
        "N": n,
        "RADICES": radices,
        "TRANSFORMS": transforms,
        "ITEMS": items,
        "FLAT": part.times == 1,
        "LOAD": load,
        "STORE": store,
        "LOOSE_LOAD": builder.is_unaligned(layout.source),
        "LOOSE_STORE": builder.is_unaligned(layout.target),
        "GUARD": layout.lanes % transforms != 0,
        "SHIFT": part.shift is not None,
        "SHIFT_BITS": bits,
        "EXCHANGE": limits.exchange,
        "LOCAL_PAD": gap_of(radices[0], transforms, load, store, limits),
        "FEW_TWIDDLES": config["FEW_TWIDDLES"],
        "HALVED": part.halved,
        "REAL": part.real or "",
        "CHIRP": 0 if part.chirped is None else part.chirped[0],
        "SCALED": part.scale != 1,
        "KNOWN": fixed,
    }
    groups = -(-layout.lanes // transforms) * part.times
    reals = limits.local_bytes(n, transforms, load, store) // builder.real.itemsize
    return _Step(groups, transforms * items, reals, index, params, arguments)


def _launch(
    builder: PlanBuilder,
    parts: list[_Step],
    inverse: bool,
    device: Device,
    joint: _Joint | None = None,
) -> None:
    """Add one launch of one step, or of two that share it."""
    arguments: dict[str, Argument] = {
        f"{name}_{place}": argument
        for place, part in enumerate(parts)
        for name, argument in part.arguments.items()
    }
    described = [part.params for part in parts]
    if joint:
        arguments["counters"] = builder.zeros("counters", joint.transforms + 1)
        arguments["transforms"] = np.uint32(joint.transforms)
        each = zip(described, joint.tiles, strict=True)
        described = [{**step, "TILES": tiles} for step, tiles in each]
    reals, items = max(part.reals for part in parts), parts[0].items
    builder.launches.append(
        Launch(
            template=TEMPLATE,
            kernel="fft_local",
            params={
                "REAL_T": builder.real_t,
                "INDEX_T": index_t(parts[0].index),
                "INVERSE": inverse,
                "LOCAL": reals,
                "PTX": device.capabilities.inline_ptx,
                "AHEAD": joint.ahead if joint else 0,
                "STEPS": tuple(described),
            },
            # All in the first dimension: others are short on some devices.
            global_size=(sum(part.groups for part in parts) * items,),
            local_size=(items,),
            arguments=arguments,
            local_bytes=reals * builder.real.itemsize + (TICKET_BYTES if joint else 0),
        )
    )
