"""Run the matrix of operations and algorithms on OpenCL runtimes.

    python tools/runtime_matrix.py run pocl mali ...      # runtimes of `RUNTIMES`, on this machine
    python tools/runtime_matrix.py run --as h200 --title "NVIDIA H200" --device gpu --out FILE
    python tools/runtime_matrix.py run pocl-arm64 --python ...     # see tools/arm64.sh
    python tools/runtime_matrix.py list

Runs ``tests/test_matrix.py``: the default suite's share of its cases, by built-in configurations,
in a process of its own for each runtime. Every case is written down as it ends. If the process
dies, or a case takes too long, that is the result of the cases that were running, and a new process
goes on with the others. So a runtime that crashes, hangs or computes wrong values still gets its
column. The exit status of ``run`` is 1 if a runtime that should be right has other results.

Only PyOpenCL, NumPy and pytest are needed; pytest-xdist for ``--jobs``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from race_search import BUILD_OPTIONS

from opencl_lab.drivers.pretend import LIMITS
from opencl_lab.workers.worker import Died, end, last_line

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/runtimes.json"
LOG = "OCLAB_MATRIX_LOG"
"""The file to which this module, as a plugin of pytest, writes how cases ended."""
MOST_STARTS, OUT_OF_TIME = 25, "out of time"


@dataclass(frozen=True)
class Runtime:
    """A runtime, and how it is met."""

    title: str
    version: str  # a pattern in the machine's name and the platform's name and version
    environment: Mapping[str, str] = field(default_factory=dict)
    cases: str = ""  # which ones, as pytest's ``-k`` takes it; by default all
    trusted: bool = True  # whether other results than right ones are an error
    note: str = ""  # what the page says of it
    within: str = ""  # a program that runs others on it
    case_seconds: float = 120.0  # without any result, after which the running cases count as hung

    def started(self, python: str) -> list[str]:
        """Return the beginning of a command that runs Python on it."""
        return [self.within, python] if self.within else [python]


PIP, WORDS = r"PoCL 3\.0-rc2", "int64 or float64 or sweep"
RUNTIMES = {
    "pocl": Runtime("PoCL from PyPI", PIP),
    **{
        f"pocl-{name}": Runtime(
            f"the same, if LLVM calls the processor `{name}`",
            PIP,
            {"OCLAB_TEST_TARGET": name},
            WORDS,
            note="numbers of eight bytes, and a case of each program",
        )
        for name in ("znver3", "generic")
    },
    "pocl-serial": Runtime("PoCL's serial side", PIP, {"OCLAB_DEVICE": "serial"}),
    "pocl-debian": Runtime("PoCL from Debian", r"PoCL (?!3\.0-rc2)"),
    "pocl-arm64": Runtime(
        "PoCL from Debian on 64-bit ARM",
        "aarch64.*PoCL",
        cases="not edge and not prime and (n-8 or n-257 or size-9 or size-33 or special)"
        " and not n-8191 and not n-8192 and not n-8193",
        note="few and small cases: QEMU emulates the processor",
        case_seconds=900.0,
    ),
    "intel": Runtime("Intel's CPU runtime", r"Intel\(R\) OpenCL"),
    "oclgrind": Runtime(
        "Oclgrind",
        "Oclgrind",
        {"OCLAB_INTEL": "off", "OCLGRIND_BUILD_OPTIONS": BUILD_OPTIONS},
        "not edge and (n-8 or n-257 or size-9) and not n-8191 and not n-8192 and not n-8193",
        note="few and small cases: it interprets kernels",
        within="oclgrind",
    ),
    "rusticl": Runtime(
        "rusticl on llvmpipe",
        "rusticl",
        {"RUSTICL_ENABLE": "llvmpipe"},
        trusted=False,
        note="it ends loops after 65,535 turns, so wrong results are expected",
    ),
    **{
        name: Runtime(
            f"PoCL from PyPI, [pretending](devices.md#pretended-devices) to be `{name}`",
            PIP,
            {"OCLAB_PRETEND": name},
        )
        for name in LIMITS
    },
}


# ------------------------------------------------------------- a plugin of pytest


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out other tests, and what ended or was running in an earlier process."""
    seen = {case for case, *_ in _lines(Path(os.environ[LOG]))}
    cases = [item for item in items if "::test_matrix[" in item.nodeid]
    items[:] = [item for item in cases if item.nodeid not in seen]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Write down that a case is running."""
    _note(nodeid, "began", "")


def pytest_runtest_logreport(report: Any) -> None:
    """Write down how a case ended."""
    if report.when == "call" or not report.passed:
        why = ""
        if report.skipped:
            why = str(report.longrepr[2]).removeprefix("Skipped: ")
        elif report.failed:
            why = getattr(getattr(report.longrepr, "reprcrash", None), "message", "")
            why = (why or str(report.longrepr)).strip().split("\n")[0]
        _note(report.nodeid, report.outcome, why)


def _note(*line: str) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _write(Path(os.environ[LOG]), *line)


def _write(log: Path, *line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        print(json.dumps(line), file=file)


def _lines(log: Path) -> Iterator[tuple[str, str, str]]:
    for line in log.read_text(encoding="utf-8").splitlines():
        case, outcome, why = json.loads(line)
        yield case, outcome, why


# ---------------------------------------------------------------------- running


def _watched(
    command: list[str], environment: Mapping[str, str], log: Path, until: float, patience: float
) -> str:
    """Run pytest until it ends, and return why it did not end as it should, or "".

    `patience` is the longest time in seconds without any result.
    """
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        size, changed = 0, time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.5)
                now = time.monotonic()
                if log.stat().st_size != size:
                    size, changed = log.stat().st_size, now
                if now > until:
                    return OUT_OF_TIME
                if now - changed > patience:
                    return f"not done after {patience:g} s"
            if process.returncode in (0, 1, 5):  # passed, failed, nothing left
                return ""
            return f"the process ended: {Died(process.returncode, last_line(printed, 'error'))}"
        finally:
            end(process)


def outcomes(runtime: Runtime, options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Run the cases of a runtime; return the outcome and the reason of each, and if all ran."""
    environment = _environment(runtime)
    share = _share(runtime, options)
    command = [*runtime.started(options.python), "-m", "pytest", "-q", "tests/test_matrix.py"]
    command += ["-p", "runtime_matrix", "-p", "no:cacheprovider"]
    command += ["-k", share] if share else []
    command += ["-n", str(options.jobs)] if options.jobs > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        environment[LOG] = str(log)
        until = time.monotonic() + options.limit
        for _ in range(MOST_STARTS):
            before = log.read_bytes()
            why = _watched(command, environment, log, until, runtime.case_seconds)
            last = {case: outcome for case, outcome, _ in _lines(log)}
            if why and why != OUT_OF_TIME:
                for case in (case for case, outcome in last.items() if outcome == "began"):
                    _write(log, case, "failed", why)
            if why in ("", OUT_OF_TIME) or log.read_bytes() == before:
                break
        if why:
            print(f"  {why}", flush=True)
        ended = {case: (outcome, why) for case, outcome, why in _lines(log) if outcome != "began"}
    return ended, not why


