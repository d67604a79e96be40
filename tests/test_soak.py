"""`oclab soak`: random calls in threads, and what it says of planted faults."""

import inspect
import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.cli.main import main
from opencl_lab.lab.registry import operations
from opencl_lab.lab.soak import cases, memory, run
from opencl_lab.lab.soak.memory import Growth, Sample, growth
from opencl_lab.lab.soak.run import Soak
from opencl_lab.lab.soak.ways import Way, perform
from opencl_lab.ops.prepared import FUNCTIONS

WAYS = [
    Way(),
    Way(strided=True, out=True),
    Way(prepared=True, out=True, timed=True),
    Way(resident=True, out=True),
    Way(resident=True, strided=True, prepared=True, out=True),
]


def only(monkeypatch, sort, seconds=0.0):
    """Let all calls be sorts of a few keys, by a function in place of the library's."""

    def draw(drawer):
        def make(seed):
            keys = np.random.default_rng(seed).integers(0, 99, 40, np.int32)
            return cases.Case(sort, (keys,), {}, lambda got: cases._exact((np.sort(keys),), got))

        return make

    monkeypatch.setattr(cases, "KINDS", (draw,))


def planted(fault):
    """Return `sort` that does something wrong now and then."""
    calls = 0

    def sort(a, *, out=None, **how):
        nonlocal calls
        calls += 1
        result = ol.sort(a, out=out, **how)
        return fault(calls, a, result)

    return sort


@pytest.fixture(scope="module", autouse=True)
def built():
    """What the short sorts need is built before times begin."""
    keys = np.arange(40, dtype=np.int32)
    case = cases.Case(ol.sort, (keys,), {}, lambda got: None)
    for way in (*WAYS, *(replace(way, timed=True) for way in WAYS)):
        perform(case, way, select_device(), np.random.default_rng(1))


def soak(threads=2, seconds=0.4, seed=5):
    found = Soak(select_device(), threads, seed)
    found.run(seconds, seconds / 9, lambda sample: None)
    return found


def test_right_results_are_counted_and_the_memory_is_flat(monkeypatch):
    only(monkeypatch, ol.sort)
    found = soak()
    assert found.ok and not found.faults
    assert set(found.calls) == {"sort"} and found.calls.total() > 20
    assert found.samples[-1].calls > found.samples[0].calls
    assert found.growths["host"].early > 1 << 20


def test_a_case_that_cannot_be_drawn_is_a_fault(monkeypatch):
    def refuse(drawer):
        raise MemoryError("no room for the arrays")

    monkeypatch.setattr(cases, "KINDS", (refuse,))
    found = soak(seconds=0.1)
    assert not found.ok and "no room for the arrays" in found.faults[0].what


def test_no_calls_at_all_are_not_right():
    assert not Soak(select_device(), 1, 5).ok


@pytest.mark.parametrize("wrong", [1, 2])
def test_both_calls_are_judged_where_one_has_out(device, rng, wrong):
    sort = planted(lambda calls, a, result: _swap(7 if calls == wrong else 1, a, result))
    keys = np.arange(40, dtype=np.int32)
    case = cases.Case(sort, (keys,), {}, lambda got: cases._exact((keys,), got))
    seen, complaint = perform(case, Way(out=True), device, rng)
    assert not complaint and [case.judge(one).ok for one in seen] == [wrong != 1, wrong != 2]


def test_a_changed_c_is_found(device, rng):
    def gemm(a, b, *, c, device):
        c[0, 0] += 1
        return a @ b

    a = np.ones((4, 4), np.float32)
    case = cases.Case(gemm, (a, a), {"c": a}, lambda got: None)
    assert perform(case, Way(), device, rng)[1] == "an input was changed"


def _swap(calls, a, result):
    if calls % 7 == 0 and isinstance(result, np.ndarray):
        result[[3, -3]] = result[[-3, 3]]
    return result


def _change(calls, a, result):
    if calls % 7 == 0 and isinstance(a, np.ndarray):
        a[0] += 1
    return result


def _fail(calls, a, result):
    if calls % 7 == 0:
        raise ol.LaunchError("planted")
    return result


