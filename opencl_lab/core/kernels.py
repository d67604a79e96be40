"""What plans of all kernels share: OpenCL C types, index types, constraints, what devices lack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opencl_lab.core.plan import Argument, Launch, ceil_divide, round_up
from opencl_lab.core.space import Constraint, Value

if TYPE_CHECKING:  # processes without OpenCL have problems, too
    from opencl_lab.core.device import Device

C_TYPES = {
    "bool": "uchar",
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float16": "half",
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
}
"""OpenCL C types by the names of NumPy dtypes."""
WORD_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
"""OpenCL C types to copy elements, by their size in bytes."""
HOST_TYPES = {"bool": "uint8_t", "float16": "_Float16", "float32": "float", "float64": "double"}
"""C types by NumPy dtypes, where they are not the dtype's name with ``_t`` appended."""
VECTOR_WIDTHS = (1, 2, 4, 8, 16)
"""Elements of an OpenCL C vector; 1: a scalar."""
WIDEN = "common/widen.cl.mako"
"""Template that converts half precision to single."""
INDEX_LIMIT = 1 << 31
"""Fewer elements are indexed with 32 bits: indices may be past the end by any size of tile."""


def c_type(dtype: Any) -> str:
    """Return the OpenCL C type of a NumPy dtype or scalar type, such as ``uint`` for uint32."""
    return C_TYPES[np.dtype(dtype).name]


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers, or the components of complex ones, have eight bytes."""
    return dtype.itemsize == (16 if dtype.kind == "c" else 8)


def real_type(dtype: Any) -> str:
    """Return the OpenCL C type of a real number, or of a complex number's components."""
    return c_type(dtype).removesuffix("2")


@dataclass(frozen=True)
class Element:
    """What a template knows of the type of its elements: names of OpenCL C's types.

    =========  ======  ======  ======  =======
    dtype      type    sum     real    complex
    =========  ======  ======  ======  =======
    float16    half    float   float   False
    float32    float   float   float   False
    int32      int     int     int     False
    complex64  float2  float2  float   True
    =========  ======  ======  ======  =======
    """

    type: str  # in memory
    sum: str  # what they are computed in
    real: str  # of a component of `sum`: of the real and of the imaginary one, if it is complex
    complex: bool  # whether an element has both, beside each other

    @classmethod
    def of(cls, dtype: Any) -> Element:
        """Return what a template knows of elements of a NumPy dtype."""
        name = c_type(dtype)
        total = "float" if name == "half" else name
        return cls(name, total, total.removesuffix("2"), np.dtype(dtype).kind == "c")

    @property
    def double(self) -> bool:
        """Whether it is computed in double precision, which some devices have as an extension."""
        return self.real == "double"


def host_c_type(dtype: Any) -> str:
    """Return the C type of a dtype, for code that the host's compiler builds."""
    name = np.dtype(dtype).name
    return HOST_TYPES.get(name, f"{name}_t")


def word_size(nbytes: int) -> int:
    """Return the size of the largest word that divides an element of `nbytes`."""
    return next(size for size in sorted(WORD_TYPES, reverse=True) if not nbytes % size)


def index_type(count: int) -> Any:
    """Return the NumPy type that indexes `count` elements in a kernel: uint32 or uint64."""
    return np.uint32 if count < INDEX_LIMIT else np.uint64


def largest_power(*limits: int) -> int:
    """Return the largest power of two that is at most each of `limits`; at least 1."""
    return 1 << max(1, min(limits)).bit_length() - 1


def group_limit(device: Device) -> int:
    """Return the most items of a one-dimensional group."""
    return min(device.capabilities.max_work_group, device.max_work_items[0])


def sub_group(device: Device, registers: int) -> int:
    """Return the items of the sub-groups that a kernel should ask for, or 0 for none.

    Items of wider sub-groups have half as many registers, or fewer. `registers` is about how many
    an item needs.
    """
    able = device.capabilities
    return able.sub_group if 2 * registers > able.item_registers else 0


def is_one_thread(device: Device) -> bool:
    """Return whether a single thread of a CPU does all work."""
    return device.kind == "cpu" and device.compute_units == 1


def item_launch(
    template: str,
    kernel: str,
    items: int,
    params: Mapping[str, Any],
    arguments: Mapping[str, Argument],
) -> Launch:
    """Return a launch of `items` work-items, rounded up to whole groups of ``params["WG_SIZE"]``.

    The kernel must guard against the items beyond.
    """
    wg_size = int(params["WG_SIZE"])
    return Launch(template, kernel, params, (round_up(items, wg_size),), (wg_size,), arguments)


def widening(source: str, target: str, count: int, wg_size: int) -> Launch:
    """Return the launch that converts `count` numbers of float16 to float32, eight per item."""
    arguments: dict[str, Argument] = {"source": source, "target": target, "count": np.uint64(count)}
    return item_launch(WIDEN, "widen", ceil_divide(count, 8), {"WG_SIZE": wg_size}, arguments)


def positive(name: str) -> Constraint:
    """Require a parameter to be positive."""
    return Constraint(lambda c: c.integer(name) > 0, f"{name} must be positive")


def not_negative(name: str) -> Constraint:
    """Require a parameter to be zero or positive."""
    return Constraint(lambda c: c.integer(name) >= 0, f"{name} must not be negative")


def power_of_two(name: str) -> Constraint:
    """Require a parameter to be a power of two."""
    return Constraint(
        lambda c: c.integer(name) > 0 and not c.integer(name) & (c.integer(name) - 1),
        f"{name} must be a power of two",
    )


def divides(divisor: str, number: str, why: str) -> Constraint:
    """Require one parameter to divide another; `why` completes the message."""
    return Constraint(
        lambda c: c.integer(number) % c.integer(divisor) == 0,
        f"{divisor} must divide {number}: {why}",
    )


def one_of(name: str, values: Collection[Value]) -> Constraint:
    """Require a parameter to be one of several values."""
    *most, last = map(str, values)
    return Constraint(lambda c: c[name] in values, f"{name} must be {', '.join(most)} or {last}")


def vector_width(name: str, widths: tuple[int, ...] = VECTOR_WIDTHS) -> Constraint:
    """Require a parameter to be a vector width, one of `widths`."""
    reason = one_of(name, widths).reason.replace("must be", "must be a width of OpenCL's vectors:")
    return Constraint(lambda c: c[name] in widths, reason)


NO_DOUBLE = "the device has no double precision"


def lacks_type(device: Device, dtype: Any) -> str | None:
    """Return why a device lacks arithmetic in a dtype, real or complex, or None if it has it."""
    if np.dtype(dtype).name in ("float64", "complex128") and not device.capabilities.fp64:
        return NO_DOUBLE
    return None


def lacks_barriers(device: Device) -> str | None:
    """Return why a device cannot run kernels with barriers in loops, or None if it can."""
    if device.capabilities.barriers_in_loops:
        return None
    return "barriers in loops do not work on the device"


def lacks_groups(device: Device) -> str | None:
    """Return why work-groups cannot share work, or None; CPUs use groups of one item."""
    return None if device.kind == "cpu" else lacks_barriers(device)