def _share(runtime: Runtime, options: argparse.Namespace) -> str:
    """Return which cases are run, as pytest's ``-k`` takes it; all if it is empty."""
    return " and ".join(f"({text})" for text in (runtime.cases, options.only) if text)


def _environment(runtime: Runtime) -> dict[str, str]:
    search = (str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", ""))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, search)),
        "OCLAB_TEST_CONFIGS": "default",
        **runtime.environment,
    }


ABOUT = """
import json, os, platform, re, sys
from opencl_lab import __version__
from opencl_lab.drivers.discovery import devices, choose_device
from opencl_lab.drivers.processes import cpu_fields
found = devices()
spec = os.environ.get("OCLAB_DEVICE")
if spec in (None, "", "serial"):
    names = (f"{platform.machine()} {d.platform} {d.platform_version}" for d in found)
    found = [d for d, name in zip(found, names) if re.search(sys.argv[1], name)]
    if not found:
        sys.exit("no such device")
    device = found[0].serial_side if spec else found[0]
else:
    device = choose_device(spec).device
json.dump({
    "spec": device.spec, "device": device.name, "kind": device.kind, "platform": device.platform,
    "platform_version": device.platform_version, "driver": device.driver,
    "processor": cpu_fields().get("model name", ""), "cores": len(os.sched_getaffinity(0)),
    "version": __version__,
}, sys.stdout)
"""


def about(runtime: Runtime, python: str) -> dict[str, Any] | None:
    """Return what a runtime says of itself and where; None if it is not here."""
    if runtime.within and shutil.which(runtime.within) is None:
        print(f"  there is no {runtime.within}", flush=True)
        return None
    done = subprocess.run(
        [*runtime.started(python), "-W", "ignore", "-c", ABOUT, runtime.version],
        cwd=ROOT,
        env=_environment(runtime),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"  {done.stderr.strip().splitlines()[-1:] or ['no device']}", flush=True)
        return None
    return dict(json.loads(done.stdout))


def _no_cases() -> dict[str, Any]:
    return {"passed": 0, "limited": defaultdict(int), "failed": defaultdict(list)}


