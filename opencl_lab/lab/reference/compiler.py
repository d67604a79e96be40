"""Finding the C compiler, and what it supports."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.core.paths import cache_dir
from opencl_lab.core.records import read_sealed, write_sealed
from opencl_lab.drivers.caches import section_folder
from opencl_lab.drivers.processes import cpu_fields

CANDIDATES = ("cc", "gcc", "clang")
PIC = () if sys.platform == "win32" else ("-fPIC",)  # Clang refuses it there
BASE_FLAGS = ("-O3", "-shared", *PIC)
ROOM = 1 << 20  # bytes that must be free on the disk for libraries
NATIVE, OPENMP = "-march=native", "-fopenmp"
MATHS = () if sys.platform == "win32" else ("-lm",)
TIME_LIMIT = 120.0
CPU_FIELDS = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),  # x86
    *("cpu implementer", "cpu variant", "cpu part", "features"),  # Arm
    *("cpu", "isa", "uarch"),  # Power, RISC-V
)
INSTALL_COMPILER = (
    "install one (apt install gcc, or xcode-select --install on macOS), or set CC to a compiler"
)
FREE_DISK = "free the disk of temporary files, or set TMPDIR to a folder on another one"
DISK_IS_FULL = (os.strerror(errno.ENOSPC), "No usable temporary directory")
INSTALL_OPENMP = (
    "install libgomp for gcc (apt install gcc) or libomp for clang (apt install libomp-dev), "
    "or set CC to a compiler that has it"
)
HALF = "_Float16"
"""The type in C, which not every compiler supports."""
PROBE = "int probe(int x) { return x + 1; }\n"
OPENMP_PROBE = """#include <omp.h>
int probe(void) {
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    return threads <= omp_get_max_threads();
}
"""


@dataclass(frozen=True)
class Compiler:
    """A C compiler that has compiled small test programs."""

    command: tuple[str, ...]
    """The command: its full path, then the arguments in `$CC`."""
    version: str
    """First line of its ``--version``."""
    flags: tuple[str, ...]
    """The flags for a shared library, as far as it accepts them."""
    no_openmp: str = ""
    """Why it cannot compile OpenMP; empty if it can."""


class Refused(Exception):
    """A compiler could not be started, failed, or timed out; holds its output."""

    def __str__(self) -> str:
        lines = [line.strip() for line in str(self.args[0]).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        return (errors or lines or ["it failed without a message"])[0][:200]


def compile_library(
    command: Sequence[str], flags: Sequence[str], source: Path, library: Path
) -> None:
    """Compile a source to a shared library; raise `Refused` if that fails."""
    # What an interrupted compiler leaves is beside the library, in a folder that is removed.
    place = {"TMPDIR": str(library.parent)}
    call([*command, *flags, str(source), "-o", str(library), *MATHS], place)


def call(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a compiler, with some variables of the environment, and return its output."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            text=True,
            errors="replace",
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"no answer within {TIME_LIMIT:g} s") from None
    except OSError as error:
        raise Refused(str(error)) from error
    if done.returncode:
        raise Refused(done.stdout)
    return done.stdout


def cpu_text() -> str:
    """Return text that identifies the processor, since machines may share a home folder."""
    fields = cpu_fields()
    stable = [f"{name}: {fields[name]}" for name in CPU_FIELDS if name in fields]
    return " ".join([platform.machine(), *(stable or (platform.system(), platform.node()))])


def digest_of(*parts: str) -> str:
    """Return a digest of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _candidates() -> Iterator[tuple[str, ...]]:
    """Yield the commands to try: only `$CC` if it is set."""
    asked = os.environ.get("CC", "").strip()
    for name in (asked,) if asked else CANDIDATES:
        try:
            command = shlex.split(name, posix=sys.platform != "win32")
        except ValueError:  # an unclosed quotation
            command = [name]
        path = shutil.which(command[0])
        if path:
            yield (path, *command[1:])


