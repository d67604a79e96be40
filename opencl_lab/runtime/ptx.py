"""Programs with instructions of NVIDIA's architecture-specific targets, such as ``sm_90a``.

OpenCL compiles for the plain target, such as ``sm_90``, whose assembler refuses these
instructions. So the source has them as PTX comments in inline assembly. The program is built once;
in its PTX the comment marks are removed and the target is changed, and the result is loaded as a
program of its own.
"""

from __future__ import annotations

import re
from typing import Any

import pyopencl as cl

from opencl_lab.core.errors import BuildError

MARK = re.compile(r"//(sm_\d+)a: ")
TARGET = rb"^(\.target\s+%s)\b(?!a)"


def is_specific(source: str) -> bool:
    """Return whether a source has instructions after marks such as ``//sm_90a:``."""
    return MARK.search(source) is not None


def specific_ptx(ptx: bytes) -> bytes:
    """Return PTX with the marked instructions enabled, for the target that the marks name."""
    found = re.search(MARK.pattern.encode(), ptx)
    if found is None:
        return ptx
    target = found.group(1)
    changed, count = re.subn(TARGET % target, rb"\1a", ptx, count=1, flags=re.MULTILINE)
    if not count:
        raise BuildError(f"the driver gives no PTX for {target.decode()}")
    return changed.replace(found.group(0), b"").rstrip(b"\0")


def reloaded(context: Any, device: Any, program: Any) -> Any:
    """Return a program built again for this device alone, with its marked instructions enabled."""
    ptx = program.get_info(cl.program_info.BINARIES)[0]
    specific = cl.Program(context, [device], [specific_ptx(ptx)])
    specific.build()
    return specific
