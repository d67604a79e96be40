"""Shared by operations on keys: a user's keys, random keys, exact comparison, macros for C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import host_c_type
from opencl_lab.lab.files import convert
from opencl_lab.lab.measuring.difference import UNLIKE, Difference, errors_of
from opencl_lab.lab.operation import Operation, Option, axis_of, refuse_axis
from opencl_lab.lab.ops.shared import reading_along, refuse_given
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.ops.select.problem import TopkProblem
from opencl_lab.ops.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.runtime.arrays import native
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.rows import Rows

ORDERS = (
    "random",
    "sorted",
    "reversed",
    "nearly-sorted",
    "few-unique",
    "equal",
    "organ-pipe",
    "zipf",
)
ZIPF = 1.3
"""Exponent of skewed keys: the most frequent one is a quarter of them."""
SAMPLE_KEYS = 1 << 18
"""Enough keys to estimate the speed of a peer, without the overhead of launches."""

DTYPE = Option("dtype", str, "int32", "type of the keys", KEY_TYPES)
ORDER = Option("order", str, "random", "how generated keys are arranged", ORDERS, about_data=True)

R = TypeVar("R", SortProblem, TopkProblem)


def keys_of(
    arrays: Arrays, options: Mapping[str, Any], sizes: Sequence[str]
) -> np.ndarray[Any, Any]:
    """Return a user's array `keys`, in `dtype` if given; refuse the options `sizes`."""
    refuse_given(options, sizes)
    keys: np.ndarray[Any, Any] = native(arrays["keys"])
    return convert(keys, options["dtype"]) if "dtype" in options else keys


def rows_of(arrays: Arrays, options: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return a user's keys as rows, along the axis that the options name."""
    keys = keys_of(arrays, options, ("n", "rows"))
    if not keys.ndim:
        raise InvalidProblem("the file holds a single number without dimensions, not an array")
    data: np.ndarray[Any, Any] = Rows.of(keys, axis_of(options, keys.ndim), Call()).data
    return data


def along_axis(
    rows: np.ndarray[Any, Any], arrays: Arrays, options: Mapping[str, Any]
) -> np.ndarray[Any, Any]:
    """Return results of `rows_of` with the dimensions of the user's keys."""
    shape = list(arrays["keys"].shape)
    axis = axis_of(options, len(shape))
    del shape[axis]
    return np.moveaxis(rows.reshape(*shape, rows.shape[-1]), -1, axis)


def random_keys(
    shape: tuple[int, int], dtype: np.dtype[Any], order: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return keys over the whole range of the type, or normal floats, each row arranged in `order`.

    The shape is rows x keys of a row.
    """
    if dtype.kind == "f":
        drawn = np.float64 if dtype == np.float64 else np.float32
        keys = rng.standard_normal(shape, drawn).astype(dtype, copy=False)
    elif dtype == np.bool_:
        keys = rng.integers(0, 2, shape, np.bool_)
    else:
        limits = np.iinfo(dtype)
        keys = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return arranged(keys, order, rng)


def arranged(
    keys: np.ndarray[Any, Any], order: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Rearrange random keys within each row."""
    if order == "random" or not keys.size:
        return keys
    if order == "equal":
        return np.repeat(keys[:, :1], keys.shape[1], axis=1)
    if order == "few-unique":
        few = keys[:, : min(16, keys.shape[1])]
        return np.take_along_axis(few, rng.integers(0, few.shape[1], keys.shape), axis=1)
    if order == "zipf":
        ranks = (rng.zipf(ZIPF, keys.shape) - 1) % keys.shape[1]
        return np.take_along_axis(keys, ranks, axis=1)
    keys = np.sort(keys, axis=-1)
    if order == "reversed":
        keys = keys[:, ::-1]
    elif order == "organ-pipe":
        keys = np.concatenate([keys[:, ::2], keys[:, 1::2][:, ::-1]], axis=1)
    elif order == "nearly-sorted":
        for _ in range(max(1, keys.shape[1] // 100)):
            i, j = rng.integers(0, keys.shape[1], 2)
            keys[:, [i, j]] = keys[:, [j, i]]
    return np.ascontiguousarray(keys)


def exact(right: np.ndarray[Any, Any], given: np.ndarray[Any, Any]) -> Difference:
    """Compare results exactly; NaN equals NaN, and -0.0 equals 0.0."""
    if given.shape != right.shape or given.dtype != right.dtype:
        return UNLIKE
    if np.array_equal(right, given, equal_nan=right.dtype.kind == "f"):
        return Difference.exact(0.0, 0.0, True)
    if right.dtype.kind == "V":  # values of sorted keys, which are no numbers
        return UNLIKE
    difference, relative = errors_of(right.astype(np.float64), given.astype(np.float64))
    return Difference.exact(float(np.max(difference)), float(np.max(relative)), False)


def c_defines(
    dtype: np.dtype[Any], descending: bool = False, nan_first: bool = False
) -> dict[str, str]:
    """Return the macros of ``order.h``."""
    return {
        "KEY_T": host_c_type(dtype),
        "KEY_IS_FLOAT": str(int(dtype.kind == "f")),
        "DESCENDING": str(int(descending)),
        "NAN_FIRST": str(int(nan_first)),
    }


class RowsOperation(Operation[R]):
    """An operation on each row of keys; in a user's array, along the axis that an option names."""

    doing: ClassVar[tuple[str, str]]
    """Words for `reading_along`."""
    size_option = "n"
    inputs = ("keys",)

    @abstractmethod
    def described(self, chosen: Mapping[str, Any], n: int, dtype: np.dtype[Any], rows: int) -> R:
        """Return the problem of `rows` rows of n keys, with other fields from the options."""

    def problem(self, **options: Any) -> R:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        refuse_axis(options)
        return self.described(chosen, chosen["n"], np.dtype(chosen["dtype"]), chosen["rows"])

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[R, Arrays]:
        """Work along an axis of the array `keys`, converted to `dtype` if that is given."""
        chosen = self.with_defaults(options)
        data = rows_of(arrays, options)
        rows, n = data.shape
        return self.described(chosen, n, data.dtype, rows), {"keys": data}

    def reading(self, arrays: Arrays, **options: Any) -> str:
        """Return along which axis of a table it works."""
        return reading_along(arrays.get("keys"), options, *self.doing)

    def keeps_columns(self, arrays: Arrays, **options: Any) -> bool:
        """Return whether keys stay in their columns, which hold other things each."""
        return axis_of(options, arrays["keys"].ndim) == 0

    def generate(self, problem: R, seed: int, **options: Any) -> Arrays:
        """Return keys over the whole range of the type, or normal floats, in the given order."""
        order = self.with_defaults(options)["order"]
        rng = np.random.default_rng(seed)
        return {"keys": random_keys((problem.rows, problem.n), problem.dtype, order, rng)}


def without_rows(problem: R, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one row as an array of one dimension: CuPy sorts several rows by another algorithm."""
    return {"keys": arrays["keys"].reshape(-1)} if problem.rows == 1 else arrays


def sample_shape(problem: R) -> tuple[int, int]:
    """Return rows, and keys of a row, that are no more than `SAMPLE_KEYS` together."""
    n = min(problem.n, SAMPLE_KEYS)
    return min(problem.rows, max(1, SAMPLE_KEYS // max(n, 1))), n