def cells(ended: Mapping[str, tuple[str, str]], spec: str, kind: str) -> list[dict[str, Any]]:
    """Return the counts and reasons of each algorithm, from those of cases."""
    from opencl_lab.lab.registry import operations

    made: dict[tuple[str, str], dict[str, Any]] = defaultdict(_no_cases)
    for case, (outcome, why) in ended.items():
        name = case.partition("[")[2].rstrip("]")
        title, _, rest = name.partition(f"-{spec}-")
        operation, _, algorithm = title.partition("-")
        named = operations()[operation].algorithm(algorithm)
        forms = named.on("cpu") is not named.on("gpu")
        if forms and (kind != "cpu" or "-on-gpus" in rest):
            algorithm += ", for GPUs"
        cell = made[operation, algorithm]
        if outcome == "passed":
            cell["passed"] += 1
        elif outcome == "skipped":
            reason = why.partition(": ")[2] or why
            cell["limited"][reason] += 1
        else:
            cell["failed"][_short(why)].append(rest.partition("-on-gpus")[0])
    return [
        {"operation": operation, "algorithm": algorithm, **cell}
        for (operation, algorithm), cell in sorted(made.items())
    ]


def _short(why: str) -> str:
    """Return a reason without what differs from case to case, and from run to run."""
    why = re.sub(r"^(AssertionError|opencl_lab\S*|pyopencl\S*): ", "", why)
    if not why.startswith(("the process", "not done")):
        why = re.sub(r"\b[\d.]+(e[+-]?\d+)?( of [\d,]+)?\b", "N", why)
    return why[:90]


def run(names: Mapping[str, Runtime], options: argparse.Namespace) -> int:
    """Run the matrix on runtimes, and write each result at once."""
    status = 0
    for name, runtime in names.items():
        print(f"{name}: {runtime.title}", flush=True)
        where = about(runtime, options.python)
        if where is None:
            continue
        device = {"OCLAB_DEVICE": where["spec"]}
        chosen = replace(runtime, environment={**runtime.environment, **device})
        ended, complete = outcomes(chosen, options)
        found = cells(ended, where["spec"], where["kind"])
        result = {
            "title": runtime.title,
            "note": runtime.note,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            **where,
            "complete": complete,
            "share": _share(runtime, options),
            "cells": found,
        }
        _merge(Path(options.out), {name: result})
        passed = sum(cell["passed"] for cell in found)
        failed = sum(len(cases) for cell in found for cases in cell["failed"].values())
        limited = sum(count for cell in found for count in cell["limited"].values())
        rest = "" if complete else ", others not run"
        print(f"  {passed} right, {limited} not supported, {failed} wrong{rest}", flush=True)
        for cell in found:
            for why, cases in cell["failed"].items():
                print(f"  {cell['operation']} {cell['algorithm']}: {', '.join(cases)}: {why}")
        status |= runtime.trusted and (bool(failed) or not complete or not passed)
    return int(status)


def _merge(path: Path, new: Mapping[str, Any]) -> dict[str, Any]:
    """Put results into a file that may have others, in the order of `RUNTIMES`."""
    known = json.loads(path.read_text(encoding="utf-8"))["runtimes"] if path.exists() else {}
    known |= new
    known = {name: known[name] for name in dict.fromkeys([*RUNTIMES, *known]) if name in known}
    text = json.dumps({"schema": "oclab-runtimes/1", "runtimes": known}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return known


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the runtimes")
    running = commands.add_parser("run", help="run the matrix on runtimes")
    running.add_argument("names", nargs="*", metavar="NAME", help="of `list`")
    running.add_argument("--as", dest="own", metavar="NAME", help="a name for another device")
    running.add_argument("--title", default="", help="what the page says that it is")
    running.add_argument("--device", help="the other device, as $OCLAB_DEVICE takes it")
    running.add_argument("--out", default=str(DATA), help="the file of results, which is merged")
    running.add_argument("--jobs", type=int, default=1, help="processes of pytest-xdist")
    running.add_argument("--limit", type=float, default=3600, help="seconds of each runtime")
    running.add_argument("--only", default="", help="cases, as pytest's -k takes it")
    running.add_argument("--python", default=sys.executable, help="interpreter with the runtime")
    options = parser.parse_args()
    if options.command == "list":
        for name, runtime in RUNTIMES.items():
            print(f"{name:12} {runtime.title}")
        return 0
    unknown = set(options.names) - set(RUNTIMES)
    if unknown or bool(options.own) != bool(options.device):
        parser.error(f"no runtime {', '.join(unknown)}" if unknown else "--as needs --device")
    if options.only and options.out == str(DATA):
        parser.error("--only needs --out: some cases would take the place of all")
    chosen = {name: RUNTIMES[name] for name in options.names}
    if options.own:
        environment = {"OCLAB_DEVICE": options.device}
        chosen[options.own] = Runtime(options.title or options.own, "", environment)
    return run(chosen or RUNTIMES, options)


if __name__ == "__main__":
    sys.exit(main())
