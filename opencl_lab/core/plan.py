"""Plans: what to launch on a device, as pure data.

`Algorithm.plan` gives the launch geometry and the order of the arguments once; the runtime, the
tuner, tests and comparisons use it. Nothing in this module calls OpenCL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.core.wording import size_text

if TYPE_CHECKING:  # processes without OpenCL have problems, too
    from opencl_lab.core.device import Device

__all__ = [
    "ARGUMENT_BYTES",
    "CUDA_GROUPS",
    "Argument",
    "Buffer",
    "Launch",
    "LocalMemory",
    "Plan",
    "Table",
    "Work",
    "check_plan",
    "named",
    "passed_room",
    "round_up",
]


ARGUMENT_BYTES = 128
"""Most local memory that an argument takes besides its size, the largest type of OpenCL: NVIDIA's
driver takes an element of the argument's type."""
CUDA_GROUPS = 65535
"""Most work-groups in the second and third dimension on CUDA devices; OpenCL has no query."""

Role: TypeAlias = Literal["in", "out", "scratch", "table", "zeros"]


@dataclass(frozen=True)
class Work:
    """The least work of a problem: arithmetic operations, and bytes moved through device memory.

    `items` is the number of what `item` names, such as keys, where rates of these are usual. With
    `matrix_units`, matrix units do the arithmetic.
    """

    flops: float
    bytes: float
    items: float = 0.0
    item: str = ""
    matrix_units: bool = False


@dataclass(frozen=True)
class Table:
    """Constants that the host computes as ``function(*arguments)``, an array.

    A session copies equal tables to its device once, however many plans use them.
    """

    function: Callable[..., np.ndarray[Any, Any]]
    arguments: tuple[Hashable, ...] = ()

    def make(self) -> np.ndarray[Any, Any]:
        """Compute the array."""
        return self.function(*self.arguments)


@dataclass(frozen=True)
class Buffer:
    """A global-memory buffer of a plan.

    Buffers of role ``in`` and ``out`` may be the user's own memory: kernels may assume no more than
    the alignment of one element. (On devices that share no memory with the host, OpenCL aligns
    buffers and sub-buffers to its largest type.) Kernels must not write to buffers of role ``in``
    and ``table``. Those of role ``table`` hold the array of their `Table`. Those of role ``zeros``
    are zero before the first launch that uses them, and must be zero again after each launch; only
    one launch at a time uses them.
    """

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    table: Table | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class LocalMemory:
    """A ``__local`` pointer argument, with its size in bytes."""

    nbytes: int


Argument: TypeAlias = str | LocalMemory | np.generic
"""The name of a buffer, local memory, or a scalar passed by value."""


def named(*names: str) -> dict[str, Argument]:
    """Return arguments that have the names of their buffers."""
    return {name: name for name in names}


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Parameters
    ----------
    template : str
        Template that holds the kernel, as `opencl_lab.core.template.render` takes it.
    kernel : str
        Name of the kernel in it.
    params : mapping
        The template's arguments.
    global_size, local_size : tuple of int
        Work-items in all and per group; each global size a multiple of the local one.
    arguments : mapping
        The kernel's arguments by name, in the order of its signature.
    local_bytes : int
        Local memory that the kernel declares itself.
    options : tuple of str
        Build options of the program.
    """

    template: str
    kernel: str
    params: Mapping[str, Any]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: Mapping[str, Argument]
    local_bytes: int = 0
    options: tuple[str, ...] = ()

    @property
    def work_group(self) -> int:
        """Work-items in one work-group."""
        return math.prod(self.local_size)

    @property
    def local_memory(self) -> int:
        """Local memory that one work-group may take, in bytes: declared, and of arguments."""
        passed = [arg.nbytes for arg in self.arguments.values() if isinstance(arg, LocalMemory)]
        return self.local_bytes + sum(passed) + ARGUMENT_BYTES * len(passed)

    def only_if(self, wanted: str) -> Launch:
        """Return the launch for a kernel that does nothing where a buffer begins with a zero.

        Its template has the parameter ``CONDITIONAL``; see ``common/condition.mako``.
        """
        return replace(
            self,
            params={**self.params, "CONDITIONAL": True},
            arguments={"wanted": wanted, **self.arguments},
        )

    def renamed(self, names: Mapping[str, str]) -> Launch:
        """Return the launch with buffers renamed by `names`; others keep their names."""
        arguments = {
            name: names.get(value, value) if isinstance(value, str) else value
            for name, value in self.arguments.items()
        }
        return replace(self, arguments=arguments)


@dataclass(frozen=True)
class Plan:
    """Launches in order, and the buffers that they use."""

    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    by_name: Mapping[str, Buffer] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {buffer.name: buffer for buffer in self.buffers})

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers)

    def with_role(self, role: Role) -> tuple[Buffer, ...]:
        """Return the buffers of one role, in order."""
        return self._by_role.get(role, ())

    @cached_property
    def _by_role(self) -> dict[Role, tuple[Buffer, ...]]:
        roles = {buffer.role for buffer in self.buffers}
        return {role: tuple(b for b in self.buffers if b.role == role) for role in roles}


def ceil_divide(value: int, divisor: int) -> int:
    """Return ``value / divisor``, rounded up; the divisor is positive."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple of `multiple` that is not below `value`."""
    return ceil_divide(value, multiple) * multiple


