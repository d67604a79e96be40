"""Record all configurations of a small search space, to replay strategies on them.

    python tools/record_space.py gemm OUT.json size=256 --algorithm blocked --among TILE_K=64,128

Values of ``--among`` are JSON, separated by commas; by default the space is that of the tuner.
The fastest are timed in rounds, so that disturbances affect all of them, and the slowdown of a
whole round does not change their order. The record has the median of the rounds; the time of a
round is the median of its runs, or with ``--busy`` the least, which is disturbed least by other
processes. Results are checked only on the timed problem.
Tests use these records to find out how fast strategies find good configurations.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from recorded_space import Recorded

from opencl_lab.core.space import Config, Value
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points, points_of
from opencl_lab.lab.tuning.sandbox import Sandbox
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.lab.tuning.tuner import make_task

STAGES = ((1.5, 1000, 2), (1.15, 100, 4), (math.inf, 30, 9))
"""For each stage: the largest ratio to the best time, the number of configurations, and rounds."""
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
    parser.add_argument("--busy", action="store_true", help="the least run of a round counts")
    parser.add_argument("--more", type=int, default=1, help="so many times as many rounds")
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
    measured = _Measured(task, min if given.busy else median)
    try:
        measured.first(everything)
        for limit, most, count in STAGES:
            chosen = measured.fastest(limit)[:most]
            for number in range(count * given.more):
                measured.again(random.Random(number).sample(chosen, len(chosen)))
            measured.record(points, values, chosen).write(given.out)
    finally:
        measured.sandbox.close()


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
    points = Points(space, (built_in,), whole.refusal, whole.effect, whole.traits)
    return points, {item.name: item.values for item in space.parameters}


class _Measured:
    """What is known of each configuration: the time of each round, nothing of what failed.

    Parameters
    ----------
    task : TuningTask
    summary : callable
        Makes one time of the runs of a round.
    """

    def __init__(self, task: TuningTask, summary: Callable[[Sequence[float]], float]):
        self._task, self._summary = task, summary
        self._rounds: dict[Config, list[float]] = {}
        self.sandbox = Sandbox(task)

    def first(self, configs: list[Config]) -> None:
        """Evaluate all, the first one first."""
        best, begin = math.inf, time.monotonic()
        left = list(configs)
        while left:
            ahead = left[:AHEAD] if self._rounds else left[:1]
            config = self.sandbox.choose(ahead, math.inf)
            left.remove(config)
            evaluation = self.sandbox.evaluate(config, best, math.inf)
            assert evaluation is not None
            times = [self._summary(evaluation.times_ms)] if evaluation.times_ms else []
            self._rounds[config] = times
            best = min(best, evaluation.time_ms)
            if len(self._rounds) % 50 == 0 or not left:
                spent = time.monotonic() - begin
                print(f"{len(self._rounds)} in {spent:.0f} s, best {best:.4g} ms", flush=True)
        self._rounds = {config: self._rounds[config] for config in configs}

    def again(self, configs: list[Config]) -> None:
        """Time these again, each in its turn."""
        times = {}
        for config in configs:
            again = self.sandbox.again(config, math.inf)
            if again is not None and again.times_ms:
                times[config] = self._summary(again.times_ms)
        slower = median(ms / self._time(config) for config, ms in times.items())
        for config, ms in times.items():
            self._rounds[config].append(ms / slower)
        best = self._time(self.fastest(1.0)[0])
        print(f"{len(configs)} again, best {best:.4g} ms", flush=True)

    def fastest(self, limit: float) -> list[Config]:
        """Return those that take at most so many times as long as the best, the fastest first."""
        ordered = sorted((c for c, times in self._rounds.items() if times), key=self._time)
        return [c for c in ordered if self._time(c) <= limit * self._time(ordered[0])]

    def record(
        self, points: Points, values: dict[str, tuple[Value, ...]], best: list[Config]
    ) -> Recorded:
        """Return the record, with the noise of the best."""
        task, noise = self._task, self._noise(best)
        print(f"every other round of the best differs by {noise}", flush=True)
        about = {
            "operation": task.operation.name,
            "algorithm": task.algorithm_name,
            "problem": task.problem.as_dict(),
            "device": task.device.name,
            "units": task.device.compute_units,
            "noise": noise,
        }
        evaluations = [
            Evaluation(config, "correct", times_ms=(self._time(config),))
            if times
            else Evaluation(config, "runtime", "it failed")
            for config, times in self._rounds.items()
        ]
        traits = {config: points.traits(config) for config in self._rounds}
        return Recorded(about, values, evaluations, traits)

    def _time(self, config: Config) -> float:
        return median(self._rounds[config])

    def _noise(self, configs: list[Config]) -> dict[str, float]:
        """Return by which part every other round differs from the rest: usually, and at most."""
        several = [times for times in map(self._rounds.get, configs) if times and len(times) > 1]
        apart = [abs(median(times[::2]) / median(times[1::2]) - 1) for times in several] or [
            math.inf
        ]
        return {"median": round(median(apart), 4), "most": round(max(apart), 4)}


if __name__ == "__main__":
    main()
