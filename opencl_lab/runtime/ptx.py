"""Programs with instructions of NVIDIA's architecture-specific targets, such as ``sm_90a``.

OpenCL compiles for the plain target, such as ``sm_90``, whose assembler refuses these
instructions. So they stand in the source as comments of PTX, in inline assembly. The program is
built once, its PTX is taken out, the marks before these comments are taken away, the target is
changed, and the PTX is loaded as a program of its own.
"""

from __future__ import annotations

import re
from typing import Any

import pyopencl as cl

from opencl_lab.core.errors import BuildError

MARK = re.compile(r"//(sm_\d+)a: ")
TARGET = rb"^(\.target\s+%s)\b(?!a)"


def is_specific(source: str) -> bool:
    """Return whether a source has instructions behind marks such as ``//sm_90a:``."""
    return MARK.search(source) is not None


def specific_ptx(ptx: bytes) -> bytes:
    """Return PTX with the marked instructions in force, for the target that they name."""
    found = re.search(MARK.pattern.encode(), ptx)
    if found is None:
        return ptx
    target = found.group(1)
    changed, count = re.subn(TARGET % target, rb"\1a", ptx, count=1, flags=re.MULTILINE)
    if not count:
        raise BuildError(f"the driver gives no PTX for {target.decode()}")
    return changed.replace(found.group(0), b"").rstrip(b"\0")


def reloaded(context: Any, device: Any, program: Any) -> Any:
    """Return a program of this device alone again, with its marked instructions in force."""
    ptx = program.get_info(cl.program_info.BINARIES)[0]
    specific = cl.Program(context, [device], [specific_ptx(ptx)])
    specific.build()
    return specific
