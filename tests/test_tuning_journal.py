"""The journal of the tuner: what it keeps, and damage in it."""

import errno
import json
import math
import multiprocessing
import os
from dataclasses import replace

import planted
import pytest
from tuning_runs import GPU, Replay, in_journal, record, replay, tuned_by, written

from opencl_lab.core.errors import OclabError
from opencl_lab.lab.tuning import search
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.journal import journal_of
from opencl_lab.lab.tuning.tuner import make_task

pytestmark = pytest.mark.usefixtures("private_data")


# ------------------------------------------------------------------- journal


def some_evaluation(task, number=0):
    config = task.algorithm.default_config(task.problem, GPU).replace(UNROLL=number)
    return Evaluation(config, "correct", "", (1.0, number + 1.0), 2.0, 3.0, "2026-01-01")


def test_the_journal_gives_back_what_it_was_given(task):
    assert in_journal(task) == {}
    evaluations = [some_evaluation(task, number) for number in range(5)]
    written(task, *evaluations)
    assert list(in_journal(task).values()) == evaluations
    fresh = journal_of(task, fresh=True)
    assert fresh.records == []
    fresh.add({"evaluation": evaluations[3].as_dict()})
    assert list(in_journal(task).values()) == [evaluations[3]]


def test_damage_in_the_journal_costs_the_damaged_lines_only(task):
    journal = written(task, *(some_evaluation(task, number) for number in range(3)))
    lines = journal.path.read_bytes().split(b"\n")
    lines[2:2] = [b"\xff\x00garbage", b"[1, 2]", b'{"evaluation": 3}', b'{"evaluation": {}}', b""]
    journal.path.write_bytes(b"\n".join(lines))
    assert len(in_journal(task)) == 3


def test_a_changed_kernel_begins_a_new_journal(tmp_path):
    operation = planted.make(("none",))
    algorithm = operation.algorithms[0]
    template = tmp_path / "kernel.cl.mako"
    vars(algorithm)["templates"] = (str(template),)
    names = []
    for text in ("one", "two", "one"):
        template.write_text(text)
        names.append(journal_of(make_task(operation, device=GPU)).path)
    assert names[0] == names[2] != names[1]

    def other_plan(problem, config, device):
        made = planted.plan(problem, config, device)
        twice = replace(made.launches[0], global_size=(2 * made.launches[0].global_size[0],))
        return replace(made, launches=(twice,))

    algorithm._plan = other_plan
    assert journal_of(make_task(operation, device=GPU)).path not in names


def test_a_kernel_that_changes_while_it_is_tuned_ends_the_run(task, monkeypatch):
    class Editing(Replay):
        """Edits the template after its second answer."""

        def evaluate(self, config, best_ms, seconds):
            if len(self.asked) == 1:
                monkeypatch.setattr(search, "digest_now", lambda templates: "edited")
            return super().evaluate(config, best_ms, seconds)

    runner = Editing(record(task, lambda config: 1.0))
    with pytest.raises(OclabError, match="a template of tiled has changed during tuning"):
        tuned_by(runner, task, budget=50)
    assert len(runner.asked) == 2 and len(in_journal(task)) == 1


def test_a_full_disk_is_said_once_and_tuning_goes_on(task, monkeypatch):
    def full(handle, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("opencl_lab.lab.engine.journal.os.write", full)
    result, runner = replay(task, budget=10)
    assert len(runner.asked) == 10 and result.best is not None
    assert len(result.notes) == 1 and os.strerror(errno.ENOSPC) in result.notes[0]


def _write_many(task, first):
    written(task, *(some_evaluation(task, number) for number in range(first, first + 100)))


@pytest.mark.full
def test_two_tuners_at_once_share_a_journal(task):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(task, first)) for first in (0, 1000)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    known = {config["UNROLL"] for config in in_journal(task)}
    assert known == {*range(100), *range(1000, 1100)}
    lines = journal_of(task).path.read_text().split("\n")
    assert all(json.loads(line) for line in lines if line)


@pytest.mark.parametrize(
    ("limits", "again"),
    [
        ({"timeout": 2.0}, False),  # as when it hung
        ({"timeout": 60.0}, True),
        ({"time_limit": 3.0}, False),  # no phase has more than 5 s
        ({"time_limit": 90.0}, True),
        ({"timeout": 60.0, "time_limit": 3.0}, False),
        ({}, True),
    ],
)
def test_what_hung_is_tried_again_only_with_more_time(task, limits, again):
    default = task.algorithm.default_config(task.problem, GPU)
    written(task, Evaluation(default, "timeout", "no end", build_ms=5500.0))
    limits = {"time_limit": math.inf, **limits}
    asked = replay(task, budget=5, **limits)[1].asked
    assert (asked[0] == default) == again
