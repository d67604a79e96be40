"""The tools that references and distributed runs need, and what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opencl_lab.core.errors import OclabError
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.compiler import FREE_DISK, INSTALL_COMPILER, INSTALL_OPENMP, describe
from opencl_lab.lab.reference.descriptor import CReference
from opencl_lab.lab.reference.mpi import INSTALL_MPI, MPI_ENVIRONMENT, find_mpiexec, no_mpi

COMPILERS = "cc gcc clang"
INSTALL_LINKER = "apt install binutils"
TIME_LIMIT = 20.0

# Only one rank prints, since output of two would be mixed.
MPI_SCRIPT = (
    "from mpi4py import MPI; w = MPI.COMM_WORLD; n = w.allreduce(1); w.rank or print('ranks', n)"
)
COUNT_THREADS = CReference(
    "OpenMP", "threads.c", "count_threads", lambda _: {}, lambda *_: (), threaded=True
)


@dataclass(frozen=True)
class Tool:
    """A tool, or another component of an installation: whether it works, and advice if not."""

    name: str  # such as ``C compiler``
    verdict: str
    """``ok``; ``no`` if it is not installed, ``missing`` if devices may need it; ``broken`` if it
    fails; ``limited`` if there is a better one."""
    detail: str  # what was found, in words
    advice: str = ""  # what to install or to set; empty when it works


def _run(command: Sequence[str]) -> tuple[bool, str]:
    """Run a command; return whether it succeeded, and the last line that it printed."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **MPI_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer within {TIME_LIMIT:g} s"
    except OSError as error:
        return False, str(error)
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    first_error = [line for line in said if "error" in line.lower()]
    if done.returncode:
        return False, (first_error or said or [f"exit status {done.returncode}"])[0][:160]
    return True, said[-1][:160] if said else ""


def _compiler() -> tuple[Tool, Tool]:
    """Compile like the references, and run a function on several threads."""
    found = describe()
    reason = found["problem"].removesuffix(INSTALL_COMPILER).removesuffix(INSTALL_OPENMP)
    reason = reason.removesuffix("; ")
    if found["compiler"] is None:
        wanted = os.environ.get("CC", "").split() or COMPILERS.split()
        verdict = "broken" if any(map(shutil.which, wanted)) else "no"
        advice = FREE_DISK if reason.endswith(FREE_DISK) else INSTALL_COMPILER
        compiler = Tool("C compiler", verdict, reason.removesuffix(f"; {FREE_DISK}"), advice)
        return compiler, Tool("OpenMP", "no", "needs a C compiler", INSTALL_COMPILER)
    compiler = Tool("C compiler", "ok", f"{found['command']}: {found['compiler']}")
    if not found["openmp"]:
        return compiler, Tool("OpenMP", "broken", reason, INSTALL_OPENMP)
    counts = np.zeros(2, np.int64)
    try:
        load(COUNT_THREADS, None)(counts)
    except OclabError as error:
        return compiler, Tool("OpenMP", "broken", str(error), INSTALL_OPENMP)
    return compiler, Tool("OpenMP", "ok", f"{counts[0]} of {counts[1]} threads run")


def _linker() -> Tool:
    """Find the linker that PoCL and C compilers use."""
    linker = shutil.which("ld")
    if linker is None:
        return Tool("linker", "missing", "no ld on PATH, which PoCL needs", INSTALL_LINKER)
    return Tool("linker", "ok", linker)


def _mpi() -> Tool:
    """Start two ranks that sum up their number."""
    mpiexec, missing = find_mpiexec(), no_mpi()
    if mpiexec is None or missing is not None:
        detail = (missing or "").removesuffix(f"; {INSTALL_MPI}")
        return Tool("MPI", "no", detail, INSTALL_MPI)
    works, said = _run([mpiexec, "-n", "2", sys.executable, "-c", MPI_SCRIPT])
    if works and said == "ranks 2":
        return Tool("MPI", "ok", f"{mpiexec}: two ranks talk to each other")
    return Tool("MPI", "broken", f"{mpiexec} with mpi4py: {said}", INSTALL_MPI)


def toolchain() -> tuple[Tool, ...]:
    """Return findings about a linker, and about C compiler, OpenMP and MPI, which are tried."""
    return (_linker(), *_compiler(), _mpi())
