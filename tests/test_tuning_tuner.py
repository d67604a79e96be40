"""The tuner with recorded runs, its journal, and whole runs on a device with harmless kernels."""

import errno
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import planted
import pytest

import opencl_lab as ol
from opencl_lab.device import Capabilities, Device
from opencl_lab.doctor.peaks import Peaks
from opencl_lab.errors import InvalidConfig, InvalidProblem, OclabError
from opencl_lab.registry import get_operation
from opencl_lab.tuned import database
from opencl_lab.tuning import search
from opencl_lab.tuning.evaluation import Evaluation
from opencl_lab.tuning.journal import Journal, journal_file, read_journal
from opencl_lab.tuning.plots import _draw_convergence, plot_tuning
from opencl_lab.tuning.prune import Points
from opencl_lab.tuning.runner import Replay
from opencl_lab.tuning.tuner import make_task, run_tuning

GPU = Device(
    "made up", "gpu", capabilities=Capabilities(fp64=True, max_work_group=256, local_memory=32768)
)


@pytest.fixture(autouse=True)
def private_data(tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path / "data"))
    database.forget()
    yield
    database.forget()


@pytest.fixture
def task():
    return make_task("gemm", algorithm="tiled", device=GPU, size=512)


def record(task, time_of, reason=""):
    """Return an evaluation of every configuration that the device can run."""
    algorithm, problem = task.algorithm, task.problem
    default = algorithm.default_config(problem, GPU)
    evaluations = []
    for config in (default, *Points(algorithm.space, (default,))):
        time = time_of(config)
        if time is None:
            evaluations.append(Evaluation(config, "runtime", reason))
        else:
            evaluations.append(Evaluation(config, "correct", times_ms=(time, time, 1.5 * time)))
    return evaluations


def tile_time(config):
    return 1.0 + abs(config.integer("TILE") - 16) + abs(config.integer("UNROLL") - 4) / 10


def replay(task, time_of=tile_time, **options):
    runner = Replay(record(task, time_of))
    return run_tuning(task, runner=runner, **{"budget": 1000, **options}), runner


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
    assert result.default.times_ms[: len(result.best.times_ms)]


def test_the_same_seed_asks_the_same(task):
    asked = [replay(task, fresh=True, budget=15)[1].asked for _ in range(2)]
    assert asked[0] == asked[1] and len(asked[0]) == 15
    other = replay(replace(task, seed=1), fresh=True, budget=15)[1].asked
    assert other != asked[0]


def test_a_budget_counts_configurations(task):
    result, runner = replay(task, strategy="random", budget=7)
    assert len(runner.asked) == len(result.evaluations) == 7 and result.stopped == "budget"


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
    monkeypatch.setattr("opencl_lab.tuning.search.time.monotonic", lambda: runner.now)
    result = run_tuning(task, time_limit=10.0, strategy="exhaustive", runner=runner)
    assert result.stopped == "time" and len(runner.asked) == 9
    assert result.finalists and 9 < result.seconds <= 10


def test_whichever_limit_comes_first_ends_it(task):
    assert replay(task, budget=3, time_limit=1e6, fresh=True)[0].stopped == "budget"
    assert replay(task, budget=1000, time_limit=1e-9, fresh=True)[0].stopped == "time"


def test_nothing_correct_is_no_winner(task):
    result, _ = replay(task, time_of=lambda config: None)
    assert result.best is None and result.speedup is None and result.finalists == ()
    assert result.failures == {"runtime": len(result.evaluations)}


def test_failures_are_counted_and_never_win(task):
    def some(config):
        return None if config["UNROLL"] == 4 else tile_time(config)

    result, _ = replay(task, time_of=some)
    assert result.best.config["UNROLL"] != 4
    assert result.failures["runtime"] == sum(
        item.config["UNROLL"] == 4 for item in result.evaluations
    )


