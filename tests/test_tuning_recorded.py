"""Strategies on recorded runs over whole spaces: what each would have found, by how many questions.

The records are of CPUs, but that of `blocked`, which is of a GPU (`tools/record_space.py`).
"""

import itertools
import random
import runpy
from pathlib import Path

import numpy as np
import pytest
from device_records import NEW_CPU

from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, Parameter, SearchSpace
from opencl_lab.lab.registry import get_operation
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points, traits_of
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY, STRATEGIES, get_strategy
from opencl_lab.lab.tuning.strategies.features import Features
from opencl_lab.lab.tuning.strategies.gaussian import MOST, Process

Recorded = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "recorded_space.py"))[
    "Recorded"
]
RECORDS = sorted((Path(__file__).parent / "data" / "tuning").glob("*.json"))
SEEDS = range(5)
CLOSE, SHARE = 1.03, 0.1
"""How near the best must be, and by which share of all questions."""


@pytest.fixture(scope="module", params=RECORDS, ids=lambda path: path.stem)
def record(request):
    return Recorded.read(request.param)


def successes(record, name):
    """Return with how many seeds a strategy finds a time close to the best, and with what."""
    best = min(item.time_ms for item in record.evaluations)
    budget = int(SHARE * len(record.evaluations))
    strategy = get_strategy(name)
    ends = [record.found(strategy, seed, budget, CLOSE * best)[-1] / best for seed in SEEDS]
    return sum(end <= CLOSE for end in ends), max(ends)


def test_the_default_finds_the_best_by_a_tenth_of_the_questions(record):
    found, worst = successes(record, DEFAULT_STRATEGY)
    assert found == len(SEEDS) and worst <= CLOSE
    assert successes(record, "random")[0] < found


def test_spaces_are_worth_a_search(record):
    times = np.array([item.time_ms for item in record.evaluations])
    assert 300 < len(times) < 2000
    assert np.mean(times <= CLOSE * times.min()) < 0.03


def test_there_is_a_record_of_each_kind_of_kernel():
    found = {(r.about["operation"], r.about["algorithm"]) for r in map(Recorded.read, RECORDS)}
    wanted = {("gemm", "blocked"), ("gemm", "packed"), ("sort", "radix"), ("conv2d", "register")}
    assert wanted <= found


def test_a_record_is_read_as_it_was_written(record, tmp_path):
    record.write(tmp_path / "again.json")
    again = Recorded.read(tmp_path / "again.json")
    assert again.evaluations == record.evaluations and again.about == record.about
    assert again.traits == record.traits and len(set(map(len, record.traits.values()))) == 1
    assert set(again.points()) == {item.config for item in record.evaluations}
    assert (tmp_path / "again.json").stat().st_size < 200_000


def test_questions_are_counted_once():
    configs = [Config(A=a) for a in range(8)]
    times = [Evaluation(c, "correct", times_ms=(9.0 - c["A"],)) for c in configs]
    record = Recorded({}, {"A": tuple(range(8))}, times)

    def twice(points: Points, rng: random.Random):
        for config in points:
            yield config
            yield config

    assert record.found(twice, 0, 3) == [9.0, 8.0, 7.0]
    assert record.found(STRATEGIES["exhaustive"], 0, 100)[-1] == 2.0


# ------------------------------------------------------------------- the model


def test_features_put_sizes_on_the_scale_of_doublings():
    sizes = [Config(SIZE=size, MODE=mode, ON=on, ONE=3)
             for size, mode, on in ((1, "a", True), (3, "b", False), (7, "a", True))]  # fmt: skip
    features = Features(sizes)
    assert features.count == 4
    assert features.of(sizes).tolist() == [[0, 1, 0, 1], [0.5, 0, 1, 0], [1, 1, 0, 1]]


def test_features_have_the_traits_that_vary():
    traits = {Config(A=1): (2.0, 7.0), Config(A=2): (4.0, 7.0), Config(A=4): (3.0, 7.0)}
    features = Features(list(traits)[:2], traits.__getitem__)
    assert features.of(list(traits))[:, 1].tolist() == [0, 1, 0.5]
    assert features.count == 2


def test_traits_are_those_of_the_largest_launch():
    gemm, device = get_operation("gemm"), NEW_CPU
    problem = gemm.problem(**gemm.with_defaults({"size": 64}))
    algorithm = gemm.algorithm("tiled")
    config = algorithm.default_config(problem, device)
    group, items, local, launches, scratch = traits_of(algorithm.plan(problem, config, device))
    launch = algorithm.plan(problem, config, device).launches[0]
    assert 2**group == np.prod(launch.local_size) and 2**items == np.prod(launch.global_size)
    assert 2**local == pytest.approx(1 + launch.local_bytes) and (launches, scratch) == (1, 0)
    assert traits_of(Plan((), ())) == (0, 0, 0, 0, 0)


