"""Plans of the FFT for GPUs: work-groups that transform in local memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.fourier.builder import Ends, Steps
from opencl_lab.fourier.factors import convolution_length, is_smooth, radices_of
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
from opencl_lab.fourier.twiddles import chirp, chirp_kernel, group_roots, stepped_roots
from opencl_lab.plan import Argument, Launch
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "can_join", "groups_convolution", "groups_real", "groups_transform"]

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

    ends: Ends
    grid: _Grid = _Grid()
    scale: float = 1.0
    shift: tuple[int, int] | None = None
    chirped: tuple[int, bool] | None = None
    real: str = ""
    last: bool = False

    @property
    def times(self) -> int:
        """How often there are so many neighbouring lanes."""
        return self.ends.outer * self.grid.count

    @property
    def maps(self) -> tuple[str, str]:
        """Whether neighbouring items take rows or columns, on the way in and out."""
        ends = self.ends
        load, store = (
            "columns" if strides[2] == 1 and ends.lanes > 1 else "rows"
            for strides in (ends.source_strides, ends.target_strides)
        )
        return load, store

    @property
    def shape(self) -> StepShape | None:
        """What the cost of columns depends on, or None for rows."""
        load, store = self.maps
        if load == store == "rows":
            return None
        ends = self.ends
        pitch = math.gcd(ends.target_strides[1], ends.source_strides[1] if load == store else 0)
        return StepShape(ends.n, ends.lanes, self.times, load == "columns", pitch, self.last)


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


def groups_transform(
    steps: Steps, ends: Ends, inverse: bool, scale: float, config: Config, device: Device
) -> None:
    """Add the launches of transforms of a smooth length, as rows or as columns.

    One launch where a group can hold a transform; else the transform is arranged as a
    matrix, or as a box, and each launch transforms along one of its axes, or
    along both.
    """
    n, word = ends.n, steps.real.itemsize
    rows = ends.source_strides[1] == 1
    batch, inner = (ends.count, 1) if rows else (ends.outer, ends.lanes)
    limits = Limits.of(n, word, config, device)
    lengths = lengths_of(n, batch, inner, limits)
    if lengths is None:
        raise InvalidConfig(
            f"no lengths that fit a work-group multiply to {n}; "
            "try fewer POINTS or a larger LOCAL_LIMIT"
        )
    if len(lengths) == 1:
        step = _step(steps, _Part(ends, scale=scale), config, limits, rows)
        _launch(steps, [step], inverse, device)
        return
    sizes = [rows * pitch for rows, pitch in middle_rows(n, inner, lengths, word)]
    middles = [
        steps.scratch("middle", batch * max(part)) for part in (sizes[::2], sizes[1::2]) if part
    ]
    nowhere = (0, 0, 0)
    base = Ends(n, batch, inner, ends.source, ends.target, nowhere, nowhere, ends.halved)
    parts = _parts(base, lengths, middles, scale, word)
    joint = _joint(parts, config, limits, device)
    if joint:
        pair = [
            _step(steps, part, config, joint.limits, inner == 1, columns)
            for part, columns in zip(parts, joint.columns, strict=True)
        ]
        _launch(steps, pair, inverse, device, joint)
        return
    for part in parts:
        step = _step(steps, part, config, limits, inner == 1)
        _launch(steps, [step], inverse, device)


def groups_convolution(
    steps: Steps,
    ends: Ends,
    m: int,
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
) -> bool:
    """Add one launch of transforms of any length as convolutions of length `m`, if it fits."""
    limits = _chirp_limits(m, steps, config, device)
    if not limits.fits(m, 1):
        return False
    part = _Part(replace(ends, n=m), scale=scale, chirped=(ends.n, inverse))
    step = _step(steps, part, config, limits, ends.source_strides[1] == 1)
    _launch(steps, [step], False, device)
    return True


def groups_real(
    steps: Steps,
    ends: Ends,
    packed: bool,
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
) -> bool:
    """Add one launch of transforms of real rows, or to them, if a group can do one.

    If `packed`, two neighbours of a row are a complex number, of which `ends` counts, and there is
    one more on the other side. Else the real rows are complex ones without imaginary part, and
    the lower half of their frequencies is on the other side.
    """
    n, chirped = ends.n, None
    limits = Limits.of(n, steps.real.itemsize, config, device)
    if not is_smooth(n):
        if packed:
            return False
        n, chirped = convolution_length(n), (n, inverse)
        limits = _chirp_limits(n, steps, config, device)
        if not limits.fits(n, 1):
            return False
    elif lengths_of(n, ends.count, 1, limits) != (n,):
        return False
    if packed and len(radices_of(n, limits.max_radix)) == 1:  # no local memory to meet in
        return False
    real = ("join" if inverse else "split") if packed else ("to" if inverse else "from")
    part = _Part(replace(ends, n=n), scale=scale, chirped=chirped, real=real)
    step = _step(steps, part, config, limits, True)
    _launch(steps, [step], inverse and chirped is None, device)
    return True


def _chirp_limits(m: int, steps: Steps, config: Config, device: Device) -> Limits:
    """Return the limits of convolutions of length `m`, which gain from pairs."""
    limits = Limits.of(m, steps.real.itemsize, config, device)
    return replace(limits, exchange="pairs") if config["EXCHANGE"] == "auto" else limits


def _parts(
    base: Ends, lengths: tuple[int, ...], middles: list[str], scale: float, word: int
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
        from_strides, to_strides = (pitch, rest, 1), (length * padded, padded, 1)
        halved = base.halved and not parts
        ends = Ends(length, done, rest, source, target, from_strides, to_strides, halved)
        parts.append(_Part(ends, _Grid(batch, row, rows * padded), shift=(n // done, inner)))
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
        from_strides = (outer[1], inner, lanes[1])
        to_strides = (outer[2], done * inner, lanes[2])
        ends = Ends(last, outer[0], lanes[0], source, base.target, from_strides, to_strides)
        parts.append(_Part(ends, grid, scale, last=inner == 1))
    return parts


def can_join(device: Device) -> bool:
    """Return whether two steps can share a launch.

    CPUs cannot: PoCL's compiler, which makes loops of what lies between barriers, makes wrong
    code of some barriers in conditions.
    """
    able = device.capabilities.forward_progress and device.capabilities.visible_writes
    return able and device.kind != "cpu"


def _joint(parts: list[_Part], config: Config, limits: Limits, device: Device) -> _Joint | None:
    """Return how two steps of rows share a launch, or None if they had better not.

    JOIN may say to share always where that can be, or never.
    """
    if len(parts) != 2 or not parts[1].last or config["JOIN"] == "never" or not can_join(device):
        return None
    first, second = parts[0].shape, parts[1].shape
    assert first is not None and second is not None  # columns in, or columns out
    exchanges = ("parts", "turns") if config["EXCHANGE"] == "auto" else (limits.exchange,)
    room = limits.local_memory - TICKET_BYTES
    limited = [replace(limits, exchange=exchange, local_memory=room) for exchange in exchanges]
    found = [(*paired_columns(first, second, each), each) for each in limited]
    if config["JOIN"] == "auto":
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
    steps: Steps, part: _Part, config: Config, limits: Limits, known: bool, columns: int = 0
) -> _Step:
    """Return one step, with so many `columns` a group, or as many as are best.

    `known` says whether distances follow from the length of the transforms.
    """
    ends, grid, shape = part.ends, part.grid, part.shape
    n, (load, store) = ends.n, part.maps
    radices, items = radices_of(n, limits.max_radix), items_of(n, limits)
    if columns:
        transforms = columns
    elif shape is None:  # no use but full groups
        transforms = max(1, min(ends.lanes, -(-config.integer("WG_SIZE") // items)))
        while transforms > 1 and not limits.fits(n, transforms):
            transforms -= 1
    else:
        transforms = columns_of(shape, limits)
    index = steps.index(
        *(b.nbytes // steps.dtype.itemsize for b in steps.buffers if b.role != "table")
    )
    roots_count = sum(
        math.prod(radices[:place]) * (radix - 1) for place, radix in enumerate(radices) if place
    )
    arguments: dict[str, Argument] = {
        "source": ends.source,
        "target": ends.target,
        "roots": steps.table("roots", roots_count, steps.dtype, group_roots, radices, steps.dtype),
    }
    numbers: dict[str, int] = {}
    bits = 0
    if part.shift is not None:
        order, inner = part.shift
        bits = order.bit_length() // 2
        high = -(-order // (1 << bits))
        for name, count, step in (("shift_high", high, 1 << bits), ("shift_low", 1 << bits, 1)):
            arguments[name] = steps.table(
                name, count, steps.dtype, stepped_roots, count, step, order, steps.dtype
            )
        numbers["shift_inner"] = inner
    if part.real in ("split", "join"):
        arguments["real_roots"] = steps.table(
            "real_roots", n, steps.dtype, stepped_roots, n, 1, 2 * n, steps.dtype
        )
    if part.chirped is not None:
        length, back = part.chirped
        arguments["chirp"] = steps.table(
            "chirp", length, steps.dtype, chirp, length, back, steps.dtype
        )
        arguments["kernel_roots"] = steps.table(
            "chirp_kernel", n, steps.dtype, chirp_kernel, length, n, back, steps.dtype
        )
    numbers |= {"outer": ends.outer, "lanes": ends.lanes}
    for side, strides, offset, batch in (
        ("source", ends.source_strides, grid.source_offset, grid.source_stride),
        ("target", ends.target_strides, grid.target_offset, grid.target_stride),
    ):
        numbers |= {f"{side}_offset": offset, f"{side}_batch": batch}
        for axis, stride in zip(("outer", "position", "lane"), strides, strict=True):
            numbers[f"{side}_{axis}"] = stride
    fixed = {name: numbers[name] for name in KNOWN if known and name in numbers}
    arguments |= {name: index(number) for name, number in numbers.items() if name not in fixed}
    arguments["scale"] = steps.real.type(part.scale)
    params = {
        "N": n,
        "RADICES": radices,
        "TRANSFORMS": transforms,
        "ITEMS": items,
        "FLAT": part.times == 1,
        "LOAD": load,
        "STORE": store,
        "LOOSE_LOAD": steps.loose(ends.source),
        "LOOSE_STORE": steps.loose(ends.target),
        "GUARD": ends.lanes % transforms != 0,
        "SHIFT": part.shift is not None,
        "SHIFT_BITS": bits,
        "EXCHANGE": limits.exchange,
        "LOCAL_PAD": gap_of(radices[0], transforms, load, store, limits),
        "FEW_ROOTS": config["FEW_ROOTS"],
        "HALVED": ends.halved,
        "REAL": part.real,
        "CHIRP": 0 if part.chirped is None else part.chirped[0],
        "SCALED": part.scale != 1,
        "KNOWN": fixed,
    }
    groups = -(-ends.lanes // transforms) * part.times
    reals = limits.local_bytes(n, transforms, load, store) // steps.real.itemsize
    return _Step(groups, transforms * items, reals, index, params, arguments)


def _launch(
    steps: Steps, parts: list[_Step], inverse: bool, device: Device, joint: _Joint | None = None
) -> None:
    """Add one launch of one step, or of two that share it."""
    arguments: dict[str, Argument] = {
        f"{name}_{place}": argument
        for place, part in enumerate(parts)
        for name, argument in part.arguments.items()
    }
    described = [part.params for part in parts]
    if joint:
        arguments["counters"] = steps.zeros("counters", joint.transforms + 1)
        arguments["transforms"] = np.uint32(joint.transforms)
        each = zip(described, joint.tiles, strict=True)
        described = [{**step, "TILES": tiles} for step, tiles in each]
    reals, items = max(part.reals for part in parts), parts[0].items
    steps.launches.append(
        Launch(
            template=TEMPLATE,
            kernel="fft_groups",
            params={
                "REAL_T": steps.real_t,
                "INDEX_T": "uint" if parts[0].index is np.uint32 else "ulong",
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
            local_bytes=reals * steps.real.itemsize + (TICKET_BYTES if joint else 0),
        )
    )
