"""Clocks, power and use of a GPU of NVIDIA, as its management library (NVML) tells them."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_uint, c_ulonglong, c_void_p, create_string_buffer
from typing import Any

from opencl_lab.core.device import Device

__all__ = ["Gpu", "busy", "find_gpu"]

LIBRARY = "libnvidia-ml.so.1"
CORE_CLOCK, MEMORY_CLOCK = 1, 2  # streaming multiprocessors, memory
CORE_TEMPERATURE = 0
STATES = range(16)  # P0, the fastest, to P15; 32 stands for an unknown one
UNKNOWN = 0xFFFFFFFF
"""What NVML writes for a number that is not available."""
USED_PERCENT = 10
"""From so much use before anything runs on, others use the GPU."""
THROTTLED = {
    0x2: "clocks set by an application",
    0x4: "power limit",
    0x8: "slowed down by the hardware",
    0x10: "kept in step with other GPUs",
    0x20: "too hot",
    0x40: "too hot, by the hardware",
    0x80: "power brake",
    0x100: "clocks set for the display",
}
"""Why clocks are below the highest ones, by bit. That the GPU is idle, bit 0, is no such reason."""


class _Use(ctypes.Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class Gpu:
    """One GPU; whatever cannot be asked is None."""

    def __init__(self, library: Any, handle: c_void_p):
        self._library, self._handle = library, handle

    def _ask(self, function: str, *which: int, kind: Any = c_uint) -> Any:
        """Return what a function of the library says about this GPU."""
        found = kind()
        answered = _call(self._library, function, self._handle, *which, byref(found))
        return found if answered else None

    def _number(self, function: str, *which: int, kind: Any = c_uint) -> int | None:
        found = self._ask(function, *which, kind=kind)
        number = None if found is None else int(found.value)
        return None if number == UNKNOWN else number

    def _watts(self, function: str) -> float | None:
        milliwatts = self._number(function)
        return None if milliwatts is None else milliwatts / 1e3

    @property
    def use_percent(self) -> int | None:
        """The share of the last moment in which a kernel ran, by whomever."""
        found = self._ask("nvmlDeviceGetUtilizationRates", kind=_Use)
        return None if found is None or found.gpu > 100 else int(found.gpu)

    def state(self) -> dict[str, Any]:
        """Return clocks, power, temperature and use as JSON-able values."""
        level = self._number("nvmlDeviceGetPerformanceState")
        bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=c_ulonglong)
        words = [word for bit, word in THROTTLED.items() if bits is not None and bits & bit]
        return {
            "clock_mhz": self._number("nvmlDeviceGetClockInfo", CORE_CLOCK),
            "max_clock_mhz": self._number("nvmlDeviceGetMaxClockInfo", CORE_CLOCK),
            "memory_clock_mhz": self._number("nvmlDeviceGetClockInfo", MEMORY_CLOCK),
            "power_w": self._watts("nvmlDeviceGetPowerUsage"),
            "power_limit_w": self._watts("nvmlDeviceGetEnforcedPowerLimit"),
            "performance_state": f"P{level}" if level in STATES else None,
            "temperature_c": self._number("nvmlDeviceGetTemperature", CORE_TEMPERATURE),
            "use_percent": self.use_percent,
            "throttled": None if bits is None else words,
        }


def busy(state: dict[str, Any] | None) -> str:
    """Return in words that others use a GPU in this state, before we do; empty if they do not."""
    used = None if state is None else state["use_percent"]
    if used is None or used < USED_PERCENT:
        return ""
    return f"the GPU is busy: others keep it at {used} %, so times are longer and less certain"


def _call(library: Any, function: str, *arguments: Any) -> bool:
    """Return whether a function is there and succeeds."""
    try:
        return bool(getattr(library, function)(*arguments) == 0)
    except AttributeError:  # another version
        return False


def find_gpu(device: Device, library: Any = None) -> Gpu | None:
    """Return the GPU that an OpenCL device is; None where there is none of NVIDIA, or no NVML.

    It is found by its place on the PCI bus, or where the driver does not tell that by its name
    if it is the only GPU.

    Parameters
    ----------
    device : Device
    library : object, optional
        With the functions of NVML; by default it is loaded.
    """
    if device.kind != "gpu" or "nvidia" not in f"{device.vendor} {device.name}".lower():
        return None
    try:
        library = ctypes.CDLL(LIBRARY) if library is None else library
    except OSError:
        return None
    if not _call(library, "nvmlInit_v2"):
        return None
    handle = c_void_p()
    for place in _pci_places(device):
        text = c_char_p(place.encode())
        if _call(library, "nvmlDeviceGetHandleByPciBusId_v2", text, byref(handle)):
            return Gpu(library, handle)
    count, name = c_uint(), create_string_buffer(96)
    _call(library, "nvmlDeviceGetCount_v2", byref(count))
    if count.value != 1 or not _call(library, "nvmlDeviceGetHandleByIndex_v2", 0, byref(handle)):
        return None
    _call(library, "nvmlDeviceGetName", handle, name, len(name))
    named = name.value.decode(errors="replace")
    return Gpu(library, handle) if named and named in device.name else None


def _pci_places(device: Device) -> tuple[str, ...]:
    """Return where a device may be, as NVML writes it; nothing where its driver does not tell.

    The number of the slot may have that of the function in its last three bits.
    """
    try:
        handle = device.handle
        bus, slot = int(handle.pci_bus_id_nv), int(handle.pci_slot_id_nv)
        domain = int(getattr(handle, "pci_domain_id_nv", 0))
    except Exception:  # whatever pyopencl raises for what a driver does not know
        return ()
    bus_text = f"{domain:08x}:{bus:02x}"
    return f"{bus_text}:{slot >> 3:02x}.{slot & 7}", f"{bus_text}:{slot:02x}.0"