def _probe(command: tuple[str, ...]) -> Compiler:
    """Find out which flags a compiler accepts; raise `Refused` if it cannot compile a function."""
    with scratch_folder("oclab-cc-") as folder:
        source, library = folder / "probe.c", folder / "probe.so"

        def attempt(flags: tuple[str, ...], text: str = PROBE) -> str:
            """Return why it does not compile with these flags; empty if it does."""
            source.write_text(text, encoding="utf-8")
            try:
                compile_library(command, flags, source, library)
            except Refused as refused:
                return str(refused)
            return ""

        version = call([*command, "--version"]).strip().splitlines() or ["unknown version"]
        flags: tuple[str, ...] = (*BASE_FLAGS, NATIVE)
        if attempt(flags):
            flags = BASE_FLAGS
            if failure := attempt(flags):
                raise Refused(failure)
        no_openmp = attempt((*flags, OPENMP), OPENMP_PROBE)
        openmp = () if no_openmp else (OPENMP,)
        return Compiler(command, version[0], (*flags, *openmp), no_openmp)


def _stored(command: tuple[str, ...]) -> tuple[Path, Compiler | None]:
    """Return the file about a compiler on this machine, and its content."""
    status = Path(command[0]).stat()
    key = digest_of(
        *command, str(status.st_mtime_ns), str(status.st_size), cpu_text(), PROBE, *BASE_FLAGS
    )
    # In a private folder, as flags can make a compiler run any program.
    path = library_folder() / f"compiler-{key}.json"
    match read_sealed(dict[str, Any], path):
        case {"version": str(version), "flags": [*flags]} if all(isinstance(f, str) for f in flags):
            return path, Compiler(command, version, tuple(flags))
    return path, None


_probed: dict[Path, Compiler] = {}  # in this process; not all of them are stored


def _probe_once(command: tuple[str, ...]) -> Compiler:
    """Return the cached result of `_probe` for this compiler and machine."""
    path, stored = _stored(command)
    if stored is not None:
        return stored
    found = _probed[path] = _probe(command)
    if not found.no_openmp:  # else OpenMP may be installed later
        with suppress(OSError):
            write_sealed(path, asdict(found))
    return found


def compiler() -> Compiler:
    """Return the C compiler: `$CC`, or the first of `CANDIDATES` that works.

    If there is none, `ReferenceUnavailable` is raised and says what to install.
    """
    failures = []
    for command in _candidates():
        try:
            return _probe_once(command)
        except (Refused, OSError) as error:
            failures.append(f"{shlex.join(command)}: {error}")
    asked = os.environ.get("CC", "").strip()
    if not failures:
        failures = [f"CC={asked} is not there" if asked else f"no {', '.join(CANDIDATES)} on PATH"]
    full = any(sign in failure for sign in DISK_IS_FULL for failure in failures)
    advice = FREE_DISK if full else INSTALL_COMPILER
    raise ReferenceUnavailable(f"no C compiler works ({'; '.join(failures)}); {advice}")


def known() -> dict[str, Any] | None:
    """Return ``path``, ``version`` and ``flags`` of the compiler, if it was probed before.

    No process is started. The path includes the arguments in `$CC`.
    """
    for command in _candidates():
        with suppress(OSError):
            path, stored = _stored(command)
            found = stored or _probed.get(path)
            if found is not None:
                call_of = shlex.join(found.command)
                return {"path": call_of, "version": found.version, "flags": list(found.flags)}
    return None


def describe() -> dict[str, Any]:
    """Describe the compiler for reports; ``problem`` says what is missing, and what to install."""
    problem = ""
    found: Compiler | None = None
    try:
        found = compiler()
    except ReferenceUnavailable as error:
        problem = str(error)
    if found and found.no_openmp:
        problem = f"no OpenMP ({found.no_openmp}); {INSTALL_OPENMP}"
    return {
        "compiler": found.version if found else None,
        "command": shlex.join(found.command) if found else "",
        "flags": list(found.flags) if found else [],
        "openmp": bool(found and not found.no_openmp),
        "cache": str(cache_dir("c")),
        "problem": problem,
    }


def library_folder() -> Path:
    """Return the folder of compiled libraries, which only this user can write to."""
    return section_folder("c", ROOM)
