"""Jobs of MPI that this process starts, ``mpiexec -n R python -m opencl_lab ...``, and their rows.

On a CPU each rank of all jobs gets as many processors, those of the machine divided by the largest
number of ranks. So processors grow with ranks, as devices do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from opencl_lab.core.wording import counted
from opencl_lab.drivers.pinning import UNITS, WORKERS
from opencl_lab.drivers.processes import default_threads, on_all_processors
from opencl_lab.lab.engine.row import OVER_RANKS, Measurement, Status
from opencl_lab.lab.engine.runner import ProgressReport
from opencl_lab.lab.engine.speedups import over_fewest_ranks
from opencl_lab.lab.engine.stored import measurement_of
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.reference.mpi import INSTALL_MPI, MPI_ENVIRONMENT, find_mpiexec, no_mpi
from opencl_lab.workers.worker import end

STATUS: dict[int, Status] = {2: "constraints", 3: "unavailable", 124: "timeout"}
"""Status of the row by the exit status of a job; others are ``runtime``."""
END_SECONDS = 5.0
"""For mpiexec to end its ranks."""
Options: TypeAlias = Mapping[str, Any]
JobRows: TypeAlias = dict[tuple[str, ...], Measurement]
"""Rows by the command of their job."""


@dataclass(frozen=True)
class RankJobs:
    """The jobs of one problem, or of one that grows with the ranks."""

    chosen: Operation[Any]
    ranks: Sequence[int]
    options_on: Callable[[int], Options]
    """``options_on(ranks)`` returns the complete options of the problem."""
    seed: int = 0
    repeats: int | None = None
    device: str | None = None
    """As `--device` takes it."""
    known: JobRows = field(default_factory=dict)
    """Rows of jobs that are not run again."""

    def rows(self, progress: ProgressReport) -> list[Measurement]:
        """Run the jobs one after the other; return a row of each.

        A job that fails has a row that says so.
        """
        missing = no_mpi()
        if missing is not None:
            return [Measurement(OVER_RANKS, "mpi", OVER_RANKS, "unavailable", missing)]
        found = []
        for place, ranks in enumerate(self.ranks):
            progress(place, len(self.ranks), counted(ranks, "rank"))
            line = tuple(self._command(ranks))
            if line not in self.known:
                self.known[line] = self._row(ranks, *_ended(line, self._environment()))
            found.append(self.known[line])
        return over_fewest_ranks(found)

    def _command(self, ranks: int) -> list[str]:
        line = [sys.executable, "-m", "opencl_lab", self.chosen.name, "--json"]
        if self.device is not None:
            line += ["--device", self.device]
        if self.repeats is not None:
            line += ["--repeats", str(self.repeats)]
        usual = self.chosen.with_defaults({})
        for name, value in {**self.options_on(ranks), "seed": self.seed}.items():
            if value is not None and value != usual.get(name):
                flag = "--" + name.replace("_", "-")
                line.append(flag if value is True else f"{flag}={value}")
        return [str(find_mpiexec()), "-n", str(ranks), *line, "--distributed"]

    def _environment(self) -> dict[str, str]:
        """Return the variables of a job; without PYTHONSAFEPATH the current folder came first."""
        search = os.pathsep.join(map(os.path.abspath, sys.path))
        found = {**os.environ, **MPI_ENVIRONMENT, "PYTHONPATH": search, "PYTHONSAFEPATH": "1"}
        if not {WORKERS, UNITS} & found.keys():
            each = str(max(1, default_threads() // max(self.ranks)))
            found |= {WORKERS: each, UNITS: each}
        return found

    def _row(self, ranks: int, code: int, out: str, err: str) -> Measurement:
        """Return the row that a job has printed, or one that says how it failed."""
        named = f"{OVER_RANKS} x{ranks}"
        work = self.chosen.problem(**self.options_on(ranks)).work
        with suppress(ValueError, LookupError, TypeError):
            content = json.JSONDecoder().raw_decode(out)[0]
            row = measurement_of(content["results"][0])
            if row.workers == ranks:
                return replace(row, work=work, implementation=named)
            code, err = 3, f"{ranks} processes that are not connected: mpi4py belongs to another "
            err += f"MPI; {INSTALL_MPI}"
        return Measurement(
            named,
            "mpi",
            OVER_RANKS,
            STATUS.get(code, "runtime"),
            _said(err) or f"exit status {code}, and nothing said",
            threads=ranks,
            workers=ranks,
        )


def _said(err: str) -> str:
    """Return the error of the first rank that says one; else the last line."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("oclab: ")]
    return (telling or lines[-1:] or [""])[0].removeprefix("oclab: ")[:300]


def _ended(line: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run a job; return its exit status and what it printed. Ctrl-C ends it, ranks included."""
    with on_all_processors():
        process = subprocess.Popen(
            line,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    try:
        out, err = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGTERM)  # mpiexec ends the ranks, which have sessions of theirs
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
        end(process)
        raise
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
