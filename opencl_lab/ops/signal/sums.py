"""Convolutions by their definition, and products of arrays that are broadcast."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.kernels import c_type, index_type, item_launch, lacks_type, real_type
from opencl_lab.core.plan import Buffer, Plan, round_up
from opencl_lab.runtime.arrays import AnyArray
from opencl_lab.runtime.call import Call
from opencl_lab.runtime.copies import COPY_GROUP, View

TEMPLATE = "signal/convolve.cl.mako"


@dataclass(frozen=True)
class Sums:
    """A convolution of two views along some axes; along others they are multiplied.

    The result has `shape` and begins at `starts` of the whole convolution. With `conjugate` the
    numbers of `b` are conjugated.
    """

    a: View
    b: View
    a_type: np.dtype[Any]
    b_type: np.dtype[Any]
    result_type: np.dtype[Any]
    axes: frozenset[int]
    shape: tuple[int, ...]
    starts: tuple[int, ...]
    conjugate: bool

    @property
    def _sum_type(self) -> str:
        """The type of sums: integers are added modulo a power of two, as their types wrap."""
        if self.result_type.kind in "biu":
            return "ulong" if self.result_type.itemsize == 8 else "uint"
        return real_type(self.result_type)

    def plan(self, wg_size: int) -> Plan:
        """Plan one launch, none for an empty result."""
        buffers = (
            Buffer("a", "in", self.a.shape, self.a_type),
            Buffer("b", "in", self.b.shape, self.b_type),
            Buffer("result", "out", self.shape, self.result_type),
        )
        count = math.prod(self.shape)
        if not count:
            return Plan(buffers, ())
        index = index_type(round_up(count, wg_size))
        arguments: dict[str, Any] = {
            "a": "a",
            "b": "b",
            "result": "result",
            "count": index(count),
            "from_a": np.int64(self.a.offset),
            "from_b": np.int64(self.b.offset),
        }
        axes = tuple(range(len(self.shape)))
        for d in axes:
            arguments[f"shape_{d}"] = index(self.shape[d])
            for name, view in (("a", self.a), ("b", self.b)):
                repeated = d not in self.axes and view.shape[d] == 1
                arguments[f"{name}_stride_{d}"] = np.int64(0 if repeated else view.strides[d])
            if d in self.axes:
                arguments[f"start_{d}"] = np.int64(self.starts[d])
                arguments[f"a_size_{d}"] = np.int64(self.a.shape[d])
                arguments[f"b_size_{d}"] = np.int64(self.b.shape[d])
        params = {
            "A_T": c_type(self.a_type),
            "B_T": c_type(self.b_type),
            "A_COMPLEX": self.a_type.kind == "c",
            "B_COMPLEX": self.b_type.kind == "c",
            "RESULT_T": c_type(self.result_type),
            "SUM_T": self._sum_type,
            "CONJUGATE": self.conjugate,
            "TRUTH": self.result_type.kind == "b",
            "CONVOLVED": tuple(d in self.axes for d in axes) or (False,),
            "INDEX_T": c_type(index),
            "WG_SIZE": wg_size,
        }
        if not axes:  # numbers: one axis of length 1
            arguments |= {"shape_0": index(1), "a_stride_0": np.int64(0), "b_stride_0": np.int64(0)}
        return Plan(buffers, (item_launch(TEMPLATE, "convolve", count, params, arguments),))


def sums(
    call: Call,
    a: AnyArray,
    b: AnyArray,
    dtype: np.dtype[Any],
    *,
    axes: Collection[int] = (),
    shape: tuple[int, ...] | None = None,
    starts: tuple[int, ...] = (),
    conjugate: bool = False,
) -> AnyArray:
    """Return sums of products of two device arrays, see `Sums`; without `axes` their product."""
    lacking = lacks_type(call.device, dtype)
    if lacking:
        raise InvalidConfig(f"{lacking}, in which {a.dtype} and {b.dtype} are multiplied")
    shape = np.broadcast_shapes(a.shape, b.shape) if shape is None else shape
    views, kinds = (View.of(a), View.of(b)), (a.dtype, b.dtype)
    made = Sums(*views, *kinds, dtype, frozenset(axes), shape, starts, conjugate)
    wg_size = min(COPY_GROUP, call.device.capabilities.max_work_group)
    executable = call.session.executable(("sums", made), lambda: made.plan(wg_size))
    return call.execute(executable, {"a": a, "b": b}).outputs["result"]