def test_finals_correct_a_lucky_first_measurement(task):
    lucky = {"TILE": 8, "LOCAL_PAD": 0, "UNROLL": 8}

    class Lucky(Replay):
        def evaluate(self, config, best_ms, seconds):
            found = super().evaluate(config, best_ms, seconds)
            return replace(found, times_ms=(0.9,)) if dict(config) == lucky else found

    runner = Lucky(record(task, tile_time))
    result = run_tuning(task, strategy="exhaustive", budget=1000, runner=runner)
    assert min(result.evaluations, key=lambda item: item.time_ms).config == lucky
    assert result.best.config["TILE"] == 16 and result.best.time_ms == 1.0


def test_a_finalist_that_fails_is_out(task):
    class Fragile(Replay):
        def again(self, config, seconds):
            found = super().again(config, seconds)
            if config["UNROLL"] == 4:
                return Evaluation(config, "runtime", "the process died: SIGSEGV")
            return found

    result = run_tuning(task, budget=1000, runner=Fragile(record(task, tile_time)))
    assert result.best.config["UNROLL"] != 4 and result.best.config["TILE"] == 16
    assert result.failures["runtime"] >= 1
    kept = read_journal(result.journal)
    assert any(item.status == "runtime" for item in kept.values())


def test_an_unstable_winner_is_reported(task):
    rounds = {}

    class Noisy(Replay):
        def again(self, config, seconds):
            times = rounds.setdefault(config, [])
            low, high = (1.0, 9.0) if config == next(iter(rounds)) else (8.9, 1.0)
            times.append(high if len(times) % 2 else low)  # by the median, now this one leads
            return Evaluation(config, "correct", times_ms=(times[-1],))

    result = run_tuning(task, budget=30, runner=Noisy(record(task, lambda config: 1.0)))
    assert len(result.finalists) >= 5 and not result.stable
    assert all(len(item.times_ms) >= 4 for item in result.finalists)


def rounds_of(task, factor, spread):
    """Tune with one configuration that takes `factor` of what all others do, with noise."""
    noise = np.random.default_rng(0)
    other = {"TILE": 8, "LOCAL_PAD": 0, "UNROLL": 8}

    class Noisy(Replay):
        def again(self, config, seconds):
            time = (factor if dict(config) == other else 1.0) * noise.uniform(1, spread)
            return Evaluation(config, "correct", times_ms=(time, time, 1.5 * time))

    def time_of(config):
        return factor if dict(config) == other else 1.0

    return run_tuning(task, budget=1000, runner=Noisy(record(task, time_of)), fresh=True), other


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
    monkeypatch.setattr("opencl_lab.tuning.search.stored_peaks", lambda device: peaks)
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


def test_an_interrupt_keeps_what_was_found(task):
    class Interrupted(Replay):
        def evaluate(self, config, best_ms, seconds):
            if len(self.asked) == 6:
                raise KeyboardInterrupt
            return super().evaluate(config, best_ms, seconds)

    result = run_tuning(task, budget=100, runner=Interrupted(record(task, tile_time)))
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
        run_tuning(task, runner=Replay([]), **wrong)


def test_what_makes_no_task_is_refused():
    with pytest.raises(InvalidProblem, match="nothing to time"):
        make_task("gemm", device=GPU, m=0)
    with pytest.raises(InvalidProblem, match="no option"):
        make_task("gemm", device=GPU, rows=3)
    with pytest.raises(InvalidConfig, match="no algorithm"):
        make_task("gemm", device=GPU, algorithm="magic")
    with pytest.raises(InvalidProblem, match="no operation"):
        make_task("tea", device=GPU)


@pytest.mark.parametrize("name", ["sort", "gemm"])
def test_every_operation_can_be_sent_to_a_worker(name):
    for algorithm in get_operation(name).algorithms:
        made = make_task(name, device=GPU, algorithm=algorithm.name)
        assert made.problem not in made.check_problems
        assert journal_file(made).name.startswith(f"{name}-{algorithm.name}-")


# ------------------------------------------------------------------- journal


