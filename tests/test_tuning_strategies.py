"""Points and strategies, on spaces made up here and on recorded ones: no device, no kernel.

The records have the times of all configurations of a small search space, of `blocked` on an H200,
of the others on CPUs, the fastest in rounds: a row has the index of each value, and the time.
"""

import itertools
import json
import random
from pathlib import Path

import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import EXACT, SAME, Points, points_of
from opencl_lab.lab.tuning.strategies import STRATEGIES

SPACE = SearchSpace(
    (
        Parameter("A", (1, 2, 4, 8), "a"),
        Parameter("B", (1, 2, 4, 8), "b"),
        Parameter("C", (False, True), "c"),
    ),
    (
        Constraint(lambda c: c.integer("A") * c.integer("B") <= 16, "too much"),
        Constraint(lambda c: not c["C"] or c.integer("A") > 1, "C needs A"),
    ),
)
START = Config(A=1, B=1, C=False)
GPU = Device(
    "made up", "gpu", capabilities=Capabilities(fp64=True, max_work_group=256, local_memory=32768)
)


def large_space(values=12, parameters=8):
    """About 430 million combinations, of which 75582 have values that rise."""
    names = [f"P{index}" for index in range(parameters)]
    rising = [
        Constraint(lambda c, a=a, b=b: c.integer(a) <= c.integer(b), f"{a} above {b}")
        for a, b in itertools.pairwise(names)
    ]
    return SearchSpace(
        tuple(Parameter(name, tuple(range(values)), name) for name in names), tuple(rising)
    )


def points(refusal=lambda config: None):
    return Points(SPACE, (START,), refusal)


def time_of(config):
    """A bowl with its bottom at A=4, B=4, C=True."""
    steps = abs(config.integer("A") - 4) + abs(config.integer("B") - 4)
    return 1.0 + steps + (0 if config["C"] else 2)


def ask(strategy, among, seed=0, limit=10_000, times=time_of):
    """Return what a strategy asks for, and answer from `times`."""
    questions = strategy(among, random.Random(seed))
    asked = []
    try:
        question = next(questions)
        while len(asked) < limit:
            config = question if isinstance(question, Config) else question[0]
            asked.append(config)
            time = times(config)
            answer = (
                Evaluation(config, "runtime", "it failed")
                if time is None
                else Evaluation(config, "correct", times_ms=(time,))
            )
            question = questions.send(answer)
    except StopIteration:
        pass
    return asked


# ------------------------------------------------------------------- points


def test_a_refusal_takes_points_away_everywhere():
    some = points(lambda c: "too wide, 4 is the limit" if c.integer("B") > 4 else None)
    expected = [config for config in SPACE if config.integer("B") <= 4]
    assert list(some) == expected
    assert set(some.shuffled(random.Random(3))) == set(expected)
    near = some.neighbours(Config(A=2, B=2, C=False))
    assert near and all(config.integer("B") <= 4 for config in near)


def test_a_space_too_large_to_list_is_drawn_from():
    space = large_space(values=12, parameters=5)
    large = Points(space, ())
    assert large.pruning.total == 12**5 > EXACT and large.pruning.left is None
    drawn = list(itertools.islice(large.shuffled(random.Random(1)), 300))
    assert len(set(drawn)) == 300 and all(space.violation(config) is None for config in drawn)
    assert drawn == list(itertools.islice(large.shuffled(random.Random(1)), 300))
    few = SearchSpace(space.parameters, (Constraint(lambda c: len(set(c.values())) == 1, "no"),))
    assert len(list(Points(few, ()).shuffled(random.Random(0)))) <= 12


def test_pruning_counts_every_combination_once():
    refused = points(lambda c: f"B is {c['B']}, at most 4" if c.integer("B") > 4 else None)
    pruning = refused.pruning
    assert pruning.total == 32
    assert pruning.left == len(list(refused))
    assert pruning.removed["too much"] == sum(
        config.integer("A") * config.integer("B") > 16 for config in SPACE.all_points()
    )
    assert pruning.removed["B is …, at most 4"] == pruning.total - pruning.left - sum(
        pruning.removed[reason] for reason in ("too much", "C needs A")
    )


def test_neighbours_differ_in_one_parameter_and_are_allowed():
    here = Config(A=4, B=4, C=True)
    near = points().neighbours(here)
    assert len(set(near)) == len(near) and here not in near
    for config in near:
        assert sum(config[name] != here[name] for name in config) == 1
        assert SPACE.violation(config) is None
    assert Config(A=4, B=8, C=True) not in near  # too much


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "options"), [("sort", {"n": 50_000}), ("gemm", {"size": 512})])
def test_points_of_an_operation_fit_the_device(name, options):
    operation = get_operation(name)
    problem = operation.problem(**options)
    algorithm = operation.choose(problem, GPU)
    found = points_of(algorithm, problem, GPU, (algorithm.default_config(problem, GPU),))
    removed = found.pruning.removed
    assert any("the device takes at most 256" in reason for reason in removed)
    for config in itertools.islice(found.shuffled(random.Random(2)), 50):
        for launch in algorithm.plan(problem, config, GPU).launches:
            assert launch.work_group <= 256 and launch.local_memory <= 32768


def test_what_does_the_same_is_one_configuration():
    known = Points(SPACE, (START,), effect=lambda config: (config["A"], config["C"]))
    effects = {(config["A"], config["C"]) for config in SPACE}
    assert known.pruning.left == len(effects) == len(list(known))
    assert len(list(known.shuffled(random.Random(1)))) == len(effects)
    near = known.neighbours(START)
    assert near and all((c["A"], c["C"]) != (START["A"], START["C"]) for c in near)
    assert SAME in known.pruning.removed


# --------------------------------------------------------------- strategies


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_finds_the_best_and_ends(name):
    asked = ask(STRATEGIES[name], points())
    assert min(asked, key=time_of) == Config(A=4, B=4, C=True)
    assert all(SPACE.violation(config) is None for config in asked)
    assert set(asked) >= set(SPACE)  # small: all of it


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_survives_failures_everywhere(name):
    assert set(ask(STRATEGIES[name], points(), times=lambda config: None)) >= set(SPACE)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent / "data" / "tuning").glob("*.json")), ids=lambda p: p.stem
)
def test_local_search_finds_the_best_of_recorded_spaces(path):
    record = json.loads(path.read_text())
    values = record["values"]
    times = {
        Config({name: values[name][i] for name, i in zip(values, row, strict=True)}): milliseconds
        for row, milliseconds in record["rows"]
    }
    space = SearchSpace(tuple(Parameter(name, tuple(v), name) for name, v in values.items()))
    among = Points(space, (next(iter(times)),), lambda c: None if c in times else "not recorded")
    right = sorted(time for time in times.values() if time is not None)
    close = 1.03 * right[0]
    assert sum(time <= close for time in right) < 0.03 * len(times)  # worth a search

    def found(name):
        ends = []
        for seed in range(5):
            asked = ask(STRATEGIES[name], among, seed, len(times) // 10, times.__getitem__)
            ends.append(min(times[config] or right[-1] for config in asked))
        return sum(end <= close for end in ends)

    assert found("local-search") >= 4 > found("random")
