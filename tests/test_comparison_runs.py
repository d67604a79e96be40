"""Running a comparison: who is measured how often, and what fails alone."""

import math
import time
from dataclasses import replace

import click
import numpy as np
import pytest
from resident_rows import compared
from sort_checks import taken

import opencl_lab as ol
from opencl_lab.core.wording import duration
from opencl_lab.lab.cli.common import global_options
from opencl_lab.lab.cli.progress import progress_bar
from opencl_lab.lab.engine.request import Point, Request
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.measuring.rounds import LEAST_ROUNDS
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.ops.sort.references import numpy_sort
from opencl_lab.lab.reference.descriptor import HostReference
from opencl_lab.ops.sort.odd_even_merge import OddEvenMerge
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.solver import SortSolver


def test_compare_returns_measurements():
    rows = ol.compare(
        "sort", n=2000, dtype="float32", order="few-unique", repeats=2, against="c:seq,numpy"
    )
    assert [r.implementation for r in rows] == [taken(2000), "c:seq", "numpy"]
    assert all(r.ok and r.total_ms.runs == 2 for r in rows)
    assert rows[1].speedup == 1.0
    assert isinstance(rows, list) and "sort: 2,000 float32 keys" in str(rows)


def test_compare_takes_a_time_limit(device, monkeypatch):
    """Here of a time in which only the first rows can be made."""
    options = {"n": 2000, "against": "numpy", "device": device}
    for repeats in (None, 50):
        rows = ol.compare("sort", **options, repeats=repeats, time_limit=1e-9)
        assert [row.total_ms.runs for row in rows] == [1, 1] and all(row.ok for row in rows)
    monkeypatch.setattr("opencl_lab.lab.measuring.rounds.STEADY", math.inf)
    rows = ol.compare("sort", **options, repeats=None)
    assert [row.total_ms.runs for row in rows] == [LEAST_ROUNDS] * 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"bogus": 1}, ol.InvalidProblem),
        ({"n": "10"}, ol.InvalidProblem),
        ({"repeats": 0}, ol.InvalidProblem),
        ({"time_limit": math.nan}, ol.InvalidProblem),
        ({"repeats": None, "time_limit": math.inf}, ol.InvalidProblem),
        ({"against": "bogus"}, ol.InvalidConfig),
        ({"algorithms": "bogus"}, ol.InvalidConfig),
        ({"algorithms": ","}, ol.InvalidConfig),
        ({"threads": 999_999_999}, ol.InvalidProblem),
        ({"config": {"TILE": 3}}, ol.InvalidConfig),
    ],
)
def test_compare_refuses_what_it_cannot_do(options, error):
    with pytest.raises(error):
        ol.compare("sort", **{"n": 10, "against": "none", **options})


def _wrong_sort(problem, inputs, threads):
    return {"sorted": inputs["keys"]}


def _failing_sort(problem, inputs, threads):
    raise ol.LaunchError("it failed on purpose")


def test_a_wrong_and_a_failing_contestant_cost_only_their_rows(device, monkeypatch):
    references = (
        HostReference("wrong", _wrong_sort),
        HostReference("failing", _failing_sort),
        HostReference("gone", numpy_sort, lambda: "not today"),
        HostReference("numpy", numpy_sort),
    )
    monkeypatch.setattr(type(SORT), "references", references)
    monkeypatch.setattr("opencl_lab.lab.reference.peers.LIBRARIES", ())
    by_default = [r.implementation for r in compared(device, repeats=1).measurements]
    assert by_default == [taken(2000), "wrong", "failing", "numpy"]
    comparison = compared(device, repeats=1, against="all")
    rows = {r.implementation: r for r in comparison.measurements}
    assert rows["wrong"].status == "correctness" and rows["wrong"].difference.max_abs > 0
    assert rows["failing"].status == "runtime" and "on purpose" in rows["failing"].reason
    assert rows["gone"].status == "unavailable" and "not today" in rows["gone"].reason
    assert rows["numpy"].ok and rows[taken(2000)].ok
    assert comparison.exit_status == 0  # which speaks of our results


