"""The builds of PoCL whose structure of a device is known to the byte.

Some properties of PoCL's devices can only be changed in its memory. Where they are depends on the
release and on how it was compiled. So nothing is searched: a build is recognised by the GNU build
id of its library, as it is loaded, and before anything is written, the places are compared with
what PoCL itself says of the device.
"""

from __future__ import annotations

import ctypes
import platform
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from opencl_lab.drivers.icd import word

if TYPE_CHECKING:  # which loads pyopencl
    from opencl_lab.core.device import Device


@dataclass(frozen=True)
class StructLayout:
    """At which bytes of ``struct _cl_device_id`` a build of PoCL has which fields."""

    kind: int
    """Its type, of 8 bytes."""
    available: int
    """Whether it can be used, of 4 bytes."""
    behind: bool
    """Whether there is a pointer to that number instead, as since PoCL 5."""
    name: int
    target: tuple[int, int] | None = None
    """Pointers to triple and processor, if it may compile for another one than its library's."""


BUILDS = {
    # PyPI, pocl-binary-distribution 3.0
    "9668b5f6ec1fe949d547a549029789188340beb7": StructLayout(80, 444, False, 552, (632, 640)),
    # Debian 12, libpocl2 3.1-3+deb12u1
    "4a4365a430d36fff6564d06f6fbce75abf28acca": StructLayout(64, 428, False, 536),
    # Ubuntu 24.04, libpocl2t64 5.0-2.1build3
    "bf19948f0ef8a7511ca68566cdb5b02be540e87e": StructLayout(64, 456, True, 576),
    # Debian 13, libpocl2t64 6.0-6
    "2cadeb853d356489f81090e75be07a720bd2c3f1": StructLayout(64, 464, True, 584),
}
"""By the build id, all for x86-64. `docs/devices.md` says what was tried on each."""

TRIPLE, PROCESSOR = re.compile(rb"x86_64-[a-z0-9_-]+"), re.compile(rb"[a-z0-9_+.-]+")
LOADED, NOTE = 1, 4  # types of segments
BUILD_ID = 3  # a type of note
NOTE_HEAD = struct.Struct("III")


class _Segment(ctypes.Structure):
    """``Elf64_Phdr``."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("physical", ctypes.c_uint64),
        ("file_bytes", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    )


class _Library(ctypes.Structure):
    """The beginning of ``struct dl_phdr_info``."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("path", ctypes.c_char_p),
        ("segments", ctypes.POINTER(_Segment)),
        ("count", ctypes.c_uint16),
    )


_SEEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p)


@cache
def library_of(table: int) -> tuple[str, str]:
    """Return path and build id of the library that an address belongs to; "" where there is none.

    The dynamic linker tells which library that is, and the id is read from memory: the file may
    have been replaced since.
    """
    found = ("", "")
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize < 1 << 32:
        return found

    def see(library: Any, size: int, data: Any) -> int:
        nonlocal found
        item = library.contents
        segments = [item.segments[index] for index in range(item.count)]
        spans = [
            range(item.base + segment.address, item.base + segment.address + segment.bytes)
            for segment in segments
            if segment.type == LOADED
        ]
        if not any(table in span for span in spans):
            return 0
        ids = ""
        for segment in segments:
            place = item.base + segment.address
            if segment.type == NOTE and any(place in span for span in spans):
                ids = ids or _build_id(ctypes.string_at(place, segment.file_bytes))
        found = ((item.path or b"").decode("utf-8", "surrogateescape"), ids)
        return 1

    ctypes.CDLL(None).dl_iterate_phdr(_SEEN(see), None)
    return found


def _build_id(notes: bytes) -> str:
    place = 0
    while place + NOTE_HEAD.size <= len(notes):
        name, content, kind = NOTE_HEAD.unpack_from(notes, place)
        place += NOTE_HEAD.size
        begin = place + name + -name % 4
        if kind == BUILD_ID and notes[place:begin] == b"GNU\0":
            return notes[begin : begin + content].hex()
        place = begin + content + -content % 4
    return ""


def layout_of(handle: int) -> StructLayout | None:
    """Return the layout of the build that a device or platform belongs to; None if not known.

    Both begin with a pointer to the table of functions of their driver.
    """
    return BUILDS.get(library_of(word(handle))[1])


def unknown_build(device: Device) -> str:
    """Return which build of PoCL a device belongs to, if it is none that is known; else ""."""
    if "PoCL" not in device.platform_version or device.handle is None:
        return ""
    path, found = library_of(word(device.handle.int_ptr))
    return "" if found in BUILDS else f"{path or 'its library'}, build id {found or 'none'}"


def checked(handle: int, kind: int, name: str) -> StructLayout | None:
    """Return the layout of a device that can be used, if all is where it should be; else None.

    `kind` and `name` are what PoCL says of the device.
    """
    layout = layout_of(handle)
    if layout is None:
        return None
    texts = [_text(handle + place) for place in (layout.name, *(layout.target or ()))]
    patterns: tuple[Callable[[bytes], Any], ...] = (
        name.encode().__eq__,
        TRIPLE.fullmatch,
        PROCESSOR.fullmatch,
    )
    right = (
        word(handle + layout.kind) == kind
        and availability(handle, layout).value == 1
        and all(fits(text) for fits, text in zip(patterns, texts, strict=False))
    )
    return layout if right else None


def availability(handle: int, layout: StructLayout) -> ctypes.c_uint32:
    """Return the number of a device that says whether it can be used."""
    place = handle + layout.available
    return ctypes.c_uint32.from_address(word(place) if layout.behind else place)


def _text(place: int) -> bytes:
    """Return the text that a pointer leads to."""
    return ctypes.string_at(word(place)) if word(place) else b""
