"""Binaries of built programs on disk, for drivers that keep none themselves.

Intel's CPU runtime compiles for a third of a second to three seconds at the first call of each
process, and loads its own binary in a fiftieth of a second. PoCL and most drivers of GPUs have a
cache of their own. Whether a driver has one is seen by its second build of a program, in any
process: it takes as long as the first.

```text
 <key>.seen    seconds of the first build, if nothing is known about the driver
 <key>.trial   a binary that is loaded once, in the process that made it; a driver that refuses it,
               loads it slowly or ends the process leaves this file, and no process tries it again
 <key>.bin     a checksum, and a binary that was loaded in less time than it was built
```

The key has all that a binary depends on. A file that others could have written, or whose checksum
is wrong, is removed; so is one that the driver refuses. The program is built from its source then.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyopencl as cl

from opencl_lab.core.device import Device
from opencl_lab.core.queues import within_gate
from opencl_lab.core.trust import danger
from opencl_lab.drivers.caches import section_files, section_folder
from opencl_lab.drivers.intel import is_intel_cpu
from opencl_lab.drivers.processes import cpu_fields
from opencl_lab.drivers.wheel import OFF

SWITCH = "OCLAB_BINARIES"
SECTION = "binaries"
WORTH = 0.05
"""Seconds that a build takes at least if its binary is kept."""
SAVED = 0.5
"""Largest share of a build's time that loading its binary may take; also what tells a second build
of a driver without a cache from one of a driver that has one."""
MOST_BYTES = 256 << 20
"""Bytes of all binaries, beyond which those that were not used for the longest time go."""
LEAST_BYTES = 64 << 10
"""Bytes that each file counts as at least, so that there are few enough to list them."""
ROOM = 1 << 20  # bytes that the disk should have left
OPTIONS = (
    *("CL_", "PYOPENCL_BUILD_OPTIONS", "IGC_", "NEO", "AMD_", "GPU_", "HSA_", "MESA_"),
    *("GALLIUM_", "LP_", "RUSTICL_", "CLC_", "LLVM_", "MALI_"),
)
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
        self.needed = is_intel_cpu(device.kind, device.platform)  # known to keep none
        processor = cpu_fields().get("flags", "") if device.kind == "cpu" else ""
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
            program = self._loaded(content[hashlib.sha256().digest_size :])
            os.utime(self.path)  # so it is removed later than others
            return program
        except FileNotFoundError:
            return None
        except (OSError, ValueError, cl.Error):
            with suppress(OSError):
                self.path.unlink()
            return None

    def keep(self, program: cl.Program, seconds: float) -> None:
        """Keep the binary of a program whose build took `seconds`, if that saves time later."""
        if seconds >= WORTH:
            with suppress(OSError):  # a full disk, or another process clears the cache
                if self.needed or self._was_as_slow(seconds):
                    self._try(program, seconds)

    def _was_as_slow(self, seconds: float) -> bool:
        """Return whether an earlier build took about as long; note this one if there was none."""
        seen = self.path.with_suffix(".seen")
        try:
            return seconds > SAVED * float(seen.read_text(encoding="ascii"))
        except (OSError, ValueError):
            seen.write_text(f"{seconds:.6f}", encoding="ascii")
            _bound(MOST_BYTES)
            return False

    def _try(self, program: cl.Program, seconds: float) -> None:
        """Load the binary of a program; keep it if that is right and quick."""
        trial = self.path.with_suffix(".trial")
        try:
            trial.touch(0o600, exist_ok=False)
        except FileExistsError:  # it was tried, or another process is trying it
            return
        try:
            binaries: Any = program.get_info(cl.program_info.BINARIES)
            (binary,) = binaries
            trial.write_bytes(self._sealed(binary))
            start = time.perf_counter()
            same = _kernels(self._loaded(binary)) == _kernels(program)
            quick = time.perf_counter() - start < SAVED * seconds
        except (cl.Error, ValueError):
            same = quick = False
        except BaseException:
            trial.unlink(missing_ok=True)
            raise
        if same and quick:
            trial.replace(self.path)
            _bound(MOST_BYTES)
        else:
            trial.write_bytes(b"")

    def _sealed(self, binary: bytes) -> bytes:
        """Return the content of the file: a checksum of its name and the binary, and that."""
        return hashlib.sha256(self.path.name.encode() + binary).digest() + binary

    def _loaded(self, binary: bytes) -> cl.Program:
        with within_gate(self.handle):
            program = cl.Program(self.context, [self.handle], [binary])
            program.build(self.flags)
        if not _kernels(program):
            raise ValueError("it has no kernels")
        return program


def binary_of(context: cl.Context, device: Device, text: str, flags: list[str]) -> Binary | None:
    """Return the place of a program's binary; None if programs like this one are not kept.

    That is so with PoCL, whose cache `opencl_lab.drivers.pocl` checks, for simulators, in a context
    of several devices, and for a source that includes files.
    """
    off = os.environ.get(SWITCH, "").strip().lower() in OFF
    if off or device.simulated or "PoCL" in device.platform_version or INCLUDE.search(text):
        return None
    return Binary(context, device, text, flags) if len(context.devices) == 1 else None


def _kernels(program: cl.Program) -> set[str]:
    return set(str(program.get_info(cl.program_info.KERNEL_NAMES)).split(";")) - {""}


def _bound(most: int) -> None:
    """Remove files that were not used for the longest time, if all have more than `most` bytes.

    Then a quarter becomes free, so that not every build has to look for some to remove.
    """
    found: list[tuple[float, int, Path]] = []
    for path in section_files(SECTION):
        with suppress(OSError):  # another process has removed it
            status = path.stat()
            found.append((status.st_mtime, max(status.st_size, LEAST_BYTES), path))
    total = sum(size for _, size, _ in found)
    if total <= most:
        return
    for _, size, path in sorted(found):
        if total <= most * 3 // 4:
            break
        path.unlink(missing_ok=True)
        total -= size
