"""Repairs for PoCL, so that the OpenCL that pip installs works on every machine.

**Processors that are newer than PoCL's compiler.** PoCL asks LLVM for the name
of the host's processor. An LLVM that does not know the processor answers
``generic``, which its own compiler then refuses, so every build fails with
"unknown target CPU 'generic'" (PoCL issues 512 and 1049). PoCL 3.0, the one
that pip installs, with LLVM 14 fails so on AMD Zen 5. It reads no setting that
would name another processor (PoCL 6 has ``POCL_LLVM_CPU_NAME``), so the name is
changed where PoCL keeps it.

**The linker.** It links every kernel with the system's `ld` and ends the process
where there is none.
"""

from __future__ import annotations

import platform
import re
import shutil
import struct
from contextlib import suppress
from pathlib import Path

__all__ = [
    "linker_missing",
    "repair_generic_cpu",
    "repaired_vector_bytes",
]

UNKNOWN = b"generic\0"
DEVICE_BYTES = 1024  # beyond the field, which PoCL 3.0 has at 640, and inside the structure
HASWELL_FLAGS = {"avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}


def linker_missing(platform_version: str) -> str | None:
    """Return what a PoCL that links with the system's `ld` lacks, or None.

    Later releases than 5 can have a linker of their own.
    """
    release = re.search(r"PoCL (\d+)", platform_version)
    if release is None or int(release[1]) > 5 or shutil.which("ld"):
        return None
    return "PoCL links kernels with `ld`, which is not on the PATH: apt install binutils"


def _known_processor() -> bytes:
    """Return a target that this processor can run and every LLVM since 3.7 knows."""
    text = ""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    flags = next(
        (set(line.split()) for line in text.splitlines() if line.startswith("flags")), set()
    )
    return b"haswell\0" if flags >= HASWELL_FLAGS else b"x86-64\0\0"


def _is_generic(version: str) -> bool:
    return "PoCL" in version and version.endswith("-generic")


def repaired_vector_bytes(version: str) -> int | None:
    """Return the vectors that a PoCL with a replaced processor compiles for, in bytes; else None.

    Whatever it reports itself is the host's, of which its compiler knows nothing.
    """
    if not _is_generic(version):
        return None
    return 32 if _known_processor().startswith(b"haswell") else 16


def repair_generic_cpu(version: str, device_pointer: int) -> bool:
    """Give a PoCL device a processor that its compiler knows, if it lacks one.

    Parameters
    ----------
    version : str
        The device's version string; PoCL ends it with triple and processor.
    device_pointer : int
        The ``cl_device_id``.

    Returns
    -------
    bool
        Whether the device was changed. Nothing is touched unless exactly one
        pointer in the device's structure leads to the text ``generic``.
    """
    if not _is_generic(version):
        return False
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    try:
        # This file, unlike a pointer, answers a bad address with an error.
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(device_pointer)
            structure = memory.read(DEVICE_BYTES)
            found = []
            for (address,) in struct.iter_unpack("P", structure[: len(structure) // 8 * 8]):
                try:
                    memory.seek(address)
                    if memory.read(len(UNKNOWN)) == UNKNOWN:
                        found.append(address)
                except (OSError, ValueError, OverflowError):
                    continue
            if len(found) != 1:
                return False
            memory.seek(found[0])
            memory.write(_known_processor())
            return True
    except OSError:
        return False
