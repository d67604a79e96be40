"""Where a measurement was made: machine, packages, load, and the state of a GPU.

Values that cannot be found are None. Nothing here raises, so that no measurement fails for it.
"""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from opencl_lab._version import __version__
from opencl_lab.core.device import Device
from opencl_lab.core.memory import host_memory
from opencl_lab.drivers.processes import cpu_fields, default_threads
from opencl_lab.lab.measuring import gpu_state, load

PACKAGE = Path(__file__).parents[2]
PACKAGES = (
    *("numpy", "pyopencl", "pocl-binary-distribution", "intel-opencl-rt", "mako", "scipy"),
    *("torch", "cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "pyvkfft", "pyfftw"),
    *("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    *("opencv-contrib-python-headless", "mpi4py", "mpich", "threadpoolctl"),
)
"""Packages that affect times and results, besides our own."""
VARIABLES = (
    *("OCLAB_", "POCL_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "NPY_", "CL_"),
    *("CUDA_VISIBLE_DEVICES", "OCL_ICD_", "OPENCL_VENDOR_PATH", "PYOPENCL_"),
)
"""Prefixes of the environment variables that affect times and results."""
NAMES = ("model name", "cpu model", "hardware", "cpu")
GIT_SECONDS = 2.0


@dataclass(frozen=True)
class Start:
    """The state of the machine before the measurement."""

    time: str  # in ISO 8601, in UTC
    load: list[float] | None  # of the last 1, 5 and 15 minutes
    busy: str  # in words, that other processes use processors or GPU; empty if they do not
    gpu: gpu_state.Gpu | None
    gpu_state: dict[str, Any] | None


def begin(device: Device, earlier: load.Counters) -> Start:
    """Return the state of the machine now, before `device` is measured.

    `earlier` is from the start of this process, whose own load does not count.
    """
    taken = load.busy(earlier, load.sample())
    gpu = gpu_state.find_gpu(device)
    state = None if gpu is None else gpu.state()
    sentences = [text for text in (taken, gpu_state.busy(state)) if text]
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Start(now, load.load_average(), "; ".join(sentences), gpu, state)


def record(start: Start, compiler: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return where a measurement was made, as JSON-able values; call it at the end.

    `compiler` has ``path``, ``version`` and ``flags`` of the compiler of references.
    """
    memory = host_memory()
    return {
        "started": start.time,
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cpu": _processor(),
        "processors": default_threads(),
        "memory_bytes": int(memory) if math.isfinite(memory) else None,
        "packages": _packages(),
        "compiler": None if compiler is None else dict(compiler),
        "git": _commit(PACKAGE.parent),
        "variables": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)
        },
        "load": start.load,
        "busy": start.busy,
        "gpu": start.gpu_state,
        "gpu_end": None if start.gpu is None else start.gpu.state(),
    }


def _processor() -> str | None:
    """Return the name of the processor."""
    fields = cpu_fields()
    found = next((fields[name] for name in NAMES if name in fields), "")
    return " ".join(found.split()) or platform.processor() or platform.machine() or None


def _packages() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {"opencl_lab": __version__}
    for name in PACKAGES:
        with suppress(Exception):  # a damaged installation may raise any error
            version = metadata.version(name)
            found.update({name: version} if version else {})
    return found


def _commit(folder: Path) -> dict[str, Any] | None:
    """Return the commit of a checkout, and whether files differ from it; None for no checkout."""
    if not (folder / ".git").exists():
        return None
    inherited = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    command = ("git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40")
    try:
        done = subprocess.run(
            (*command, "--exclude=*"),
            cwd=folder,
            env=inherited,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    commit, _, changed = done.stdout.strip().partition("-")
    valid = re.fullmatch("[0-9a-f]{40,64}", commit)  # a wrapper may print something else
    return {"commit": commit, "changed": bool(changed)} if valid else None
