"""Record every configuration of a small search space, for replays of strategies.

    python tools/record_space.py gemm OUT.json size=256 --algorithm blocked --among TILE_K=64,128

Values of ``--among`` are JSON, separated by commas; without it the space is what a tuner tries.
The fastest are timed in turns, round after round, so that what the machine does meanwhile meets
all of them; the record has the median of the rounds. Results are checked on the timed problem.
Strategies are judged on these records by tests: what they would have found, by so many questions.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import time
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from opencl_lab.operation import Operation
from opencl_lab.registry import get_operation
from opencl_lab.space import Config, Value
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.prune import Points, points_of
from opencl_lab.tuning.recorded import Recorded
from opencl_lab.tuning.sandbox import Sandbox
from opencl_lab.tuning.task import TuningTask
from opencl_lab.tuning.tuner import make_task

Rounds: TypeAlias = dict[Config, list[float]]
"""The median of each round in milliseconds; none of what failed."""

NEAR, AGAIN = 1.5, 2
"""What takes at most so many times as long as the best is timed so many rounds more."""
BEST, ROUNDS = 30, 9
"""So many of the best are timed in so many rounds more."""
AHEAD = 64


def _named(texts: list[str]) -> dict[str, str]:
    return dict(text.split("=", 1) for text in texts)


def _value(text: str) -> Value:
    try:
        value: Value = json.loads(text)
    except ValueError:
        return text
    return value


def main() -> None:
    """Evaluate all, the fastest again, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operation")
    parser.add_argument("out", type=Path)
    parser.add_argument("problem", nargs="*", help="NAME=VALUE")
    parser.add_argument("--algorithm", default="auto")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--among", action="append", default=[], metavar="NAME=VALUE,...")
    parser.add_argument("--start", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--count", action="store_true", help="count the points only")
    given = parser.parse_args()
    problem: dict[str, Any] = {name: _value(text) for name, text in _named(given.problem).items()}
    task = make_task(
        _unchecked(given.operation), algorithm=given.algorithm, device=given.device, **problem
    )
    points, values = _points(task, given.among, given.start)
    everything = list(dict.fromkeys((*points.starts, *points)))
    print(f"{len(everything)} configurations", flush=True)
    if given.count:
        return
    sandbox = Sandbox(task)
    try:
        rounds = _first_pass(sandbox, everything)
        for most, limit, count in ((len(everything), NEAR, AGAIN), (BEST, math.inf, ROUNDS)):
            chosen = _fastest(rounds, limit)[:most]
            for number in range(count):
                _once_more(sandbox, rounds, random.Random(number).sample(chosen, len(chosen)))
            noise = _noise(rounds, chosen)
            _recorded(task, values, rounds, noise).write(given.out)
    finally:
        sandbox.close()
    print(f"medians of every other round differ by {noise}", flush=True)


def _unchecked(name: str) -> Operation[Any]:
    """Return an operation that is checked on the timed problem alone: half as much to build."""
    operation = copy.copy(get_operation(name))
    operation.check_cases = ({},)  # type: ignore[misc]
    return operation


def _points(
    task: TuningTask, among: list[str], start: list[str]
) -> tuple[Points, dict[str, tuple[Value, ...]]]:
    """Return what is to be recorded, from the built-in configuration, and all values."""
    algorithm, device = task.algorithm, task.device
    space = algorithm.search_space(task.problem, device)
    if among:
        named = _named(among).items()
        values = {name: tuple(map(_value, text.split(","))) for name, text in named}
        space = space.among({p.name: values.get(p.name, p.values) for p in space.parameters})
    started = {name: _value(text) for name, text in _named(start).items()}
    built_in = algorithm.default_config(task.problem, device).replace(**started)
    whole = points_of(algorithm, task.problem, device, (built_in,))
    points = Points(space, (built_in,), whole.refusal, whole.effect)
    return points, {item.name: item.values for item in space.parameters}


def _first_pass(sandbox: Sandbox, configs: list[Config]) -> Rounds:
    """Evaluate all, the first one first."""
    best, begin = math.inf, time.monotonic()
    found: Rounds = {}
    left = list(configs)
    while left:
        config = sandbox.choose(left[:1] if not found else left[:AHEAD], math.inf)
        left.remove(config)
        evaluation = sandbox.evaluate(config, best, math.inf)
        assert evaluation is not None
        found[config] = [evaluation.time_ms] if evaluation.times_ms else []
        best = min(best, evaluation.time_ms)
        if len(found) % 50 == 0 or not left:
            spent = time.monotonic() - begin
            print(f"{len(found)} in {spent:.0f} s, best {best:.4g} ms", flush=True)
    return {config: found[config] for config in configs}


def _fastest(rounds: Rounds, limit: float) -> list[Config]:
    """Return those that take at most so many times as long as the best, the fastest first."""
    ordered = sorted((c for c, times in rounds.items() if times), key=lambda c: median(rounds[c]))
    return [c for c in ordered if median(rounds[c]) <= limit * median(rounds[ordered[0]])]


def _once_more(sandbox: Sandbox, rounds: Rounds, configs: list[Config]) -> None:
    """Time these again, each in its turn."""
    for config in configs:
        again = sandbox.again(config, math.inf)
        if again is not None and again.times_ms:
            rounds[config].append(again.time_ms)
    best = _fastest(rounds, 1.0)[0]
    print(f"{len(configs)} again, best {median(rounds[best]):.4g} ms", flush=True)


def _noise(rounds: Rounds, configs: list[Config]) -> dict[str, float]:
    """Return by which part the medians of every other round differ: usually, and at most."""
    several = [rounds[config] for config in configs if len(rounds[config]) > 1]
    apart = [abs(median(times[::2]) / median(times[1::2]) - 1) for times in several] or [math.inf]
    return {"median": round(median(apart), 4), "most": round(max(apart), 4)}


def _recorded(
    task: TuningTask,
    values: dict[str, tuple[Value, ...]],
    rounds: Rounds,
    noise: dict[str, float],
) -> Recorded:
    about = {
        "operation": task.operation.name,
        "algorithm": task.algorithm_name,
        "problem": task.problem.as_dict(),
        "device": task.device.name,
        "units": task.device.compute_units,
        "noise": noise,
    }
    evaluations = [
        Evaluation(config, "correct", times_ms=tuple(times))
        if times
        else Evaluation(config, "runtime", "it failed")
        for config, times in rounds.items()
    ]
    return Recorded(about, values, evaluations)


if __name__ == "__main__":
    main()
