"""The processor that PoCL compiles for: the one that its library of built-ins was compiled for.

PoCL 3 and 4 for distributions bring the built-in functions of OpenCL C as bitcode, compiled
once for each of a few processors. They take a library by the processor's features, but compile
kernels for the processor that LLVM names. Where the two differ, 64-byte vectors cross the border
in different registers: LLVM crashes, hangs, or computes wrong values. LLVM 14 names AMD Zen 4
``znver3``, without the AVX-512 that the library uses. It does not know Zen 5 at all, and its own
compiler refuses the name ``generic`` that it gives (PoCL issues 512 and 1049). It also names
processors by their model, whatever a hypervisor has taken away.

PoCL 5 compiles for the processor of the library, and so does Debian's PoCL 3.1, which has the
library's name beside the triple. Here the others are made to do the same. They read no setting
for that, so the pointer to the processor's name is changed, in the structure that PoCL has of
its device.
"""

from __future__ import annotations

import ctypes
import logging
import platform
import re
import struct
from collections.abc import Iterator
from io import FileIO
from itertools import pairwise
from pathlib import Path

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
"""The processor of each library, its name, and which flags it asks for. The last one counts."""
LIBRARIES = {library.encode() for library, _ in TARGETS.values()}
TRIPLE, NAME = re.compile(rb"x86_64-[a-z0-9_-]+"), re.compile(rb"[a-z0-9_+.-]+")
STRUCTURE_BYTES = 1024  # beyond both pointers, which PoCL 3.0 has at 632 and 640
TEXT_BYTES = 64
POINTER = struct.Struct("P")

_log = logging.getLogger(__name__)
_names = {target: ctypes.create_string_buffer(target.encode()) for target in TARGETS}
"""Where PoCL finds the names until the process ends."""


def library_target(flags: set[str] | None = None) -> str | None:
    """Return the processor of the library that PoCL takes here; None on others than x86-64 Linux.

    The flags of a processor are those in ``/proc/cpuinfo``, by default of this machine.
    """
    if flags is None:
        if platform.system() != "Linux" or platform.machine() != "x86_64":
            return None
        flags = set(cpu_fields().get("flags", "").split())
    return next((name for name in reversed(TARGETS) if flags >= TARGETS[name][1]), None)


def repair_target(platform_version: str, device_pointer: int) -> str | None:
    """Let a PoCL that may do otherwise compile for the processor of its library.

    The platform's version says which release it is, and whether it chooses among libraries; the
    pointer is the ``cl_device_id``. Returns the processor that it compiles for now, or None where
    nothing was touched.
    """
    target = library_target()
    if target is None or not re.search(r"PoCL [34]\..*\bDISTRO\b", platform_version):
        return None
    if set_target(device_pointer, _names[target]) is not None:
        return target
    _log.info("PoCL compiles for the processor that LLVM names, which may not be %s", target)
    return None


def set_target(device_pointer: int, name: ctypes.Array[ctypes.c_char]) -> str | None:
    """Let a device of PoCL compile for the processor `name`, which must outlive it.

    Returns the processor that it compiled for before. Nothing is touched, and None returned,
    unless exactly one place of the device's structure has a pointer to the host's triple and then
    one to a processor's name.
    """
    try:
        # This file, unlike a pointer, answers a bad address with an error.
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            found = list(_names_in(memory, device_pointer))
            if len(found) != 1:
                return None
            place, before = found[0]
            memory.seek(place)
            memory.write(POINTER.pack(ctypes.addressof(name)))
            return before.decode()
    except (OSError, OverflowError, ValueError):
        return None


def _names_in(memory: FileIO, device_pointer: int) -> Iterator[tuple[int, bytes]]:
    """Yield the places of pointers to names that follow one to a triple, and the names."""
    memory.seek(device_pointer)
    structure = memory.read(STRUCTURE_BYTES)
    texts = [_text(memory, address) for (address,) in POINTER.iter_unpack(structure)]
    for index, (triple, name) in enumerate(pairwise(texts), start=1):
        if TRIPLE.fullmatch(triple) and NAME.fullmatch(name) and name not in LIBRARIES:
            yield device_pointer + POINTER.size * index, name


def _text(memory: FileIO, address: int) -> bytes:
    """Return the text at an address, empty if there is none."""
    try:
        memory.seek(address)
        return memory.read(TEXT_BYTES).partition(b"\0")[0]
    except (OSError, OverflowError, ValueError):
        return b""
