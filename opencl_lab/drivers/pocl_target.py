"""Makes PoCL compile for the processor that its library of built-in functions was compiled for.

PoCL 3 and 4, as distributions build them, have the built-in functions of OpenCL C as bitcode,
compiled for each of a few processors. They choose a library by the processor's features, but
compile kernels for the processor that LLVM detects. If the two differ, 64-byte vectors are passed
in different registers: LLVM crashes, hangs, or computes wrong values. LLVM 14 detects AMD Zen 4 as
``znver3``, without the AVX-512 that the library uses. It does not know Zen 5 at all: it reports
``generic``, which its own compiler refuses (PoCL issues 512 and 1049). It also detects processors
by their model, even if a hypervisor has disabled some features.

PoCL 5 compiles for the processor of the library, and so does Debian's PoCL 3.1, which has the
library's name beside the triple. This module makes the others do the same. They have no setting
for it, so the pointer to the processor's name is changed in PoCL's structure of the device.
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
"""The libraries: processor, name, and required flags. The last one that fits is used."""
LIBRARIES = {library.encode() for library, _ in TARGETS.values()}
TRIPLE, NAME = re.compile(rb"x86_64-[a-z0-9_-]+"), re.compile(rb"[a-z0-9_+.-]+")
STRUCTURE_BYTES = 1024  # includes both pointers, which PoCL 3.0 has at 632 and 640
TEXT_BYTES = 64
POINTER = struct.Struct("P")

_log = logging.getLogger(__name__)
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


def repair_target(platform_version: str, device_pointer: int) -> str | None:
    """Make PoCL compile for the processor of its library, if the release needs it.

    The platform's version gives the release, and whether it chooses among libraries; the pointer is
    the ``cl_device_id``. Return the processor that PoCL compiles for now, or None if nothing was
    changed.
    """
    target = library_target()
    if target is None or not re.search(r"PoCL [34]\..*\bDISTRO\b", platform_version):
        return None
    if set_target(device_pointer, _names[target]) is not None:
        return target
    _log.info("PoCL compiles for the processor that LLVM names, which may not be %s", target)
    return None


def set_target(device_pointer: int, name: ctypes.Array[ctypes.c_char]) -> str | None:
    """Make a device of PoCL compile for the processor `name`, which must outlive the device.

    Return the processor that it compiled for before. Nothing is changed, and None returned, unless
    the device's structure has exactly one pointer to the host's triple that is followed by a
    pointer to a processor's name.
    """
    try:
        # Unlike a pointer, this file gives an error for a bad address.
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
    """Yield the addresses of pointers to names that follow a pointer to a triple, and the names."""
    memory.seek(device_pointer)
    structure = memory.read(STRUCTURE_BYTES)
    texts = [_text(memory, address) for (address,) in POINTER.iter_unpack(structure)]
    for index, (triple, name) in enumerate(pairwise(texts), start=1):
        if TRIPLE.fullmatch(triple) and NAME.fullmatch(name) and name not in LIBRARIES:
            yield device_pointer + POINTER.size * index, name


def _text(memory: FileIO, address: int) -> bytes:
    """Return the text at an address, or b"" if there is none."""
    try:
        memory.seek(address)
        return memory.read(TEXT_BYTES).partition(b"\0")[0]
    except (OSError, OverflowError, ValueError):
        return b""
