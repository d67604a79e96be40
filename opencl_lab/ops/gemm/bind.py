"""From the arguments of `gemm` to a problem and its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import exact_number, real_number
from opencl_lab.ops.gemm.problem import (
    ELEMENT_TYPES,
    INTEGER_TYPES,
    GemmProblem,
    Stack,
    is_conjugated,
    is_transposed,
)
from opencl_lab.runtime.arrays import AnyArray, contiguous, is_device_array, is_plain, reshaped
from opencl_lab.runtime.call import Call


def result_shape(a: AnyArray, b: AnyArray, trans_a: Any, trans_b: Any) -> tuple[int, ...]:
    """Return the shape of ``op(a) @ op(b)``, with stacks that broadcast as in `numpy.matmul`.

    As there, the result has no row dimension if a is a vector, and no column dimension if b is.
    """
    *stack, m, n = _product_shape(a, b, trans_a, trans_b)
    return (*stack, *([m] if a.ndim > 1 else []), *([n] if b.ndim > 1 else []))


def _matrix_shape(array: AnyArray, name: str, trans: Any) -> tuple[int, ...]:
    """Return the shape of op(array) as matrices; a vector is a row of a or a column of b."""
    if array.ndim != 1:
        return tuple(array.shape)
    is_row = (name == "a") != is_transposed(trans, f"trans_{name}")
    return (1, array.size) if is_row else (array.size, 1)


def _product_shape(a: AnyArray, b: AnyArray, trans_a: Any, trans_b: Any) -> tuple[int, ...]:
    """Return the shape of the product of two factors as matrices."""
    shape_a, shape_b = _matrix_shape(a, "a", trans_a), _matrix_shape(b, "b", trans_b)
    turned_a, turned_b = is_transposed(trans_a, "trans_a"), is_transposed(trans_b, "trans_b")
    m, k = shape_a[:-3:-1] if turned_a else shape_a[-2:]
    rows_b, n = shape_b[:-3:-1] if turned_b else shape_b[-2:]
    if k != rows_b:
        raise InvalidProblem(
            f"a gives sums of length {k} and b of length {rows_b}: "
            f"a is {_lengths(a)}{', transposed' if turned_a else ''}, "
            f"b is {_lengths(b)}{', transposed' if turned_b else ''}"
        )
    try:
        return (*np.broadcast_shapes(shape_a[:-2], shape_b[:-2]), m, n)
    except ValueError:
        raise InvalidProblem(
            f"the stacks of a and b do not broadcast: a is {_lengths(a)}, b is {_lengths(b)}; as "
            "for numpy.matmul, dimensions before the last two must be equal or 1"
        ) from None


def _lengths(array: AnyArray) -> str:
    return " x ".join(map(str, array.shape))


def shaped(array: AnyArray, shape: tuple[int, ...], call: Call) -> AnyArray:
    """Return a plain array reshaped; the same object if it already has that shape."""
    return array if tuple(array.shape) == shape else reshaped(array, shape, call)


def _check_arrays(arrays: Mapping[str, AnyArray]) -> None:
    """Require at least one dimension, one dtype, and all arrays on the same side."""
    for name in ("a", "b"):
        if not arrays[name].ndim:
            raise InvalidProblem(f"{name} is a single number; multiply by it, or pass it as alpha")
    if len({is_device_array(array) for array in arrays.values()}) > 1:
        raise InvalidProblem(f"{', '.join(arrays)} must all be host arrays or all be device arrays")
    names = {name: array.dtype.name for name, array in arrays.items()}
    known = {*ELEMENT_TYPES, *INTEGER_TYPES}
    if not set(names.values()) <= known or len(set(names.values())) > 1:
        refuse_types(arrays, " or all integers of one type")


def refuse_types(arrays: Mapping[str, AnyArray], more: str = "") -> NoReturn:
    """Raise `InvalidProblem` for the dtypes of arrays; `more` names further allowed ones."""
    found = ", ".join(f"{name} is {array.dtype.name}" for name, array in arrays.items())
    raise InvalidProblem(
        f"the matrices must all be {' or all '.join(ELEMENT_TYPES)}{more}: {found}; convert with "
        f"astype (on the command line: --dtype {_common_type(arrays)}), nothing is converted "
        "silently"
    )


def _common_type(arrays: Mapping[str, AnyArray]) -> str:
    """Return the name of a dtype that holds the values of all arrays."""
    kinds = [array.dtype for array in arrays.values()]
    if not all(np.issubdtype(kind, np.number) for kind in kinds):
        return "float64"
    common = np.result_type(*kinds).name
    return common if common in ELEMENT_TYPES else "float64"


def _scalar(value: Any, name: str, dtype: np.dtype[Any]) -> Any:
    """Return alpha or beta: a real number, or a complex one, which the problem may refuse."""
    try:
        if dtype.kind in "iu":
            return exact_number(value, name)
        return complex(value) if np.iscomplexobj(value) else real_number(value, name)
    except (TypeError, ValueError, InvalidProblem) as error:
        kind = "number" if dtype.kind == "c" else "real number"
        raise InvalidProblem(f"{name} must be a {kind}, not {value!r}") from error


def _moving(array: AnyArray, dimensions: int, call: Call) -> tuple[AnyArray, tuple[bool, ...]]:
    """Return an array without the stack dimensions along which it repeats, and which ones remain.

    It repeats along dimensions of length 1, along those of stride 0, as from `numpy.broadcast_to`,
    and along those of `dimensions` that it lacks.
    """
    ahead = list(zip(array.shape[:-2], array.strides[:-2], strict=True))
    moves = tuple(length != 1 and bool(stride or not array.size) for length, stride in ahead)
    if not all(moves):
        if array.size:
            array = array[tuple(slice(None) if moving else 0 for moving in moves)]
        else:
            kept = (length for (length, _), moving in zip(ahead, moves, strict=True) if moving)
            array = reshaped(array, (*kept, *array.shape[-2:]), call)
    return array, (False,) * (dimensions - len(moves)) + moves


def _stored(array: AnyArray, call: Call) -> tuple[AnyArray, bool]:
    """Return a plain array, and whether its matrices are the transposes of those of `array`.

    It is a copy only if necessary.
    """
    if not is_plain(array):
        last = array.ndim - 1
        turned = array.transpose((*range(last - 1), last, last - 1))
        if is_plain(turned):
            return turned, True
    return contiguous(array, call), False


def _merged(
    lengths: Sequence[int], moves_a: Sequence[bool], moves_b: Sequence[bool]
) -> tuple[Stack, ...]:
    """Return the fewest dimensions of a stack: length 1 dropped, similar neighbours merged."""
    found: list[Stack] = []
    for length, of_a, of_b in zip(lengths, moves_a, moves_b, strict=True):
        if length == 1:
            continue
        alike = bool(found) and found[-1][1:] == (of_a, of_b)
        found.append((length * found.pop()[0] if alike else length, of_a, of_b))
    return tuple(found)


def _bias(
    bias: AnyArray, shape: tuple[int, ...], result: tuple[int, ...], call: Call
) -> tuple[str, AnyArray]:
    """Return the kind of bias that an array is when broadcast by NumPy's rules, and its elements.

    `shape` is that of the product as a matrix; `result` is that of the user's result, without the
    dimensions of vectors.
    """
    m, n = shape[-2:]
    ahead, ends = bias.shape[:-2], tuple(bias.shape[-2:])
    if len(result) < len(shape):
        fits, kind = tuple(bias.shape) == result[-1:], "row" if n == 1 else "column"
        wanted = f"an element of each vector, {result[-1:]}"
    else:
        kind = "column" if ends in ((n,), (1, n)) else "row" if ends == (m, 1) else ""
        fits = bool(kind) and set(ahead) <= {1} and bias.ndim <= len(shape)
        wanted = f"each column, {(n,)}, or for each row, {(m, 1)}"
    if not fits:
        raise InvalidProblem(
            f"bias must have a number for {wanted}, not {tuple(bias.shape)}; a whole matrix is c, "
            "with beta=1"
        )
    return kind, shaped(contiguous(bias, call), (bias.size,), call)


def bind(
    a: AnyArray,
    b: AnyArray,
    c: AnyArray | None,
    *,
    alpha: Any,
    beta: Any,
    trans_a: Any,
    trans_b: Any,
    precision: str,
    bias: AnyArray | None = None,
    activation: str | None = None,
    call: Call | None = None,
) -> tuple[GemmProblem, dict[str, AnyArray]]:
    """Return the problem of a user's matrices, and its inputs.

    A stack gets the fewest dimensions that describe it. If all products along the last one share b,
    the matrices of a are joined into one tall matrix.
    """
    call = call or Call()
    arrays = {"a": a, "b": b, "c": c, "bias": bias}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    _check_arrays(arrays)
    dtype = np.dtype(a.dtype.name)
    alpha, beta = _scalar(alpha, "alpha", dtype), _scalar(beta, "beta", dtype)
    wanted = result_shape(a, b, trans_a, trans_b)
    if c is not None and tuple(c.shape) != wanted:
        raise InvalidProblem(f"c must have the shape of the result, {wanted}, not {tuple(c.shape)}")
    shape = _product_shape(a, b, trans_a, trans_b)
    inputs: dict[str, AnyArray] = {}
    moves, turned = {}, {}
    for name, trans in (("a", trans_a), ("b", trans_b)):
        factor = arrays[name]
        if factor.ndim == 1:
            matrix = _matrix_shape(factor, name, trans)
            factor = reshaped(contiguous(factor, call), matrix, call)
        moving, moves[name] = _moving(factor, len(shape) - 2, call)
        inputs[name], turned[name] = _stored(moving, call)
    kind = ""
    if bias is not None:
        kind, inputs["bias"] = _bias(bias, shape, wanted, call)
    (m, n) = shape[-2:]
    k = _matrix_shape(a, "a", trans_a)[-2 if is_transposed(trans_a, "trans_a") else -1]
    turned_a = is_transposed(trans_a, "trans_a") != turned["a"] and m != 1
    stacks = _merged(shape[:-2], moves["a"], moves["b"])
    if stacks and stacks[-1][1:] == (True, False) and not turned_a and kind != "row":
        m *= stacks[-1][0]
        stacks = stacks[:-1]
    problem = GemmProblem(
        m,
        n,
        k,
        dtype,
        alpha,
        beta,
        turned_a,
        is_transposed(trans_b, "trans_b") != turned["b"],
        precision,
        conj_a=is_conjugated(trans_a),
        conj_b=is_conjugated(trans_b),
        batch=math.prod(count for count, _, _ in stacks),
        stacks=stacks,
        bias=kind,
        activation=activation or "",
    )
    if problem.beta:
        if c is None:
            raise InvalidProblem(f"beta is {beta}, so c is needed")
        inputs["c"] = shaped(contiguous(c, call), problem.shape, call)
    inputs["a"] = shaped(inputs["a"], problem.shape_a, call)
    inputs["b"] = shaped(inputs["b"], problem.shape_b, call)
    return problem, inputs
