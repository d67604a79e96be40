"""Peaks of a device: measured by kernels that do all their work, stored, held against results."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
from rich.console import Console

from opencl_lab.core.plan import Work
from opencl_lab.core.template import Source
from opencl_lab.drivers.verdicts import store_found, verdict_file
from opencl_lab.lab.cli.main import main
from opencl_lab.lab.doctor.probes import throughput, transfers
from opencl_lab.lab.doctor.probing import ProbeSession
from opencl_lab.lab.engine.request import Point, Request
from opencl_lab.lab.engine.runner import run_point
from opencl_lab.lab.measuring.roofline import (
    Peaks,
    above_peak,
    fraction_of_peak,
    refusal,
    stored_peaks,
)
from opencl_lab.lab.presentation.table import comparison_table
from opencl_lab.lab.registry import get_operation
from opencl_lab.selftest import kernels
from opencl_lab.selftest.kernels import Wrong

PEAKS = Peaks(flops32=8e12, flops64=4e12, copy_bytes=1e11, cached_bytes=5e11)


@pytest.mark.parametrize(
    ("work", "dtype", "milliseconds", "fraction"),
    [
        (Work(8e9, 0), "float32", 2, 0.5),
        (Work(8e9, 0), "float64", 2, 1.0),
        (Work(8e9, 0), "complex128", 4, 0.5),
        (Work(8e9, 3e8), "float32", 4, 0.75),  # the traffic takes 3 ms, the arithmetic 1
        (Work(0, 1e8), "int32", 0.5, 2.0),  # from a cache
        (Work(8e9, 1e8), None, 2, 0.5),
        (Work(8e9, 0), "int32", 2, None),
        (Work(8e9, 1e8), "float32", 0, None),
    ],
)
def test_fraction_of_the_roofline(work, dtype, milliseconds, fraction):
    found = fraction_of_peak(work, None if dtype is None else np.dtype(dtype), milliseconds, PEAKS)
    assert found == (None if fraction is None else pytest.approx(fraction))
    assert fraction_of_peak(work, np.float32, milliseconds, None) is None


@pytest.mark.parametrize(
    ("work", "dtype", "refused"),
    [
        (Work(57e12, 0), "float32", "claims 57 TFLOP/s where the device's measured peak is 8 T"),
        (Work(9.9e12, 0), "float32", None),  # within the tolerance
        (Work(9.9e12, 0), "float64", "measured peak is 4 TFLOP/s"),
        (Work(0, 6e11), "float32", None),  # as fast as a cache, and a little faster
        (Work(0, 7e11), "int8", "claims 700 GB/s where the device's measured peak is 500 GB/s"),
    ],
)  # fmt: skip
def test_refusal_above_the_peak(work, dtype, refused):
    reason = refusal(work, np.dtype(dtype), 1e3, PEAKS)
    assert reason is None if refused is None else refused in reason


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_stored_findings_come_back_as_peaks(device, cache):
    assert stored_peaks(device) is None
    found = {"flops32": 2.5e11, "flops64": False, "copy_bytes": 3e10, "max_work_group": 4096}
    store_found(device.key, found)
    assert stored_peaks(device) == Peaks(flops32=2.5e11, copy_bytes=3e10)
    store_found(device.key, {"flops32": 2.50001e11})  # a new doctor is heard at once
    assert stored_peaks(device) == Peaks(flops32=2.50001e11)
    store_found(device.key, {"flops32": False})
    assert stored_peaks(device) is None


def compare(device, peaks):
    """Sort with the peaks that a doctor would have stored."""
    store_found(device.key, peaks)
    assert verdict_file(device.key).exists()
    sort = get_operation("sort")
    options = sort.with_defaults({"n": 20_000, "dtype": "float32"})
    problem = sort.problem(**options)
    return run_point(
        Point(
            sort,
            problem,
            lambda: sort.generate(problem, 3, **options),
            Request(against="numpy", repeats=2),
        ),
        device=device,
    )


def table_of(comparison):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(comparison_table(comparison.measurements, ""))
    return capture.get()


def test_more_than_the_peak_is_never_shown_without_a_word(device, cache):
    comparison = compare(device, {"copy_bytes": 1e3, "cached_bytes": 1e15})
    ours, numpy = comparison.measurements
    assert ours.peak > 1 and "caches" in ours.peak_note and numpy.peak_note == ""
    assert ours.as_row()["peak_note"] == ours.as_csv()["peak_note"] == ours.peak_note
    table = table_of(comparison)
    assert ">100 │" in table and f">100 % of peak: {ours.peak_note}" in table
    work, peaks = Work(flops=1.1e9, bytes=1), Peaks(flops32=1e12, copy_bytes=1e12)
    assert "arithmetic" in above_peak(work, np.float32, 1.0, peaks)
    assert above_peak(work, np.float32, 1.2, peaks) == above_peak(work, None, 1.0, None) == ""


def test_a_comparison_refuses_what_is_faster_than_the_peak(device, cache):
    if not device.capabilities.event_timing:
        pytest.skip("no kernel times")
    comparison = compare(device, {"copy_bytes": 1e3, "cached_bytes": 2e3})
    ours, numpy = comparison.measurements
    assert ours.status == "runtime" and "measured peak is 2 kB/s" in ours.reason
    assert comparison.exit_status == 4 and numpy.ok


# --- the probes ---------------------------------------------------------------------------------


@pytest.fixture(params=["cpu", "gpu"])
def session(device, request):
    """A session on the device under test, taken for a CPU and for a GPU."""
    small = replace(device, kind=request.param, compute_units=min(device.compute_units, 2))
    return ProbeSession(small)


def arithmetic(session, dtype=np.float32):
    return throughput._Arithmetic(session, dtype, 4, 3)


def copying(session):
    size = 1 << 18
    buffers = tuple(cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
    return throughput._Copy(session, buffers, size, 4, 1024)


@pytest.mark.few
@pytest.mark.parametrize("make", [arithmetic, copying])
@pytest.mark.parametrize("rounds", [1, 7])
def test_trials_compute_what_they_should(session, make, rounds):
    candidate = make(session)
    candidate.build()
    candidate.rounds = rounds
    assert candidate.launch() > 0 and candidate.best > 0
    candidate.verify()


@pytest.mark.few
@pytest.mark.parametrize(
    ("make", "whole", "lazy"),
    [
        (arithmetic, "x1 = x1 * scale + shift;", ""),
        (arithmetic, "round < rounds", "round < rounds - 1"),
        (arithmetic, " + own", ""),
        (copying, "k < per_item; k +=", "k < per_item / 2; k +="),
        (copying, "] = v1;", "] = v0;"),
    ],
)
def test_work_that_is_left_out_is_seen(session, make, whole, lazy, monkeypatch):
    render = kernels.render

    def cheat(template, parameters):
        text = render(template, parameters).text
        assert whole in text
        return Source(template, text.replace(whole, lazy))

    monkeypatch.setattr(kernels, "render", cheat)
    candidate = make(session)
    candidate.build()
    candidate.launch()
    with pytest.raises(Wrong):
        candidate.verify()


def test_a_race_ends_with_the_fastest_of_those_that_work(device, monkeypatch):
    if device.simulated:
        pytest.skip("a simulator has no speed")
    monkeypatch.setattr(throughput, "STALL_SECONDS", 0.05)

    def candidates(session):
        for chains in (1, 4):
            yield throughput._Arithmetic(session, np.float32, 4, chains)
        lazy = throughput._Arithmetic(session, np.float32, 4, 2)
        lazy.amount = 1e30  # it would win
        monkeypatch.setattr(lazy, "verify", fail)
        yield lazy

    def fail():
        raise Wrong("planted")

    *steps, last = throughput.race(device, "FLOP/s", candidates)
    tried = dict.fromkeys(step.trying for step in steps)
    assert list(tried) == [f"{n} chains of float4" for n in (1, 4, 2)]
    first, second = steps[0], next(step for step in steps if step.value)
    assert first.value is None and second.value > 0 and "FLOP/s" in second.reached
    assert last.word == "ok" and second.value < last.value < 1e20
    assert Peaks.of({"flops32": last.value}) is not None


def test_a_simulator_and_a_device_without_doubles_have_no_peak(device):
    (step,) = throughput.copy_bytes(replace(device, simulated=True))
    assert step.word == "no"
    poor = replace(device, capabilities=replace(device.capabilities, fp64=False))
    (step,) = throughput.flops64(poor)
    assert step.word == "no"


@pytest.mark.parametrize("name", ["send_bytes", "fetch_bytes", "send_plain_bytes"])
def test_rates_of_copies_from_and_to_the_host_are_peaks(name, device, monkeypatch):
    monkeypatch.setattr(transfers, "SIZES", (1 << 14, 1 << 16))
    monkeypatch.setattr(throughput, "STALL_SECONDS", 0.01)
    probe = getattr(transfers, name)
    *steps, last = probe(replace(device, unified_memory=False, simulated=False))
    tried = dict.fromkeys(step.trying for step in steps)
    assert list(tried) == ["16 KiB at once", "64 KiB at once"]
    assert getattr(Peaks.of({name: last.value}), name) == last.value > 0
    (step,) = probe(replace(device, unified_memory=True))
    assert step.word == "no" and "nothing is copied" in step.detail


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("sends", [False, True])
def test_copies_that_leave_something_out_are_seen(device, pinned, sends):
    candidate = transfers._Transfer(ProbeSession(device), 1 << 16, pinned, sends)
    candidate.build()
    assert candidate.launch() > 0
    candidate.verify()
    whole, candidate.array = candidate.array, candidate.array[:-1]
    candidate.launch()
    candidate.array = whole
    with pytest.raises(Wrong, match="1 of 16384"):
        candidate.verify()


def test_the_list_of_devices_has_the_peaks(device, cache, capsys):
    store_found(device.key, {"flops32": 2.5e11, "x": 1.0})
    assert main(["devices", "--device", device.spec]) == 0
    assert "peaks that oclab doctor measured: flops32 250 GFLOP/s\n" in capsys.readouterr().out
    assert main(["devices", "--device", device.spec, "--json"]) == 0
    peaks = json.loads(capsys.readouterr().out)["peaks"]
    assert peaks["flops32"] == 2.5e11 and peaks["copy_bytes"] is None
