"""What a distributed transform is asked for, checked as on one device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.distributed.array import DistArray
from opencl_lab.distributed.layout import Distribution, Shape, Slab, slab
from opencl_lab.ops.fft.problem import Norm, complex_dtype, scale_of
from opencl_lab.ops.fft.transform import axes_and_lengths, real_type, whole

Axes = Sequence[int]


@dataclass(frozen=True)
class TransformTask:
    """A transform whose arguments are right."""

    name: str  # fft, ifft, rfft or irfft
    axes: tuple[int, ...]
    norm: Norm
    n: int  # length of the result along the last of the axes, before rfft halves it
    shape: Shape  # of the result
    wanted: Distribution
    natural: bool


def task_of(
    name: str,
    a: DistArray,
    axes: Axes | None,
    norm: Norm,
    n: int | None,
    distribution: Distribution | int | None,
    natural: bool,
) -> TransformTask:
    """Check the arguments as those of one device are checked."""
    if not isinstance(a, DistArray):
        raise InvalidProblem(f"a distributed transform takes a DistArray, not {type(a).__name__}")
    complex_dtype(a.dtype)
    scale_of(1, norm, False)
    size, before = a.comm.size, a.distribution
    if name == "rfft":
        real_type(a)
    if not natural:
        dimensions = 1 if name == "fft" else 2
        if a.ndim != dimensions:
            raise InvalidProblem(f"{name} with natural=False takes {dimensions}-D, not {a.ndim}-D")
        axes, before = None, slab(0)
    order, _ = axes_and_lengths(a, None, axes)
    if not order and name in ("rfft", "irfft"):
        raise InvalidProblem("a real transform needs at least one axis")
    if len(set(order)) < len(order):
        raise InvalidProblem(f"a distributed transform takes each axis once, not {axes}")
    shape = list(a.shape)
    length = shape[order[-1]] if order else 1
    if name == "irfft":
        length = 2 * (length - 1) if n is None else whole(n, "n")
    for samples in (length, *(shape[axis] for axis in order)):
        if samples < 1:
            raise InvalidProblem(f"a transform needs at least one sample, not {samples}")
    if order:
        shape[order[-1]] = length // 2 + 1 if name == "rfft" else length
    if not natural:
        shape = list(factors_of(a.size, size)) if name == "fft" else [a.size]
    result = tuple(shape)
    if distribution is None:
        wanted = fitting(before, result)
    else:
        wanted = slab(distribution) if isinstance(distribution, int) else distribution
    wanted.layout(result, size)  # refuses one that does not fit
    return TransformTask(
        name, tuple(order), norm or "backward", length, result, wanted, bool(natural)
    )


def fitting(distribution: Distribution, shape: Shape) -> Distribution:
    """Return the distribution with even parts, if its own are not parts of this shape."""
    if not isinstance(distribution, Slab) or distribution.lengths is None:
        return distribution
    fits = sum(distribution.lengths) == shape[distribution.axis]
    return distribution if fits else slab(distribution.axis)


@lru_cache
def factors_of(n: int, ranks: int) -> Shape:
    """Return n1 <= n2 with the product n, as near as can be, and multiples of `ranks` if can be."""
    if ranks == 1:
        return 1, n
    numbers = np.arange(1, math.isqrt(n) + 1)
    divisors = numbers[n % numbers == 0].tolist()
    n1 = max(divisors, key=lambda d: (d % ranks == 0 and n // d % ranks == 0, d))
    return n1, n // n1
