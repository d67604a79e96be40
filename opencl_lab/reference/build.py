"""Compile the C references with the system's compiler, at run time, and keep what was compiled.

Nothing in the cache is trusted: a library carries the checksum of its content in
its name, because loading a damaged one would end the process, and neither it nor its
folder may be such that others could write to them.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.caches import danger, section_folder
from opencl_lab.errors import BuildError, LaunchError, ReferenceUnavailable
from opencl_lab.paths import cache_dir, read_json, write_json
from opencl_lab.reference.descriptor import CReference

__all__ = ["CFunction", "Compiler", "compiler", "describe", "load"]

SOURCES = Path(__file__).with_name("csrc")
CANDIDATES = ("cc", "gcc", "clang")
BASE_FLAGS = ("-O3", "-shared", "-fPIC")
NATIVE, OPENMP = "-march=native", "-fopenmp"
TIME_LIMIT = 120.0
ROOM = 1 << 20  # bytes that a disk should have left for libraries
CPU_FIELDS = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),  # x86
    *("CPU implementer", "CPU variant", "CPU part", "Features"),  # Arm
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
"""The type of C that not every compiler has."""

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
    """A C compiler that was tried on small programs.

    Parameters
    ----------
    command : tuple of str
        How it is called: its full path, then the arguments that `$CC` gave.
    version : str
        First line of its ``--version``.
    flags : tuple of str
        Those of ours that it accepts, for a shared library.
    no_openmp : str
        Why it cannot compile OpenMP; empty when it can.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    no_openmp: str = ""


class _Refused(Exception):
    """A compiler that could not be started, failed, or took too long; holds what it printed."""

    def __str__(self) -> str:
        lines = [line.strip() for line in str(self.args[0]).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        return (errors or lines or ["it failed without a word"])[0][:200]


def _call(command: Sequence[str]) -> str:
    """Run a compiler and return what it printed."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            text=True,
            errors="replace",
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise _Refused(f"no answer within {TIME_LIMIT:g} s") from None
    except OSError as error:
        raise _Refused(str(error)) from error
    if done.returncode:
        raise _Refused(done.stdout)
    return done.stdout


def _cpu() -> str:
    """Identify what ``-march=native`` depends on; home folders are shared between machines."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n")[0]  # the rest is slow on large machines
    except OSError:
        return f"{platform.machine()} {platform.system()} {platform.node()}"
    fields = (line.partition(":") for line in first.splitlines())
    stable = [f"{name.strip()}:{text}" for name, _, text in fields if name.strip() in CPU_FIELDS]
    return " ".join([platform.machine(), *stable])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _candidates() -> Iterator[tuple[str, ...]]:
    """Yield the commands to try; what the user asked for is not replaced by anything else."""
    asked = os.environ.get("CC", "").strip()
    for name in (asked,) if asked else CANDIDATES:
        try:
            command = shlex.split(name)
        except ValueError:  # a quotation without its end
            command = [name]
        path = shutil.which(command[0])
        if path:
            yield (path, *command[1:])


def _probe(command: tuple[str, ...]) -> Compiler:
    """Find out which flags a compiler accepts.

    Raises
    ------
    _Refused
        If it cannot even compile a function.
    """
    with tempfile.TemporaryDirectory(prefix="oclab-cc-") as folder:
        source, library = Path(folder, "probe.c"), Path(folder, "probe.so")

        def attempt(flags: tuple[str, ...], text: str = PROBE) -> str:
            """Return why it does not compile with these flags, or an empty text."""
            source.write_text(text, encoding="utf-8")
            try:
                _call([*command, *flags, str(source), "-o", str(library)])
            except _Refused as refused:
                return str(refused)
            return ""

        version = _call([*command, "--version"]).strip().splitlines() or ["unknown version"]
        flags: tuple[str, ...] = BASE_FLAGS
        if attempt((*flags, NATIVE)):
            failure = attempt(flags)
            if failure:
                raise _Refused(failure)
        else:
            flags = (*flags, NATIVE)
        no_openmp = attempt((*flags, OPENMP), OPENMP_PROBE)
        if not no_openmp:
            flags = (*flags, OPENMP)
        return Compiler(command, version[0], flags, no_openmp)


def _probe_once(command: tuple[str, ...]) -> Compiler:
    """Return what `_probe` found the last time, as long as compiler and machine are the same."""
    status = Path(command[0]).stat()
    key = _digest(
        *command, str(status.st_mtime_ns), str(status.st_size), _cpu(), PROBE, *BASE_FLAGS
    )
    path = _folder() / f"compiler-{key}.json"  # flags can make a compiler run anything
    match read_json(path):
        case {"version": str(version), "flags": [*flags]} if all(isinstance(f, str) for f in flags):
            return Compiler(command, version, tuple(flags))
    found = _probe(command)
    if not found.no_openmp:  # what is missing may be installed later
        with suppress(OSError):
            write_json(path, asdict(found))
    return found


def compiler() -> Compiler:
    """Return the C compiler: `$CC`, or the first of cc, gcc and clang that works.

    Raises
    ------
    ReferenceUnavailable
        If there is none; the message says what to install.
    """
    failures = []
    for command in _candidates():
        try:
            return _probe_once(command)
        except (_Refused, OSError) as error:
            failures.append(f"{shlex.join(command)}: {error}")
    asked = os.environ.get("CC", "").strip()
    if not failures:
        failures = [f"CC={asked} is not there" if asked else f"no {', '.join(CANDIDATES)} on PATH"]
    full = any(sign in failure for sign in DISK_IS_FULL for failure in failures)
    advice = FREE_DISK if full else INSTALL_COMPILER
    raise ReferenceUnavailable(f"no C compiler works ({'; '.join(failures)}); {advice}")


