"""The signatures of NumPy and SciPy, each written once, as functions that order arguments.

The other modules here implement transforms of ordered arguments. `like` makes an implementation a
public function with one of these signatures, which is replayed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeAlias

from opencl_lab.drivers.discovery import DeviceSpec
from opencl_lab.ops.fft.problem import Norm
from opencl_lab.ops.fft.transform import prepared
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed

Out: TypeAlias = AnyArray | None
Shape: TypeAlias = Sequence[int] | None
Numbers: TypeAlias = int | Sequence[int] | None
Options: TypeAlias = tuple[int, Norm, bool | None]
"""Options of cosine transforms: type, norm, and whether to orthogonalize."""
Run: TypeAlias = Callable[..., AnyArray]
P = ParamSpec("P")


def like(
    order: Callable[Concatenate[Call, P], tuple[Any, ...]], **defaults: Any
) -> Callable[[Run], Callable[P, AnyArray]]:
    """Return a decorator that gives an implementation the signature of `order`, a function below.

    `defaults` replace some defaults of that signature.
    """
    # Evaluated types: their names are not all defined where the decorator is used.
    given = inspect.signature(order, eval_str=True)
    call, *others = given.parameters.values()
    others = [p.replace(default=defaults.get(p.name, p.default)) for p in others]
    signature = given.replace(parameters=others)

    def decorate(run: Run) -> Callable[P, AnyArray]:
        def transform(call: Call, /, *args: P.args, **kwargs: P.kwargs) -> AnyArray:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:  # its message lacks the function's name
                raise TypeError(f"{run.__name__}() {error}") from None
            bound.apply_defaults()
            return run(call, *order(call, *bound.args, **bound.kwargs))

        update_wrapper(transform, run)
        del transform.__wrapped__  # type: ignore[attr-defined]
        transform.__signature__ = given.replace(parameters=[call, *others])  # type: ignore[attr-defined]
        return replayed()(transform)

    return decorate


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
) -> tuple[Any, ...]:
    """Take what `scipy.fft.dctn` does: x, options, s, axes, out."""
    return prepared(call, x, queue, device), (type, norm, orthogonalize), s, axes, out
