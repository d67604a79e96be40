"""Compile every program for GPUs that are not here, by the compilers of their makers.

    python tools/offline_targets.py                     all, into docs/offline_targets.json
    python tools/offline_targets.py --share             one of each template; writes nothing
    python tools/offline_targets.py --target pvc        all, for a target
    python tools/offline_targets.py gemm                of plans whose names have a text; likewise

The programs are those that default configurations plan, for a GPU that is pretended, of the cases
of `tests/matrix.py`, the larger problems of `rendered_kernels.py`, and the trials of operations.
The compilers come from `tools/offline_compilers.sh`. Prints the kernels that spill; the exit status
is 1 if a program does not compile. `tools/pages.py` makes the tables of docs/runtimes.md from the
data.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import page_offline
from rendered_kernels import DEVICES, problems

from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError, InvalidConfig, InvalidProblem
from opencl_lab.core.plan import check_plan
from opencl_lab.drivers.pretend import LIMITS, pretended
from opencl_lab.lab.offline import (
    PACKAGES,
    TARGETS,
    VARIABLE,
    Compiled,
    Target,
    compile_for,
    missing,
    programs_of,
)
from opencl_lab.ops.selftest import all_trials
from opencl_lab.ops.solver import Problem, Solver
from opencl_lab.runtime.programs import FLAGS

TOGETHER = 2
"""Compilers that run at a time."""
DRAWN = 4
"""Random trials of an operation."""


@dataclass
class Program:
    """A program, and what plans it."""

    template: str
    source: str
    options: tuple[str, ...]
    plans: list[str] = field(default_factory=list)
    by_auto: bool = False
    """Whether the plan of a default algorithm is among these."""

    @property
    def algorithm(self) -> str:
        """The operation and the algorithm of the first plan."""
        return " ".join(self.plans[0].split()[:2])


class _Asked(Exception):
    """What a public function would solve."""


def tried(device: Device) -> Iterator[tuple[Solver[Any], str, Problem]]:
    """Yield the problems of trials: the typical ones, and the first one of each call."""

    def run(solver: Solver[Any], problem: Problem, *_: Any, **__: Any) -> None:
        raise _Asked(solver, problem)

    for trials in all_trials():
        for problem in trials.typical:
            yield trials.solver, problem.title, problem
        for trial in (*trials.trials, *trials.drawn(device, DRAWN)):
            try:
                task = trial.task(np.random.default_rng(1))
                with mock.patch.object(Solver, "run", run), suppress(InvalidConfig, InvalidProblem):
                    task.call(*task.arrays)
            except _Asked as asked:
                solver, problem = asked.args
                yield solver, trial.title, problem


def programs(pretend: str, wanted: str = "", share: bool = False) -> list[Program]:
    """Return the programs that default configurations plan for a pretended GPU.

    A share has one of each template, of those that are planned most often.
    """
    device = pretended(DEVICES["pocl"], LIMITS[pretend])  # the same on every machine
    device = replace(device, handle=None, serial_side=None)  # nor is it tested
    found: dict[Any, Program] = {}
    for solver, said, problem in (*problems(), *(() if share else tried(device))):
        for named in solver.algorithms:
            algorithm = named.on("gpu")
            name = f"{solver.name} {algorithm.name} {said}"
            if wanted not in name or algorithm.supports(problem, device) is not None:
                continue
            plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
            try:
                check_plan(plan, device)
            except (InvalidConfig, InvalidProblem):  # as if it took more memory than there is
                continue
            by_auto = solver.choose(problem, device).name == algorithm.name
            for template, source, options in programs_of(plan):
                program = found.setdefault((source, options), Program(template, source, options))
                program.plans.append(name)
                program.by_auto |= by_auto
    if share:
        found = {each.template: each for each in sorted(found.values(), key=lambda x: len(x.plans))}
    return list(found.values())


def compiled(given: list[Program], target: Target) -> Iterator[tuple[Program, Any]]:
    """Yield programs with what the compiler says of their kernels, or why it fails."""

    def one(program: Program) -> list[Compiled] | str:
        try:
            return compile_for(target, program.source, (*program.options, *FLAGS))
        except BuildError as error:
            return error.log or str(error)

    with ThreadPoolExecutor(TOGETHER) as pool:
        yield from zip(given, pool.map(one, given), strict=True)


def row_of(target: Target, given: list[Program]) -> dict[str, Any]:
    """Compile programs for a target, print those that spill, and return what the page says."""
    kernels: list[Compiled] = []
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    failures, most = 0, Counter[str]()
    for program, found in compiled(given, target):
        if isinstance(found, str):
            failures += 1
            print(f"{target.name}: {program.template} ({program.plans[0]}) fails:\n{found}")
            continue
        kernels += found
        for kernel in (kernel for kernel in found if kernel.spilled):
            counts[program.by_auto][program.algorithm] += 1
            most[program.algorithm] = max(most[program.algorithm], kernel.spilled)
            kind = "auto" if program.by_auto else "by name"
            print(f"{target.name}, {kind}: {kernel.kernel}: {kernel}; {program.plans[0]}")
    waves = [kernel.waves for kernel in kernels] or [0]
    return {
        "target": target.name,
        "pretend": target.pretended,
        "programs": len(given),
        "failures": failures,
        "kernels": len(kernels),
        "registers": max((kernel.registers for kernel in kernels), default=0),
        "private_bytes": max((kernel.private_bytes for kernel in kernels), default=0),
        "local_bytes": max((kernel.local_bytes for kernel in kernels), default=0),
        "waves": [min(waves), int(median(waves)), target.waves],
        "spilling_by_auto": dict(counts[True]),
        "spilling_by_name": dict(counts[False]),
        "most_spilled": dict(most),
    }


def keep(row: dict[str, Any]) -> None:
    """Put the row of a target into the data."""
    known = page_offline.read()["targets"]
    rows = {one["target"]: one for one in (*known, row)}
    found = {
        "date": str(date.today()),
        "versions": versions(),
        "targets": [rows[name] for name in TARGETS if name in rows],
    }
    page_offline.DATA.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Return the versions of the packages of the compilers, where they were unpacked."""
    path = Path(os.environ.get(VARIABLE, ""), "versions")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    known = dict(line.split("\t") for line in lines)
    names = [*" ".join(PACKAGES.values()).split(), "libigc1"]
    return {name: known[name] for name in names if name in known}


def main() -> int:
    """Compile, and write the data of the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("plans", nargs="?", default="", help="a part of the names of plans")
    parser.add_argument("--target", choices=TARGETS, help="this one, not all")
    parser.add_argument("--share", action="store_true", help="one program of each template")
    given = parser.parse_args()
    targets = [TARGETS[given.target]] if given.target else list(TARGETS.values())
    reason = next(filter(None, map(missing, targets)), None)
    if reason is not None:
        print(f"left out: {reason}")
        return 0
    os.environ["OCLAB_DEVICE"] = "cpu"
    failures = 0
    for pretend in dict.fromkeys(target.pretended for target in targets):
        there = [target for target in targets if target.pretended == pretend]
        planned = programs(pretend, given.plans, given.share)
        for target in there:
            row = row_of(target, planned)
            print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
            failures += row["failures"]
            if not (given.plans or given.share):
                keep(row)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
