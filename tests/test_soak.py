"""The soak: random calls in threads, and what it says of planted faults."""

import re
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.drivers.discovery import select_device
from opencl_lab.ops.trial import Drawer, Task, Trial

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import soak as tool


def only(monkeypatch, fault=lambda calls, a, result: result):
    """Let all calls be sorts of a few keys, of which every third goes wrong."""
    calls = 0

    def sort(a, *, out=None, queue=None):
        nonlocal calls
        calls += 1
        result = ol.sort(a, out=out, queue=queue)
        return fault(calls, a, result) if calls % 3 == 0 else result

    def task(rng):
        keys = rng.integers(0, 99, 40, np.int32)
        return Task(partial(sort), (keys,), (np.sort(keys),))

    monkeypatch.setattr(tool, "draw", lambda device, rng: Trial("40", task, "int32", True))


def soak(seconds=0.5, threads=2):
    found = tool.Soak(select_device(), 5)
    found.run(seconds, threads)
    return found


def test_right_results_are_counted_and_the_memory_is_flat(monkeypatch):
    only(monkeypatch)
    soak()  # builds
    found = soak()
    assert not found.faults and not found.growth() and found.calls.total() > 1
    monkeypatch.setattr(tool, "SLACK_BYTES", -(1 << 40))
    assert "the memory of the process grew by" in found.growth()[0]


def _swap(calls, a, result):
    result[..., [3, -3]] = result[..., [-3, 3]].copy() + 100
    return result


def _change(calls, a, result):
    a += 1
    return result


def _fail(calls, a, result):
    raise ol.LaunchError("planted")


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (_swap, "numbers are wrong"),
        (_change, "an input was changed"),
        (_fail, "LaunchError: planted"),
        (lambda calls, a, result: result.copy(), "the result is not out"),
    ],
)
def test_a_planted_fault_is_found(monkeypatch, fault, what):
    def on_host(calls, a, result):
        return fault(calls, a, result) if isinstance(result, np.ndarray) else result

    only(monkeypatch, on_host)
    found = soak(seconds=1)
    assert what in "".join(found.faults) and found.calls.total() > len(found.faults)
    assert re.match(r"--seed 5 --only [01]:\d+: ", found.faults[0])


def test_a_call_that_never_ends_is_a_fault(monkeypatch):
    monkeypatch.setattr(tool, "HANG_SECONDS", 0.1)
    only(monkeypatch, lambda calls, a, result: time.sleep(3) or result)
    assert "a call of thread 0 does not end" in soak(threads=1).faults


def test_what_is_written_beside_a_result_is_found(device):
    """As a call that is replayed for another layout would."""
    queues = [device.queue()] * 2
    keys = np.arange(40, dtype=np.int32)[::-1].copy()
    trial = Trial("40", lambda rng: Task(partial(_wide), (keys,), (keys[::-1],)), "int32", True)
    way = tool.Way(Drawer(device, np.random.default_rng(1)))
    way.resident, way.prepared, way.out, way.wrong = False, False, "new", ""
    way.laid = {(0, 1): ((0,), (1,), 0), ("out 0", 1): ((0,), (2,), 0)}
    wrong = tool.perform(trial, way, queues, np.random.default_rng(1))
    assert wrong == "an input was changed, or what lies beside a result"


def _wide(a, *, out, queue):
    out[:] = np.sort(a)
    out.base[-1] ^= 1
    return out


@pytest.mark.full
@pytest.mark.parametrize("trials", tool.DRAWN, ids=lambda trials: trials.solver.name)
def test_each_operation_is_right_in_each_way(device, trials):
    queues = [device.queue()] * 2
    for seed in range(12):
        d = Drawer(device, np.random.default_rng(seed))
        trial, way = trials.draw(d), tool.Way(d)
        assert not tool.perform(trial, way, queues, np.random.default_rng(seed)), f"{trial} {way}"


def test_the_command_counts_and_fails_for_a_fault(monkeypatch, capsys):
    only(monkeypatch)
    assert tool.main(["--minutes", "0.005", "--threads", "1"]) == 0
    assert " calls, 0 faults" in capsys.readouterr().out
    only(monkeypatch, _fail)
    assert tool.main(["--minutes", "0.01", "--threads", "1"]) == 1
    assert "--only 0:" in capsys.readouterr().out
    only(monkeypatch)  # the calls are counted anew
    assert tool.main(["--only", "0:3"]) == 0
