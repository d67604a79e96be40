"""Public functions that share a signature, which is written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeAlias

from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.replay import replayed

Run: TypeAlias = Callable[..., AnyArray]
P = ParamSpec("P")


def like(
    order: Callable[Concatenate[Call, P], tuple[Any, ...]],
    *values: str,
    renamed: Mapping[str, str] | None = None,
    **defaults: Any,
) -> Callable[[Run], Callable[P, AnyArray]]:
    """Return a decorator that gives an implementation the signature of `order`.

    That function orders the arguments: the implementation takes the call, and then what it returns.
    `renamed` parameters have other names, `defaults` replace some defaults, and call keys hold the
    values of the arguments named in `values`, as `replayed` says.
    """
    names = renamed or {}
    # Evaluated types: their names are not all defined where the decorator is used.
    given = inspect.signature(order, eval_str=True)
    call, *others = given.parameters.values()
    others = [
        p.replace(name=names.get(p.name, p.name), default=defaults.get(p.name, p.default))
        for p in others
    ]
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
        return replayed(*values)(transform)

    return decorate