def some_evaluation(task, number=0):
    config = task.algorithm.default_config(task.problem, GPU).replace(UNROLL=number)
    return Evaluation(config, "correct", "", (1.0, number + 1.0), 2.0, 3.0, "2026-01-01")


def test_the_journal_gives_back_what_it_was_given(task):
    journal = Journal(task)
    assert journal.known == {}
    written = [some_evaluation(task, number) for number in range(5)]
    for evaluation in written:
        journal.add(evaluation)
    assert list(Journal(task).known.values()) == written
    assert Journal(task, fresh=True).known == {} and not journal.path.exists()


def test_later_evaluations_replace_earlier_ones(task):
    journal = Journal(task)
    first = some_evaluation(task)
    journal.add(first)
    journal.add(replace(first, status="runtime", reason="later", times_ms=()))
    (found,) = Journal(task).known.values()
    assert found.reason == "later"


@pytest.mark.parametrize("cut", [1, 20, 100])
def test_a_cut_line_costs_that_line_only(task, cut):
    journal = Journal(task)
    for number in range(3):
        journal.add(some_evaluation(task, number))
    os.truncate(journal.path, journal.path.stat().st_size - cut)
    again = Journal(task)
    assert len(again.known) == 2
    again.add(some_evaluation(task, 7))
    assert [item.config["UNROLL"] for item in Journal(task).known.values()] == [0, 1, 7]


def test_damage_in_the_journal_costs_the_damaged_lines_only(task):
    journal = Journal(task)
    for number in range(3):
        journal.add(some_evaluation(task, number))
    lines = journal.path.read_bytes().split(b"\n")
    lines[2:2] = [b"\xff\x00garbage", b"[1, 2]", b'{"evaluation": 3}', b'{"evaluation": {}}', b""]
    journal.path.write_bytes(b"\n".join(lines))
    assert len(Journal(task).known) == 3


def test_another_task_has_another_journal(task):
    others = {
        journal_file(task),
        journal_file(replace(task, problem=replace(task.problem, m=513))),
        journal_file(replace(task, algorithm_name="blocked")),
        journal_file(replace(task, device=replace(GPU, driver="2"))),
        journal_file(replace(task, data={"order": "sorted"})),
    }
    assert len(others) == 5
    assert journal_file(replace(task, seed=3)) == journal_file(task)


def test_a_changed_kernel_begins_a_new_journal(tmp_path):
    operation = planted.make(("none",))
    algorithm = operation.algorithms[0]
    template = tmp_path / "kernel.cl.mako"
    vars(algorithm)["templates"] = (str(template),)
    names = []
    for text in ("one", "two", "one"):
        template.write_text(text)
        names.append(journal_file(make_task(operation, device=GPU)))
    assert names[0] == names[2] != names[1]

    def other_plan(problem, config, device):
        made = planted.plan(problem, config, device)
        twice = replace(made.launches[0], global_size=(2 * made.launches[0].global_size[0],))
        return replace(made, launches=(twice,))

    algorithm._plan = other_plan
    assert journal_file(make_task(operation, device=GPU)) not in names


def test_a_kernel_that_changes_while_it_is_tuned_ends_the_run(task, monkeypatch):
    class Editing(Replay):
        """Edits the template after its second answer."""

        def evaluate(self, config, best_ms, seconds):
            if len(self.asked) == 1:
                monkeypatch.setattr(search, "kernel_digest", lambda templates: "edited")
            return super().evaluate(config, best_ms, seconds)

    runner = Editing(record(task, lambda config: 1.0))
    with pytest.raises(OclabError, match="a template of tiled has changed while it was tuned"):
        run_tuning(task, budget=50, runner=runner)
    assert len(runner.asked) == 2 and len(Journal(task).known) == 1


