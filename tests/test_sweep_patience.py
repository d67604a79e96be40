"""What a sweep leaves out, by the times at smaller sizes: no device, no reference is run."""

from dataclasses import replace

import pytest
from comparison_rows import row

from opencl_lab.comparison.patience import Patience
from opencl_lab.comparison.wanted import References
from opencl_lab.registry import get_operation

GEMM, SORT = get_operation("gemm"), get_operation("sort")


def problem_of(operation, size):
    options = operation.with_defaults({operation.size_option: size})
    return operation.problem(**options)


def patience(operation=GEMM, by_name=False, **more):
    return Patience(operation, References(operation.references, (), by_name), **more)


def seq(milliseconds, **more):
    return replace(row("c:seq", milliseconds, **more), algorithm="c:seq")


@pytest.fixture
def rows():
    """A second at 512, by a reference whose work grows with the third power; others are quick."""
    return [row("opencl:blocked", 1e6), seq(1000.1), row("blas x2", 0.1)]


def test_steps_tell_how_a_reference_grows(rows):
    slow = patience()
    slow.add("size=512", problem_of(GEMM, 512), rows)
    assert slow.skip(problem_of(GEMM, 800)) == {}  # 3.8 s
    (reason,) = slow.skip(problem_of(GEMM, 1024)).values()
    assert "about 8 s, as it took 1 s at size=512" in reason
    assert "the limit is 5 s, 1 minute with --against c:seq" in reason


def test_a_name_and_the_option_raise_the_limit(rows):
    for more in ({"by_name": True}, {"seconds": 60.0}):
        asked = patience(**more)
        asked.add("size=512", problem_of(GEMM, 512), rows)
        assert asked.skip(problem_of(GEMM, 1024)) == {}
        (reason,) = asked.skip(problem_of(GEMM, 2048)).values()
        assert "about 1 minute" in reason and "--patience raises it" in reason
    raised = patience(by_name=True, seconds=100.0)
    raised.add("size=512", problem_of(GEMM, 512), rows)
    assert raised.skip(problem_of(GEMM, 2048)) == {}


def test_without_steps_the_work_of_the_problem_tells(rows):
    slow = patience(SORT)
    slow.add("n=1000", problem_of(SORT, 1000), [seq(1000.1)])
    assert set(slow.skip(problem_of(SORT, 5500))) == {"c:seq"}
    assert slow.skip(problem_of(SORT, 4500)) == {}


def test_the_last_right_time_counts(rows):
    slow = patience()
    slow.add("size=512", problem_of(GEMM, 512), rows)
    slow.add("size=600", problem_of(GEMM, 600), [seq(200.0)])
    slow.add("size=700", problem_of(GEMM, 700), [seq(9e9, status="correctness")])
    slow.add("size=800", problem_of(GEMM, 800), [row("c:seq", status="unavailable")])
    assert slow.skip(problem_of(GEMM, 1024)) == {}


def test_what_a_call_costs_at_any_size_does_not_grow(rows):
    slow = patience(SORT)
    slow.add("n=1", problem_of(SORT, 1), [seq(0.05)])
    assert slow.skip(problem_of(SORT, 10**9)) == {}


def test_a_first_problem_of_many_steps_is_tried_on_a_small_one(rows):
    asked = []

    def trial(names):
        asked.append(names)
        return problem_of(GEMM, 64), [seq(10.1)]

    first = patience(by_name=True, trial=trial)
    assert first.skip(problem_of(GEMM, 64)) == {} and not asked
    (reason,) = first.skip(problem_of(GEMM, 8192)).values()
    assert "c:seq" in asked[0] and "0.01 s at a small problem" in reason and "6 hours" in reason
    assert patience(by_name=True, trial=lambda names: None).skip(problem_of(GEMM, 8192)) == {}
    # One that nobody named tries for itself, as in any comparison.
    patience(trial=pytest.fail).skip(problem_of(GEMM, 8192))
