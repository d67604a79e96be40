"""The OpenCL installation of this machine, and what is missing.

A program is linked with the ICD loader, ``libOpenCL``. The loader reads the files ``*.icd`` of a
folder; each names the library of a driver. A driver opens device files below ``/dev``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.drivers import icd, intel
from opencl_lab.drivers.icd import VENDORS
from opencl_lab.drivers.intel import DRIVER
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.lab.doctor.toolchain import Tool
from opencl_lab.selftest.child import Child, Trying

TIME_LIMIT = 20.0
LOADING = f"{__name__}:Loading"
INSTALL_LOADER = "apt install ocl-icd-libopencl1, or pip install --force-reinstall pyopencl"
INSTALL_POCL = 'pip install "pyopencl[pocl]"'
INSTALL_INTEL = "pip install 'opencl_lab[intel]'"
INSTALL_CPU = (
    f"for a CPU: {INSTALL_POCL}, or apt install pocl-opencl-icd, or on x86 {INSTALL_INTEL}"
)
INTEL = "Intel's CPU runtime"
REPAIR = "install the package that holds this library again, or remove the file"


@dataclass(frozen=True)
class DeviceFiles:
    """Devices of one kind: their files, and the driver that they need."""

    name: str
    nodes: tuple[str, ...]  # patterns of their files below ``/dev``
    library: str  # of the driver for OpenCL, as an ICD file names it
    install: str  # how to get that driver
    absent: str
    """Advice if such a device has none of these files; empty: not reported."""
    vendor: str = ""  # only device files of the vendor with this number count; empty: all


FAMILIES = (
    DeviceFiles(
        "NVIDIA GPU",
        ("nvidiactl", "nvidia[0-9]*"),
        "libnvidia-opencl.so.1",
        "apt install the package libnvidia-compute of the driver's version; in a container: "
        "docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility, and there "
        f"mkdir -p /{VENDORS}; echo libnvidia-opencl.so.1 > /{VENDORS}/nvidia.icd",
        "install NVIDIA's driver; in a container: docker run --gpus all",
    ),
    DeviceFiles(
        "AMD GPU",
        ("kfd",),
        "libamdocl64.so",
        "apt install rocm-opencl-runtime, from AMD's repository",
        "install AMD's driver; in a container: docker run --device /dev/kfd --device /dev/dri",
    ),
    DeviceFiles(
        "Intel GPU",
        ("dri/renderD*",),
        "libigdrcl.so",
        "apt install intel-opencl-icd",
        "",
        vendor="0x8086",
    ),
    DeviceFiles(
        "GPU of Intel or AMD",
        ("dri/renderD*",),
        "",
        "",
        "in a container: docker run --device /dev/dri",
    ),
)


@dataclass(frozen=True)
class _Driver:
    """A driver that the loader would load: the place that names it, and its library."""

    name: str
    origin: str
    library: str


def installation(
    root: Path = Path("/"), environ: Mapping[str, str] | None = None
) -> tuple[Tool, ...]:
    """Return findings about the OpenCL installation below `root`.

    They are about the ICD loader, each driver that it would load or each place without one, and
    each kind of device. A driver is ``limited`` if there is a faster one.
    """
    environ = os.environ if environ is None else environ
    loader, found = _loader()
    named = list(_named_drivers(loader, root, environ))
    drivers = [item for item in named if isinstance(item, _Driver)]
    places = [item for item in named if isinstance(item, Tool)]
    tried = [_try(driver) for driver in drivers]
    working = [driver for driver, tool in zip(drivers, tried, strict=True) if tool.verdict == "ok"]
    libraries = " ".join(driver.library for driver in drivers)
    faster = tuple(_faster(working, libraries, environ))
    if not working and not any(tool.verdict == "ok" for tool in faster):
        why = "none of them works" if tried else "no ICD file names any"
        advice = f"{INTEL} is installed, see there" if faster else INSTALL_CPU
        places.append(Tool("drivers", "missing", why, advice))
    return (found, *tried, *places, *faster, *_nodes(root, libraries))


def _loader() -> tuple[Path | None, Tool]:
    """Return the ICD loader that pyopencl is linked with, and the finding about it."""
    name = "ICD loader"
    try:
        import_module("opencl_lab.drivers.discovery")  # and with it pyopencl
    except DeviceNotFound as error:
        return None, Tool(name, "missing", str(error.__cause__ or error), INSTALL_LOADER)
    path = icd.loader_library()
    return path, Tool(name, "ok", "pyopencl has one" if path is None else str(path))


def _named_drivers(
    loader: Path | None, root: Path, environ: Mapping[str, str]
) -> Iterator[_Driver | Tool]:
    """Yield the drivers that the loader would load, and a finding for each place without one."""
    names = environ.get("OCL_ICD_FILENAMES", "")
    if names and (loader is None or b"OCL_ICD_FILENAMES" in loader.read_bytes()):
        for library in names.split(os.pathsep):
            yield _Driver("$OCL_ICD_FILENAMES", "$OCL_ICD_FILENAMES", library)
    elif names:
        detail = f"set to {names}, which this loader does not read"
        yield Tool("$OCL_ICD_FILENAMES", "broken", detail, "set OCL_ICD_VENDORS to the library")
    chosen = environ.get("OCL_ICD_VENDORS", "")
    if chosen and not Path(chosen).is_dir():
        if Path(chosen).suffix == ".icd" and Path(chosen).is_file():
            yield from _files([Path(chosen)])
        else:
            yield _Driver("$OCL_ICD_VENDORS", "$OCL_ICD_VENDORS", chosen)
        return  # the loader searches nowhere else
    for folder in icd.folders(loader, environ, root):
        files = sorted(folder.glob("*.icd"))
        yield from _files(files)
        if not files and folder.name == icd.BUNDLED:
            yield Tool("PoCL for pyopencl", "missing", "pip can install it", INSTALL_POCL)
        elif not files:
            why = "no *.icd in this folder" if folder.is_dir() else "there is no such folder"
            yield Tool(str(folder), "missing", why, "installed drivers put ICD files here")


def _files(paths: list[Path]) -> Iterator[_Driver | Tool]:
    """Yield the driver that each ICD file names."""
    for path in paths:
        try:
            named = icd.named_in(path)
        except OSError as error:
            detail = f"{path} cannot be read: {error.strerror}"
            yield Tool(path.name, "broken", detail, f"chmod a+r {path}")
            continue
        if named:
            yield _Driver(path.name, str(path), named)
        else:
            yield Tool(path.name, "broken", f"{path} names no library", REPAIR)


def _faster(working: list[_Driver], libraries: str, environ: Mapping[str, str]) -> Iterator[Tool]:
    """Yield whether Intel's CPU runtime from pip works, why it is not used, or how to get it."""
    library = intel.library()
    if DRIVER in libraries or not intel.supported():
        return
    if library is None:
        if working and all("pocl" in driver.library for driver in working):
            detail = "PoCL is the only driver; Intel's for CPUs launches kernels faster"
            yield Tool(INTEL, "limited", detail, INSTALL_INTEL)
        return
    chosen = intel.chosen(environ)
    if chosen is not None:
        detail = f"{library} is installed, and {chosen} is set to {environ[chosen]}"
        yield Tool(INTEL, "limited", detail, f"unset {chosen}")
        return
    yield _try(_Driver(INTEL, "installed by pip", library))


