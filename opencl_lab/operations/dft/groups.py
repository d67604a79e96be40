"""Plans of the FFT for GPUs: work-groups that transform in local memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.operations.dft.factors import radices_of
from opencl_lab.operations.dft.steps import Ends, Steps
from opencl_lab.operations.dft.tables import chirp, chirp_kernel, group_roots, stepped_roots
from opencl_lab.plan import Argument, Launch
from opencl_lab.space import Config

__all__ = ["TEMPLATE", "groups_convolution", "groups_transform", "longest"]

TEMPLATE = "dft/fft_groups.cl.mako"


@dataclass(frozen=True)
class _Grid:
    """The slowest axis of a launch: how often all is repeated, how far apart, from where."""

    count: int
    source_stride: int
    target_stride: int
    source_offset: int
    target_offset: int


def _items(n: int, config: Config) -> int:
    """Return the items of one transform: each has about POINTS points of it."""
    radices = radices_of(n, config.integer("MAX_RADIX"))
    least = n // max(radices)  # one butterfly of the largest radix an item
    return max(1, min(least, -(-n // config.integer("POINTS"))))


def _room(device: Device) -> int:
    return min(device.capabilities.max_work_group, device.max_work_items[0])


def _local_bytes(n: int, transforms: int, word: int, config: Config) -> int:
    if len(radices_of(n, config.integer("MAX_RADIX"))) == 1:
        return 0
    size, pad = n * transforms, config.integer("LOCAL_PAD")
    return (size + (size // pad if pad else 0)) * word * (1 if config["SPLIT_PARTS"] else 2)


def _fits(n: int, transforms: int, word: int, config: Config, device: Device) -> bool:
    return (
        transforms * _items(n, config) <= _room(device)
        and _local_bytes(n, transforms, word, config) <= device.capabilities.local_memory
    )


def longest(n: int, word: int, config: Config, device: Device, transforms: int = 1) -> bool:
    """Return whether one group can transform a smooth length `n`."""
    return n <= config.integer("LOCAL_LIMIT") and _fits(n, transforms, word, config, device)


def groups_transform(
    steps: Steps, ends: Ends, inverse: bool, scale: float, config: Config, device: Device
) -> None:
    """Add the launches of transforms of a smooth length, as rows or as columns.

    One launch where a group can hold a transform; else the transform is arranged as a
    matrix, or as a box, and each launch transforms along one of its axes.
    """
    n, word = ends.n, steps.real.itemsize
    if longest(n, word, config, device):
        _launch(steps, ends, _Grid(1, 0, 0, 0, 0), inverse, scale, config, device)
        return
    lengths = _split(n, word, config, device)
    rows = ends.source_strides[1] == 1
    batch, inner = (ends.count, 1) if rows else (ends.outer, ends.lanes)
    # Launches over a part of the batch leave what is between them in the device's cache.
    limit = config.integer("CHUNK_KIB") * 1024 // (n * inner * 2 * word)
    chunk = max(1, min(batch, limit)) if config["CHUNK_KIB"] else batch
    middles = [steps.scratch("middle", chunk * n * inner)]
    if len(lengths) > 2:
        middles.append(steps.scratch("middle", chunk * n * inner))
    for start in range(0, batch, chunk):
        here = min(chunk, batch - start)
        base = Ends(n, here, inner, ends.source, ends.target, (0, 0, 0), (0, 0, 0))
        _steps(steps, base, start * n * inner, lengths, middles, inverse, scale, config, device)


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
    if not longest(m, steps.real.itemsize, config, device):
        return False
    whole = replace(ends, n=m)
    grid, chirped = _Grid(1, 0, 0, 0, 0), (ends.n, inverse)
    _launch(steps, whole, grid, False, scale, config, device, chirped=chirped)
    return True


def _split(n: int, word: int, config: Config, device: Device) -> tuple[int, ...]:
    """Return two or more lengths that groups can hold, as equal as can be, the least first."""
    wanted = min(8, config.integer("TRANSFORMS"))
    # Neighbouring columns make whole transactions of memory: rather one step more than fewer.
    for transforms in (wanted, min(wanted, 4), 1):
        for count in range(2, 8):
            found = _into(n, count, word, transforms, config, device)
            if found is not None:
                return found
    raise InvalidConfig(
        f"no lengths that fit a work-group multiply to {n}; "
        "try fewer POINTS or a larger LOCAL_LIMIT"
    )


def _into(
    n: int, count: int, word: int, transforms: int, config: Config, device: Device
) -> tuple[int, ...] | None:
    if count == 1:
        return (n,) if longest(n, word, config, device, transforms) else None
    ideal = round(n ** (1 / count))
    divisors = [d for d in range(2, min(n, 4 * ideal + 16)) if n % d == 0]
    for first in sorted(divisors, key=lambda d: abs(d - ideal)):
        rest = _into(n // first, count - 1, word, transforms, config, device)
        if rest is not None and longest(first, word, config, device, transforms):
            return (first, *rest)
    return None


def _steps(
    steps: Steps,
    base: Ends,
    offset: int,
    lengths: tuple[int, ...],
    middles: list[str],
    inverse: bool,
    scale: float,
    config: Config,
    device: Device,
) -> None:
    """Add a launch an axis: digits of the position become digits of the frequency.

    Before step s, the array of a transform is [k1]...[k(s-1)][j(s)][rest], with frequency
    digits in front; all steps but the last write it in place of what they read, and the
    last one writes the frequency digits in reverse order, [k(last)]...[k1].
    """
    n, batch, inner = base.n, base.outer, base.lanes
    row = n * inner
    done = 1
    source, source_offset = base.source, offset
    for place, length in enumerate(lengths[:-1]):
        rest = n // (done * length)
        target = middles[place % 2]
        strides = (length * rest * inner, rest * inner, 1)
        ends = Ends(length, done, rest * inner, source, target, strides, strides)
        grid = _Grid(batch, row, row, source_offset, 0)
        shift = (length * rest, inner)
        _launch(steps, ends, grid, inverse, 1.0, config, device, shift)
        source, source_offset = target, 0
        done *= length
    last = lengths[-1]
    axes = [(batch, row, row)]
    before = 1
    for length in lengths[:-1]:
        before *= length
        axes.append((length, last * inner * (done // before), inner * (before // length)))
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
            source_offset + sum(digit * axis[1] for digit, axis in moved),
            offset + sum(digit * axis[2] for digit, axis in moved),
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
        _launch(steps, ends, grid, inverse, scale, config, device)


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
) -> None:
    """Add one launch.

    `shift` is the order of the roots between steps, and how many lanes share one;
    `chirped` the length and direction of a transform that is done as a convolution.
    """
    n, word = ends.n, steps.real.itemsize
    radices = radices_of(n, config.integer("MAX_RADIX"))
    items = _items(n, config)
    transforms = max(1, min(config.integer("TRANSFORMS"), ends.lanes))
    if ends.source_strides[1] == ends.target_strides[1] == 1:  # no use but full groups
        transforms = max(1, min(ends.lanes, -(-config.integer("WG_SIZE") // items)))
    while transforms > 1 and not _fits(n, transforms, word, config, device):
        transforms -= 1
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
                "LOAD": "columns" if ends.source_strides[2] == 1 and ends.lanes > 1 else "rows",
                "STORE": "columns" if ends.target_strides[2] == 1 and ends.lanes > 1 else "rows",
                "LOOSE_LOAD": steps.loose(ends.source),
                "LOOSE_STORE": steps.loose(ends.target),
                "GUARD": ends.lanes % transforms != 0,
                "SHIFT": shift is not None,
                "SHIFT_BITS": bits,
                "SPLIT_PARTS": config["SPLIT_PARTS"],
                "LOCAL_PAD": config["LOCAL_PAD"],
                "FEW_ROOTS": config["FEW_ROOTS"],
                "CHIRP": 0 if chirped is None else chirped[0],
                "INVERSE": inverse,
                "SCALED": scale != 1,
            },
            # All in the first dimension: others are short on some devices.
            global_size=(groups * transforms * items * ends.outer * grid.count,),
            local_size=(transforms * items,),
            arguments=arguments,
            local_bytes=_local_bytes(n, transforms, word, config),
        )
    )
