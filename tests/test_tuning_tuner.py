"""The tuner with recorded runs, its journal, and whole runs on a device with harmless kernels."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tuning_runs import GPU, Replay, in_journal, record, replay, tile_time, tuned_by

from opencl_lab.core.errors import InvalidConfig, InvalidProblem
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.tuner import make_task
from opencl_lab.tuned import database

pytestmark = pytest.mark.usefixtures("private_data")


# ------------------------------------------------------------------ recorded


@pytest.mark.parametrize("strategy", ["exhaustive", "random", "local-search"])
def test_a_recorded_run_is_tuned_without_a_device(task, strategy):
    result, runner = replay(task, strategy=strategy)
    assert result.best.config["TILE"] == 16 and result.best.config["UNROLL"] == 4
    assert result.best.time_ms == 1.0 and result.stopped == "complete" and result.stable
    assert len(runner.asked) == len(set(runner.asked)) == len(result.evaluations)
    assert result.speedup == pytest.approx(result.default.time_ms / 1.0)
    assert not result.stored and all(entry.shipped for entry in database.entries())
    assert result.evaluations[0].config == task.algorithm.default_config(task.problem, GPU)


def test_the_built_in_configuration_comes_first_and_into_the_finals(task):
    result, runner = replay(task)
    default = task.algorithm.default_config(task.problem, GPU)
    assert runner.asked[0] == default
    assert default in [item.config for item in result.finalists]
    assert str(dict(result.best.config)) in repr(result) and len(repr(result)) < 400
    assert result.default.times_ms[: len(result.best.times_ms)]


def test_what_looked_faster_and_was_not_compared_is_told(task):
    built_in = task.algorithm.default_config(task.problem, GPU)

    class NoTime(Replay):
        def prove(self, config, seconds):
            return super().prove(config, seconds) if config == built_in else None

    result = tuned_by(NoTime(record(task, tile_time)), task, budget=1000, fresh=True)
    assert result.best.config == built_in and not result.gained
    (note,) = result.notes
    assert "1.00 ms in the search" in note and "a longer time limit" in note
    assert not replay(task, fresh=True)[0].notes


def test_a_time_limit_ends_the_search_and_leaves_time_for_the_finals(task, monkeypatch):
    class Slow(Replay):
        now = 0.0

        def evaluate(self, config, best_ms, seconds):
            assert 0 < seconds <= 10 - 1.5 - self.now
            self.now += 1
            return super().evaluate(config, best_ms, seconds)

        def again(self, config, seconds):
            assert 0 < seconds == 10 - self.now
            self.now += 0.125
            return super().again(config, seconds)

    runner = Slow(record(task, tile_time))
    monkeypatch.setattr("opencl_lab.lab.engine.explore.monotonic", lambda: runner.now)
    result = tuned_by(runner, task, time_limit=10.0, strategy="exhaustive")
    assert result.stopped == "time" and len(runner.asked) == 9
    assert result.finalists and 9 < result.seconds <= 10


def test_nothing_correct_is_no_winner(task):
    result, _ = replay(task, time_of=lambda config: None)
    assert result.best is None and result.speedup is None and result.finalists == ()
    assert result.failures == {"runtime": len(result.evaluations)}


def test_finals_correct_a_lucky_first_measurement(task):
    lucky = {"TILE": 8, "LOCAL_PAD": 0, "UNROLL": 8}

    class Lucky(Replay):
        def evaluate(self, config, best_ms, seconds):
            found = super().evaluate(config, best_ms, seconds)
            return replace(found, times_ms=(0.9,)) if dict(config) == lucky else found

    runner = Lucky(record(task, tile_time))
    result = tuned_by(runner, task, strategy="exhaustive", budget=1000)
    assert min(result.evaluations, key=lambda item: item.time_ms).config == lucky
    assert result.best.config["TILE"] == 16 and result.best.time_ms == 1.0


def test_a_finalist_that_fails_is_out(task):
    class Fragile(Replay):
        def again(self, config, seconds):
            found = super().again(config, seconds)
            if config["UNROLL"] == 4:
                return Evaluation(config, "runtime", "the process died: SIGSEGV")
            return found

    result = tuned_by(Fragile(record(task, tile_time)), task, budget=1000)
    assert result.best.config["UNROLL"] != 4 and result.best.config["TILE"] == 16
    assert result.failures["runtime"] >= 1
    kept = in_journal(result.journal)
    assert any(item.status == "runtime" for item in kept.values())


def rounds_of(task, factor, spread):
    """Tune with one configuration that takes `factor` of what all others do, with noise."""
    noise = np.random.default_rng(0)
    other = {"TILE": 8, "LOCAL_PAD": 0, "UNROLL": 8}

    class NoisyOther(Replay):
        def again(self, config, seconds):
            time = (factor if dict(config) == other else 1.0) * noise.uniform(1, spread)
            return Evaluation(config, "correct", times_ms=(time, time, 1.5 * time))

    def time_of(config):
        return factor if dict(config) == other else 1.0

    return tuned_by(NoisyOther(record(task, time_of)), task, budget=1000, fresh=True), other


def test_a_gain_within_noise_is_none(task):
    result, _ = rounds_of(task, 0.98, 1.5)
    default = task.algorithm.default_config(task.problem, GPU)
    assert result.best.config == default and not result.gained and result.speedup == 1
    assert len(result.best.times_ms) >= 3 * 8  # not given up before it could be told


@pytest.mark.parametrize(("factor", "spread", "rounds"), [(0.98, 1.01, 8), (0.6, 1.05, 4)])
def test_a_gain_beyond_noise_is_one_and_a_large_one_needs_fewer_rounds(
    task, factor, spread, rounds
):
    result, other = rounds_of(task, factor, spread)
    assert dict(result.best.config) == other and result.gained and result.stable
    assert result.speedup == pytest.approx(1 / factor, rel=0.05)
    assert len(result.best.times_ms) == 3 * rounds


def test_what_is_above_the_peak_of_the_device_is_refused(task, monkeypatch):
    def unbelievable(config):
        return 1e-6 if config["UNROLL"] == 2 else tile_time(config)

    peaks = Peaks(flops32=2 * 512**3 / 0.9e-3)
    monkeypatch.setattr("opencl_lab.lab.tuning.search.stored_peaks", lambda device: peaks)
    result, _ = replay(task, time_of=unbelievable)
    refused = [item for item in result.evaluations if item.config["UNROLL"] == 2]
    assert refused and all(item.status == "runtime" for item in refused)
    assert "cannot be believed" in refused[0].reason
    assert result.best.time_ms == 1.0


def test_progress_says_how_far_it_is(task):
    states = []
    replay(task, budget=9, strategy="random", progress=states.append)
    search = [state for state in states if state.phase == "search"]
    assert [state.evaluated for state in search] == list(range(1, 10))
    assert {state.total for state in search} == {9}
    times = [state.best.time_ms for state in search]
    assert times == sorted(times, reverse=True)
    assert states[-1].phase == "finals" and states[-1].seconds_left is None


def test_what_fails_another_check_case_makes_room_for_the_next_best(task):
    class WrongReplay(Replay):
        def prove(self, config, seconds):
            proved.append(config)
            if config["UNROLL"] == 4:
                return Evaluation(config, "correctness", "wrong result on m=211")
            return super().prove(config, seconds)

    proved = []
    result = tuned_by(WrongReplay(record(task, tile_time)), task, budget=1000, fresh=True)
    assert result.best.config["UNROLL"] == 2 and result.best.config["TILE"] == 16
    assert len(result.finalists) >= 5 and result.stable
    assert result.failures["correctness"] == sum(config["UNROLL"] == 4 for config in proved) > 0
    assert len(proved) == len(set(proved)) < len(result.evaluations) / 2


def test_what_builders_refused_is_known_to_a_resume(task):
    class Builds(Replay):
        def refused(self):
            return [Evaluation(configs[-1], "timeout", "timed out after 30 s", build_ms=3e4)]

    evaluations = record(task, tile_time)
    configs = [item.config for item in evaluations]
    first = tuned_by(Builds(evaluations), task, time_limit=1e-9, fresh=True)
    assert first.stopped == "time" and first.failures == {"timeout": 1} and first.resumed == 0
    runner = Replay(evaluations)
    second = tuned_by(runner, task, budget=len(configs), strategy="exhaustive")
    assert configs[-1] not in runner.asked and second.resumed == 1


def test_an_interrupt_keeps_what_was_found(task):
    class Interrupted(Replay):
        def evaluate(self, config, best_ms, seconds):
            if len(self.asked) == 6:
                raise KeyboardInterrupt
            return super().evaluate(config, best_ms, seconds)

    result = tuned_by(Interrupted(record(task, tile_time)), task, budget=100)
    assert result.stopped == "interrupted" and len(result.evaluations) == 6
    assert result.best is not None
    resumed, runner = replay(task)
    assert resumed.resumed >= 6 and not set(runner.asked) & {
        item.config for item in result.evaluations
    }


@pytest.mark.parametrize(
    "wrong", [{"budget": 0}, {"time_limit": -1.0}, {"timeout": 0.0}, {"time_limit": math.nan}]
)
def test_limits_must_be_positive(task, wrong):
    with pytest.raises(InvalidProblem, match="must be positive"):
        tuned_by(Replay([]), task, **wrong)


def test_what_makes_no_task_is_refused():
    with pytest.raises(InvalidProblem, match="nothing to time"):
        make_task("gemm", device=GPU, m=0)
    with pytest.raises(InvalidProblem, match="no option"):
        make_task("gemm", device=GPU, rows=3)
    with pytest.raises(InvalidConfig, match="no algorithm"):
        make_task("gemm", device=GPU, algorithm="magic")
    with pytest.raises(InvalidProblem, match="no operation"):
        make_task("tea", device=GPU)
