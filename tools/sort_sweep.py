"""Say for 60 problems which algorithm sorts them in the least time, and which one `auto` takes.

    python tools/sort_sweep.py [--device SPEC] [--limit KEYS] [--only TEXT] [--rounds N]
                               [--json FILE]

Times are those of calls of `sort` and `argsort` into arrays that are there: on arrays of the
device, calls in a row with one synchronisation at the end, and on CPUs on arrays of the host, where
each call is timed by itself. Algorithms take turns, and figures are the least of rounds and calls,
which other work on the machine spoils least. Each result is checked. As `auto` calls what it takes,
its time is that algorithm's; the last column is that over the least of all. Where it is more than
1.1, all take further turns, as often as twice. Algorithms that take more than five times the least
in their first calls take no further turns.

Problems of more than `--limit` keys, and those whose title lacks `--only`, are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl.array

import opencl_lab as ol
from opencl_lab.operations.sort.operation import SORT
from opencl_lab.operations.sort.problem import SortProblem
from opencl_lab.runtime.session import default_queue

INT32_SIZES = (
    10, 100, 1000, 2000, 2500, 5000, 10_007, 30_000, 50_000, 100_003, 131_072, 200_000, 500_000,
    1_000_000, 3_000_000, 10_000_003,
)  # fmt: skip
TYPES = {
    "float32": (10, 1000, 3000, 20_000, 50_000, 150_000, 1_000_000, 10_000_000),
    "int8": (1000, 50_000, 1_000_000, 10_000_000),
    "int64": (1000, 20_000, 50_000, 200_000, 1_000_000, 5_000_000),
    "float64": (3000, 50_000, 300_000, 2_000_000),
}
ORDERED = (
    *((n, "int32", order) for order in ("equal", "sorted") for n in (3000, 50_000, 1_000_000)),
    (200_000, "float32", "sorted"),
    (200_000, "int64", "equal"),
)
ROWS = (
    ((1000, 1000), "float32"), ((1000, 1000), "int32"), ((16_384, 100), "int32"),
    ((100_000, 10), "int32"), ((20, 5000), "int32"), ((100, 5000), "float32"),
    ((4, 50_000), "int32"), ((10, 100_000), "int64"), ((300, 3000), "float64"),
    ((16, 200_000), "float32"),
)  # fmt: skip
INDICES = (
    ((50_000,), "int32"), ((1_000_000,), "int32"), ((5000,), "float32"), ((100, 2000), "float32"),
)  # fmt: skip

Problem = tuple[tuple[int, ...], str, str, bool]
"""Shape, dtype, order, and whether indices are wanted."""

PROBLEMS: tuple[Problem, ...] = (
    *(((n,), "int32", "random", False) for n in INT32_SIZES),
    *(((n,), dtype, "random", False) for dtype, sizes in TYPES.items() for n in sizes),
    *(((n,), dtype, order, False) for n, dtype, order in ORDERED),
    *((shape, dtype, "random", False) for shape, dtype in ROWS),
    *((shape, dtype, "random", True) for shape, dtype in INDICES),
)
WITHIN = 1.1
SLOW = 5
AGAIN = 2
ROUND_SECONDS = 0.005
MOST_CALLS = 100


def title_of(problem: Problem) -> str:
    """Return a problem in words."""
    shape, dtype, order, indices = problem
    parts = ["argsort"] * indices + [" x ".join(f"{n:,}" for n in shape), dtype]
    return " ".join(parts + [order] * (order != "random"))


def caller(
    problem: Problem, keys: np.ndarray, name: str, queue: Any, on_host: bool
) -> tuple[Callable, Callable]:
    """Return what enqueues a sort by one algorithm, and what gives its result."""
    function = ol.argsort if problem[3] else ol.sort
    dtype = np.dtype(np.int64) if problem[3] else keys.dtype
    if on_host:
        out = np.empty(keys.shape, dtype)
        return lambda: function(keys, algorithm=name, out=out, queue=queue), lambda: out
    source = pyopencl.array.to_device(queue, keys)
    target = pyopencl.array.empty(queue, keys.shape, dtype)
    return lambda: function(source, algorithm=name, out=target), target.get


def seconds(call: Callable, calls: int, queue: Any, on_host: bool) -> float:
    """Return the time of one call in a row; on arrays of the host the least of single ones."""
    rows = [1] * calls if on_host else [calls]
    times = []
    for row in rows:
        begin = time.perf_counter()
        for _ in range(row):
            call()
        queue.finish()
        times.append((time.perf_counter() - begin) / row)
    return min(times)


def measure(problem: Problem, queue: Any, device: Any, rounds: int) -> dict[str, Any]:
    """Return the milliseconds of each algorithm that supports a problem, and what `auto` takes."""
    shape, dtype, order, indices = problem
    rows = int(np.prod(shape[:-1]))
    asked = SortProblem(shape[-1], np.dtype(dtype), rows, indices=indices)
    keys = SORT.generate(asked, 0, order=order)["keys"].reshape(shape)
    expected = np.argsort(keys, axis=-1, kind="stable") if indices else np.sort(keys, kind="stable")
    on_host = device.kind == "cpu"
    calls: dict[str, Callable] = {}
    first: dict[str, float] = {}
    for algorithm in SORT.algorithms:
        if algorithm.supports(asked, device) is not None:
            continue
        call, result = caller(problem, keys, algorithm.name, queue, on_host)
        call()
        if not np.array_equal(result(), expected):
            raise SystemExit(f"{title_of(problem)}: wrong result of {algorithm.name}")
        call()
        calls[algorithm.name] = call
        first[algorithm.name] = min(seconds(call, 1, queue, on_host) for _ in range(2))
    least = min(first.values())
    times = {name: [first[name]] for name in calls}
    raced = [name for name in calls if first[name] <= SLOW * least]
    repeats = {
        name: max(1, min(MOST_CALLS, int(ROUND_SECONDS / max(first[name], 1e-9)))) for name in raced
    }
    taken = SORT.choose(asked, device).name
    for _ in range(1 + AGAIN):
        for number in range(rounds):
            for name in raced if number % 2 else reversed(raced):
                times[name].append(seconds(calls[name], repeats[name], queue, on_host))
        figures = {name: 1e3 * min(values) for name, values in times.items()}
        if figures[taken] <= WITHIN * min(figures.values()):
            break
    return {
        "problem": title_of(problem),
        "milliseconds": figures,
        "auto": taken,
        "ratio": figures[taken] / min(figures.values()),
    }


def main() -> None:
    """Print a row per problem, and how many are within a tenth of the least time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=None)
    parser.add_argument("--limit", type=int, default=10**8, help="keys of a problem, at most")
    parser.add_argument("--only", default="", help="a part of the title")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    device = ol.select_device(arguments.device)
    print(device)
    queue = default_queue(device)
    names = [algorithm.name for algorithm in SORT.algorithms]
    print(f"{'ms':32}" + "".join(f"{name:>15}" for name in names) + "  auto")
    found = []
    for problem in PROBLEMS:
        if int(np.prod(problem[0])) > arguments.limit or arguments.only not in title_of(problem):
            continue
        row = measure(problem, queue, device, arguments.rounds)
        figures = row["milliseconds"]
        line = "".join(f"{figures[n]:15.4f}" if n in figures else f"{'-':>15}" for n in names)
        print(f"{row['problem']:32}{line}  {row['auto']:15}{row['ratio']:6.2f}", flush=True)
        found.append(row)
    within = sum(row["ratio"] <= WITHIN for row in found)
    worst = max((row["ratio"] for row in found), default=1.0)
    print(f"auto within 10 % of the best in {within} of {len(found)}; at worst {worst:.2f} times")
    if arguments.json:
        document = {"device": device.key, "rows": found}
        Path(arguments.json).write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
