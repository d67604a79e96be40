"""Makes PoCL compile for the processor that its library of built-in functions was compiled for.

PoCL 3 and 4, as distributions build them, have the built-in functions of OpenCL C as bitcode,
compiled for each of a few processors. They choose a library by the processor's features, but
compile kernels for the processor that LLVM detects. If the two differ, 64-byte vectors are passed
in different registers: LLVM crashes, hangs, or computes wrong values. LLVM 14 detects AMD Zen 4 as
``znver3``, without the AVX-512 that the library uses. It does not know Zen 5 at all: it reports
``generic``, which its own compiler refuses (PoCL issues 512 and 1049). It also detects processors
by their model, even if a hypervisor has disabled some features.

PoCL 5 compiles for the processor of the library, and so does Debian's PoCL 3.1. This module makes
PyPI's PoCL 3.0 do the same. It has no setting for it, so the pointer to the processor's name is
changed in PoCL's structure of the device. Other builds that have this fault are not known to the
byte (`pocl_builds`), and stay as they are: the self-test finds what they compile wrong.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

from opencl_lab.drivers import pocl_builds
from opencl_lab.drivers.processes import cpu_fields

TARGETS = {
    "x86-64": ("sse2", {"sse2"}),
    "core2": ("ssse3", {"ssse3", "cx16"}),
    "penryn": ("sse41", {"sse4_1", "cx16"}),
    "sandybridge": ("avx", {"avx", "cx16", "popcnt"}),
    "ivybridge": ("avx_f16c", {"avx", "cx16", "popcnt", "f16c"}),
    "bdver1": ("avx_fma4", {"avx", "cx16", "popcnt", "xop", "fma4"}),
    "haswell": ("avx2", {"avx2", "cx16", "popcnt", "abm", "f16c", "fma", "bmi1", "bmi2"}),
    "skylake-avx512": ("avx512", {"avx512f"}),
}
"""The libraries: processor, name, and required flags. The last one that fits is used."""
_names = {target: ctypes.create_string_buffer(target.encode()) for target in TARGETS}
"""Keeps the names in memory, as PoCL points to them until the process ends."""


def library_target(flags: set[str] | None = None) -> str | None:
    """Return the processor of the library that PoCL uses; None unless on x86-64 Linux.

    `flags` are those of a processor in ``/proc/cpuinfo``; by default, of this machine's.
    """
    if flags is None:
        if platform.system() != "Linux" or platform.machine() != "x86_64":
            return None
        flags = set(cpu_fields().get("flags", "").split())
    return next((name for name in reversed(TARGETS) if flags >= TARGETS[name][1]), None)


def repair_target(handle: Any) -> str | None:
    """Make PoCL compile for the processor of its library, if the build needs it and is known.

    The handle is a `pyopencl.Device`. Return the processor that PoCL compiles for now, or None if
    nothing was changed.
    """
    target = library_target()
    if target is None or set_target(handle, _names[target]) is None:
        return None
    return target


def set_target(handle: Any, name: ctypes.Array[ctypes.c_char]) -> str | None:
    """Make a device of PoCL compile for the processor `name`, which must outlive the device.

    Return the processor that it compiled for before, or None if nothing was changed.
    """
    pointer = handle.int_ptr
    layout = pocl_builds.checked(pointer, handle.type, handle.name)
    if layout is None or layout.target is None:
        return None
    place = ctypes.c_void_p.from_address(pointer + layout.target[1])
    before = ctypes.string_at(place.value or 0).decode()
    place.value = ctypes.addressof(name)
    return before
