"""Values for the arguments of a kernel of the user's own, checked against its signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Buffer
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.tuning.kernel_text import Argument, Signature
from opencl_lab.runtime.arrays import native


@dataclass(frozen=True, eq=False)
class BoundArguments:
    """The values of the arguments of a kernel, by name."""

    buffers: tuple[Buffer, ...]
    """Arrays in global memory."""
    data: Arrays
    """The contents of the arrays that are read."""
    values: Mapping[str, Any]
    """NumPy scalars."""
    local: Mapping[str, tuple[str, int]]
    """For each ``__local`` pointer: the number of elements, an expression, and the element size."""
    scratch: Mapping[str, tuple[str, np.dtype[Any], int]]
    """For each array of working memory: the number of elements, an expression, their type, and the
    numbers in an element."""
    inout: tuple[str, ...]
    """The arrays that are both read and written."""

    @property
    def written(self) -> dict[str, Buffer]:
        """The arrays that the kernel writes."""
        return {buffer.name: buffer for buffer in self.buffers if buffer.role == "out"}


def bind_arguments(
    signature: Signature,
    given: Mapping[str, Any],
    outputs: Sequence[str] | None,
    inout: Sequence[str] = (),
) -> BoundArguments:
    """Return the values for the arguments of a kernel, checked against its signature.

    `outputs` names the arrays that are written, by default all that are not const; `inout` names
    those that are both read and written.
    """
    by_name = {argument.name: argument for argument in signature.arguments}
    unknown = ", ".join(sorted({*given, *(outputs or ()), *inout} - set(by_name)))
    missing = ", ".join(name for name in by_name if name not in given)
    if unknown or missing:
        wrong = f"has no argument {unknown}" if unknown else f"needs a value for {missing}"
        takes = ", ".join(argument.text for argument in signature.arguments)
        raise InvalidProblem(f"the kernel {signature.kernel} {wrong}; it takes: {takes}")
    buffers: list[Buffer] = []
    data: Arrays = {}
    values: dict[str, Any] = {}
    local: dict[str, tuple[str, int]] = {}
    scratch: dict[str, tuple[str, np.dtype[Any], int]] = {}
    for name, argument in by_name.items():
        if argument.space == "local":
            local[name] = (str(given[name]), _type(argument).itemsize * argument.stored)
        elif argument.space and isinstance(given[name], str):
            if argument.const or name in (*(outputs or ()), *inout):
                raise InvalidProblem(
                    f"{argument.text!r}: an array of a size that depends on parameters is working "
                    "memory, which the kernel writes first; it is neither filled nor compared"
                )
            scratch[name] = given[name], _type(argument), argument.stored
        elif argument.space:
            array = _array(argument, given[name])
            if name in inout and argument.const:
                raise InvalidProblem(f"{argument.text!r} is const: the kernel only reads it")
            writes = name in (*outputs, *inout) if outputs is not None else not argument.const
            buffers.append(Buffer(name, "out" if writes else "in", array.shape, array.dtype))
            if not writes or name in inout:
                data[name] = np.ascontiguousarray(array)
        else:
            values[name] = _number(argument, given[name])
    bound = BoundArguments(tuple(buffers), data, values, local, scratch, tuple(inout))
    strays = ", ".join(name for name in inout if name not in bound.written)
    if strays:
        raise InvalidProblem(f"{strays}: only arrays can be read and written")
    if not bound.written:
        raise InvalidProblem(
            f"the kernel {signature.kernel} has no result to check: name the arrays that it writes "
            "in outputs=, and those that it also reads in inout= (--arg NAME=inout:...)"
        )
    return bound


def _type(argument: Argument) -> np.dtype[Any]:
    if argument.dtype is None:
        raise InvalidProblem(f"the type of {argument.text!r} is not a built-in type of OpenCL")
    return argument.dtype


def _array(argument: Argument, given: Any) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = native(np.asarray(given))
    if array.ndim == 0 or not array.size or array.dtype.kind not in "biufc":
        raise InvalidProblem(f"{argument.text!r} needs an array of numbers that is not empty")
    real = array.real.dtype
    if argument.dtype is not None and (real.kind, real.itemsize) != (
        argument.dtype.kind,
        argument.dtype.itemsize,
    ):
        raise InvalidProblem(f"{argument.text!r} cannot be an array of {array.dtype}")
    return array


def _number(argument: Argument, given: Any) -> Any:
    if argument.width > 1 or (argument.dtype is None and not isinstance(given, np.generic)):
        raise InvalidProblem(
            f"{argument.text!r} is not a number of a built-in type of OpenCL; pass vectors by a "
            "pointer, and numbers of other types as a NumPy scalar"
        )
    if argument.dtype is None:
        return native(np.asarray(given))[()]
    try:
        number = argument.dtype.type(given)
        exact = argument.dtype.kind == "f" or number == given
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact:
        raise InvalidProblem(f"{argument.text!r} cannot be {given!r}")
    return number


def expected_for(given: Any, written: Mapping[str, Buffer]) -> Arrays:
    """Return the expected outputs by name, in the types and shapes of the written arrays."""
    if not isinstance(given, Mapping):
        if len(written) > 1:
            names = ", ".join(written)
            raise InvalidProblem(f"the kernel writes {names}: map each to its expected array")
        given = {next(iter(written)): given}
    arrays = {name: np.asarray(array) for name, array in given.items()}
    if set(arrays) != set(written):
        raise InvalidProblem(
            f"expected results are given for {', '.join(arrays) or 'none'}, and the kernel "
            f"writes {', '.join(written)}"
        )
    for name, array in arrays.items():
        if array.shape != written[name].shape:
            raise InvalidProblem(
                f"the expected {name} has shape {array.shape}, the array {written[name].shape}"
            )
    return {name: array.astype(written[name].dtype) for name, array in arrays.items()}
