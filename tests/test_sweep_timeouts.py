"""What a sweep leaves out, by the times at smaller sizes: no device, no reference is run."""

from dataclasses import replace
from functools import partial

import pytest
from comparison_rows import row

from opencl_lab.lab.engine.references import References
from opencl_lab.lab.engine.timeout_predictor import TimeoutPredictor
from opencl_lab.lab.registry import get_operation

GEMM, SORT = get_operation("gemm"), get_operation("sort")


def problem_of(operation, size):
    options = operation.with_defaults({operation.size_option: size})
    return operation.problem(**options)


def predictor(operation=GEMM, by_name=False, **more):
    references = References(operation.references, (), by_name)
    return TimeoutPredictor(operation, references, partial(problem_of, operation), **more)


def seq(milliseconds, **more):
    return replace(row("c:seq", milliseconds, **more), algorithm="c:seq")


@pytest.fixture
def rows():
    """A second at 512, by a reference whose work grows with the third power; others are quick."""
    return [row("opencl:blocked", 1e6), seq(1000.1), row("blas x2", 0.1)]


def test_steps_tell_how_a_reference_grows(rows):
    slow = predictor()
    slow.add(512, rows)
    assert slow.skip(800) == {}  # 3.8 s
    (reason,) = slow.skip(1024).values()
    assert "about 8 s, as it took 1 s at size=512" in reason
    assert "the limit is 5 s, 1 minute with --against c:seq" in reason


def test_a_name_and_the_option_raise_the_limit(rows):
    for more in ({"by_name": True}, {"seconds": 60.0}):
        asked = predictor(**more)
        asked.add(512, rows)
        assert asked.skip(1024) == {}
        (reason,) = asked.skip(2048).values()
        assert "about 1 minute" in reason and "--patience raises it" in reason
    raised = predictor(by_name=True, seconds=100.0)
    raised.add(512, rows)
    assert raised.skip(2048) == {}


def test_the_last_right_time_counts(rows):
    slow = predictor()
    slow.add(512, rows)
    slow.add(600, [seq(200.0)])
    slow.add(700, [seq(9e9, status="correctness")])
    slow.add(800, [row("c:seq", status="unavailable")])
    assert slow.skip(1024) == {}


def test_a_time_over_a_wide_gap_leaves_out_only_what_takes_much_longer():
    """Caches are left behind, or what a call costs at any size fades."""
    slow = predictor(SORT)
    slow.add(10, [seq(0.01)])
    assert slow.skip(10**7) == {}  # 10 s by this, for which the limit is 5
    slow.add(10, [seq(10)])
    assert "3 hours" in slow.skip(10**7)["c:seq"]
