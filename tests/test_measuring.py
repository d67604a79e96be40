"""Rounds of samples, quiescing, timing sanity, poison."""

import math
from itertools import pairwise

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab.lab.measuring.guarded import Fingerprints
from opencl_lab.lab.measuring.rounds import BUDGET, LEAST_ROUNDS, STEADY, Rounds
from opencl_lab.lab.measuring.samples import interval_of_median
from opencl_lab.lab.measuring.timing_sanity import CLOCK_SLACK, implausible, unaccounted

# --- turns in rounds ----------------------------------------------------------------------------


class Clock:
    """A clock that only moves when somebody works or sleeps."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def steadily(milliseconds, width=0.0, seed=0):
    """Return a participant whose times vary by so much of them."""
    noise = np.random.default_rng(seed)
    return lambda made: milliseconds * (1 + width * noise.uniform(-1, 1))


def turns_of(participants, *arguments, seconds=None, **options):
    """Measure; return the turns, the samples, and the seconds that all took.

    A participant returns its next time in milliseconds, by how many it has, or None.
    """
    clock, samples = Clock(), [[] for _ in participants]
    begin, turns = clock(), []
    rounds = Rounds(samples, *arguments, clock=clock, **options)
    for turn in rounds:
        turns.append(turn)
        found = participants[turn.participant](len(samples[turn.participant]))
        clock.sleep(seconds[turn.participant] if seconds else (found or 1.0) * 1e-3)
        if found is not None:
            samples[turn.participant].append(found)
    return turns, samples, clock() - begin


def test_nobody_always_follows_the_same_neighbour():
    turns, _, _ = turns_of([steadily(1)] * 4, 60)
    order = [turn.participant for turn in turns]
    for begin in range(0, len(order), 4):
        assert sorted(order[begin : begin + 4]) == [0, 1, 2, 3]
    followed = {(one, other) for one, other in pairwise(order)}
    assert {(one, other) for one in range(4) for other in range(4) if one != other} <= followed
    again, _, _ = turns_of([steadily(1)] * 4, 60)
    other, _, _ = turns_of([steadily(1)] * 4, 60, seed=1)
    assert [turn.participant for turn in again] == order
    assert [turn.participant for turn in other] != order


def test_rests_do_not_come_on_top_of_the_budget():
    clock, samples = Clock(), [[], []]
    begin = clock.now

    def rested():
        clock.now += 0.1

    for turn in Rounds(samples, budget=3.0, quiesce=rested, clock=clock):
        clock.now += 0.01
        samples[turn.participant].append(1.0 + len(samples[turn.participant]))  # never steady
    assert clock.now - begin <= 3.0 and min(map(len, samples)) > LEAST_ROUNDS


def test_the_loose_go_on_until_their_median_is_known():
    _, samples, seconds = turns_of([steadily(5), steadily(50, 0.1)], budget=1000.0)
    assert len(samples[0]) == LEAST_ROUNDS < len(samples[1])
    low, high = interval_of_median(samples[1])
    assert high - low <= 2 * STEADY * np.median(samples[1])
    low, high = interval_of_median(samples[1][:-1])
    assert high - low > 2 * STEADY * np.median(samples[1][:-1]), "it went on for nothing"
    assert seconds < 1000.0


def test_who_overlaps_with_a_loose_one_is_measured_beside_it():
    _, samples, _ = turns_of([steadily(50), steadily(50, 0.1), steadily(90)], budget=1000.0)
    steady, loose, apart = map(len, samples)
    assert steady == loose > LEAST_ROUNDS == apart


def test_a_budget_ends_what_never_becomes_steady():
    def restless(made):
        return 2.0**made % 97

    for budget in (None, 3.0):
        _, samples, seconds = turns_of([restless], budget=budget, seconds=[0.01])
        limit = BUDGET if budget is None else budget
        assert limit - 0.02 <= seconds <= limit and len(samples[0]) > LEAST_ROUNDS


def test_first_turns_are_always_made_and_slow_ones_do_not_use_up_the_others_time():
    _, samples, seconds = turns_of(
        [steadily(7.0), steadily(1.0, 0.9), steadily(1.0, 0.9)], budget=6.0, seconds=[7.0, 0.1, 0.1]
    )
    slow, quick, other = map(len, samples)
    assert slow == 1 and min(quick, other) > LEAST_ROUNDS
    assert seconds <= 7.0 + 6.0


def test_a_budget_ends_rounds_that_were_asked_for():
    _, samples, seconds = turns_of([steadily(1.0)], 1000, 2.0, seconds=[0.5])
    assert len(samples[0]) == 4 and seconds == pytest.approx(2.0)
    _, samples, _ = turns_of([steadily(1.0)], 1000, seconds=[0.5])
    assert len(samples[0]) == 1000


def test_who_adds_no_sample_has_no_further_turn():
    def failing(made):
        return 1.0 if made < 2 else None

    turns, samples, _ = turns_of([failing, steadily(1.0)], 9)
    assert [len(made) for made in samples] == [2, 9]
    assert [turn.participant for turn in turns].count(0) == 3
    turns, _, _ = turns_of([lambda made: None])
    assert len(turns) == 1
    assert list(Rounds([])) == []


# --- samples ------------------------------------------------------------------------------------


# --- timing sanity ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel_ms", "host_ms", "launches", "believed"),
    [
        (1.0, 1.0, 1, True),
        (0.99 * CLOCK_SLACK, 1.0, 1, True),
        (1.01 * CLOCK_SLACK, 1.0, 1, False),
        (1.0, 500.0, 1, True),  # a single run may have waited
        (0.0, 1.0, 1, False),
        (0.0, 1.0, 0, True),
        (0.1, 1.0, 0, True),
        (-1.0, 1.0, 1, False),
        (math.nan, 1.0, 1, False),
        (math.inf, 1.0, 1, False),
    ],
)
def test_events_are_held_against_the_clock(kernel_ms, host_ms, launches, believed):
    said = implausible(kernel_ms, host_ms=host_ms, launches=launches)
    assert (said is None) == believed
    assert believed or ("cannot be believed" in said and f"{host_ms:#.3g} ms" in said)


@pytest.mark.parametrize(
    ("kernel_ms", "host_ms", "launches", "believed"),
    [
        (0.01, 6.0, 1, True),  # launches cost something, and a busy host lets them wait
        (0.01, 6.2, 1, False),
        (0.01, 6.2, 2, True),
        (5.0, 55.0, 1, True),
        (5.0, 57.0, 1, False),
    ],
)
def test_time_that_events_do_not_account_for_is_reported(kernel_ms, host_ms, launches, believed):
    assert (unaccounted(kernel_ms, host_ms, launches) is None) == believed


# --- fingerprints -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [1, 1023, 1024, 1025, 40_000])
def test_a_fingerprint_changes_with_any_bit_and_with_the_order(device, rng, words):
    queue = device.queue()
    fingerprints = Fingerprints(queue)
    contents = rng.integers(0, 1 << 32, words, np.uint32)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, contents.nbytes)

    def of(array):
        cl.enqueue_copy(queue, buffer, array)
        return fingerprints.of(buffer)

    whole = of(contents)
    seen = {whole}
    for place in {0, words // 2, words - 1}:
        changed = contents.copy()
        changed[place] ^= np.uint32(1 << 31)
        seen.add(of(changed))
    assert len(seen) == 1 + len({0, words // 2, words - 1})
    assert words == 1 or of(contents[::-1].copy()) not in seen
    assert of(contents) == whole


# --- poison -------------------------------------------------------------------------------------
