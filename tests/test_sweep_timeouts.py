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


def untried(size, reference):
    pytest.fail(f"{reference} was tried at {size}")


def predictor(operation=GEMM, by_name=False, trial=untried, **more):
    references = References(operation.references, (), by_name)
    return TimeoutPredictor(operation, references, partial(problem_of, operation), trial, **more)


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


def test_without_steps_the_work_of_the_problem_tells(rows):
    slow = predictor(SORT)
    slow.add(1000, [seq(1000.1)])
    assert set(slow.skip(5500)) == {"c:seq"}
    assert slow.skip(4500) == {}


def test_the_last_right_time_counts(rows):
    slow = predictor()
    slow.add(512, rows)
    slow.add(600, [seq(200.0)])
    slow.add(700, [seq(9e9, status="correctness")])
    slow.add(800, [row("c:seq", status="unavailable")])
    assert slow.skip(1024) == {}


def test_a_time_over_a_wide_gap_is_not_believed():
    """Caches are left behind, or what a call costs at any size fades: both are found out."""
    for slope, skips in ((0, False), (1e-3, True)):
        asked = []

        def trial(size, reference, slope=slope, asked=asked):
            asked.append((size, reference))
            return [seq(0.01 + slope * size)]

        slow = predictor(SORT, trial=trial)
        slow.add(10, [seq(0.01)])  # 10 s by this at 10**7, for which the limit is 5
        assert bool(slow.skip(10**7)) == skips
        ((size, name),) = asked
        assert name == "c:seq" and 120_000 < size <= 125_000  # 125 ms by this
    caches = predictor(trial=lambda size, name: [seq(1e-5 * size**3)])
    caches.add(32, [seq(0.0128)])  # 27 s by this at 4096
    (reason,) = caches.skip(4096).values()
    assert "about 11 minutes" in reason


def test_nobody_tries_where_it_does_not_matter(rows):
    slow = predictor(SORT)
    slow.add(10, [seq(1e-5)])
    assert slow.skip(10**7) == {}  # 10 ms
    slow.add(10, [seq(10)])
    assert "3 hours" in slow.skip(10**7)["c:seq"]


def test_a_first_size_of_many_steps_is_tried_at_a_small_one():
    asked = []

    def trial(size, reference):
        asked.append((size, reference))
        return [seq(size**3 * 1e-6)] if reference == "c:seq" else []

    first = predictor(by_name=True, trial=trial)
    assert first.skip(64) == {} and not asked
    reasons = first.skip(8192)
    assert asked[0] == (512, "c:seq") and {size for size, name in asked if name != "c:seq"} == {512}
    assert "about 9 minutes, as it took 1.5 s at size=1144" in reasons["c:seq"]
    predictor().skip(8192)  # one that nobody named tries for itself, as in any comparison
