"""Devices as plain data, so that `plan` functions and their tests make no OpenCL call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.core.records import Count, Natural, as_json

try:  # needed soon in any case; here the error can say what is missing
    import pyopencl as cl
except ImportError as error:  # for example, the ICD loader that it is linked with is missing
    raise DeviceNotFound(
        f"pyopencl cannot be loaded ({error}); `oclab doctor` says what to install"
    ) from error

from opencl_lab.core.queues import queue_of


@dataclass(frozen=True)
class Capabilities:
    """What kernels may rely on: the driver's claims, corrected by `oclab doctor`.

    Parameters
    ----------
    usable : bool
        A kernel builds, runs and gives the right result at all.
    fp64, fp16, int64_atomics : bool
        Optional features of OpenCL C that work.
    inline_ptx : bool
        Inline NVIDIA PTX assembly compiles and runs.
    matrix_units : bool
        Matrix units can be used by PTX ``mma.sync``: in float16, TF32 and, exactly, float64.
    warpgroup_matrix_units : bool
        Matrix units of warpgroups can be used by ``wgmma``, in programs whose PTX is loaded again.
    declared_memory : int
        Local memory that a kernel may declare, in bytes, if that is more than `local_memory`, which
        NVIDIA's driver reports; else 0.
    max_work_group : int
        Largest work-group that was seen to work, in work-items.
    local_memory : int
        Largest local memory that was seen to work, in bytes.
    max_allocation : int
        Largest buffer, in bytes, of which both ends were seen to work, if that is not what the
        device claims; else 0.
    vector_bytes : int
        Widest vector, in bytes, that is safe to pass to a built-in function; at least 1.
    item_registers : int
        Registers of four bytes that an item may have before a unit holds too few items, or values
        go to memory; 0: not known, so that kernels are as for NVIDIA's GPUs.
    barriers_in_loops : bool
        Barriers inside loops and in branches, and what items exchange by them, give right results.
    event_timing : bool
        Event times agree with the host's clock.
    sub_group : int
        Items of the sub-groups that kernels which need more than half of these registers ask for;
        0: the compiler chooses.
    forward_progress : bool
        Work-groups that have started make progress while others of the launch wait for them.
        Assumed on NVIDIA's GPUs.
    visible_writes : bool
        What a work-group writes before a fence and an atomic operation is visible to another group
        of the launch that sees the result of this operation. Assumed on CPUs, whose caches are
        coherent, and on NVIDIA's GPUs, where the fence is one of PTX.
    """

    usable: bool = True
    fp64: bool = False
    fp16: bool = False
    int64_atomics: bool = False
    inline_ptx: bool = False
    matrix_units: bool = False
    warpgroup_matrix_units: bool = False
    declared_memory: Count = 0
    max_work_group: Natural = 1
    local_memory: Count = 0
    max_allocation: Count = 0
    vector_bytes: Natural = 16
    item_registers: Count = 0
    sub_group: Count = 0
    barriers_in_loops: bool = True
    event_timing: bool = True
    forward_progress: bool = False
    visible_writes: bool = False


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


SERIAL = "/serial"
"""End of the numbers that select the serial side of a device."""
DOUBLE_UNITS = ((8, 0), (9, 0))
"""Compute capabilities of NVIDIA's GPUs whose matrix units are the fastest units in float64."""