def test_a_full_disk_is_said_once_and_tuning_goes_on(task, monkeypatch):
    def full(handle, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("opencl_lab.tuning.journal.os.write", full)
    result, runner = replay(task, budget=10)
    assert len(runner.asked) == 10 and result.best is not None
    assert len(result.notes) == 1 and os.strerror(errno.ENOSPC) in result.notes[0]


def test_a_record_written_in_part_does_not_spoil_the_next(task, monkeypatch):
    journal = Journal(task)
    journal.add(some_evaluation(task, 1))
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr("opencl_lab.tuning.journal.os.write", lambda h, data: write(h, data[:40]))
        journal.add(some_evaluation(task, 2))
    assert "No space" in journal.trouble
    journal.add(some_evaluation(task, 3))
    assert journal.trouble == ""
    assert [item.config["UNROLL"] for item in Journal(task).known.values()] == [1, 3]


def _write_many(task, first):
    journal = Journal(task)
    for number in range(first, first + 100):
        journal.add(some_evaluation(task, number))


def test_two_tuners_at_once_share_a_journal(task):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(task, first)) for first in (0, 1000)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    known = {config["UNROLL"] for config in Journal(task).known}
    assert known == {*range(100), *range(1000, 1100)}
    lines = journal_file(task).read_text().split("\n")
    assert all(json.loads(line) for line in lines if line)


def test_a_time_limit_of_another_length_tries_timeouts_again(task):
    journal = Journal(task)
    default = task.algorithm.default_config(task.problem, GPU)
    journal.add(Evaluation(default, "timeout", "no end within 2 s"))
    assert replay(task, budget=5)[1].asked[0] != default
    journal.add(Evaluation(default, "timeout", "no end within 2 s"))
    assert replay(task, budget=5, timeout=60.0)[1].asked[0] == default


# ------------------------------------------------------------------ on a device


def test_a_whole_run_finds_checks_and_stores_a_winner():
    result = ol.tune(planted.HARMLESS, strategy="exhaustive", budget=50, device="cpu", n=3000)
    assert isinstance(result, ol.TuneResult)
    assert result.best.config["FAULT"] == "none" and result.stored
    assert result.failures == {"correctness": 1, "compile": 1}
    assert result.pruning.total == 15 and result.pruning.left == 6
    assert set(result.removed) == {
        "faults need no more than one work-group size",
        "kernel planted: work-group of … items, the device takes at most "
        f"{result.device.capabilities.max_work_group}",
    }
    problem = planted.HARMLESS.problem(n=3000)
    arrays = planted.HARMLESS.generate(problem, 5)
    run = planted.HARMLESS.run(problem, arrays)
    assert run.outputs["doubled"].tobytes() == (2 * arrays["source"]).tobytes()
    chosen = planted.HARMLESS.algorithms[0].configure(problem, result.device)
    assert chosen == result.best.config

    # The record of this run, replayed, gives the same evaluations with no device.
    task = result.task
    recorded = list(read_journal(result.journal).values())
    again = run_tuning(task, strategy="exhaustive", budget=50, fresh=True, runner=Replay(recorded))
    assert {item.config: item.status for item in again.evaluations} == {
        item.config: item.status for item in result.evaluations
    }


def test_a_run_goes_on_where_an_earlier_one_stopped():
    options = {"strategy": "exhaustive", "device": "cpu"}
    first = ol.tune(planted.HARMLESS, budget=3, **options)
    second = ol.tune(planted.HARMLESS, budget=50, **options)
    assert first.stopped == "budget" and first.resumed == 0
    assert second.resumed == 3 and second.evaluations[:3] == first.evaluations
    assert len(second.evaluations) == 6
    third = ol.tune(planted.HARMLESS, budget=50, fresh=True, **options)
    assert third.resumed == 0


TUNE_SCRIPT = """
import planted
import opencl_lab as ol
ol.tune(planted.PLANTED, strategy="exhaustive", budget=50, timeout=30, device="cpu")
"""