def test_a_gaussian_process_learns_what_coordinates_do_alone(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.uniform(0, 1, (6, 4))
    points, others = rng.integers(0, 4, (40, 6)), rng.integers(0, 4, (200, 6))

    def error():
        process = Process(6)
        process.fit(points / 3, table[range(6), points].sum(axis=1))
        return np.abs(process.predict(others / 3)[0] - table[range(6), others].sum(axis=1)).mean()

    both = error()
    monkeypatch.setattr("opencl_lab.lab.tuning.strategies.gaussian.ALONE", 0.0)
    assert both < 0.9 * error()


def test_a_gaussian_process_knows_what_it_was_told_and_doubts_the_rest():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 0.5, (40, 3))
    heights = np.sin(6 * points[:, 0]) + 4 * points[:, 1]  # the third says nothing
    process = Process(3)
    process.fit(points, heights)
    mean, deviation = process.predict(points)
    assert np.max(np.abs(mean - heights)) < 0.1
    near = rng.uniform(0, 0.5, (20, 3))
    mean, _ = process.predict(near)
    assert np.max(np.abs(mean - np.sin(6 * near[:, 0]) - 4 * near[:, 1])) < 0.3
    assert process.predict(np.ones((1, 3)))[1] > 2 * deviation.max()
    assert process._lengths[2] > process._lengths[0]


def test_a_gaussian_process_takes_many_points_and_equal_ones():
    points = np.linspace(0, 1, 3 * MOST)[:, None]
    process = Process(1)
    process.fit(points, points[:, 0])
    assert len(process._points) <= MOST + 1 and process._points.min() == 0
    process.fit(np.zeros((9, 1)), np.ones(9))
    mean, deviation = process.predict(np.zeros((1, 1)))
    assert mean == pytest.approx(1) and np.isfinite(deviation).all()


def test_the_model_begins_near_what_people_have_chosen():
    values = tuple(range(1, 9))
    configs = [Config(A=a, B=b) for a in values for b in values]
    start = Config(A=4, B=5)
    answers = {c: Evaluation(c, "correct", times_ms=(1.0,)) for c in configs}
    record = Recorded({}, {"A": values, "B": values}, [answers[start], *answers.values()])
    questions = STRATEGIES["model"](record.points(), random.Random(0))
    asked = [next(questions)[0]]
    for _ in range(4):
        asked.append(questions.send(answers[asked[-1]])[0])
    assert asked[0] == start and len(set(asked)) == 5
    assert all(abs(c["A"] - 4) + abs(c["B"] - 5) <= 1 for c in asked)


def test_the_model_leaves_what_fails_alone():
    values = tuple(range(16))
    configs = [Config(A=a, B=b) for a in values for b in values]

    def answer(config):
        if config["A"] > 7:
            return Evaluation(config, "runtime", "it failed")
        return Evaluation(config, "correct", times_ms=(1.0 + abs(config["B"] - 11),))

    record = Recorded({}, {"A": values, "B": values}, [answer(c) for c in configs])
    questions = STRATEGIES["model"](record.points(), random.Random(0))
    asked = [next(questions)[0]]
    for _ in range(60):
        asked.append(questions.send(answer(asked[-1]))[0])
    assert sum(config["A"] > 7 for config in asked) < 15
    assert any(config["B"] == 11 and config["A"] <= 7 for config in asked[:40])


@pytest.mark.full
def test_the_model_finds_its_way_in_a_space_too_large_to_list():
    names = [f"P{place}" for place in range(8)]
    space = SearchSpace(tuple(Parameter(name, tuple(range(12)), name) for name in names))
    goal = (1, 2, 4, 5, 6, 8, 9, 10)

    def time_of(config):
        return 1.0 + sum(abs(config[name] - to) for name, to in zip(names, goal, strict=True))

    points = Points(space, (Config(dict.fromkeys(names, 0)),))
    questions = STRATEGIES["model"](points, random.Random(0))
    times = []
    config = next(questions)[0]
    for _ in range(60):
        times.append(time_of(config))
        answer = Evaluation(config, "correct", times_ms=(times[-1],))
        config = questions.send(answer)[0]
    drawn = itertools.islice(points.shuffled(random.Random(0)), 60)
    assert min(times) < 0.7 * min(map(time_of, drawn)) < 0.5 * times[0]