@dataclass(frozen=True)
class Device:
    """One OpenCL device: identity, limits and capabilities.

    Memory sizes are in bytes, the clock in MHz. `max_allocation` is what the driver claims; but
    NVIDIA's claims a quarter of the memory where all of it works, which is taken instead.
    `native_vector_bytes` is the width of the vectors that kernels are compiled to. With
    `shared_pointers`, kernels can read and write any host memory in place. `handle` is the
    `pyopencl.Device`; it is None in records made by hand for tests of plans.

    A serial device runs kernels in the thread that enqueues them, one work-group after the other.
    PoCL has one for each processor; it is not listed, but is the `serial_side` of the device that
    uses all threads, whose `key` is its `side_of`. Small calls on host arrays run there.

    A pretended device is PoCL's processor with the limits of another device, for tests.

    Records can be pickled. In another process they get the handle of the device there that has the
    same `key` and `spec`, or None.
    """

    name: str
    kind: str
    vendor: str = ""
    platform: str = ""
    platform_version: str = ""
    driver: str = ""
    c_version: str = ""
    platform_index: int = 0
    device_index: int = 0
    compute_units: int = 1
    clock: int = 0
    global_memory: int = 1 << 30
    max_allocation: int = 1 << 28
    local_memory: int = 32 << 10
    constant_memory: int = 64 << 10
    max_work_group: int = 256
    max_work_items: tuple[int, ...] = (256, 256, 256)
    work_group_multiple: int = 1
    native_vector_bytes: int = 16
    unified_memory: bool = False
    shared_pointers: bool = False
    compute_capability: tuple[int, int] | None = None
    simulated: bool = False
    pretended: bool = False
    side_of: str = ""
    capabilities: Capabilities = field(default_factory=Capabilities)
    serial_side: Device | None = field(default=None, compare=False, repr=False)
    handle: Any = field(default=None, compare=False, repr=False)

    def queue(self, *, profiling: bool = False) -> cl.CommandQueue:
        """Return one of the library's own two queues on it; both are in order.

        Calls with host arrays use it. So device arrays made on it are in order with these calls
        and share their pool of memory.

        Parameters
        ----------
        profiling : bool
            Whether events have times, which makes launches slower with some drivers. They always
            have in `opencl_lab.profile`.

        Returns
        -------
        pyopencl.CommandQueue
            The same one in each call.

        Raises
        ------
        LaunchError
            If no queue can be made, as in a process that was forked after OpenCL had started.
        DeviceNotFound
            If this is the record of a device that this machine does not have.
        """
        if self.handle is None:
            raise DeviceNotFound(f"{self} is the record of a device that is not here")
        return queue_of(self.handle, profiling)

    @property
    def largest_buffer(self) -> int:
        """Bytes of the largest buffer: as was seen to work, else as claimed."""
        return self.capabilities.max_allocation or self.max_allocation

    @property
    def is_serial(self) -> bool:
        """Whether kernels run in the calling thread."""
        return bool(self.side_of)

    @property
    def has_double_units(self) -> bool:
        """Whether matrix units, if there are any, are faster than other units in float64."""
        return self.compute_capability in DOUBLE_UNITS

    @property
    def aligns_vectors(self) -> bool:
        """Whether a row of whole vectors in device memory is aligned to vectors.

        OpenCL aligns buffers and sub-buffers to its largest type; host memory need not be aligned.
        """
        return not (self.kind == "cpu" or self.unified_memory or self.shared_pointers)

    @property
    def key(self) -> str:
        """Canonical name of device and driver, used by every cache and database."""
        parts = (self.kind, self.platform, f"{self.name} {self.compute_units}cu", self.driver)
        return "/".join(_slug(part) for part in parts)

    @property
    def architecture(self) -> str:
        """Name of the device's family, such as ``sm_90``; may be empty.

        For CPUs it is the runtime and the width of vectors that it compiles to.
        """
        if self.kind == "cpu" and self.platform:
            side = "_serial" if self.is_serial else ""
            return f"{_slug(self.platform)}_{8 * self.native_vector_bytes}{side}"
        if self.compute_capability is None:
            return ""
        return "sm_{}{}".format(*self.compute_capability)

    @property
    def spec(self) -> str:
        """The ``platform:device`` numbers that select exactly this device, or its serial side."""
        side = SERIAL if self.is_serial else ""
        return f"{self.platform_index}:{self.device_index}{side}"

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON-able values, with its key and spec."""
        record = as_json(replace(self, handle=None, serial_side=None))
        del record["handle"]
        record["serial_side"] = None if self.serial_side is None else self.serial_side.key
        record["architecture"], found = self.architecture, record.pop("capabilities")
        return {"key": self.key, "spec": self.spec, **record, "capabilities": found}

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, {self.platform}, driver {self.driver})"
