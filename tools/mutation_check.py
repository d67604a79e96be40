"""Seed faults in kernels, planners and the tuner, one at a time, and see that tests fail.

    python tools/mutation_check.py [--only TEXT ...] [--list] [--tests FOLDER]

Each fault of `kernel_faults.py`, `gemm_faults.py` and `lab_faults.py` is put into a copy of the
working tree, where the tests that should notice it run until the first failure. Of each fault it
tells which test noticed, after how many seconds. The exit status is 1 if one was not noticed, and 2
if one could not be seeded, since the text that it replaces is not there any more, or if it ran no
test.

Run it after tests were changed or left out; it takes about fifteen minutes. `--tests` takes them
from elsewhere, to compare two states of them on the same sources.
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fault import Fault
from gemm_faults import GEMM_FAULTS
from kernel_faults import KERNEL_FAULTS
from lab_faults import LAB_FAULTS

FAULTS = (*KERNEL_FAULTS, *GEMM_FAULTS, *LAB_FAULTS)
ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".py", ".mako", ".c")
PATIENCE = 900  # seconds


class CannotSeed(Exception):
    """The text that a fault replaces is not where it should be, or no test ran."""


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a fault; `noticed` names the first of them that failed."""

    fault: Fault
    noticed: str
    seconds: float


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
    CannotSeed
        If it does not occur as often as it should.
    """
    place = tree / fault.place
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    texts = {path: path.read_text() for path in files if path.suffix in SOURCES}
    found = {path: text for path, text in texts.items() if fault.old in text}
    count = sum(text.count(fault.old) for text in found.values())
    if count != fault.times:
        raise CannotSeed(f"{fault.old!r} occurs {count} times in {fault.place}, not {fault.times}")
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
    """Return pytest's arguments for the tests of a fault."""
    names, _, keyword = fault.tests.partition(" -k ")
    files = [path for name in names.split() for path in sorted((tree / "tests").glob(name))]
    if not files:
        raise CannotSeed(f"no test is called {names}")
    return [*map(str, files), *(["-k", keyword] if keyword else [])]


def run_tests(fault: Fault, tree: Path) -> Outcome:
    """Run the tests of a fault until one fails."""
    begin = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    pytest = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-v",
        "-rN",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    try:
        done = subprocess.run(
            [*pytest, *chosen_tests(fault, tree)],
            cwd=tree, env=environment, text=True, timeout=PATIENCE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(fault, f"no end within {PATIENCE} s", time.monotonic() - begin)
    seconds = time.monotonic() - begin
    lines = [line for line in done.stdout.splitlines() if "::" in line]
    name = lines[-1].split("/")[-1] if lines else ""
    if done.returncode == 0:
        return Outcome(fault, "", seconds)
    if done.returncode == 1:
        failed = next((line for line in lines if re.search(r" (FAILED|ERROR)\b", line)), name)
        return Outcome(fault, failed.split("/")[-1].split(" ")[0], seconds)
    if done.returncode < 0 or done.returncode > 128:
        return Outcome(fault, f"{name.split(' ')[0]} (the process crashed)", seconds)
    raise CannotSeed(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")


def main() -> int:
    """Run the faults that are asked for, and tell what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="part of a name")
    parser.add_argument("--list", action="store_true", help="look for the texts, and run nothing")
    parser.add_argument("--tests", type=Path, help="a folder of tests in the place of this one's")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if any(text in fault.name for text in options.only)]
    missed = broken = 0
    with tempfile.TemporaryDirectory(prefix="oclab-faults-") as name:
        tree = Path(name)
        copied_tree(tree)
        if options.tests is not None:
            shutil.rmtree(tree / "tests")
            shutil.copytree(options.tests, tree / "tests")
        for fault in faults:
            try:
                with seeded(fault, tree):
                    outcome = None if options.list else run_tests(fault, tree)
            except CannotSeed as error:
                broken += 1
                print(f"CANNOT SEED  {fault.name}: {error}", flush=True)
                continue
            if outcome is not None:
                missed += not outcome.noticed
                said = outcome.noticed or "NOT NOTICED"
                print(f"{outcome.seconds:5.0f} s  {fault.name}\n         {said}", flush=True)
    print(f"{len(faults)} faults, {missed} not noticed, {broken} could not be seeded")
    return 2 if broken else 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
