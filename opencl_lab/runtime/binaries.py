"""Binaries of built programs on disk, for Intel's CPU runtime, which keeps none itself.

It compiles for a third of a second to three seconds at the first call of each process, and loads
its own binary in a fiftieth of a second. PoCL and drivers of GPUs have a cache of their own.

The key, which is the file's name, has all that a binary depends on. A file that others could have
written, or whose checksum is wrong, is removed; so is one that the driver refuses. The program is
built from its source then.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.paths import replace_file
from opencl_lab.core.queues import within_gate
from opencl_lab.core.systems import switched_off
from opencl_lab.core.trust import danger
from opencl_lab.drivers.caches import section_files, section_folder
from opencl_lab.drivers.intel import is_intel_cpu
from opencl_lab.drivers.processes import cpu_fields

SWITCH = "OCLAB_BINARIES"
SECTION = "binaries"
WORTH = 0.05
"""Seconds that a build takes at least if its binary is kept."""
MOST_BYTES = 256 << 20
"""Bytes of all binaries, beyond which all go and those in use are made again."""
ROOM = 1 << 20  # bytes that the disk should have left
OPTIONS = ("CL_", "PYOPENCL_BUILD_OPTIONS")
"""How the names of variables begin that change what compilers of drivers, or pyopencl, do."""
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)


class Binary:
    """The binary of one program, which may be on disk or not.

    Parameters
    ----------
    context : pyopencl.Context
        It has one device.
    device : Device
        The record of this device.
    text : str
        The source.
    flags : list of str
        The options of the build.
    """

    def __init__(self, context: cl.Context, device: Device, text: str, flags: list[str]):
        self.context = context
        self.handle = device.handle
        self.flags = flags
        processor = cpu_fields().get("flags", "")
        settings = sorted(item for item in os.environ.items() if item[0].startswith(OPTIONS))
        parts = (device.key, device.platform_version, device.c_version, processor)
        key = repr((1, parts, settings, flags, text)).encode(errors="surrogatepass")
        self.path = section_folder(SECTION, ROOM) / f"{hashlib.sha256(key).hexdigest()[:40]}.bin"

    def load(self) -> cl.Program | None:
        """Return the program from its binary; None if there is none that can be used."""
        try:
            if self.path.is_symlink() or danger(self.path) is not None:
                raise ValueError("others may have written it")
            content = self.path.read_bytes()
            if content != self._sealed(content[hashlib.sha256().digest_size :]):
                raise ValueError("it is damaged")
            return self._loaded(content[hashlib.sha256().digest_size :])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, cl.Error):
            with suppress(OSError):
                self.path.unlink()
            return None

    def keep(self, program: cl.Program, seconds: float) -> None:
        """Keep the binary of a program whose build took `seconds`, if that saves time later."""
        if seconds < WORTH:
            return
        with suppress(OSError, cl.Error):  # a full disk, or another process clears the cache
            binaries: Any = program.get_info(cl.program_info.BINARIES)
            known = section_files(SECTION)
            if sum(map(_size, known)) > MOST_BYTES:
                for path in known:
                    path.unlink(missing_ok=True)
            with replace_file(self.path, 0o600) as file:
                file.write_bytes(self._sealed(binaries[0]))

    def _sealed(self, binary: bytes) -> bytes:
        """Return the content of the file: a checksum of its name and the binary, and that."""
        return hashlib.sha256(self.path.name.encode() + binary).digest() + binary

    def _loaded(self, binary: bytes) -> cl.Program:
        with within_gate(self.handle):
            program = cl.Program(self.context, [self.handle], [binary])
            program.build(self.flags)
        if not program.get_info(cl.program_info.KERNEL_NAMES):
            raise ValueError("it has no kernels")
        return program


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 if another process has just removed it."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def binary_of(context: cl.Context, device: Device, text: str, flags: list[str]) -> Binary | None:
    """Return the place of a program's binary; None if programs like this one are not kept.

    That is so with other drivers, in a context of several devices, and for a source that includes
    files.
    """
    keeps = is_intel_cpu(device.kind, device.platform) and len(context.devices) == 1
    return (
        Binary(context, device, text, flags)
        if keeps and not (switched_off(SWITCH) or INCLUDE.search(text))
        else None
    )
