"""Compile every program for GPUs that are not here, by the compilers of their makers.

    python tools/offline_targets.py                     all programs; writes docs/offline_targets.json
    python tools/offline_targets.py --short             one program of each template, and writes nothing
    python tools/offline_targets.py gemm --target pvc   of plans whose names have a text, for a target

The programs are those that the cases of `tests/matrix.py` and the larger problems of
`rendered_kernels.py` plan, by default configurations, for a GPU that is pretended. The compilers
come from `tools/offline_compilers.sh`. Prints the kernels that spill; the exit status is 1 if a
program does not compile.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rendered_kernels import problems

import opencl_lab as ol
from opencl_lab.core.errors import BuildError, InvalidConfig, InvalidProblem
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.drivers.pretend import LIMITS, pretended
from opencl_lab.lab.offline import TARGETS, Compiled, Target, compile_for, missing
from opencl_lab.runtime.programs import FLAGS

DATA = Path(__file__).resolve().parent.parent / "docs/offline_targets.json"
TARGETS_OF = {
    "amd-gcn": ("gfx900", "gfx90a"),
    "amd-rdna": ("gfx1030",),
    "intel-xe": ("skl", "tgllp", "dg2-g10", "pvc"),
}


@dataclass
class Program:
    """A program, and what plans it."""

    template: str
    source: str
    options: tuple[str, ...]
    plans: list[str] = field(default_factory=list)
    by_auto: bool = False
    """Whether a default algorithm is among these."""


def programs(pretend: str, wanted: str = "") -> list[Program]:
    """Return the programs that default configurations plan for a pretended GPU."""
    cpu = ol.select_device("cpu")
    device = replace(pretended(cpu, LIMITS[pretend]), handle=None, serial_side=None)
    found: dict[tuple[str, tuple[str, ...]], Program] = {}
    for solver, said, problem in problems():
        for named in solver.algorithms:
            algorithm = named.on("gpu")
            name = f"{solver.name} {algorithm.name} {said}"
            if wanted not in name or algorithm.supports(problem, device) is not None:
                continue
            plan = algorithm.plan(problem, algorithm.default_config(problem, device), device)
            try:
                check_plan(plan, device)
            except (InvalidConfig, InvalidProblem):  # such as one that takes more memory than the device has
                continue
            chosen = solver.choose(problem, device).name == algorithm.name
            for launch in plan.launches:
                text = render(launch.template, launch.params).text
                key = text, launch.options
                program = found.setdefault(key, Program(launch.template, text, launch.options))
                program.plans.append(name)
                program.by_auto |= chosen
    return list(found.values())


def shortened(given: list[Program]) -> list[Program]:
    """Return a program of each template, of those that are planned most often."""
    most = sorted(given, key=lambda program: -len(program.plans))
    return list({program.template: program for program in reversed(most)}.values())


def compiled(given: list[Program], target: Target) -> Iterator[tuple[Program, list[Compiled] | str]]:
    """Yield programs with what the compiler says, or why it fails; two are compiled at a time."""

    def one(program: Program) -> list[Compiled] | str:
        try:
            return compile_for(target, program.source, (*program.options, *FLAGS))
        except BuildError as error:
            return error.log or str(error)

    with ThreadPoolExecutor(2) as pool:
        yield from zip(given, pool.map(one, given), strict=True)


def row_of(pretend: str, target: Target, given: list[Program]) -> dict[str, Any]:
    """Compile programs for a target, print those that spill, and return what the page says."""
    kernels, failures, spills = [], 0, defaultdict(list)
    for program, found in compiled(given, target):
        if isinstance(found, str):
            failures += 1
            print(f"{target.name}: {program.template} ({program.plans[0]}) fails:\n{found}")
            continue
        kernels += found
        for kernel in found:
            if kernel.spilled:
                kind = "auto" if program.by_auto else "by name"
                spills[kind].append(kernel)
                print(f"{target.name}: {kernel.kernel}, {kind}: {kernel}; {program.plans[0]}")
    return {
        "target": target.name, "title": target.title, "pretend": pretend, "programs": len(given),
        "failures": failures, "kernels": len(kernels),
        "spill_by_auto": len(spills["auto"]), "spill_by_name": len(spills["by name"]),
        "most_spilled": max((kernel.spilled for kernel in kernels), default=0),
        "most_registers": max((kernel.registers for kernel in kernels), default=0),
        "most_local_bytes": max((kernel.local_bytes for kernel in kernels), default=0),
        "waves": sorted(kernel.waves for kernel in kernels)[len(kernels) // 4] if kernels else 0,
        "most_waves": target.waves,
    }  # fmt: skip


def main() -> int:
    """Compile, and write the data of the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("plans", nargs="?", default="", help="a part of the names of plans")
    parser.add_argument("--target", choices=TARGETS, help="this one, not all")
    parser.add_argument("--short", action="store_true", help="one program of each template")
    given = parser.parse_args()
    reason = missing()
    if reason is not None:
        print(f"left out: {reason}")
        return 0
    rows = []
    for pretend, names in TARGETS_OF.items():
        names = tuple(name for name in names if given.target in (None, name))
        planned = programs(pretend, given.plans) if names else []
        planned = shortened(planned) if given.short else planned
        rows += [row_of(pretend, TARGETS[name], planned) for name in names]
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    if not (given.plans or given.target or given.short):
        DATA.write_text(json.dumps({"targets": rows}, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row["failures"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
