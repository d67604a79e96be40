"""The signatures of NumPy and SciPy, each written once, as functions that order arguments.

The other modules here implement transforms of ordered arguments. `opencl_lab.ops.alike` makes an
implementation a public function with one of these signatures, which is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import Norm
from opencl_lab.ops.fft.transform import prepared
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.waiting import WaitFor

Out: TypeAlias = AnyArray | None
Shape: TypeAlias = Sequence[int] | None
Numbers: TypeAlias = int | Sequence[int] | None
Options: TypeAlias = tuple[int, Norm, bool | None]
"""Options of cosine transforms: type, norm, and whether to orthogonalize."""


def along_axis(
    call: Call,
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    out: Out = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `numpy.fft.fft` does: x, n, axis, norm, out."""
    return prepared(call, a, queue, device), n, axis, norm, out


def along_axes(
    call: Call,
    a: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    out: Out = None,
    *,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `numpy.fft.fftn` does: x, s, axes, norm, out."""
    return prepared(call, a, queue, device), s, axes, norm, out


def mirrored_along_axes(
    call: Call,
    x: Any,
    s: Shape = None,
    axes: Shape = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: Out = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.fft.hfftn` does: x, s, axes, norm, out."""
    return prepared(call, x, queue, device), s, axes, norm, out


def cosines_along_axis(
    call: Call,
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: Out = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.fft.dct` does: x, options, n, axis, out."""
    return prepared(call, x, queue, device), (type, norm, orthogonalize), n, axis, out


def cosines_along_axes(
    call: Call,
    x: Any,
    type: int = 2,
    s: Numbers = None,
    axes: Numbers = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: Out = None,
    queue: Any = None,
    device: DeviceSpec = None,
    wait_for: WaitFor = None,
) -> tuple[Any, ...]:
    """Take what `scipy.fft.dctn` does: x, options, s, axes, out."""
    return prepared(call, x, queue, device), (type, norm, orthogonalize), s, axes, out
