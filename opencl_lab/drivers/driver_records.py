"""The record of a device: what its driver says, corrected by what `oclab doctor` found."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

# First: it says why pyopencl does not load.
from opencl_lab.core.device import Capabilities, Device

# isort: split
import pyopencl as cl

from opencl_lab.drivers import pretend
from opencl_lab.drivers.pocl_target import repair_target
from opencl_lab.drivers.verdicts import corrected

KINDS = ("gpu", "accelerator", "cpu")
DECLARED_MEMORY = {(8, 0): 162, (8, 6): 98, (8, 7): 162, (8, 9): 98, (9, 0): 226}
"""KiB of local memory that a kernel may declare, by compute capability; the driver reports 48."""
SUB_GROUPS = "cl_intel_required_subgroup_size"
ITEM_REGISTERS = {"cl_amd_device_attribute_query": 128, SUB_GROUPS: 116}
"""Registers of an item, by an extension that only GPUs of one maker have.

AMD's compiler gives an item up to 256, but then a SIMD unit of GCN has one wave, and nothing to do
while it waits. A thread of Intel's GPUs has 128, each of four bytes for the items of the narrowest
sub-group, which the compiler takes where wider ones need more, or the kernel asks for; a dozen hold
what the thread is told, and addresses.
"""
WIDE_SUB_GROUP = 16
"""Items of the narrowest sub-groups that Intel's compiler does not take by itself: for Ponte
Vecchio it keeps 32 items, whatever that costs."""


def _info(handle: cl.Device, name: str, default: Any = None) -> Any:
    """Return an optional property of a device, or `default` if the driver lacks it."""
    try:
        return getattr(handle, name)
    except (cl.Error, AttributeError):
        return default


def _kind(type_bits: int) -> tuple[str, bool]:
    """Return the kind of a device and whether it is a simulator.

    A real device has one type; Oclgrind claims all of them at once. PoCL's serial side has none, as
    it is hidden.
    """
    if not type_bits:
        return "cpu", False
    claimed = [kind for kind in KINDS if type_bits & getattr(cl.device_type, kind.upper())]
    if len(claimed) > 1:
        return "cpu", True
    return (claimed[0] if claimed else "accelerator"), False


def _shares_pointers(handle: cl.Device, kind: str, simulated: bool) -> bool:
    """Return whether kernels can use host memory by address.

    OpenCL guarantees that for fine-grained system SVM. PoCL 3.0 can do it without saying so: its
    kernels on the CPU are functions of this process, unless the device is another machine's, which
    has no fine-grained buffers either.
    """
    claimed, names = int(_info(handle, "svm_capabilities", 0) or 0), cl.device_svm_capabilities
    ours = kind == "cpu" and not simulated and "PoCL" in handle.platform.version
    return bool(claimed & (names.FINE_GRAIN_SYSTEM | (names.FINE_GRAIN_BUFFER if ours else 0)))


def registers_told(handle: Any, kind: str, extensions: Set[str]) -> tuple[int, int]:
    """Return `Capabilities.item_registers` and `sub_group`, 0 where a driver tells nothing.

    Runtimes for CPUs have extensions of their makers' GPUs, too. What a device has at most of
    sub-groups are the narrowest ones.
    """
    if kind != "gpu":
        return 0, 0
    known = (count for name, count in ITEM_REGISTERS.items() if name in extensions)
    most = _info(handle, "max_num_sub_groups", 0) if SUB_GROUPS in extensions else 0
    narrowest = int(handle.max_work_group_size // most) if most else 0
    return next(known, 0), narrowest if narrowest == WIDE_SUB_GROUP else 0


def record_of(handle: cl.Device, platform_index: int, device_index: int) -> Device:
    """Return the record of a device, whose numbers are those of platform and device."""
    platform = handle.platform
    repair_target(handle)
    extensions = set(handle.extensions.split())
    kind, simulated = _kind(handle.type)
    capability = None
    if "cl_nv_device_attribute_query" in extensions:
        major = _info(handle, "compute_capability_major_nv")
        minor = _info(handle, "compute_capability_minor_nv", 0)
        capability = None if major is None else (int(major), int(minor))
    multiple = _info(handle, "warp_size_nv") or _info(
        handle, "preferred_work_group_size_multiple", 1
    )
    registers, sub_group = registers_told(handle, kind, extensions)
    device = Device(
        name=handle.name.strip(),
        kind=kind,
        vendor=handle.vendor.strip(),
        platform=platform.name.strip(),
        platform_version=platform.version.strip(),
        driver=handle.driver_version.strip(),
        c_version=handle.opencl_c_version.strip(),
        platform_index=platform_index,
        device_index=device_index,
        compute_units=handle.max_compute_units,
        clock=handle.max_clock_frequency,
        global_memory=handle.global_mem_size,
        # NVIDIA's driver claims a quarter of it. What does not fit is an error at first use.
        max_allocation=handle.max_mem_alloc_size if capability is None else handle.global_mem_size,
        local_memory=handle.local_mem_size,
        constant_memory=handle.max_constant_buffer_size,
        max_work_group=handle.max_work_group_size,
        max_work_items=tuple(handle.max_work_item_sizes),
        work_group_multiple=int(multiple or 1),
        native_vector_bytes=4 * int(_info(handle, "native_vector_width_float", 0) or 4),
        unified_memory=bool(_info(handle, "host_unified_memory", kind == "cpu")),
        shared_pointers=_shares_pointers(handle, kind, simulated),
        compute_capability=capability,
        simulated=simulated,
        capabilities=Capabilities(
            fp64="cl_khr_fp64" in extensions or bool(_info(handle, "double_fp_config", 0)),
            fp16="cl_khr_fp16" in extensions,
            int64_atomics="cl_khr_int64_base_atomics" in extensions,
            inline_ptx=capability is not None,
            matrix_units=capability is not None and capability >= (8, 0),
            warpgroup_matrix_units=capability == (9, 0),
            declared_memory=DECLARED_MEMORY.get(capability or (0, 0), 0) << 10,
            max_work_group=handle.max_work_group_size,
            local_memory=handle.local_mem_size,
            item_registers=registers,
            sub_group=sub_group,
            forward_progress=capability is not None,
            visible_writes=kind == "cpu" or capability is not None,
        ),
        handle=handle,
    )
    limits = pretend.asked()
    if limits is not None and pretend.can_pretend(device):
        return pretend.pretended(device, limits)
    return corrected(device)
