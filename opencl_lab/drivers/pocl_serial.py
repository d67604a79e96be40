"""PoCL's driver that runs kernels in the calling thread: the serial side of its CPU device.

To launch a kernel on PoCL's threads and to wait for it takes 25 to 100 us. PoCL has a second driver
of the same processor, ``basic`` (since PoCL 4 also ``cpu-minimal``), which runs the kernel at once,
in the thread that enqueues it: launch and wait take 1 us. PoCL lists that device only if
``POCL_DEVICES`` names it when PoCL starts, and then before all others, so that programs that take
the first device would lose the threads.

So the variable is set while PoCL starts, and then the device is hidden by two words of PoCL's
structure of it. One is its type: a device of no type is not listed. But it can still be the default
device, unless another word says that it is not available. The library makes it available only while
it uses it (`Gate`); in these microseconds another thread could get it as the default device.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import pyopencl as cl

from opencl_lab.core.queues import Gate
from opencl_lab.drivers.wheel import OFF

VARIABLE = "POCL_DEVICES"
NAMES = ("basic-", "cpu-minimal-")
"""How the names of the driver's devices begin."""
DRIVER_FOLDERS = (
    "/usr/lib/pocl",
    "/usr/lib/*/pocl",
    "/usr/local/lib/pocl",
    f"{sys.prefix}/lib/pocl",
)
OTHER_DRIVER = re.compile(r"libpocl-devices-(?!basic|pthread)\w+\.so.*")
"""A driver of PoCL for other devices than the CPU, which the variable would have to name."""
STRUCTURE_BYTES = 2048
"""How much of a structure is searched; PoCL 3.0 has the words at bytes 40 and 444."""
WORD, POINTER = struct.Struct("I"), struct.Struct("P")

_found: dict[cl.Device, cl.Device] = {}
"""The serial device of each device with threads, which is listed only once."""


def _is_wanted() -> bool:
    switch = os.environ.get("OCLAB_SERIAL", "").strip().lower()
    if switch in OFF or VARIABLE in os.environ or platform.system() != "Linux":
        return False
    files = (file for folder in DRIVER_FOLDERS for file in Path("/").glob(f"{folder[1:]}/*"))
    return not any(OTHER_DRIVER.fullmatch(file.name) for file in files)


@contextmanager
def listed() -> Iterator[bool]:
    """Let PoCL, if it starts in this context, list the serial device, too; yield whether it may.

    Not if the user has chosen its devices by ``POCL_DEVICES``, or with ``OCLAB_SERIAL=off``, nor
    where PoCL has drivers of other devices. Some ICD loaders start it to list platforms.
    """
    if not _is_wanted():
        yield False
        return
    os.environ[VARIABLE] = "pthread basic"
    try:
        yield True
    finally:
        del os.environ[VARIABLE]  # other processes that this one starts must not list it


def split(
    platform_version: str, handles: Sequence[cl.Device]
) -> tuple[list[cl.Device], cl.Device | None]:
    """Return the devices of a platform without PoCL's serial one, and that one or None."""
    if "PoCL" not in platform_version:
        return list(handles), None
    serial = [handle for handle in handles if handle.name.startswith(NAMES)]
    others = [handle for handle in handles if handle not in serial]
    if len(others) != 1 or len(serial) > 1:
        return list(handles), None
    if serial:
        _found[others[0]] = serial[0]
    return others, _found.get(others[0])


def hide(handle: cl.Device) -> Gate | None:
    """Hide a device of PoCL and return its gate; None if the device cannot be hidden."""
    try:
        kind = _word(handle, handle.type, lambda: handle.type, pointers=False)
        word = _word(handle, 1, lambda: _is_available(handle), pointers=True)
    except (OSError, OverflowError, ValueError):
        return None
    if kind is None or word is None:
        return None
    kind.value = 0
    return Gate(word)


def _word(
    handle: cl.Device, value: int, asked: Callable[[], int], pointers: bool
) -> ctypes.c_uint32 | None:
    """Return the word of a device that holds `value`, and that `asked` returns; None if not found.

    It is in the device's structure, or at a pointer there. That a word is the right one is seen by
    changing it for a moment; nothing runs on the device yet.
    """
    # Unlike a pointer, this file gives an error for a bad address, and writes to any other.
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(handle.int_ptr)
        structure = memory.read(STRUCTURE_BYTES)
        places = [handle.int_ptr + place for place in range(0, len(structure), WORD.size)]
        if pointers:
            whole = len(structure) // POINTER.size * POINTER.size
            places += [address for (address,) in POINTER.iter_unpack(structure[:whole])]
        for address in places:
            if address % WORD.size or not _reads(memory, address, value):
                continue
            try:
                _write(memory, address, 0)
                found = not asked()
            finally:
                _write(memory, address, value)
            if found:
                return ctypes.c_uint32.from_address(address)
    return None


def _is_available(handle: cl.Device) -> bool:
    try:
        return bool(handle.available)
    except cl.Error:  # PoCL 5 tells nothing about a device that is not
        return False


def _reads(memory: FileIO, address: int, value: int) -> bool:
    try:
        memory.seek(address)
        return bool(memory.read(WORD.size) == WORD.pack(value))
    except (OSError, OverflowError, ValueError):
        return False


def _write(memory: FileIO, address: int, value: int) -> None:
    memory.seek(address)
    memory.write(WORD.pack(value))
