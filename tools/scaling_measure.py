"""Measure a machine for the model of distributed calls, run the calls, and compare.

    OCLAB_DEVICE=cpu python tools/scaling_measure.py check --ranks 1,2,4 --out measured.json

There is a job for each number of ranks. First it measures the machine (`scaling_probe`), all ranks
at once: copies, collective calls, plain calls of local arrays. Then the distributed calls run, as
`distributed_speed.py` times them, at other sizes. What the model predicts is printed beside them.
All is written to one file, which ``scaling_page.py`` makes the page of. ``machine`` measures only;
``compare`` prints the comparison of a file again; ``plan`` measures index arithmetic for many
ranks, without starting them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import distributed_speed
import numpy as np
import scaling_probe
from scaling_machine import measured
from scaling_operations import predicted

from opencl_lab.core.errors import OclabError
from opencl_lab.distributed import exchange, world
from opencl_lab.distributed.conv2d import _Part
from opencl_lab.distributed.grid import best_grid
from opencl_lab.distributed.layout import slab
from opencl_lab.lab.reference.mpi import MPI_ENVIRONMENT, find_mpiexec
from opencl_lab.ops.conv2d.arguments import bind
from opencl_lab.ops.gemm.problem import GemmProblem

SCHEMA = "oclab-scaling/1"
PROBLEMS = (
    "gemm:4096", "sort:60000000", "fft:16777216", "conv2d:8192",
    "gemm:2048", "sort:10000000", "fft:4194304", "conv2d:4096",
)  # fmt: skip
CLOSE = 0.2
"""How far predictions may be from what is measured."""
SEEDS = 9
PLANNED = (4, 16, 64, 256, 1024, 4096)
FILTER: Any = {
    "mode": "same", "boundary": "constant", "cval": 0.0, "flip": False, "channels_last": None,
    "saturate": True,
}  # fmt: skip
Document = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("machine", "check", "compare", "plan", "job"))
    parser.add_argument("problems", nargs="*", metavar="OPERATION:SIZE")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--out", type=Path, help="the file that is written, and read if it exists")
    parser.add_argument("--name", default="", help="what the machine is called on the page")
    parser.add_argument("--seconds", type=float, default=210, help="after which no run starts")
    parser.add_argument("--fastest", action="store_true", help="of all samples and of what the "
                        "file has, not the median: where others use the machine, too")  # fmt: skip
    parser.add_argument("--turns", type=int, default=1, help="of rates and runs: on machines whose "
                        "load changes")  # fmt: skip
    parser.add_argument("--nodes", type=int, default=1, help="pretended ones, between which MPICH "
                        "sends messages")  # fmt: skip
    options = parser.parse_intermixed_args(arguments)
    if options.command == "job":
        _job(options.problems, options.seconds, options.fastest, options.turns)
        return
    counts = [int(text) for text in options.ranks.split(",")]
    document = _read(options.out) or {"schema": SCHEMA, "ranks": {}, "runs": []}
    begin = time.monotonic()
    if options.command == "plan":
        document["plan"] = planned()
    if options.command in ("machine", "check"):
        document["machine"] = _machine(options.name)
        document["command"] = " ".join(["python", *sys.argv])
        document["fastest"], document["nodes"] = options.fastest, options.nodes
        if options.nodes > 1:
            os.environ["MPIR_CVAR_NUM_CLIQUES"] = str(options.nodes)
        problems = (options.problems or PROBLEMS) if options.command == "check" else []
        for at, ranks in enumerate(counts):
            left = (options.seconds - time.monotonic() + begin) / (len(counts) - at)
            _add(document, ranks, _started(ranks, problems, left, options))
            _write(options.out, document)
            _say(f"{ranks} ranks", begin)
    _write(options.out, document)
    if document["runs"]:
        print("\n".join(compared(document)))


def _started(ranks: int, problems: Sequence[str], seconds: float, options: Any) -> Document:
    """Return what a job of so many ranks measures of the machine, and its runs."""
    line = [sys.executable, __file__, "job", *problems, "--seconds", f"{seconds:.0f}"]
    line += ["--turns", f"{options.turns}"]
    if ranks > 1:
        line = [str(find_mpiexec()), "-n", str(ranks), *line]
    if options.fastest:
        line.append("--fastest")
    environment = {**os.environ, **MPI_ENVIRONMENT}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    found: Document = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _job(problems: Sequence[str], seconds: float, fastest: bool, turns: int) -> None:
    """Measure and run on this rank; rank 0 prints what was found."""
    begin = time.monotonic()
    if fastest:
        os.environ[scaling_probe.FASTEST] = "1"
        distributed_speed.SAMPLES *= 4
    vars(distributed_speed)["find_spec"] = lambda name: None  # plans of FFTW take long
    comm, runs = world(), list[Document]()
    run = distributed_speed.job if comm.size > 1 else distributed_speed.alone
    machines, found_rates = list[Document](), list[Document]()
    for at, operation in enumerate(scaling_probe.OPERATIONS):
        # What is compared is measured one after the other, as the load of a machine may change.
        until = begin + seconds * (at + 1) / len(scaling_probe.OPERATIONS)
        sizes = [int(n) for name, n in (one.split(":") for one in problems) if name == operation]
        found: dict[int, Document] = {}
        machines.append(scaling_probe.measured(comm))
        rates = []
        for _ in range(turns):
            rates.append(scaling_probe.rates(comm, operation))
            for n in sizes:
                if comm.bcast(time.monotonic() > until, root=0):
                    break
                one = run(operation, n)
                samples = found.get(n, {}).get("seconds", []) + one["seconds"]
                found[n] = {**one, "seconds": samples}
        found_rates.append(middle(rates))
        what = {"operation": operation, "ranks": comm.size}
        runs += [{**what, "n": n, **one} for n, one in found.items()]
    machine = middle(machines)
    for name in ("rates", "spread"):
        machine[name] = {rate: rows for one in found_rates for rate, rows in one[name].items()}
    if comm.rank == 0:
        print(json.dumps({"machine": machine, "runs": runs}))


def middle(documents: Sequence[Any]) -> Any:
    """Return documents of one form as one, with the median of each number."""
    first = documents[0]
    if isinstance(first, dict):
        return {name: middle([one[name] for one in documents]) for name in first}
    if isinstance(first, list):
        return [middle(parts) for parts in zip(*documents, strict=True)]
    return median(documents) if isinstance(first, float | int) else first


def _add(document: Document, ranks: int, found: Document) -> None:
    """Put what a job found into a document, whose own runs of so many ranks it replaces."""
    runs = {key(one): one for one in document["runs"]}
    for one in found["runs"]:
        kept = runs.get(key(one)) if document["fastest"] else None
        runs[key(one)] = least(kept, one)
    document["runs"] = list(runs.values())
    kept = document["ranks"].get(str(ranks)) if document["fastest"] else None
    document["ranks"][str(ranks)] = least(kept, found["machine"])


def key(run: Document) -> tuple[str, int, int]:
    """Return what was run."""
    return run["operation"], run["n"], run["ranks"]


def least(one: Any, other: Any) -> Any:
    """Return two documents of one form with the smaller one of each two numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: least(one.get(name), value) for name, value in other.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [least(a, b) for a, b in zip(one, other, strict=True)]
    if isinstance(one, float | int) and isinstance(other, float | int):
        return min(one, other)
    return other


