"""The sandbox with planted kernels: whatever one does, it costs no more than itself."""

import math
import os
import signal
import time

import numpy as np
import planted
import pyopencl as cl
import pytest

from opencl_lab.lab.measuring.guarded import LEAST_GUARD, Guarded
from opencl_lab.lab.measuring.poison import POISON
from opencl_lab.lab.tuning.sandbox import Sandbox
from opencl_lab.lab.tuning.tuner import make_task

FOREVER = math.inf


@pytest.fixture(scope="module")
def task():
    return make_task(planted.PLANTED, device="cpu")


@pytest.fixture(scope="module")
def sandbox(task):
    """One for all tests, whose worker is replaced where one has died."""
    made = Sandbox(task, timeout=8.0)
    yield made
    made.close()


def evaluate(sandbox, fault, best_ms=math.inf):
    return sandbox.evaluate(planted.config(fault), best_ms, FOREVER)


def test_a_right_configuration_is_timed(sandbox):
    evaluation = evaluate(sandbox, "none")
    assert evaluation.status == "correct" and evaluation.reason == ""
    assert len(evaluation.times_ms) >= 3 and min(evaluation.times_ms) > 0
    assert evaluation.build_ms > 0 and evaluation.check_ms > 0 and evaluation.timestamp
    assert sandbox.restarts >= 1


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        ("wrong", "correctness", "wrong result on n=1009"),
        ("lazy", "correctness", "wrong result on n=1009"),
        ("syntax", "compile", "did not build"),
        ("missing", "compile", "missing FAULT"),
        ("crash", "runtime", "the process died: SIG"),
        ("before", "correctness", "byte 5 before it"),
        ("after", "correctness", "byte 13 after it"),
        ("input", "correctness", "writes to its input 'source'"),
        ("spoil", "correctness", "writes to its input 'source'"),
        ("spoil-large", "correctness", "writes to its input 'source' on n=5000"),
        ("far", "correctness", "outside the array 'doubled' on n=5000"),
        ("later", "correctness", "wrong result on n=5000"),
    ],
)
def test_a_fault_is_that_configuration_s_own(sandbox, fault, status, said):
    evaluate(sandbox, "none")
    evaluation = evaluate(sandbox, fault)
    assert evaluation.status == status
    assert said in evaluation.reason
    assert evaluation.times_ms == () and evaluation.time_ms == math.inf
    assert evaluate(sandbox, "none").status == "correct"


@pytest.mark.full
def test_a_hang_ends_in_time_and_leaves_no_process(sandbox):
    evaluate(sandbox, "none")
    worker = sandbox._worker.process
    begin = time.monotonic()
    evaluation = evaluate(sandbox, "hang")
    assert time.monotonic() - begin < 60  # the limit is 8 s; without it this would never end
    assert (evaluation.status, evaluation.times_ms) == ("timeout", ())
    assert "timed out after 8 s" in evaluation.reason
    assert worker.poll() == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.killpg(worker.pid, 0)
    assert evaluate(sandbox, "none").status == "correct"


def test_out_of_bounds_writes_cost_the_worker_but_wrong_results_do_not(sandbox):
    evaluate(sandbox, "none")
    before = sandbox.restarts
    evaluate(sandbox, "wrong")
    assert sandbox.restarts == before
    evaluate(sandbox, "after")
    evaluate(sandbox, "none")
    assert sandbox.restarts == before + 1


def test_an_interrupt_while_it_asks_for_the_worker_does_not_hang(sandbox, check_end):
    evaluate(sandbox, "none")
    check_end(sandbox._worker.process, sandbox.close)


def test_what_is_hopeless_runs_once(sandbox):
    best = evaluate(sandbox, "none")
    assert len(evaluate(sandbox, "slow", best.time_ms).times_ms) == 1
    assert len(evaluate(sandbox, "slow", FOREVER).times_ms) >= 3


@pytest.mark.full
def test_the_tuner_s_own_time_ends_a_configuration_without_a_verdict(task, monkeypatch):
    monkeypatch.setattr("opencl_lab.lab.tuning.sandbox.GRACE_SECONDS", 0.5)
    sandbox = Sandbox(task)  # without a timeout the first limit is a minute
    try:
        assert sandbox.evaluate(planted.config("none"), math.inf, 60).status == "correct"
        begin = time.monotonic()
        assert sandbox.evaluate(planted.config("hang"), math.inf, 0.5) is None
        assert time.monotonic() - begin < 30
    finally:
        sandbox.close()


def test_finals_check_what_this_worker_has_not_checked(sandbox):
    assert sandbox.again(planted.config("wrong"), FOREVER).status == "correctness"
    assert sandbox.again(planted.config("none"), FOREVER).status == "correct"
    again = sandbox.again(planted.config("none"), FOREVER)
    assert again.status == "correct" and len(again.times_ms) >= 3 and again.build_ms == 0


def test_guards_tell_where_they_were_hit(device):
    queue = device.queue(profiling=True)
    guarded = Guarded(queue, (3, 5), np.dtype(np.int16))
    guarded.poison()
    assert guarded.damage() is None
    assert guarded.array.get(queue).tobytes() == bytes([POISON]) * 30
    guarded.array.set(np.arange(15, dtype=np.int16).reshape(3, 5), queue)
    assert guarded.damage() is None
    host = np.full(guarded._size, POISON, np.uint8)
    for place, said in (
        (guarded._guard - 1, "byte 1 before"),
        (0, f"byte {guarded._guard} before"),
        (guarded._end, "byte 1 after"),
        (guarded._size - 1, f"byte {guarded._guard} after"),
    ):
        hit = host.copy()
        hit[place] ^= 1
        cl.enqueue_copy(queue, guarded.buffer, hit)
        assert said in guarded.damage()
    assert guarded._guard >= LEAST_GUARD
