"""The doctor: however a probe ends, that is a finding, and findings become capabilities."""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest
from rich.console import Console

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.drivers import discovery as device_module
from opencl_lab.drivers.discovery import devices
from opencl_lab.drivers.verdicts import store_found, verdict_file
from opencl_lab.lab.cli.doctor import tables_of
from opencl_lab.lab.doctor import diagnose
from opencl_lab.lab.doctor.diagnose import PROBES, Finding, Probe, Report, examine, values_of
from opencl_lab.lab.doctor.toolchain import toolchain
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.workers.serving import find

PLANTED = """
import ctypes, os, time
from opencl_lab.drivers.verdicts import Verdict
from opencl_lab.selftest.child import Trying

def segfault(device):
    yield Trying("16 bytes", 0)
    yield Trying("64 bytes", 32)
    ctypes.string_at(0)  # a real fault: the handler that LLVM installs swallows a sent signal

def killed(device):
    yield Trying("a large buffer", 32)
    os.kill(os.getpid(), 9)

def unclaimed_crash(device):
    yield Trying("a feature", claimed=False)
    os.abort()

def claimed_crash(device):
    yield Trying("a feature")
    os.abort()

def hang(device):
    yield Trying("patience")
    if os.fork() == 0:  # a compiler that the driver has started
        with open(os.environ["PLANTED_PID"], "w") as out:
            out.write(str(os.getpid()))
        time.sleep(600)
    while True:
        time.sleep(0.01)

def raises(device):
    yield Trying("arithmetic")
    1 / 0

def silent(device):
    return iter(())

def fast_crash(device):
    yield Trying("one chain", 2.5e11, reached="250 GFLOP/s")
    os.abort()

def ends_the_process(device):
    yield Trying("arithmetic", 7)
    print("to stdout, as drivers do", flush=True)
    os.write(2, b"LLVM ERROR: planted\\n")
    os._exit(1)

def chatty(device):
    print("to stdout, as drivers do", flush=True)
    yield Trying("x")
    yield Verdict("ok", "eight", 8)
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "planted_probes.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PLANTED_PID", str(tmp_path / "pid"))
    return tmp_path


def plant(name: str) -> Probe:
    return Probe(f"planted_probes:{name}", name, "do something")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "verdict", "value", "told"),
    [
        ("segfault", "limited", 32, "up to 32; 64 bytes: the driver ended the process (SIGSEGV"),
        ("unclaimed_crash", "no", False, "the driver ended the process (SIGABRT"),
        ("killed", "unknown", None, "a child process ended: SIGKILL"),
        ("claimed_crash", "broken", False, "the driver ended the process (SIGABRT"),
        ("raises", "unknown", None, "ZeroDivisionError"),
        ("silent", "unknown", None, "without a verdict"),
        ("ends_the_process", "limited", 7, "exit status 1, LLVM ERROR: planted)"),
        (
            "fast_crash",
            "limited",
            2.5e11,
            "up to 250 GFLOP/s; one chain: the driver ended the process",
        ),
        ("chatty", "ok", 8, "eight"),
        ("not_there", "unknown", None, "AttributeError"),
    ],
)
def test_every_end_of_a_probe_is_a_finding(
    planted: Path, device: Device, name: str, verdict: str, value: object, told: str
) -> None:
    (finding,) = examine(device, [plant(name)], time_limit=10)
    assert (finding.verdict, finding.value) == (verdict, value), finding
    assert told in finding.detail


@pytest.mark.full
def test_a_device_that_a_new_process_does_not_find_is_told(planted: Path, device: Device) -> None:
    (finding,) = examine(replace(device, name="another"), [plant("chatty")], time_limit=60)
    assert finding.verdict == "unknown" and finding.value is None
    assert finding.detail.startswith("no child process: DeviceNotFound: ")


@pytest.mark.full
def test_a_hanging_probe_is_killed_with_all_that_it_started(planted: Path, device: Device) -> None:
    found = {f.name: f for f in examine(device, [plant("hang"), plant("chatty")], time_limit=3)}
    assert found["hang"].verdict == "broken"
    assert "no answer within 3 s" in found["hang"].detail
    assert found["chatty"].verdict == "ok"
    grandchild = Path("/proc", (planted / "pid").read_text(), "stat")
    deadline = time.monotonic() + 5
    while grandchild.exists() and grandchild.read_text().split()[2] not in "ZX":
        assert time.monotonic() < deadline, "the grandchild lives on"
        time.sleep(0.05)


def test_leaving_early_kills_the_children(planted: Path, device: Device) -> None:
    running = examine(device, [plant("chatty"), plant("hang")], time_limit=60)
    assert next(running).name == "chatty"
    begin = time.monotonic()
    running.close()
    assert time.monotonic() - begin < 5


def test_each_capability_and_each_peak_has_a_probe() -> None:
    names = {probe.name for probe in PROBES}
    told = {"item_registers", "sub_group"}  # by extensions: nothing to try
    assert {item.name for item in fields(Capabilities)} - told <= names
    assert {item.name for item in fields(Peaks)} <= names
    assert all(callable(find(probe.target)) for probe in PROBES)


def test_stored_findings_come_back_as_capabilities(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    device_module._discover.cache_clear()
    try:
        claimed = next(d for d in devices() if d.key == device.key).capabilities
        found = [
            Finding("vector_bytes", "", "limited", "", 32),
            Finding("forward_progress", "", "ok", "", True),
            Finding("max_work_group", "", "limited", "", 16),
            Finding("fp64", "", "unknown", "", None),
            Finding("fp16", "", "ok", "", 7),  # of a wrong type: left out
        ]
        path = store_found(device.key, values_of(found))
        assert path is not None
        device_module._discover.cache_clear()
        probed = next(d for d in devices() if d.key == device.key).capabilities
        expected = replace(claimed, vector_bytes=32, forward_progress=True, max_work_group=16)
        assert probed == expected
        for corrupt in ("", '{"key": ', "[]", '{"key": "another", "found": {}}'):
            path.write_text(corrupt)
            device_module._discover.cache_clear()
            assert next(d for d in devices() if d.key == device.key).capabilities == claimed
    finally:
        monkeypatch.undo()
        device_module._discover.cache_clear()


def test_report_stops_where_no_kernel_runs(
    planted: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(planted / "cache"))
    monkeypatch.setattr(diagnose, "PROBES", (plant("claimed_crash"), plant("hang")))
    told: list[str] = []
    report = diagnose.report(device, lambda finding: told.append(finding.name))
    assert told == ["claimed_crash"]
    assert report.stored == verdict_file(device.key)
    assert report.stored is not None and report.stored.exists()


def test_a_machine_without_a_linker_is_no_finding_about_the_device(
    planted: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(planted / "cache"))
    monkeypatch.setenv("PATH", str(planted))
    monkeypatch.setattr(diagnose, "PROBES", (plant("claimed_crash"),))
    pocl = replace(device, platform_version="OpenCL 3.0 PoCL 3.0  Linux")
    told: list[Finding] = []
    report = diagnose.report(pocl, told.append)
    assert report.findings == tuple(told) and told[0].verdict == "broken"
    assert "`ld`" in told[0].detail and "binutils" in told[0].detail and not told[0].advice
    assert report.stored is None and not verdict_file(pocl.key).exists()
    linker = next(tool for tool in report.tools if tool.name == "linker")
    assert linker.verdict == "missing" and "binutils" in linker.advice


def test_report_renders_as_table_and_document(device: Device) -> None:
    found = (
        Finding("fp64", "double precision", "ok", "right", True),
        Finding("fp16", "half", "no", "[red]markup", False),
        Finding("flops32", "peak", "ok", "250 GFLOP/s", 2.5e11),
    )
    report = Report(device, found, toolchain(), None)
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(*tables_of(report))
    assert "double precision" in capture.get() and "[red]markup" in capture.get()
    document = json.loads(json.dumps(report.as_dict()))
    assert document["schema"] == "oclab/1" and document["command"] == "doctor"
    assert [probe["name"] for probe in document["probes"]] == ["fp64", "fp16", "flops32"]
    assert document["peaks"]["flops32"] == 2.5e11 and document["peaks"]["copy_bytes"] is None
    assert {"name", "verdict", "detail", "advice"} <= set(document["probes"][0])
    tools = [tool["name"] for tool in document["toolchain"]]
    assert tools == ["linker", "C compiler", "OpenMP", "MPI"]
