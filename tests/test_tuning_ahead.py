"""Builders: programs are compiled ahead, and whatever one does, the search goes on without it."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import planted
import pytest
from tuning_runs import GPU

from opencl_lab.lab.tuning import ahead as module
from opencl_lab.lab.tuning.ahead import FEW, LEAST_BATCH, Ahead, builders_for
from opencl_lab.lab.tuning.evaluation import Built, Evaluation
from opencl_lab.lab.tuning.sandbox import Sandbox
from opencl_lab.lab.tuning.tuner import make_task
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import Died

FOREVER = math.inf
CONFIGS = [planted.config("none", size) for size in range(1, 13)]


class Fake:
    """A builder that answers at once, but for configurations that a test holds back."""

    made, held, says, failing = (), (), (), ""  # as the fixture sets them

    def __init__(self, opening, nice):
        assert opening == "task" and nice > 0
        self._ended = threading.Event()
        self.asked, self.wholes = [], []
        self.made.append(self)

    def answer(self, deadline):
        if self.failing:
            raise Failed(self.failing)

    def send(self, method, config, whole):
        assert method == "build"
        self.asked.append(config["WG_SIZE"])
        self.wholes += self.asked[-1:] if whole else []

    def receive(self, deadline):
        size = self.asked[-1]
        event = self.held.get(size)
        while event is not None and not event.wait(0.005):
            if self._ended.is_set():
                raise Died(-signal.SIGKILL, "")
            if time.monotonic() > deadline:
                raise TimeoutError
        answer = self.says.get(size, Built(5.0))
        if answer is module.CRASHED:
            raise Died(-signal.SIGKILL, "")
        return "done", answer

    def stop(self):
        self._ended.set()

    kill = stop


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(module, "Worker", Fake)
    for name, value in {"made": [], "held": {}, "says": {}, "failing": ""}.items():
        monkeypatch.setattr(Fake, name, value)
    return Fake


def started(count, **options):
    return Ahead("task", count, **{"alternate": False, **options})


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


# ------------------------------------------------------- with processes made up


def test_on_a_cpu_a_batch_is_built_and_nothing_while_it_is_measured(fake):
    ahead = started(2, alternate=True)
    assert ahead.choose(CONFIGS, FOREVER) == CONFIGS[0]
    for config in CONFIGS[:LEAST_BATCH]:
        assert ahead.choose(CONFIGS[CONFIGS.index(config) :], FOREVER) == config
        time.sleep(0.02)
        assert ahead.built == LEAST_BATCH and not ahead._building
    assert ahead.choose(CONFIGS[LEAST_BATCH:], FOREVER) == CONFIGS[LEAST_BATCH]
    assert ahead.built == 2 * LEAST_BATCH
    ahead.close()


def test_what_cannot_be_built_is_a_verdict_and_a_crash_is_none(fake):
    fake.says = {
        1: Built(7.0, "compile", "did not build: error"),
        2: module.CRASHED,
        3: Built(5.0, reason="out of memory"),
    }
    ahead = started(1, alternate=True)
    ahead.choose(CONFIGS, FOREVER)
    verdict = ahead.verdict(CONFIGS[0])
    assert (verdict.status, verdict.reason) == ("compile", "did not build: error")
    assert verdict.build_ms == 7.0 and verdict.timestamp
    assert [ahead.verdict(config) for config in CONFIGS[1:4]] == [None] * 3
    assert len(fake.made) == 2  # another after the crash
    ahead.close()


def test_a_build_without_end_is_a_timeout_and_another_builder_goes_on(fake):
    fake.held = {2: threading.Event()}
    ahead = started(1, alternate=True, timeout=0.05)
    ahead.choose(CONFIGS, FOREVER)
    verdict = ahead.verdict(CONFIGS[1])
    assert verdict.status == "timeout" and "timed out after 0.05 s" in verdict.reason
    assert ahead.built == LEAST_BATCH and len(fake.made) == 2 and fake.made[0]._ended.is_set()
    ahead.close()


@pytest.mark.parametrize("alternate", [False, True])
def test_builders_that_cannot_start_leave_the_work_to_who_measures(fake, alternate):
    fake.failing = "no device any more"
    ahead = started(2, alternate=alternate)
    assert ahead.choose(CONFIGS, FOREVER) == CONFIGS[0]
    until(lambda: not ahead._working)
    assert "no device any more" in ahead.trouble
    assert ahead.choose(CONFIGS[3:], FOREVER) == CONFIGS[3] and ahead.built == 0
    ahead.close()


@pytest.mark.parametrize(
    ("ahead_ms", "here_ms", "stops"),
    [(1000.0, 500.0, False), (1000.0, 950.0, True), (20.0, 19.0, False)],  # the last was known
)
def test_a_driver_that_keeps_nothing_is_noticed(fake, ahead_ms, here_ms, stops):
    fake.says = {size: Built(ahead_ms) for size in range(1, 13)}
    ahead = started(2, alternate=True)
    for place, config in enumerate(CONFIGS[:FEW]):
        assert ahead.choose(CONFIGS[place:], FOREVER) == config
        ahead.learn(Evaluation(config, "correct", times_ms=(1.0,), build_ms=here_ms))
    assert bool(ahead.trouble) is stops
    assert ("does not reuse builds" in ahead.trouble) is stops
    assert all(process._ended.is_set() for process in fake.made) is stops
    ahead.close()


def test_how_many_there_are(monkeypatch):
    monkeypatch.setattr(module, "default_threads", lambda: 16)
    monkeypatch.setattr(module, "host_memory", lambda: 64 << 30)
    gpu = replace(GPU, global_memory=140 << 30)
    assert builders_for(gpu) == 15 and builders_for(replace(gpu, kind="cpu")) == 16
    assert builders_for(replace(gpu, global_memory=8 << 30)) == 4
    monkeypatch.setattr(module, "host_memory", lambda: 4 << 30)
    assert builders_for(gpu) == 2
    monkeypatch.setattr(module, "default_threads", lambda: 1)
    assert builders_for(gpu) == builders_for(replace(gpu, kind="cpu")) == 0


# ---------------------------------------------------------------- on a device


@pytest.fixture(scope="module")
def sandbox():
    made = Sandbox(make_task(planted.PLANTED, device="cpu"), timeout=3.0, builders=2)
    yield made
    made.close()


@pytest.mark.full
def test_builders_judge_as_whoever_measures_does(sandbox):
    asked = [planted.config(fault) for fault in ("none", "syntax", "crash", "wrong", "hang")]
    statuses = {}
    left = list(asked)
    while left:
        config = sandbox.ahead.choose([*left, planted.config("none", 64)], FOREVER)
        if config in left:
            left.remove(config)
            statuses[config["FAULT"]] = sandbox.evaluate(config, FOREVER, FOREVER)
    assert {fault: item.status for fault, item in statuses.items()} == {
        "none": "correct", "syntax": "compile", "crash": "runtime", "wrong": "correctness",
        "hang": "timeout",
    }  # fmt: skip
    assert "did not build" in statuses["syntax"].reason
    assert "the process died: SIG" in statuses["crash"].reason
    assert sandbox.ahead.built >= len(asked)


SCRIPT = """
import planted
import opencl_lab as ol
ol.tune(planted.PLANTED, strategy="exhaustive", budget=50, timeout=30, builders=2, device="cpu")
"""


def _children(parent):
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_an_interrupt_leaves_no_builder(private_data):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: len(_children(process.pid)) >= 3)
        started = _children(process.pid)
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
        until(lambda: not any(Path(f"/proc/{child}").exists() for child in started))
    finally:
        process.kill()
        process.wait()
