"""Load the library of an OpenCL driver in a worker, since it may crash."""

from __future__ import annotations

from collections.abc import Callable

from opencl_lab.drivers.icd import platforms_of


def load(library: str, say: Callable[[tuple[bool, str]], None]) -> None:
    """Query a driver's platforms, as an ICD loader does; report whether it works, and details."""
    try:
        say((True, f"it loads, platforms: {len(platforms_of(library))}"))
    except OSError as error:
        say((False, str(error)))
