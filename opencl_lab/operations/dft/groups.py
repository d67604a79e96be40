"""Plans of the FFT for GPUs: work-groups that transform in local memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.operations.dft.factors import radices_of
from opencl_lab.operations.dft.splits import (
    Limits,
    StepShape,
    columns_of,
    gap_of,
    items_of,
    lengths_of,
    middle_rows,
)
from opencl_lab.operations.dft.steps import Ends, Steps
from opencl_lab.operations.dft.tables import chirp, chirp_kernel, group_roots, stepped_roots
from opencl_lab.plan import Argument, Launch
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "groups_convolution", "groups_transform"]

TEMPLATE = "dft/fft_groups.cl.mako"


@dataclass(frozen=True)
class _Grid:
    """The slowest axis of a launch: how often all is repeated, how far apart, from where."""

    count: int
    source_stride: int
    target_stride: int
    source_offset: int
    target_offset: int


def groups_transform(
    steps: Steps, ends: Ends, inverse: bool, scale: float, config: Config, device: Device
) -> None:
    """Add the launches of transforms of a smooth length, as rows or as columns.

    One launch where a group can hold a transform; else the transform is arranged as a
    matrix, or as a box, and each launch transforms along one of its axes.
    """
    n, word = ends.n, steps.real.itemsize
    rows = ends.source_strides[1] == 1
    batch, inner = (ends.count, 1) if rows else (ends.outer, ends.lanes)
    lengths = lengths_of(n, batch, inner, Limits.of(word, config, device))
    if lengths is None:
        raise InvalidConfig(
            f"no lengths that fit a work-group multiply to {n}; "
            "try fewer POINTS or a larger LOCAL_LIMIT"
        )
    if len(lengths) == 1:
        _launch(steps, ends, _Grid(1, 0, 0, 0, 0), inverse, scale, config, device)
        return
    sizes = [rows * pitch for rows, pitch in middle_rows(n, inner, lengths, word)]
    middles = [
        steps.scratch("middle", batch * max(part)) for part in (sizes[::2], sizes[1::2]) if part
    ]
    base = Ends(n, batch, inner, ends.source, ends.target, (0, 0, 0), (0, 0, 0))
    _steps(steps, base, lengths, middles, inverse, scale, config, device)


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
    if not Limits.of(steps.real.itemsize, config, device).fits(m, 1):
        return False
    whole = replace(ends, n=m)
    grid, chirped = _Grid(1, 0, 0, 0, 0), (ends.n, inverse)
    _launch(steps, whole, grid, False, scale, config, device, chirped=chirped)
    return True


def _steps(
    steps: Steps,
    base: Ends,
    lengths: tuple[int, ...],
    middles: list[str],
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
) -> None:
    """Add a launch an axis: digits of the position become digits of the frequency.

    Before step s, the array of a transform is [k1]...[k(s-1)][j(s)][rest], with frequency
    digits in front; all steps but the last keep that order, in scratch memory whose rows
    of [rest] are aligned, and the last one writes the frequency digits in reverse order,
    [k(last)]...[k1].
    """
    n, batch, inner = base.n, base.outer, base.lanes
    done = 1
    source, row, pitch = base.source, n * inner, n * inner
    middle = middle_rows(n, inner, lengths, steps.real.itemsize)
    for place, (length, (rows, padded)) in enumerate(zip(lengths[:-1], middle, strict=True)):
        rest = n // rows * inner
        target = middles[place % 2]
        from_strides, to_strides = (pitch, rest, 1), (length * padded, padded, 1)
        ends = Ends(length, done, rest, source, target, from_strides, to_strides)
        grid = _Grid(batch, row, rows * padded, 0, 0)
        _launch(steps, ends, grid, inverse, 1.0, config, device, shift=(n // done, inner))
        source, row, pitch, done = target, rows * padded, padded, rows
    last = lengths[-1]
    axes = [(batch, row, n * inner)]
    before = 1
    for length in lengths[:-1]:
        before *= length
        axes.append((length, pitch * (done // before), inner * (before // length)))
    # Neighbouring lanes are neighbours in the result: those of the user, or else k1.
    lanes = axes.pop(1) if inner == 1 else (inner, 1, 1)
    axes.sort(reverse=True)
    outer, grid_axis, *looped = [*axes, (1, 0, 0)]
    for digits in itertools.product(*(range(count) for count, _, _ in looped)):
        moved = list(zip(digits, looped, strict=True))
        grid = _Grid(
            grid_axis[0],
            grid_axis[1],
            grid_axis[2],
            sum(digit * axis[1] for digit, axis in moved),
            sum(digit * axis[2] for digit, axis in moved),
        )
        ends = Ends(
            last,
            outer[0],
            lanes[0],
            source,
            base.target,
            (outer[1], inner, lanes[1]),
            (outer[2], done * inner, lanes[2]),
        )
        _launch(steps, ends, grid, inverse, scale, config, device, last=inner == 1)


def _launch(
    steps: Steps,
    ends: Ends,
    grid: _Grid,
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
    shift: tuple[int, int] | None = None,
    chirped: tuple[int, bool] | None = None,
    last: bool = False,
) -> None:
    """Add one launch.

    `shift` is the order of the roots between steps, and how many lanes share one;
    `chirped` the length and direction of a transform that is done as a convolution.
    """
    n, limits = ends.n, Limits.of(steps.real.itemsize, config, device)
    radices, items = radices_of(n, limits.max_radix), items_of(n, limits)
    load = "columns" if ends.source_strides[2] == 1 and ends.lanes > 1 else "rows"
    store = "columns" if ends.target_strides[2] == 1 and ends.lanes > 1 else "rows"
    if load == store == "rows":  # no use but full groups
        transforms = max(1, min(ends.lanes, -(-config.integer("WG_SIZE") // items)))
        while transforms > 1 and not limits.fits(n, transforms):
            transforms -= 1
    else:
        pitch = math.gcd(ends.target_strides[1], ends.source_strides[1] if load == store else 0)
        times = ends.outer * grid.count
        shape = StepShape(n, ends.lanes, times, load == "columns", pitch, last)
        transforms = columns_of(shape, limits)
    groups = -(-ends.lanes // transforms)
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
    bits = 0
    if shift is not None:
        order, inner = shift
        bits = order.bit_length() // 2
        high = -(-order // (1 << bits))
        for name, count, step in (("shift_high", high, 1 << bits), ("shift_low", 1 << bits, 1)):
            arguments[name] = steps.table(
                name, count, steps.dtype, stepped_roots, count, step, order, steps.dtype
            )
        arguments["shift_inner"] = index(inner)
    if chirped is not None:
        length, back = chirped
        arguments["chirp"] = steps.table(
            "chirp", length, steps.dtype, chirp, length, back, steps.dtype
        )
        arguments["kernel_roots"] = steps.table(
            "chirp_kernel", n, steps.dtype, chirp_kernel, length, n, back, steps.dtype
        )
    numbers: dict[str, int] = {"outer": ends.outer, "lanes": ends.lanes}
    for side, strides, offset, batch in (
        ("source", ends.source_strides, grid.source_offset, grid.source_stride),
        ("target", ends.target_strides, grid.target_offset, grid.target_stride),
    ):
        numbers |= {f"{side}_offset": offset, f"{side}_batch": batch}
        for axis, stride in zip(("outer", "position", "lane"), strides, strict=True):
            numbers[f"{side}_{axis}"] = stride
    arguments |= {name: index(number) for name, number in numbers.items()}
    arguments["scale"] = steps.real.type(scale)
    steps.launches.append(
        Launch(
            template=TEMPLATE,
            kernel="fft_groups",
            params={
                "REAL_T": steps.real_t,
                "INDEX_T": "uint" if index is np.uint32 else "ulong",
                "N": n,
                "RADICES": radices,
                "TRANSFORMS": transforms,
                "ITEMS": items,
                "LOAD": load,
                "STORE": store,
                "LOOSE_LOAD": steps.loose(ends.source),
                "LOOSE_STORE": steps.loose(ends.target),
                "GUARD": ends.lanes % transforms != 0,
                "SHIFT": shift is not None,
                "SHIFT_BITS": bits,
                "SPLIT_PARTS": config["SPLIT_PARTS"],
                "LOCAL_PAD": gap_of(radices[0], transforms, load, store, limits),
                "FEW_ROOTS": config["FEW_ROOTS"],
                "CHIRP": 0 if chirped is None else chirped[0],
                "INVERSE": inverse,
                "SCALED": scale != 1,
            },
            # All in the first dimension: others are short on some devices.
            global_size=(groups * transforms * items * ends.outer * grid.count,),
            local_size=(transforms * items,),
            arguments=arguments,
            local_bytes=limits.local_bytes(n, transforms, load, store),
        )
    )