def comparison(document: Mapping[str, Any]) -> list[Document]:
    """Return the runs of a file, with what the model predicts for each."""
    found = []
    for one in document["runs"]:
        machine = measured(document, one["ranks"])
        drawn = [
            predicted(one["operation"], one["n"], one["ranks"], machine, seed=seed)
            for seed in range(SEEDS)
        ]
        result = sorted(drawn, key=lambda one: one.seconds)[SEEDS // 2]
        seconds = (min if document.get("fastest") else median)(one["seconds"])
        found.append(
            {**one, "measured": seconds, "predicted": result.seconds, "spent": result.spent,
             "ratio": result.seconds / seconds}
        )  # fmt: skip
    return found


def compared(document: Document) -> list[str]:
    """Return a line for each run, and one for all."""
    lines, rows = [], comparison(document)
    for one in rows:
        spent = [f"{k} {1e3 * v:.2f}" for k, v in one["spent"].items() if v > 2e-5]
        low, high = min(one["seconds"]), max(one["seconds"])
        lines.append(
            f"{one['operation'] + ':' + str(one['n']):16} {one['ranks']:3} ranks  measured "
            f"{1e3 * one['measured']:8.2f} ms ({1e3 * low:.1f} to {1e3 * high:.1f})  predicted "
            f"{1e3 * one['predicted']:8.2f}  ratio {one['ratio']:.2f}  [{', '.join(spent)}]"
        )
    close = sum(abs(one["ratio"] - 1) <= CLOSE for one in rows)
    lines.append(f"{close} of {len(rows)} within {CLOSE:.0%}")
    return lines


def planned() -> Document:
    """Return by name the seconds of index arithmetic of a rank, for several numbers of ranks.

    It is that of the distributed calls; what communicates is left out. They are seconds of the
    processor, as other processes may run.
    """
    found: Document = {name: [] for name in ("exchange", "grid", "halo", "rows")}
    for ranks in PLANNED:
        for name, call in _arithmetic(ranks).items():
            found[name].append([ranks, min(_spent(call) for _ in range(3 if ranks < 1024 else 1))])
    word = pickle.dumps(("some arguments", (1, 2, 3)))

    def told() -> None:
        found = [pickle.loads(word) for _ in range(max(PLANNED))]
        assert all(one == found[0] for one in found)

    found["unpickle"] = min(_spent(told) for _ in range(3)) / max(PLANNED)
    return found


def _spent(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def _arithmetic(ranks: int) -> dict[str, Callable[[], Any]]:
    """Return by name what a rank computes of all others' parts."""
    comm, n = _Silent(ranks, ranks // 2), 4 * ranks
    before, after = (slab(axis).layout((n, n), ranks) for axis in (0, 1))
    local = np.zeros(before.local_shape(comm.rank), np.complex64)
    problem = GemmProblem(n, n, n, np.dtype(np.float32), 1.0, 0.0, False, False, "native")
    filtered = bind(np.empty((0, n, n), np.float32), np.ones((5, 5), np.float32), **FILTER)[0]
    bounds = before.splits[0].bounds
    low, high = bounds[comm.rank : comm.rank + 2]

    def halo() -> None:
        halos = [_Part(filtered, run, run).halo for run in pairwise(bounds)]
        for part, rows in zip(pairwise(bounds), halos, strict=True):
            np.searchsorted(halos[comm.rank], part)
            np.flatnonzero((rows >= low) & (rows < high))

    def rows() -> None:  # each rank tells each other one how many keys it gets
        np.array([pickle.loads(pickle.dumps(10_000 + count)) for count in range(ranks)])

    return {
        "rows": rows,
        "exchange": lambda: exchange._by_messages(comm, local, before, after),
        "grid": lambda: best_grid(comm, problem, before, before, before),
        "halo": halo,
    }


class _Silent:
    """A communicator of many ranks, of which there is one."""

    def __init__(self, size: int, rank: int):
        self.size, self.rank = size, rank

    def Get_attr(self, key: int) -> tuple[int, int]:
        """Return that this rank is the only one of its node."""
        return 0, 1

    def Alltoallw(self, *given: Any) -> None:
        """Send nothing."""

    def Allreduce(self, *given: Any, **how: Any) -> None:
        """Add nothing."""


def _machine(name: str) -> Document:
    model = "unknown"
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = named[0].partition(": ")[2] if named else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {"name": name or f"{cores} cores of {model}", "model": model, "cores": cores}
    return {**found, "date": date.today().isoformat()}


def _read(path: Path | None) -> Document | None:
    if path is None or not path.is_file():
        return None
    found: Document = json.loads(path.read_text(encoding="utf-8"))
    if found.get("schema") != SCHEMA:
        raise SystemExit(f"{path} is not a file of this tool")
    return found


def _write(path: Path | None, document: Document) -> None:
    if path is not None:
        text = json.dumps(_rounded(document), separators=(",", ":"))
        path.write_text(text.replace('],"', '],\n"').replace("},", "},\n") + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    """Return a document whose numbers have four digits: no measurement has more."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def _say(text: str, begin: float) -> None:
    print(f"{time.monotonic() - begin:6.0f} s  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except OclabError as error:
        raise SystemExit(str(error)) from error
