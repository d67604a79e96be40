"""The engine: strategies and what answers them, limits, and journals."""

import os

import pytest

from opencl_lab.lab.engine.explore import Exploration, ExplorationStop, Limits, grid
from opencl_lab.lab.engine.journal import Journal, read_journal

# ------------------------------------------------------------------- exploring


def doubled(point):
    return 2 * point


def test_a_grid_is_answered_in_its_order_and_all_that_is_measured_is_kept():
    kept = {}
    run = Exploration(doubled, known={2: "known"}, keep=kept.__setitem__)
    assert run.run(grid([3, 2, 3, 1])) == "complete"
    assert list(run.seen.items()) == [(3, 6), (2, "known"), (1, 2)]
    assert kept == {3: 6, 1: 2} and run.measured == [3, 1]


def test_a_strategy_is_sent_what_became_of_its_points():
    heard = []

    def halving(point):
        while point:
            row = yield point
            heard.append(row)
            point = row // 4

    assert Exploration(doubled).run(halving(9)) == "complete"
    assert heard == [18, 8, 4, 2]


def test_of_several_points_the_one_that_costs_nothing_is_answered_first():
    def any_of():
        heard.append((yield [1, 2, 3]))
        heard.append((yield [4, 1, 2]))
        heard.append((yield [5, 6]))

    heard = []
    run = Exploration(doubled, known={2: 4})
    assert run.run(any_of()) == "complete" and heard == [4, 4, 10] and run.measured == [5]


def test_known_points_count_in_the_budget_and_known_ones_cost_no_time():
    run = Exploration(doubled, known={1: 2}, limits=Limits(budget=2))
    assert run.run(grid([1, 2, 1, 3])) == "budget" and run.seen == {1: 2, 2: 4}
    run = Exploration(doubled, known={1: 2}, limits=Limits(time_limit=0.0))
    assert run.run(grid([1, 2])) == "time" and run.seen == {1: 2}


@pytest.mark.parametrize(
    ("raised", "why"), [(KeyboardInterrupt(), "interrupted"), (ExplorationStop("time"), "time")]
)
def test_what_stops_a_measurement_ends_the_run_and_closes_the_strategy(raised, why):
    closed = []

    def measure(point):
        if point == 2:
            raise raised
        return point

    def strategy():
        try:
            yield from grid([1, 2, 3])
        finally:
            closed.append(True)

    run = Exploration(measure)
    assert run.run(strategy()) == why and run.seen == {1: 1} and closed == [True]


# -------------------------------------------------------------------- journals

HEAD = {"sweep": 1, "device": "x", "runs": (1, 2)}


def test_records_are_read_back_in_their_order(tmp_path):
    path = tmp_path / "deep" / "journal"
    first = Journal(path, HEAD)
    assert not first.records and not first.afresh and not path.exists()
    for size in (1, 2):
        first.add({"size": size})
    again = Journal(path, HEAD)
    assert again.records == [{"size": 1}, {"size": 2}] and not again.afresh
    again.remove()
    again.remove()
    assert not path.exists() and not again.trouble


def test_fresh_and_other_journals_replace_what_is_there_with_their_first_record(tmp_path):
    path = tmp_path / "journal"
    Journal(path, HEAD).add({"size": 1})
    fresh, other = Journal(path, HEAD, fresh=True), Journal(path, {**HEAD, "device": "y"})
    assert fresh.records == other.records == [] and not fresh.afresh
    assert other.afresh == f"{path} is of another sweep, which differs in device"
    assert Journal(path, {**HEAD, "new": None}).afresh.endswith("which differs in new")
    assert Journal(path, HEAD).records
    fresh.add({"size": 2})
    fresh.add({"size": 3})
    assert Journal(path, HEAD).records == [{"size": 2}, {"size": 3}]
    other.add({"size": 4})
    assert not Journal(path, HEAD).records


def test_two_runs_at_the_same_time_take_over_nothing_of_each_other(tmp_path):
    other = {**HEAD, "device": "y"}
    first, second = Journal(tmp_path / "journal", HEAD), Journal(tmp_path / "journal", other)
    first.add({"size": 1})
    second.add({"size": 2})
    first.add({"size": 3})  # now within the file of the second
    again = Journal(first.path, other)
    assert not again.afresh and again.records == [{"size": 2}]


def test_a_disk_that_is_full_costs_no_run_and_no_other_record(tmp_path, monkeypatch):
    journal, write = Journal(tmp_path / "journal", HEAD), os.write
    with monkeypatch.context() as patch:
        patch.setattr(
            "opencl_lab.lab.engine.journal.os.write", lambda handle, data: write(handle, data[:9])
        )
        journal.add({"size": 1})
    assert (
        journal.trouble == f"the journal {journal.path} cannot be written: No space left on device"
    )
    journal.remove()
    journal.add({"size": 2})
    assert not journal.trouble and Journal(journal.path, HEAD).records == [{"size": 2}]


def test_records_of_an_earlier_version_without_marks_are_taken_over(tmp_path):
    path = tmp_path / "journal"
    path.write_text('\n{"sweep": 1, "device": "x", "runs": [1, 2]}\n{"size": 1}')
    assert Journal(path, HEAD).records == [{"size": 1}]
    assert Journal(path, {**HEAD, "device": "y"}).records == []


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"[1, 2]\n3", b'{"a": 1}'])
def test_what_is_no_journal_is_replaced(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    begun = Journal(path, HEAD)
    assert begun.afresh == f"{path} is damaged" and read_journal(path)[1] == []
    begun.add({"size": 1})
    assert Journal(path, HEAD).records == [{"size": 1}]