def describe() -> dict[str, Any]:
    """Describe the compiler in words, for reports.

    Returns
    -------
    dict
        ``compiler`` (its version, or None), ``command``, ``flags``, ``openmp`` (bool),
        ``cache`` (the folder of the libraries) and ``problem`` (empty, or what is missing
        and what to install).
    """
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


class CFunction:
    """A compiled function, called with NumPy arrays, ints and floats.

    Parameters
    ----------
    name : str
        For error messages.
    function : callable
        From ctypes; it returns 0 or an errno.
    """

    def __init__(self, name: str, function: Callable[..., int]):
        self.name = name
        self._function = function

    def bind(self, *arguments: Any) -> Callable[[], None]:
        """Convert the arguments, so that a clock can be put around the call alone.

        Arrays pass as pointers, ints as ``int64_t``, floats as ``double``.

        Raises
        ------
        TypeError
            If an array is not contiguous, or an argument is of another kind.
        """
        converted = [_to_c(argument) for argument in arguments]

        # The default keeps the arrays alive, which ctypes knows as addresses only.
        def call(_alive: tuple[Any, ...] = arguments) -> None:
            status = self._function(*converted)
            if status:
                raise LaunchError(f"{self.name}: {os.strerror(status)}; try a smaller problem")

        return call

    def __call__(self, *arguments: Any) -> None:
        """Call the function.

        Raises
        ------
        LaunchError
            If it reports an error, such as memory that ran out.
        """
        self.bind(*arguments)()


def _to_c(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        if not argument.flags.c_contiguous:
            raise TypeError("C references take C-contiguous arrays only")
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, (int, np.integer)):
        return ctypes.c_int64(int(argument))
    if isinstance(argument, (float, np.floating)):
        return ctypes.c_double(float(argument))
    raise TypeError(f"cannot pass {type(argument).__name__} to C")


def load(reference: CReference, problem: Any) -> CFunction:
    """Compile a reference for a problem, unless that was done before, and load it.

    Parameters
    ----------
    reference : CReference
    problem : object
        Whatever ``reference.defines`` takes.

    Raises
    ------
    ReferenceUnavailable
        If there is no compiler, no OpenMP for a threaded reference, no half precision
        for a reference that needs it, or the cache folder cannot hold a library.
    BuildError
        If the compiler refuses the source.
    """
    found = compiler()
    if reference.threaded and found.no_openmp:
        raise ReferenceUnavailable(
            f"{reference.name} needs OpenMP, which {found.command[0]} does not compile "
            f"({found.no_openmp}); {INSTALL_OPENMP}"
        )
    macros = [f"-D{name}={value}" for name, value in sorted(reference.defines(problem).items())]
    source = SOURCES / reference.source
    texts = [path.read_text("utf-8") for path in (source, *sorted(SOURCES.glob("*.h")))]
    key = _digest(json.dumps(asdict(found)), _cpu(), *macros, *texts)
    folder = _folder()
    try:
        library = _cached(folder, f"{source.stem}-{key}") or _compile(
            found, source, macros, folder, f"{source.stem}-{key}"
        )
        function = getattr(_open(library), reference.function)
    except OSError as error:
        raise ReferenceUnavailable(
            f"{reference.name}: {folder} cannot hold a shared library ({error}); "
            "set OCLAB_CACHE_DIR to a folder that can"
        ) from error
    function.restype = ctypes.c_int
    return CFunction(reference.name, function)


def _folder() -> Path:
    """Return the folder of what was compiled, which nobody else can write to."""
    return section_folder("c", ROOM)


def _open(library: Path) -> ctypes.CDLL:
    """Load a library. OpenMP, which reads its settings now, is to sleep when it waits.

    Threads that spin after a parallel region would slow down whatever is measured next.
    """
    if "OMP_WAIT_POLICY" in os.environ:
        return ctypes.CDLL(str(library))
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        return ctypes.CDLL(str(library))
    finally:
        os.environ.pop("OMP_WAIT_POLICY", None)


def _checksum(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()[:20]


def _cached(folder: Path, stem: str) -> Path | None:
    """Return the library of that name, if it is ours and its content is what its name says."""
    for library in folder.glob(f"{stem}-*.so"):
        with suppress(FileNotFoundError):  # another process has thrown it away meanwhile
            if not danger(library) and library.stem == f"{stem}-{_checksum(library)}":
                return library
            library.unlink()
    return None


def _compile(found: Compiler, source: Path, macros: Sequence[str], folder: Path, stem: str) -> Path:
    """Compile into a folder of our own, then rename: other processes see all of it or nothing."""
    options = (*found.flags, *macros)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
        built = Path(work, "built.so")
        command = [*found.command, *options, str(source), "-o", str(built), "-lm"]
        try:
            _call(command)
        except _Refused as refused:
            if any(HALF in macro for macro in macros):
                raise ReferenceUnavailable(
                    f"{found.command[0]} does not compile {HALF} ({refused}); GCC does so from "
                    "version 12 on, Clang from 15 on, for most processors"
                ) from None
            raise BuildError(
                f"{found.command[0]} does not compile {source.name}: {refused}",
                log=str(refused.args[0]),
                source=source.read_text("utf-8"),
                options=options,
            ) from None
        library = folder / f"{stem}-{_checksum(built)}.so"
        built.chmod(0o700)
        built.replace(library)
    return library