def test_every_run_counts_and_not_the_first_alone(device, monkeypatch):
    runs = []

    def later_wrong(problem, inputs, threads):
        runs.append(None)
        right = numpy_sort(problem, inputs, threads)["sorted"]
        return {"sorted": right if len(runs) < 3 else right[:, ::-1]}

    monkeypatch.setattr(type(SORT), "references", (HostReference("later-wrong", later_wrong),))
    comparison = compared(device, 100, repeats=2)
    assert [r.status for r in comparison.measurements] == ["correct", "correctness"]


def test_the_first_right_result_is_handed_on(device, monkeypatch):
    class WrongOrder(OddEvenMerge):
        name = "wrong"

        def plan(self, problem, config, device):
            return OddEvenMerge.plan(self, replace(problem, descending=True), config, device)

    class Two(SortSolver):
        registry = {"wrong": WrongOrder(), "odd-even-merge": OddEvenMerge()}  # noqa: RUF012

    monkeypatch.setattr(type(SORT), "solver", Two())
    problem = SortProblem(100, np.dtype("int32"))
    keys = SORT.generate(problem, 0)
    for names, expected in (("all", {"sorted": np.sort(keys["keys"])}), ("wrong", {})):
        request = Request(algorithms=names, against="none", repeats=1)
        comparison = run_point(Point(SORT, problem, lambda: keys, request), device=device)
        assert comparison.exit_status == 1
        np.testing.assert_equal(comparison.outputs, expected)


def test_slow_references_are_left_out_with_an_estimate(device, monkeypatch):
    monkeypatch.setattr("opencl_lab.lab.engine.implementations.LOW_COST", 0)
    monkeypatch.setattr("opencl_lab.lab.engine.implementations.UNNAMED_TOTAL_SECONDS", 0.0)
    steps = []
    problem = {"size": 40, "ksize": 5, "repeats": 1, "device": device}
    for row in ol.compare("conv2d", **problem):
        if row.implementation in ("c:seq", "c:omp"):
            assert row.status == "unavailable" and row.total_ms is None
            assert "a run would take about" in row.reason and "--against c:" in row.reason
            steps.append(row.implementation)
    assert steps == ["c:seq", "c:omp"]
    asked = ol.compare("conv2d", **problem, against="c:seq")
    assert asked[-1].implementation == "c:seq" and asked[-1].ok
    assert duration(0.25) == "0.25 s" and duration(90) == "2 minutes" and duration(3e5) == "3 days"


@pytest.mark.parametrize(("total", "shown"), [(9, "3/9"), (0, "3 done")])
def test_without_a_terminal_lines_tell_what_is_going_on(total, shown, monkeypatch, capsys):
    monkeypatch.setattr("opencl_lab.lab.cli.progress.LINE_SECONDS", 0.01)

    @click.command()
    @global_options
    def command():
        with progress_bar("conv2d") as progress:
            progress(3, total, "c:seq, first run")
            deadline = time.monotonic() + 20
            while "c:seq" not in said[-1] and time.monotonic() < deadline:
                time.sleep(0.01)
                said.append(capsys.readouterr().err)

    said = [""]
    command.main([], standalone_mode=False)
    assert f"oclab: conv2d: c:seq, first run ({shown}, " in said[-1]
    said = ["c:seq"]
    capsys.readouterr()
    command.main(["--quiet"], standalone_mode=False)
    assert capsys.readouterr().err == ""


def test_of_several_algorithms_the_one_that_auto_takes_is_named(device):
    options = {"against": "none", "repeats": 1, "device": device.spec, "n": 3000}
    rows = ol.compare("sort", algorithms="all", **options)
    taken = [row.algorithm for row in rows if row.note.startswith("auto takes it")]
    assert len(rows) > 1 and taken == [row.algorithm for row in ol.compare("sort", **options)]
    assert "auto" not in ol.compare("sort", **options)[0].note
