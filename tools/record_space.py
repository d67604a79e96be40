"""Record every configuration of a small search space, for replays of strategies.

    python tools/record_space.py gemm OUT.json size=256 --algorithm blocked --among TILE_K=64,128

Values of ``--among`` are JSON, separated by commas; without it the space is what a tuner tries.
Strategies are judged on these records by tests: what they would have found, by so many questions.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path

from opencl_lab.space import Config
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.prune import Points, points_of
from opencl_lab.tuning.recorded import Recorded
from opencl_lab.tuning.sandbox import Sandbox
from opencl_lab.tuning.tuner import make_task

ROUNDS, NEAR = 4, 1.5
"""The fastest are timed in so many rounds more; those that are at most so many times slower."""
AHEAD = 64


def _named(texts: list[str]) -> dict[str, str]:
    return dict(text.split("=", 1) for text in texts)  # type: ignore[misc]


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


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
    problem = {name: _value(text) for name, text in _named(given.problem).items()}
    task = make_task(given.operation, algorithm=given.algorithm, device=given.device, **problem)
    algorithm, device = task.algorithm, task.device
    values = {
        name: tuple(_value(text) for text in texts.split(","))
        for name, texts in _named(given.among).items()
    }
    space = algorithm.search_space(task.problem, device)
    if values:
        space = algorithm.space.among(
            {item.name: values.get(item.name, item.values) for item in space.parameters}
        )
    started = {name: _value(text) for name, text in _named(given.start).items()}
    built_in = algorithm.default_config(task.problem, device).replace(**started)
    whole = points_of(algorithm, task.problem, device, (built_in,))
    points = Points(space, (built_in,), whole.refusal, whole.effect)
    everything = list(dict.fromkeys((built_in, *points)))
    print(f"{len(everything)} configurations", flush=True)
    if given.count:
        return
    about = {
        "operation": given.operation,
        "algorithm": task.algorithm_name,
        "problem": task.problem.as_dict(),
        "device": device.name,
    }
    sandbox = Sandbox(task)
    try:
        evaluations = _first_pass(sandbox, everything)
        for _ in range(ROUNDS):
            evaluations = _once_more(sandbox, evaluations)
    finally:
        sandbox.close()
    Recorded(about, {item.name: item.values for item in space.parameters}, evaluations).write(
        given.out
    )


def _first_pass(sandbox: Sandbox, configs: list[Config]) -> list[Evaluation]:
    """Evaluate all, the first one first."""
    best, begin = math.inf, time.monotonic()
    found: dict[Config, Evaluation] = {}
    left = list(configs)
    while left:
        config = sandbox.choose(left[:1] if not found else left[:AHEAD], math.inf)
        left.remove(config)
        evaluation = sandbox.evaluate(config, best, math.inf)
        assert evaluation is not None
        found[config] = evaluation
        best = min(best, evaluation.time_ms)
        if len(found) % 50 == 0:
            spent = time.monotonic() - begin
            print(f"{len(found)} in {spent:.0f} s, best {best:.4g} ms", flush=True)
    return [found[config] for config in configs]


def _once_more(sandbox: Sandbox, evaluations: list[Evaluation]) -> list[Evaluation]:
    """Time the fastest again; of medians the least counts, as the machine has other work."""
    ordered = sorted(evaluations, key=lambda item: item.time_ms)
    limit = NEAR * ordered[0].time_ms
    chosen = [item for item in ordered[: len(ordered) // 4] if item.time_ms <= limit]
    random.Random(0).shuffle(chosen)
    better = {}
    for item in chosen:
        again = sandbox.again(item.config, math.inf)
        if again is not None and again.time_ms < item.time_ms:
            better[item.config] = again
    print(f"{len(chosen)} again, {len(better)} of them faster", flush=True)
    return [better.get(item.config, item) for item in evaluations]


if __name__ == "__main__":
    main()
