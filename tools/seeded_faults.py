"""Seed faults in kernels, planners and the lab, one at a time, and see that tests fail.

    python tools/seeded_faults.py [--only TEXT ...] [--jobs N] [--list]

Each fault of `kernel_faults.py`, `gemm_faults.py` and `lab_faults.py` is put into a copy of the
working tree, where the tests that should notice it run until the first failure: those of the
default suite, and if none fails those marked `full`. A table at the end says of each fault which
suite noticed it, and by which test. The exit status is 1 if a fault was not noticed, and 2 if one
does not apply: the text that it replaces is not there any more, or it names no test.

Run it after tests were changed or left out, and after templates were; all faults take about half
an hour of one processor. ``--list`` runs no test, and tells in a second which faults do not apply.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from fault import Fault
from gemm_faults import GEMM_FAULTS
from kernel_faults import KERNEL_FAULTS
from lab_faults import LAB_FAULTS

FAULTS = (*KERNEL_FAULTS, *GEMM_FAULTS, *LAB_FAULTS)
ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".py", ".mako", ".c")
SUITES = {"default": "not full", "full": "full"}
LONGEST_SECONDS = 900
NO_TEST, DOES_NOT_APPLY, NOT_NOTICED = 5, "DOES NOT APPLY", "NOT NOTICED"


class DoesNotApply(Exception):
    """The text that a fault replaces is not where it should be, or no test ran."""


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a fault.

    Parameters
    ----------
    fault : Fault
    suite : str
        The one that noticed it: ``"default"`` or ``"full"``; else `NOT_NOTICED` or
        `DOES_NOT_APPLY`.
    said : str
        The first test that failed, or why it does not apply.
    seconds : float
    """

    fault: Fault
    suite: str
    said: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.suite:14s} {self.seconds:5.0f} s  {self.fault.name}: {self.said}"


def copied_tree(target: Path) -> None:
    """Copy what git tracks, and what it would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def places_of(fault: Fault, tree: Path) -> dict[Path, str]:
    """Return the files that hold the text of a fault, with what they hold.

    Raises
    ------
    DoesNotApply
        If it does not occur as often as it should.
    """
    place = tree / fault.place
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    texts = {path: path.read_text() for path in files if path.suffix in SOURCES}
    found = {path: text for path, text in texts.items() if fault.old in text}
    count = sum(text.count(fault.old) for text in found.values())
    if count != fault.times:
        raise DoesNotApply(
            f"{fault.old!r} occurs {count} times in {fault.place}, not {fault.times}"
        )
    return found


@contextmanager
def seeded(fault: Fault, tree: Path) -> Iterator[None]:
    """Put a fault into a tree, and take it out in the end."""
    found = places_of(fault, tree)
    for path, text in found.items():
        path.write_text(text.replace(fault.old, fault.new))
    try:
        yield
    finally:
        for path, text in found.items():
            path.write_text(text)


def chosen_tests(fault: Fault, tree: Path) -> list[str]:
    """Return pytest's arguments for the tests of a fault.

    Raises
    ------
    DoesNotApply
        If there is no such file of tests.
    """
    names, _, keyword = fault.tests.partition(" -k ")
    files = [path for name in names.split() for path in sorted((tree / "tests").glob(name))]
    if not files:
        raise DoesNotApply(f"no file of tests is called {names}")
    return [*map(str, files), *(["-k", keyword] if keyword else [])]


def first_failure(tests: list[str], suite: str, tree: Path) -> str | None:
    """Run tests of a suite until one fails; return which, "" if none does, None if none ran.

    Raises
    ------
    DoesNotApply
        If pytest cannot run them.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-v", "-rN", "--tb=no", "-p", "no:cacheprovider", "-m", SUITES[suite]]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=tree, env=environment, text=True, timeout=LONGEST_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end within {LONGEST_SECONDS} s"
    if done.returncode in (0, NO_TEST):
        return None if done.returncode else ""
    found = re.findall(r"([^/\n]+::.+?)(?: (PASSED|SKIPPED|FAILED|ERROR)\b.*)?$", done.stdout, re.M)
    last = found[-1][0] if found else ""
    if done.returncode == 1:
        return next((test for test, said in found if said in ("FAILED", "ERROR")), last)
    if done.returncode < 0 or done.returncode > 128:
        return f"{last} (the process crashed)"
    raise DoesNotApply(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")


def outcome_of(fault: Fault, tree: Path) -> Outcome:
    """Seed a fault in a tree, and return what its tests make of it."""
    begin = time.monotonic()
    suite, said, ran = NOT_NOTICED, "", False
    try:
        with seeded(fault, tree):
            tests = chosen_tests(fault, tree)
            for name in SUITES:
                failed = first_failure(tests, name, tree)
                ran = ran or failed is not None
                if failed:
                    suite, said = name, failed
                    break
        if not ran:
            raise DoesNotApply(f"{fault.tests} runs no test")
    except DoesNotApply as error:
        suite, said = DOES_NOT_APPLY, str(error)
    return Outcome(fault, suite, said, time.monotonic() - begin)


def outcomes(faults: list[Fault], jobs: int) -> Iterator[Outcome]:
    """Yield what became of each fault, in as many copies of the tree as there are jobs."""
    trees: SimpleQueue[Path] = SimpleQueue()

    def in_turn(fault: Fault) -> Outcome:
        tree = trees.get()
        try:
            return outcome_of(fault, tree)
        finally:
            trees.put(tree)

    with tempfile.TemporaryDirectory(prefix="oclab-faults-") as folder:
        for job in range(jobs):
            tree = Path(folder, str(job))
            copied_tree(tree)
            trees.put(tree)
        with ThreadPoolExecutor(jobs) as pool:
            for future in as_completed([pool.submit(in_turn, fault) for fault in faults]):
                yield future.result()


def listed(faults: list[Fault]) -> int:
    """Print the faults with their tests, or why they do not apply; return the exit status."""
    status = 0
    for fault in faults:
        try:
            places_of(fault, ROOT)
            chosen_tests(fault, ROOT)
            print(f"{fault.name}: {fault.tests}")
        except DoesNotApply as error:
            print(f"{DOES_NOT_APPLY}  {fault.name}: {error}")
            status = 2
    return status


def main() -> int:
    """Run the faults that are asked for, and tell what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="part of a name")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="faults at once")
    parser.add_argument("--list", action="store_true", help="look for the texts, and run nothing")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if any(text in fault.name for text in options.only)]
    if options.list:
        return listed(faults)
    found = {}
    for outcome in outcomes(faults, options.jobs):
        found[outcome.fault] = outcome
        print(f"{len(found)}/{len(faults)}  {outcome}", flush=True)
    print("\nnoticed by        time  fault: test")
    print(*(found[fault] for fault in faults), sep="\n")
    suites = [found[fault].suite for fault in faults]
    print(
        f"{len(faults)} faults: {suites.count('default')} noticed by the default suite, "
        f"{suites.count('full')} by the full one only, {suites.count(NOT_NOTICED)} not noticed, "
        f"{suites.count(DOES_NOT_APPLY)} do not apply"
    )
    return 2 if DOES_NOT_APPLY in suites else 1 if NOT_NOTICED in suites else 0


if __name__ == "__main__":
    sys.exit(main())