class Loading:
    """Loads a driver's library in a child process, since it may crash."""

    def __init__(self, say: Callable[[Trying], None]):
        self._say = say

    def load(self, library: str) -> Verdict:
        """Query its platforms."""
        self._say(Trying("loading it"))
        try:
            return Verdict("ok", f"it loads, platforms: {len(icd.platforms_of(library))}")
        except OSError as error:
            return Verdict("broken", str(error).removeprefix(f"{library}: "))


def _try(driver: _Driver) -> Tool:
    """Load the library of a driver in a child."""
    child = Child(LOADING, (), {}, (TIME_LIMIT,))
    try:
        found = child.ask("load", driver.library)
    finally:
        child.end()
    detail = f"{driver.origin}: {driver.library}: {found.detail}"
    works = found.word == "ok"
    return Tool(driver.name, "ok" if works else "broken", detail, "" if works else _repair(driver))


def _repair(driver: _Driver) -> str:
    """Return advice for a driver that does not load."""
    if driver.origin == "$OCL_ICD_VENDORS":
        return "unset OCL_ICD_VENDORS, or set it to a folder of ICD files or to a driver's library"
    if driver.origin.startswith("$"):
        return f"unset {driver.origin[1:]}, or set it to libraries that are there"
    for family in FAMILIES:
        if family.library and family.library.partition(".")[0] in driver.library:
            return family.install
    if "pocl" in driver.library:
        return f"{INSTALL_POCL}, or apt install pocl-opencl-icd"
    if DRIVER in driver.library:
        return INSTALL_INTEL
    return REPAIR


def _nodes(root: Path, libraries: str) -> Iterator[Tool]:
    """Yield a finding for each kind of device; `libraries` are those of all drivers."""
    for family in FAMILIES:
        nodes = {path for pattern in family.nodes for path in (root / "dev").glob(pattern)}
        if family.vendor:
            nodes = {path for path in nodes if _vendor(root, path) == family.vendor}
        if not nodes and not family.absent:
            continue
        if not nodes:
            patterns = " and no ".join(f"/dev/{pattern}" for pattern in family.nodes)
            yield Tool(family.name, "missing", f"there is no {patterns}", family.absent)
            continue
        names = ", ".join(str(path) for path in sorted(nodes))
        closed = [path for path in sorted(nodes) if not os.access(path, os.R_OK | os.W_OK)]
        if closed:
            detail = f"{', '.join(map(str, closed))}: you may not read and write"
            yield Tool(family.name, "broken", detail, _join(closed[0]))
        elif family.library and family.library.partition(".")[0] not in libraries:
            detail = f"{names}, and no ICD file names {family.library}"
            yield Tool(family.name, "broken", detail, family.install)
        else:
            yield Tool(family.name, "ok", names)


def _vendor(root: Path, node: Path) -> str:
    """Return the vendor number of a render node, such as ``0x8086``; may be empty."""
    with suppress(OSError):
        path = root / "sys/class/drm" / node.name / "device/vendor"
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""


def _join(node: Path) -> str:
    """Return a command that gives a user access to a device file."""
    if sys.platform == "win32":
        return ""  # it has no such files
    info = node.stat()
    if info.st_gid == 0 or info.st_mode & 0o060 != 0o060:
        return f"sudo chmod a+rw {node}"
    try:
        group = node.group()
    except KeyError:  # the group of the host has no name in a container
        return f"docker run --group-add {info.st_gid}"
    return f"sudo usermod -aG {group} $USER, then log in again"
