"""Compiling C references with the system's compiler at run time, with a cache on disk.

The cache is not trusted. The name of a library contains the checksum of its content, because
loading a damaged one would end the process, and neither the library nor its folder may be
writable by other users.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import BuildError, LaunchError, ReferenceUnavailable
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.core.trust import danger
from opencl_lab.drivers.processes import on_all_processors
from opencl_lab.lab.reference.compiler import (
    HALF,
    INSTALL_OPENMP,
    Compiler,
    Refused,
    compile_library,
    compiler,
    cpu_text,
    digest_of,
    library_folder,
)
from opencl_lab.lab.reference.descriptor import CReference

SOURCES = Path(__file__).with_name("csrc")


class CFunction:
    """A compiled function, called with NumPy arrays, ints and floats; it returns 0 or an errno."""

    def __init__(self, name: str, function: Callable[..., int]):
        self.name = name
        self._function = function

    def bind(self, *arguments: Any) -> Callable[[], None]:
        """Return the call with converted arguments, so that only the call is timed.

        Arrays are passed as pointers, ints as ``int64_t``, floats as ``double``. The call raises
        `LaunchError` if the function returns an error, such as for lack of memory.
        """
        converted = [_to_c(argument) for argument in arguments]

        # The default argument keeps the arrays alive, of which ctypes holds only addresses.
        def call(_alive: tuple[Any, ...] = arguments) -> None:
            status = self._function(*converted)
            if status:
                raise LaunchError(f"{self.name}: {os.strerror(status)}; try a smaller problem")

        return call

    def __call__(self, *arguments: Any) -> None:
        """Call the function; see `bind`."""
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
    """Compile a reference for a problem, unless it is in the cache, and load it.

    `ReferenceUnavailable` is raised if there is no compiler, if it lacks OpenMP or half precision,
    or if the cache cannot hold a library; `BuildError` if the source does not compile.
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
    key = digest_of(json.dumps(asdict(found)), cpu_text(), *macros, *texts)
    folder, stem = library_folder(), f"{source.stem}-{key}"
    try:
        library = _cached(folder, stem) or _compile(found, source, macros, folder, stem)
        function = getattr(_open(library), reference.function)
    except OSError as error:
        raise ReferenceUnavailable(
            f"{reference.name}: {folder} cannot hold a shared library ({error}); "
            "set OCLAB_CACHE_DIR to a folder that can"
        ) from error
    function.restype = ctypes.c_int
    return CFunction(reference.name, function)


def _open(library: Path) -> ctypes.CDLL:
    """Load a library. OpenMP, which reads its settings now, is told to sleep while it waits.

    Threads that spin after a parallel region would slow down the next measurement.
    """
    asked = "OMP_WAIT_POLICY" in os.environ
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        with on_all_processors():  # OMP_PROC_BIND would bind this thread permanently
            return ctypes.CDLL(str(library))
    finally:
        if not asked:
            os.environ.pop("OMP_WAIT_POLICY", None)


def _checksum(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()[:20]


def _cached(folder: Path, stem: str) -> Path | None:
    """Return the library of that name, if it is ours and its checksum is right."""
    for library in folder.glob(f"{stem}-*.so"):
        with suppress(FileNotFoundError):  # another process may have deleted it
            if not danger(library) and library.stem == f"{stem}-{_checksum(library)}":
                return library
            library.unlink()
    return None


def _compile(found: Compiler, source: Path, macros: Sequence[str], folder: Path, stem: str) -> Path:
    """Compile in a temporary folder, then rename, so that other processes see complete files."""
    options = (*found.flags, *macros)
    with scratch_folder(".build-", folder) as work:
        built = work / "built.so"
        try:
            compile_library(found.command, options, source, built)
        except Refused as refused:
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
