"""Look for the tools that references and distributed runs need, and say what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Tool", "toolchain"]

INSTALL_COMPILER = "apt install gcc, or xcode-select --install on macOS; or set CC to a compiler"
INSTALL_OPENMP = "install gcc, or libomp for clang, and set CC=gcc where several are there"
INSTALL_MPI = "pip install mpi4py mpich"
TIME_LIMIT = 20.0

OPENMP_SOURCE = """
#include <omp.h>
#include <stdio.h>
int main(void) {
  int threads = 0;
  #pragma omp parallel reduction(+ : threads)
  threads += 1;
  printf("%d of %d", threads, omp_get_max_threads());
  return 0;
}
"""
MPI_SCRIPT = "from mpi4py import MPI; w = MPI.COMM_WORLD; print('ranks', w.allreduce(1))"


@dataclass(frozen=True)
class Tool:
    """A tool, whether it works, and what to install where it does not.

    Parameters
    ----------
    name : str
        ``C compiler``, ``OpenMP`` or ``MPI``.
    verdict : str
        ``ok``, ``no`` where it is not there, ``broken`` where it is there and fails.
    detail : str
        What was found, in words.
    advice : str
        What to install; empty when it works.
    """

    name: str
    verdict: str
    detail: str
    advice: str = ""


def _run(command: Sequence[str], folder: str) -> tuple[bool, str]:
    """Run a command; return whether it succeeded, and the last line that it printed."""
    allowed = {  # Open MPI refuses root and more ranks than cores unless told otherwise
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **allowed},
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


def _compiler(folder: str) -> list[Tool]:
    """Compile a C program, and one with OpenMP, and run both."""
    wanted = os.environ.get("CC", "").split()
    command = wanted or next(
        ([path] for path in map(shutil.which, ("cc", "gcc", "clang")) if path), []
    )
    if not command or shutil.which(command[0]) is None:
        named = f"CC={' '.join(wanted)} is not there" if wanted else "no cc, gcc or clang on PATH"
        missing = "needs a C compiler"
        return [
            Tool("C compiler", "no", named, INSTALL_COMPILER),
            Tool("OpenMP", "no", missing, INSTALL_COMPILER),
        ]
    source, program = Path(folder, "probe.c"), str(Path(folder, "probe"))
    tools = []
    for name, text, flags, advice in (
        ("C compiler", "int main(void) { return 0; }\n", [], INSTALL_COMPILER),
        ("OpenMP", OPENMP_SOURCE, ["-fopenmp"], INSTALL_OPENMP),
    ):
        source.write_text(text, encoding="utf-8")
        built, said = _run([*command, *flags, str(source), "-o", program], folder)
        works, printed = _run([program], folder) if built else (False, said)
        if not works:
            tools.append(Tool(name, "broken", printed, advice))
        elif name == "OpenMP":
            tools.append(Tool(name, "ok", f"{printed} threads run"))
        else:
            tools.append(Tool(name, "ok", " ".join(command)))
    return tools


def _mpi(folder: str) -> Tool:
    """Start two ranks that add up their number."""
    scripts = sysconfig.get_path("scripts")
    search = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    mpiexec = shutil.which("mpiexec", path=search)
    missing = [] if mpiexec else ["mpiexec on PATH"]
    if find_spec("mpi4py") is None:
        missing.append("the Python package mpi4py")
    if mpiexec is None or missing:
        return Tool("MPI", "no", "no " + " and no ".join(missing), INSTALL_MPI)
    works, said = _run([mpiexec, "-n", "2", sys.executable, "-c", MPI_SCRIPT], folder)
    if works and said == "ranks 2":
        return Tool("MPI", "ok", f"{mpiexec}: two ranks talk to each other")
    return Tool("MPI", "broken", f"{mpiexec} with mpi4py: {said}", INSTALL_MPI)


def toolchain() -> tuple[Tool, ...]:
    """Return what was found of a C compiler, OpenMP and MPI, each tried by running it."""
    with tempfile.TemporaryDirectory(prefix="oclab-doctor-") as folder:
        return (*_compiler(folder), _mpi(folder))
