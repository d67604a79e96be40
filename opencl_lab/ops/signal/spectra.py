"""Convolutions of device arrays by Fourier transforms, whole or in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl.array

from opencl_lab.ops.fft.functions.fourier import complex_axes, from_real_axes, to_real_axes
from opencl_lab.ops.fft.passes.factors import next_smooth
from opencl_lab.ops.fft.transform import converted
from opencl_lab.ops.signal.sums import sums
from opencl_lab.runtime.arrays import AnyArray, copied
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.copies import Copy, View

BLOCK = 4
"""Lengths of the shorter array in a block of the longer one."""
LEAST_BLOCK = 1024
"""Shortest block: shorter transforms take little time in any case."""


@dataclass(frozen=True)
class _Blocks:
    """How one axis is cut: `count` blocks of `length`, which begin `step` after each other.

    Each begins with the last `ahead` values of the block before (overlap-save), so that what comes
    after these is right. `owner` is the array that is cut, 0 or 1; the other one is in each block.
    """

    count: int
    length: int
    step: int
    ahead: int
    owner: int


def _one_block(sizes: tuple[int, int]) -> _Blocks:
    """Return an axis that is not cut."""
    full = sum(sizes) - 1
    return _Blocks(1, next_smooth(full), full, 0, 0)


def _blocks(sizes: tuple[int, int]) -> _Blocks:
    """Return how an axis is cut whose lengths in both arrays are `sizes`."""
    full, ahead = sum(sizes) - 1, min(sizes) - 1
    length = next_smooth(max(BLOCK * min(sizes), LEAST_BLOCK))
    if full <= 2 * length:
        return _one_block(sizes)
    step = length - ahead
    return _Blocks(-(-full // step), length, step, ahead, sizes.index(max(sizes)))


def by_transforms(
    call: Call,
    a: AnyArray,
    b: AnyArray,
    dtype: np.dtype[Any],
    axes: Sequence[int],
    in_blocks: bool = False,
) -> AnyArray:
    """Return at least the whole convolution along `axes`, in float or complex `dtype`."""
    sizes = {d: (a.shape[d], b.shape[d]) for d in axes}
    how = _blocks if in_blocks else _one_block
    cuts = {d: how(pair) for d, pair in sizes.items()}
    several = sorted(d for d, cut in cuts.items() if cut.count > 1)
    # A cut axis becomes two, of which the second one is transformed.
    turned = [d + sum(other <= d for other in several) for d in cuts]
    lengths = [cut.length for cut in cuts.values()]
    spectra = []
    for number, array in enumerate((a, b)):
        if several:
            array = _windows(call, array, number, {d: cuts[d] for d in several}, dtype)
        array = converted(array, dtype, call)
        if dtype.kind == "c":
            made = complex_axes(array, lengths, turned, None, None, call, inverse=False)
        else:
            made = from_real_axes(array, lengths, turned, None, None, call)
        spectra.append(made)
    one, other = spectra
    product = sums(call, one, other, one.dtype)
    if dtype.kind == "c":
        result = complex_axes(product, lengths, turned, None, None, call, inverse=True)
    else:
        result = to_real_axes(product, lengths, turned, None, None, call)
    if not several:
        return result
    shape = list(map(max, a.shape, b.shape))
    kept: list[Any] = []
    for d in range(a.ndim):
        if d in several:
            kept += [slice(None), slice(cuts[d].ahead, cuts[d].length)]
            shape[d] = cuts[d].count * cuts[d].step
        else:
            kept.append(slice(None))
            shape[d] = cuts[d].length if d in cuts else shape[d]
    return copied(result[tuple(kept)], call).reshape(tuple(shape))


def _windows(
    call: Call, array: AnyArray, number: int, cuts: dict[int, _Blocks], dtype: np.dtype[Any]
) -> AnyArray:
    """Return a view with two axes in place of each cut one: the blocks, and what is in each.

    Where the other array is cut, there is one block.
    """
    own = {d: cut for d, cut in cuts.items() if cut.owner == number}
    if own:  # zeros ahead, and up to the end of the last block
        shape = list(array.shape)
        for d, cut in own.items():
            shape[d] = (cut.count - 1) * cut.step + cut.length
        made = call.new_array(tuple(shape), dtype, array.allocator)
        shifts = tuple(own[d].ahead if d in own else 0 for d in range(array.ndim))
        views = View.of(array), View.dense(tuple(shape))
        Copy(*views, array.dtype, dtype, shifts=shifts).enqueue(call, array, made)
        array = made
    shape, strides = [], []
    for d, (n, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        if d in own:
            shape += [own[d].count, own[d].length]
            strides += [own[d].step * stride, stride]
        else:
            shape += [1, n] if d in cuts else [n]
            strides += [stride * n, stride] if d in cuts else [stride]
    return pyopencl.array.Array(
        array.queue,
        tuple(shape),
        array.dtype,
        data=array.base_data,
        offset=array.offset,
        strides=tuple(strides),
        events=array.events,
        allocator=array.allocator,
    )
