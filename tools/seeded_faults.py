r"""Seed the faults of tools/faults.tsv, one at a time, and see that tests fail.

    python tools/seeded_faults.py [TEXT ...] [--jobs N] [--list]

A row of the table has a name, which says what is wrong then; a file, or a folder, below which
files may be split and renamed; the files of tests that should notice, and after ``-k`` which of
their tests; how often the text occurs; the text, and what takes its place (``\n`` is the end of a
line). Where a template or a module changes its words, change them there, too.

Each fault, or each whose name has one of the texts, is put into a copy of the working tree, where
its tests run until the first failure: those of the default suite, and if none fails those marked
`full`. The exit status is 1 if a fault was not noticed, and 2 if one does not apply: its text is
not there, or it names no test. ``--list`` runs no test, and tells in a second which do not apply.
All faults take about half an hour of one processor.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".py", ".mako", ".c")
SUITES = {"default": "not full", "full": "full"}
LONGEST_SECONDS = 900
NO_TEST, DOES_NOT_APPLY, NOT_NOTICED = 5, "DOES NOT APPLY", "NOT NOTICED"


class DoesNotApply(Exception):
    """The text that a fault replaces is not where it should be, or no test ran."""


class Fault(NamedTuple):
    """A row of the table."""

    name: str
    place: str
    tests: str
    times: str
    old: str
    new: str

    def files(self, tree: Path) -> dict[Path, str]:
        """Return the files that hold the text, with what they hold; or raise `DoesNotApply`."""
        place = tree / self.place
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        texts = {path: path.read_text() for path in files if path.suffix in SOURCES}
        found = {path: text for path, text in texts.items() if self.old in text}
        count = sum(text.count(self.old) for text in found.values())
        if count != int(self.times) or self.old == self.new:
            raise DoesNotApply(f"{self.old!r} occurs {count} times in {self.place}")
        return found

    def arguments(self, tree: Path) -> list[str]:
        """Return pytest's arguments for the tests; or raise `DoesNotApply` if there are none."""
        names, _, keyword = self.tests.partition(" -k ")
        files = [path for name in names.split() for path in sorted((tree / "tests").glob(name))]
        if not files:
            raise DoesNotApply(f"no file of tests is called {names}")
        return [*map(str, files), *(["-k", keyword] if keyword else [])]


def table() -> list[Fault]:
    """Return all faults."""
    with Path(__file__).with_name("faults.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Fault(*(cell.replace("\\n", "\n") for cell in row)) for row in rows[1:]]


def first_failure(tests: list[str], suite: str, tree: Path) -> str | None:
    """Run tests of a suite until one fails; return which, "" if none does, None if none ran."""
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


def outcome(fault: Fault, tree: Path) -> tuple[str, str]:
    """Seed a fault in a tree; return which suite noticed, or what is wrong, and which test."""
    found = {}
    try:
        found, tests = fault.files(tree), fault.arguments(tree)
        for path, text in found.items():
            path.write_text(text.replace(fault.old, fault.new))
        failures = {}
        for suite in SUITES:
            failures[suite] = first_failure(tests, suite, tree)
            if failures[suite]:
                return suite, str(failures[suite])
        if set(failures.values()) == {None}:
            raise DoesNotApply(f"{fault.tests} runs no test")
        return NOT_NOTICED, ""
    except DoesNotApply as error:
        return DOES_NOT_APPLY, str(error)
    finally:
        for path, text in found.items():
            path.write_text(text)


def looked_for(fault: Fault, tree: Path) -> tuple[str, str]:
    """Return whether a fault applies to a tree, and by which tests."""
    try:
        fault.files(tree)
        fault.arguments(tree)
        return "applies", fault.tests
    except DoesNotApply as error:
        return DOES_NOT_APPLY, str(error)


def copied_tree(target: Path) -> Path:
    """Copy what git tracks, and what it would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def main() -> int:
    """Seed the faults that are asked for, and tell what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="*", default=[""], metavar="TEXT", help="part of a name")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="faults at once")
    parser.add_argument("--list", action="store_true", help="look for the texts, and run nothing")
    options = parser.parse_args()
    faults = [fault for fault in table() if any(text in fault.name for text in options.texts)]
    trees: SimpleQueue[Path] = SimpleQueue()

    def in_turn(fault: Fault) -> str:
        tree, begin = trees.get(), time.monotonic()
        try:
            suite, said = (looked_for if options.list else outcome)(fault, tree)
        finally:
            trees.put(tree)
        spent = time.monotonic() - begin
        print(f"{suite:14s} {spent:5.0f} s  {fault.name}: {said}", flush=True)
        return suite

    with tempfile.TemporaryDirectory(prefix="oclab-faults-") as folder:
        for job in range(options.jobs):
            trees.put(ROOT if options.list else copied_tree(Path(folder, str(job))))
        with ThreadPoolExecutor(options.jobs) as pool:
            count = Counter(pool.map(in_turn, faults))
    print(f"{len(faults)} faults:", ", ".join(f"{many} {suite}" for suite, many in count.items()))
    return 2 if DOES_NOT_APPLY in count else 1 if NOT_NOTICED in count else 0


if __name__ == "__main__":
    sys.exit(main())