def test_a_killed_tuner_goes_on_from_its_journal(tmp_path):
    """The kill falls into a kernel that hangs; the worker ends, the journal is whole."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [sys.executable, "-c", TUNE_SCRIPT], env={**os.environ, "PYTHONPATH": path}
    )
    journal = journal_file(make_task(planted.PLANTED, device="cpu"))
    before_the_hang = planted.FAULTS[: planted.FAULTS.index("hang")]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if {"crash", *before_the_hang} <= {c["FAULT"] for c in read_journal(journal)}:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    known = read_journal(journal)
    assert {c["FAULT"] for c in known} == {*before_the_hang}
    result = ol.tune(planted.PLANTED, strategy="exhaustive", budget=50, timeout=2, device="cpu")
    assert result.resumed == len(known)
    assert result.failures["timeout"] == 1 and result.restarts >= 1
    assert result.best.config["FAULT"] in ("none", "slow")


# ---------------------------------------------------------------------- plots


@pytest.mark.parametrize("fails", [False, True])
def test_plots_of_searches(task, tmp_path, fails):
    def time_of(config):
        return None if fails and config["TILE"] != 16 else tile_time(config)

    result, _ = replay(task, time_of=time_of, strategy="random")
    path = tmp_path / "search.png"
    plot_tuning(path, result, "title")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_plot_keeps_times_of_the_search_and_of_the_finals_apart(task):
    from matplotlib.figure import Figure

    result, _ = replay(task, strategy="exhaustive")
    searched = next(e for e in result.evaluations if e.config == result.default.config).time_ms

    def slower(item):  # as on a machine that others use meanwhile
        return replace(item, times_ms=tuple(3 * time for time in item.times_ms))

    finals = tuple(map(slower, result.finalists))
    assert finals and result.default.config in [item.config for item in finals]
    changed = replace(result, default=slower(result.default), finalists=finals)
    axes = Figure().add_subplot()
    _draw_convergence(axes, changed)
    (dashed,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert set(dashed.get_ydata()) == {searched}
    count = len(result.evaluations)
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    assert [line.get_ydata()[0] for line in diamonds] == [item.time_ms for item in finals]
    assert all(line.get_xdata()[0] > count for line in diamonds)
    assert max(axes.get_xticks()) <= count


def test_a_plot_of_nothing_but_failures(task, tmp_path):
    result, _ = replay(task, time_of=lambda config: None, budget=4)
    plot_tuning(tmp_path / "search.svg", result, "title")
    assert "failed: 4" in (tmp_path / "search.svg").read_text()


# ---------------------------------------------------------------- own kernels


@pytest.mark.parametrize(
    ("name", "seconds", "said"),
    [("tune_your_kernel.py", 2, "best: "), ("tune_your_operation.py", 3, "right: True")],
)
def test_the_worked_examples(name, seconds, said, tmp_path):
    """The documents' examples run as scripts, an operation in the script itself."""
    example = Path(__file__).parents[1] / "docs" / "examples" / name
    root = str(Path(ol.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, str(example), str(seconds)],
        env={**os.environ, "PYTHONPATH": root, "OCLAB_DEVICE": "cpu"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert said in result.stdout and "times as fast" in result.stdout


def test_a_field_without_a_default_is_refused():
    @dataclass(frozen=True)
    class Needy(planted.Problem):
        n: int

    with pytest.raises(InvalidProblem, match="n needs a default"):
        planted.KernelOperation(
            "needy", problem=Needy, template="", space=None, default=None, plan=None,
            inputs=None, reference=None, check_cases={},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("actual", "ok"),
    [
        ([1.0, 2.0, np.nan], True),
        ([1.0, 2.1, np.nan], False),
        ([1.0, 2.0, 3.0], False),
        ([np.nan, 2.0, np.nan], False),
        ([np.inf, 2.0, np.nan], False),
    ],
)
def test_own_operations_compare_within_their_tolerance(actual, ok):
    operation = planted.make(("none",))
    operation._tolerance = 0.01
    expected = {"doubled": np.array([1.0, 2.0, np.nan])}
    difference = operation.compare(None, {}, expected, {"doubled": np.array(actual)})
    assert difference.ok is ok
    assert (difference.max_abs == 0) is ok
