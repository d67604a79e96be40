"""Compile the C references with the system's compiler, at run time, and keep what was compiled.

Nothing in the cache is trusted: a library carries the checksum of its content in
its name, because loading a damaged one would end the process, and neither it nor its
folder may be such that others could write to them.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from opencl_lab.core.errors import BuildError, LaunchError, ReferenceUnavailable
from opencl_lab.drivers.caches import danger
from opencl_lab.drivers.processes import on_all_processors
from opencl_lab.lab.reference.compiler import (
    HALF,
    INSTALL_OPENMP,
    Compiler,
    Refused,
    call,
    compiler,
    cpu_text,
    digest_of,
    library_folder,
)
from opencl_lab.lab.reference.descriptor import CReference

SOURCES = Path(__file__).with_name("csrc")


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
    key = digest_of(json.dumps(asdict(found)), cpu_text(), *macros, *texts)
    folder = library_folder()
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


def _open(library: Path) -> ctypes.CDLL:
    """Load a library. OpenMP, which reads its settings now, is to sleep when it waits.

    Threads that spin after a parallel region would slow down whatever is measured next.
    """
    asked = "OMP_WAIT_POLICY" in os.environ
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        with on_all_processors():  # with OMP_PROC_BIND it binds this thread, and would for good
            return ctypes.CDLL(str(library))
    finally:
        if not asked:
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
            call(command)
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
