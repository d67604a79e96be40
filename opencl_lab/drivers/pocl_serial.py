"""PoCL's driver that runs kernels in the calling thread: the serial side of its CPU device.

To launch a kernel on PoCL's threads and to wait for it takes 25 to 100 us. PoCL has a second driver
of the same processor, ``basic`` (since PoCL 4 also ``cpu-minimal``), which runs the kernel at once,
in the thread that enqueues it: launch and wait take 1 us. PoCL lists that device only if
``POCL_DEVICES`` names it when PoCL starts, and then before all others, so that programs that take
the first device would lose the threads.

So PoCL is started here, before the ICD loader does it, and with the variable set for that moment.
Then the device is hidden by two numbers of PoCL's structure of it, before anyone can see it. One is
its type: a device of no type is not listed. But it can still be the default device, unless another
one says that it is not available. The library makes it available only while it uses it (`Gate`); in
these microseconds another thread could get it as the default device.

That is done to builds of PoCL that are known (`pocl_builds`). Others are started without the
variable.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from opencl_lab.core.queues import Gate
from opencl_lab.core.systems import switched_off
from opencl_lab.drivers import icd, pocl_builds
from opencl_lab.drivers.processes import variables

VARIABLE = "POCL_DEVICES"
NAMES = ("basic-", "cpu-minimal-")
"""How the names of the driver's devices begin."""
OTHER_DRIVER = re.compile(r"libpocl-devices-(?!basic|pthread)\w+\.so.*")
"""A driver of PoCL for other devices than the CPU, which the variable would have to name."""
TYPE, AVAILABLE, NAME = 0x1000, 0x1027, 0x102B  # properties of a device


@cache
def start() -> dict[int, tuple[int, Gate]]:
    """Start PoCL, before any loader does; return its serial devices, which are hidden now.

    They and their gates are given by the device with all threads. There is none if the user has
    chosen PoCL's devices by ``POCL_DEVICES``, or with ``OCLAB_SERIAL=off``, if PoCL has started
    already, where it has drivers of other devices, or if its build is not known.
    """
    wanted = not switched_off("OCLAB_SERIAL") and VARIABLE not in os.environ
    found: dict[int, tuple[int, Gate]] = {}
    for library in icd.pocl_libraries(os.environ):
        with suppress(OSError):  # the loader will not load it either
            for platform in icd.platforms_of(library):
                both = wanted and _can_be_hidden(platform)
                # Other processes that this one starts must not list it.
                with variables({VARIABLE: "pthread basic"} if both else {}):
                    handles = icd.devices_of(platform)
                if both:
                    found |= _hidden(icd.device_info(platform), handles)
    return found


def _can_be_hidden(platform: int) -> bool:
    """Return whether a platform is of a known build, and has no drivers of other devices."""
    folder = Path(pocl_builds.library_of(icd.word(platform))[0]).parent / "pocl"
    other = any(OTHER_DRIVER.fullmatch(file.name) for file in folder.glob("*"))
    return not other and pocl_builds.layout_of(platform) is not None


def _hidden(info: Callable[..., int], handles: list[int]) -> dict[int, tuple[int, Gate]]:
    """Hide the serial one of two devices; return it and its gate by the other one."""
    names = {handle: _name(info, handle) for handle in handles}
    serial = [handle for handle, name in names.items() if name.startswith(NAMES)]
    others = [handle for handle in names if handle not in serial]
    if len(serial) != 1 or len(others) != 1:
        return {}
    gate = _hide(info, serial[0], names[serial[0]])
    return {} if gate is None else {others[0]: (serial[0], gate)}


def _name(info: Callable[..., int], handle: int) -> str:
    text = ctypes.create_string_buffer(1024)
    info(handle, NAME, len(text), text, None)
    return text.value.decode(errors="replace")


def _hide(info: Callable[..., int], handle: int, name: str) -> Gate | None:
    """Hide a device and return its gate; None if something else is in the places for that."""
    kind, available = ctypes.c_uint64(0), ctypes.c_uint32(0)
    for item, value in ((TYPE, kind), (AVAILABLE, available)):
        info(handle, item, ctypes.sizeof(value), ctypes.byref(value), None)
    layout = pocl_builds.checked(handle, kind.value, name)
    if layout is None or not available.value:
        return None
    ctypes.c_uint64.from_address(handle + layout.kind).value = 0
    return Gate(pocl_builds.availability(handle, layout))
