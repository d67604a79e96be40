"""The command line of all fuzzers: cases by number, until the time is over, or one alone."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from fuzz.world import World

__all__ = ["run_cases"]


def run_cases(doc: str, check: Callable[[World, int, int], list[str]]) -> int:
    """Run the cases that are asked for; print what is wrong, and how many there were of each name.

    Parameters
    ----------
    doc : str
        What the script does; its first line is shown by ``--help``.
    check : callable
        ``check(world, seed, case)`` runs a case, counts it in the world, and returns what is wrong.

    Returns
    -------
    int
        The exit status: 1 if anything was found.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--first", type=int, default=0, help="the case to begin with")
    parser.add_argument("--trace", action="store_true", help="print each case before it is tried")
    options = parser.parse_args()
    world = World()
    end = time.monotonic() + options.seconds
    case = options.first if options.case is None else options.case
    total = findings = 0
    try:
        while options.case == case or (options.case is None and time.monotonic() < end):
            if options.trace:
                print(f"--case {case}", flush=True)
            found = check(world, options.seed, case)
            if found:
                findings += 1
                print(f"--seed {options.seed} --case {case}:", *found, sep="\n  ", flush=True)
            case, total = case + 1, total + 1
    except KeyboardInterrupt:
        print("interrupted")
    print(f"{world.device.name}: {total} cases, {findings} with findings; by name:")
    for name in sorted(world.counts):
        print(f"  {name:15} {world.counts[name]:6}, {_besides(world, name)}")
    return 1 if findings else 0


def _besides(world: World, name: str) -> str:
    replayed = f"replayed {world.replayed[name]:6}, " if world.replayed else ""
    return f"{replayed}errors {world.errors[name]:6}"