@pytest.mark.parametrize(
    ("fault", "what"),
    [(_swap, "max_rel"), (_change, "an input was changed"), (_fail, "LaunchError: planted")],
)
def test_a_planted_fault_is_found_and_can_be_repeated(monkeypatch, fault, what):
    only(monkeypatch, planted(fault))
    found = soak(threads=1)
    assert not found.ok and found.wrong.total() and found.calls.total() > found.wrong.total()
    assert len(found.faults) <= run.MOST_REPORTED
    thread, call = map(int, re.match(r"--only (\d+):(\d+): ", str(found.faults[0])).groups())
    assert what in str(found.faults[0]) and "sort(int32[40])" in str(found.faults[0])
    always = planted(lambda calls, a, result: fault(7, a, result))
    only(monkeypatch, always)
    again = Soak(select_device(), 1, 5)
    again.once(thread, call)
    assert [one.what for one in again.faults] == [found.faults[0].what]


def test_a_call_that_never_ends_is_a_fault(monkeypatch):
    monkeypatch.setattr(run, "HANG_SECONDS", 0.1)
    only(monkeypatch, planted(lambda calls, a, result: time.sleep(3)))
    found = soak(threads=1, seconds=0.05)
    assert "does not end: sort(int32[40])" in str(found.faults[0]) and not found.ok
    assert str(found.faults[0]).startswith("--only 0:0: ")


def test_a_leak_is_found(monkeypatch):
    kept = []
    only(monkeypatch, planted(lambda calls, a, result: kept.append(np.ones(1 << 15)) or result))
    monkeypatch.setattr(memory, "SLACK_BYTES", 0)
    monkeypatch.setattr(memory, "PROGRAM_BYTES", 0)
    found = soak()
    assert not found.wrong and not found.ok and not found.growths["host"].ok


def test_growth_is_judged_after_a_third_of_the_time_with_what_programs_may_keep():
    late = memory.SLACK_BYTES + 100 * memory.CALL_BYTES + 2 * memory.PROGRAM_BYTES

    def samples(more):
        host = [0, 10**12, 5, 5, *[5 + late + more] * 2]  # what is high before does not count
        return [Sample(25 * i, i // 2, host[i], None) for i in range(6)]

    assert growth(samples(0), "host") == Growth(5, 5 + late, 75, 1)
    assert not growth(samples(0), "host").ok
    assert Growth(5, 5 + late, 100, 2).ok and not Growth(5, 6 + late, 100, 2).ok
    assert growth(samples(0), "device") is None and growth([], "host") is None


@pytest.mark.full
@pytest.mark.parametrize("kind", range(len(cases.KINDS)))
def test_each_kind_of_call_is_right_in_each_way(device, rng, kind):
    draw = cases.KINDS[kind](cases.Drawer(device, rng))
    for seed, way in enumerate(WAYS):
        case = draw(seed)
        seen, complaint = perform(case, way, device, rng)
        assert len(seen) == 1 + way.out or "out" not in inspect.signature(case.function).parameters
        assert not complaint and all(case.judge(one).ok for one in seen), f"{case} {way}"


def test_all_operations_and_functions_are_drawn(device, rng):
    drawer = cases.Drawer(device, rng)
    made = [*cases.KINDS * 2, *[cases._transform] * 250]
    drawn = {kind(drawer)(1).function.__name__ for kind in made}
    others = {"argsort", "sort_by_key", "dft"}
    assert drawn >= {*operations(), *others} and drawn >= set(cases.transforms())
    pytest.importorskip("scipy")
    one_axis = {"fft", "ifft", "rfft", "irfft", "fftshift", "ifftshift", *others}  # of kinds above
    assert {*cases.transforms(), *one_axis} >= {name for name in FUNCTIONS if hasattr(ol.fft, name)}


def test_the_command_prints_tables_or_a_document(monkeypatch, capsys):
    only(monkeypatch, ol.sort)
    assert main(["soak", "--minutes", "0.005", "--threads", "2"]) == 0
    said = capsys.readouterr().out
    assert " calls, 0 wrong, " in said and "flat" in said and "sort" in said
    only(monkeypatch, planted(_swap))
    assert main(["soak", "--minutes", "0.005", "--threads", "2", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "soak" and not document["ok"]
    assert document["wrong"]["sort"] and document["calls"]["sort"] and document["faults"]
    assert document["growth"]["host"]["allowed"] > 0
    assert main(["soak", "--only", "3"]) == 2
    assert "'3' is not THREAD:CALL" in capsys.readouterr().err
