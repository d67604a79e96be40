"""Search kernels of sorts, selections and matrix products for data races and invalid accesses.

    python tools/race_search.py             # all cases, about a minute
    python tools/race_search.py --short     # a case of each template
    python tools/race_search.py --case merge-gpu

Runs small cases under Oclgrind (https://github.com/jrprice/Oclgrind), which interprets kernels and
reports pairs of accesses to one word that no barrier orders and of which at least one writes,
accesses past the end of a buffer, and values that were never written. If it is not installed
(Debian: ``apt install oclgrind``), the tool says so and exits with status 0.

Sizes are small, groups have 32 items, and the limits from which rows are divided are lowered, so
that a case has several groups, partial tiles, and all launches. The forms for CPUs have a
launch for each phase, as on devices whose items do not see the writes of others: tasks of one phase
must not race. (In one launch they synchronize by counters, which Oclgrind does not understand.)

Three kinds of reports are not findings:

- Groups that follow each other by an atomic counter: OpenCL 1.2, and so Oclgrind, knows no order
  between groups of a launch. `EXPLAINED` says for each pair of accesses why it is in order, or
  that both write the same bits; or a case says it of all its groups. Only pairs of different groups
  are looked up there.
- Places behind the end of a row, which the radix sort moves within a tile without a value.
- Planted ones: in some cases the source gets a fault, to show that the search sees it: a barrier is
  taken out, a variable has no value, an index is too large. Such a case must be reported.

Nothing is optimized: Oclgrind 21.10 does not know all that LLVM 14 makes of sources then, such as
``llvm.usub.sat``. Neither does it know ``llvm.prefetch`` and
``llvm.experimental.noalias.scope.decl``, which marks where a function was inlined, so sources are
built without prefetches, and functions are called. What is for devices with inline PTX alone is not
seen. The exit status is 1 if anything was found, a result was wrong, or a planted fault was not
seen.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from race_cases import CASES, LOWERED, Race

OCLGRIND = "oclgrind"
TIME_LIMIT = 300  # seconds of a case
BUILD_OPTIONS = "-cl-opt-disable -Dalways_inline= -D__builtin_prefetch(...)="
"""With these, sources become nothing that Oclgrind does not know."""
SHADOW = "--uninitialized"
"""With it Oclgrind 21.10 crashes at some structures, so a case that crashes runs again without."""
FLAGS = (
    SHADOW, "--data-races", "--uniform-writes", "--max-errors", "5000", "--num-threads", "4",
    "--compute-units", "4", "--build-options", BUILD_OPTIONS,
)  # fmt: skip


@dataclass(frozen=True)
class RaceReport:
    """A report of Oclgrind: what, in which kernel, by which statements, and of which groups."""

    what: str
    kernel: str
    statements: tuple[str, ...]
    between_groups: bool = False


LAST_COMER = (
    "groups whose counter tells them, after a fence, that they are last come after all others"
)
SAME_BITS = "groups whose blocks overlap write the same bits there"
STORED = "*(__global loose_t *)((__global real_t *)result + row * line + column) = value;"
ROWS_LEFT = "histogram[get_num_groups(0) / groups * COUNTS + row]"
ARRIVED = "before_me = atomic_inc(&arrived[{}]);"
EXPLAINED = {
    ("histograms", "histogram[word] = 0;", "atomic_add(&histogram[word], count);"): LAST_COMER,
    ("histograms", f"{ROWS_LEFT} = 0;", f"before_me = atomic_inc(&{ROWS_LEFT});"): LAST_COMER,
    (
        "gather",
        "histogram[row * words + w] = 0;",
        "own[w] = v < RADIX ? histogram[word] : 0;",
    ): LAST_COMER,
    ("gather", "leaving[row] = 0;", "before_me = atomic_inc(&leaving[row]);"): LAST_COMER,
    ("gemm_direct", STORED, STORED): SAME_BITS,
    ("gemm_blocked", "mine_0 += left[0];", "own[0] = mine_0;"): LAST_COMER,
    ("gemm_blocked", "arrived[counter] = 0;", ARRIVED.format("counter")): LAST_COMER,
    (
        "gemv_gpu",
        "chain_0_0 += there ? from_0[at] : (sum_t)(0);",
        "own[0] = tree[0][me];",
    ): LAST_COMER,
    (
        "gemv_gpu",
        "arrived[get_group_id(0)] = 0;",
        ARRIVED.format("get_group_id(0)"),
    ): LAST_COMER,
}
"""Why accesses by different groups do no harm: by kernel and both statements. Numbers in these do
not count, as they tell unrolled ones apart."""


def _alike(found: Any, right: Any) -> bool:
    """Return whether they are equal, but for roundings of small problems."""
    import numpy as np

    if right.dtype.kind not in "fc":
        return bool((found == right).all())
    error = 1e-3 if found.real.dtype.itemsize == 2 else 1e-5
    most = np.nanmax(abs(right), initial=0)
    return bool(np.allclose(found, right, rtol=0, atol=error * most, equal_nan=True))


def run_inside(name: str) -> None:
    """Run a case on the device that there is, under Oclgrind; print whether its result is right."""
    from opencl_lab.core import template
    from opencl_lab.drivers.discovery import select_device
    from opencl_lab.runtime import programs, session
    from opencl_lab.runtime.execute import execute

    case = CASES[name]
    for limit, value in LOWERED.items():
        module, _, attribute = limit.rpartition(".")
        setattr(importlib.import_module(module), attribute, value)
    if case.edit:
        found, instead = case.edit
        seen = []

        def edited(path: str, params: Any) -> Any:
            source = template.render(path, params)
            seen.append(found in source.text)
            return replace(source, text=source.text.replace(found, instead))

        programs.render = edited
    device = select_device()
    queue = device.queue()
    plan, arrays, expected = case.make(device)
    executable = session.session_of(queue).executable(name, lambda: plan)
    outputs = execute(executable, arrays, queue).outputs
    if case.edit and not any(seen):
        sys.exit(f"nothing in the source to edit: {found!r}")
    wrong = [
        key
        for key, right in expected.items()
        if not _alike(outputs[key].ravel()[: right.size], right.ravel())
    ]
    launches = Counter(launch.kernel for launch in plan.launches)
    print(", ".join(f"{count} {kernel}" for kernel, count in launches.items()))
    if wrong and not case.planted:
        sys.exit(f"wrong: {', '.join(wrong)}")


# ------------------------------------------------------------- what it reports


def parse(log: str) -> Counter[RaceReport]:
    """Return the reports of a log of Oclgrind, and how many there are of each."""
    found: Counter[RaceReport] = Counter()
    for block in re.split(r"\n(?=\S)", "\n" + log):
        lines = [line.strip() for line in block.strip("\n").split("\n")]
        kernel = next((line.split()[1] for line in lines if line.startswith("Kernel:")), None)
        if kernel is None:
            continue
        statements = tuple(after for line, after in pairwise(lines) if line.startswith("At line"))
        groups = set(re.findall(r"Group\((\d+,\d+,\d+)\)", block))
        what = re.sub(
            r" (at|to|from) (global|local|constant|private) memory address \w+",
            r" in \2 memory",
            lines[0],
        )
        found[RaceReport(what, kernel, statements, len(groups) > 1)] += 1
    return found


def _unnumbered(*words: str) -> tuple[str, ...]:
    return tuple(re.sub(r"\d+", "0", word) for word in words)


PADDING = "places behind the end of a row hold no values, and nobody reads them"
PADDED = "exchanged[places[j]] = moved[j];"
"""Moves such places within a tile; what reached a result would be reported, too."""

REASONS = {_unnumbered(*words): reason for words, reason in EXPLAINED.items()}


def why(report: RaceReport, case: Race | None = None) -> str | None:
    """Return why a report, of a case, is no finding, or None."""
    if report.what == "Uninitialized value written in local memory" and PADDED in report.statements:
        return PADDING
    if not report.between_groups or "data race" not in report.what:
        return None
    if case is not None and case.in_order:
        return case.in_order
    for statements in (report.statements, report.statements[::-1]):
        reason = REASONS.get(_unnumbered(report.kernel, *statements))
        if reason:
            return reason
    return None


def run_case(name: str, path: str, flags: Sequence[str] = FLAGS) -> tuple[str, Counter[RaceReport]]:
    """Run a case under Oclgrind; return what it says of itself, and the reports."""
    with tempfile.TemporaryDirectory(prefix="oclab-races-") as folder:
        log = Path(folder) / "log"
        command = [path, *flags, "--log", str(log)]
        environment = {
            **os.environ,
            "OCLAB_DEVICE": "Oclgrind",
            "OCLAB_INTEL": "off",
            "OCLAB_TUNING": "off",
            "OCLAB_CACHE_DIR": folder,
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        }
        done = subprocess.run(
            [*command, sys.executable, __file__, "--inside", name],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            env=environment,
        )
        reports = parse(log.read_text(errors="replace") if log.exists() else "")
    if done.returncode == -signal.SIGSEGV and SHADOW in flags:
        said, reports = run_case(name, path, [flag for flag in flags if flag != SHADOW])
        return f"{said} (without {SHADOW})", reports
    if done.returncode:
        lines = done.stderr.strip().split("\n")
        why_not = [line for line in lines if line.startswith("Undefined")] or lines[-1:]
        reports[RaceReport(why_not[0] or f"exit status {done.returncode}", "", ())] += 1
    return done.stdout.strip().split("\n")[-1], reports


def _ended(name: str, path: str) -> tuple[str, Counter[RaceReport]]:
    try:
        return run_case(name, path)
    except subprocess.TimeoutExpired:
        return "", Counter({RaceReport(f"not done after {TIME_LIMIT} s", "", ()): 1})


def judge(name: str, reports: Counter[RaceReport]) -> list[str]:
    """Return what is wrong with a case, in lines."""
    case = CASES[name]
    findings = {report: count for report, count in reports.items() if why(report, case) is None}
    planted = case.planted
    if planted:
        seen = any(planted in report.what for report in findings)
        return [] if seen else [f"the planted fault is not reported: {planted}"]
    return [
        f"{report.what} in {report.kernel or 'the run'}, "
        f"{'between groups' if report.between_groups else 'in a group'}, {count} times: "
        + " | ".join(report.statements)
        for report, count in findings.items()
    ]


def main() -> int:
    """Run the cases, and print a line for each and what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="a case of each template")
    parser.add_argument("--case", action="append", choices=CASES, help="these cases alone")
    parser.add_argument("--inside", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside)
        return 0
    path = shutil.which(OCLGRIND)
    if path is None:
        print("Oclgrind is not installed, so no races were searched for.")
        return 0
    names = options.case or [
        name for name, case in CASES.items() if case.short or not options.short
    ]
    bad, explained = 0, Counter[str]()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        results = list(threads.map(lambda name: _ended(name, path), names))
    for name, (said, reports) in zip(names, results, strict=True):
        wrong = judge(name, reports)
        bad += bool(wrong)
        for report, count in reports.items():
            explained[why(report, CASES[name]) or ""] += count
        state = "FOUND" if wrong else "seen" if CASES[name].planted else "clean"
        print(f"{state:6}{name:34}{said}", *wrong, sep="\n      ", flush=True)
    for reason, count in explained.items():
        if reason:
            print(f"{count} reports are no findings: {reason}.")
    print(f"{len(names)} cases, {bad} with findings.")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