def passed_room(device: Device) -> int:
    """Return the bytes of local memory that one argument can pass."""
    return max(0, device.capabilities.local_memory - ARGUMENT_BYTES)


def _check_launch(launch: Launch, plan: Plan, device: Device) -> None:
    limits = device.capabilities
    where = f"kernel {launch.kernel}"
    if launch.work_group > limits.max_work_group:
        raise InvalidConfig(
            f"{where}: work-group of {launch.work_group} items, "
            f"the device takes at most {limits.max_work_group}"
        )
    for dimension, (items, local) in enumerate(
        zip(launch.global_size, launch.local_size, strict=True)
    ):
        if items < 1 or items % local:
            raise InvalidConfig(
                f"{where}: global size {items} is no positive multiple of "
                f"the work-group's {local} in dimension {dimension}"
            )
        if local > device.max_work_items[dimension]:
            raise InvalidConfig(
                f"{where}: {local} items in dimension {dimension}, "
                f"the device takes at most {device.max_work_items[dimension]}"
            )
        groups = items // local
        if dimension and device.compute_capability is not None and groups > CUDA_GROUPS:
            raise InvalidConfig(
                f"{where}: {groups} work-groups in dimension {dimension}, the device takes at "
                f"most {CUDA_GROUPS} beyond the first dimension; larger groups need fewer"
            )
    passed = launch.local_memory > launch.local_bytes
    local = limits.local_memory if passed else max(limits.local_memory, limits.declared_memory)
    if launch.local_memory > local:
        raise InvalidConfig(
            f"{where}: {size_text(launch.local_memory)} of local memory, "
            f"the device has {size_text(local)}"
        )
    for name, argument in launch.arguments.items():
        if isinstance(argument, str) and argument not in plan.by_name:
            raise InvalidConfig(f"{where}: argument {name} names no buffer of the plan: {argument}")


def check_plan(plan: Plan, device: Device) -> None:
    """Check a plan against the limits of a device, before anything is allocated or built.

    Raises
    ------
    InvalidProblem
        If the buffers do not fit into the device's memory.
    InvalidConfig
        If a launch breaks a limit on the grid, on work-groups or on local memory.
    """
    for buffer in plan.buffers:
        if buffer.nbytes > device.largest_buffer:
            raise InvalidProblem(
                f"the array {buffer.name!r} takes {size_text(buffer.nbytes)}, but {device.name} "
                f"allocates at most {size_text(device.largest_buffer)} at once"
            )
    if plan.nbytes > device.global_memory:
        raise InvalidProblem(
            f"this needs {size_text(plan.nbytes)} of device memory, but {device.name} "
            f"has {size_text(device.global_memory)}"
        )
    for launch in plan.launches:
        _check_launch(launch, plan, device)
