"""Clocks, power and use of an NVIDIA GPU, from the management library (NVML)."""

from __future__ import annotations

from typing import Any

from opencl_lab.core.device import Device

CORE_CLOCK, MEMORY_CLOCK = 1, 2  # streaming multiprocessors, memory
CORE_TEMPERATURE = 0
STATES = range(16)  # P0, the fastest, to P15; 32 stands for an unknown one
UNKNOWN = 0xFFFFFFFF
"""What NVML returns for a number that is not available."""
USED_PERCENT = 10
"""Utilization before the measurement from which the GPU counts as used by other processes."""
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
"""Reasons why clocks are below the maximum, by bit. Bit 0, an idle GPU, is left out."""


class Gpu:
    """One GPU, by its handle in NVML; values that NVML does not know are None."""

    def __init__(self, handle: Any):
        self._handle = handle

    def _ask(self, what: str, *which: int) -> Any:
        found = _answer(f"nvmlDeviceGet{what}", self._handle, *which)
        return None if found == UNKNOWN else found

    def _watts(self, what: str) -> float | None:
        milliwatts = self._ask(what)
        return None if milliwatts is None else milliwatts / 1e3

    def used_bytes(self) -> int | None:
        """Return the bytes of its memory that all processes together use."""
        memory = self._ask("MemoryInfo")
        return None if memory is None else int(memory.used)

    def state(self) -> dict[str, Any]:
        """Return clocks, power, temperature and use as JSON-able values."""
        level = self._ask("PerformanceState")
        use = self._ask("UtilizationRates")  # share of the last sampling period with a kernel
        bits = self._ask("CurrentClocksThrottleReasons")
        words = [word for bit, word in THROTTLED.items() if bits is not None and bits & bit]
        return {
            "clock_mhz": self._ask("ClockInfo", CORE_CLOCK),
            "max_clock_mhz": self._ask("MaxClockInfo", CORE_CLOCK),
            "memory_clock_mhz": self._ask("ClockInfo", MEMORY_CLOCK),
            "power_w": self._watts("PowerUsage"),
            "power_limit_w": self._watts("EnforcedPowerLimit"),
            "performance_state": f"P{level}" if level in STATES else None,
            "temperature_c": self._ask("Temperature", CORE_TEMPERATURE),
            "use_percent": None if use is None or use.gpu > 100 else use.gpu,
            "throttled": None if bits is None else words,
        }


def busy(state: dict[str, Any] | None) -> str:
    """Return in words that other processes use a GPU in this state; empty if they do not."""
    used = None if state is None else state["use_percent"]
    if used is None or used < USED_PERCENT:
        return ""
    return f"the GPU is busy: others keep it at {used} %, so times are longer and less certain"


def _answer(function: str, *arguments: Any) -> Any:
    """Return what a function of NVML answers; None if it cannot."""
    import pynvml  # here, since most machines have no such GPU

    try:
        return getattr(pynvml, function)(*arguments)
    except (pynvml.NVMLError, AttributeError, UnicodeError):  # AttributeError: another version
        return None


def find_gpu(device: Device) -> Gpu | None:
    """Return the NVIDIA GPU of an OpenCL device; None for other devices, or without NVML.

    It is found by its address on the PCI bus. Where the driver does not report that, it is found
    by its name, if it is the only GPU.
    """
    if device.kind != "gpu" or "nvidia" not in f"{device.vendor} {device.name}".lower():
        return None
    _answer("nvmlInit")  # needed before all other functions
    for place in _pci_places(device):
        handle = _answer("nvmlDeviceGetHandleByPciBusId", place)
        if handle is not None:
            return Gpu(handle)
    if _answer("nvmlDeviceGetCount") != 1:
        return None
    handle = _answer("nvmlDeviceGetHandleByIndex", 0)
    name = None if handle is None else _answer("nvmlDeviceGetName", handle)
    return Gpu(handle) if name and name in device.name else None


def _pci_places(device: Device) -> tuple[str, ...]:
    """Return possible PCI addresses of a device; none where its driver does not report them.

    Drivers differ in whether the last three bits of the slot number are the function number.
    """
    try:
        handle = device.handle
        bus, slot = int(handle.pci_bus_id_nv), int(handle.pci_slot_id_nv)
        domain = int(getattr(handle, "pci_domain_id_nv", 0))
    except Exception:  # pyopencl raises various errors for unknown queries
        return ()
    bus_text = f"{domain:08x}:{bus:02x}"
    return f"{bus_text}:{slot >> 3:02x}.{slot & 7}", f"{bus_text}:{slot:02x}.0"
