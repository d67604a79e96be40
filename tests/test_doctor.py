"""The doctor: however a probe ends, that is a finding, and findings become capabilities."""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest
from rich.console import Console

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.kernels import lacks_type
from opencl_lab.drivers import discovery as device_module
from opencl_lab.drivers.discovery import devices
from opencl_lab.drivers.verdicts import store_found, verdict_file
from opencl_lab.lab.cli.doctor import tables_of
from opencl_lab.lab.doctor import diagnose
from opencl_lab.lab.doctor.diagnose import PROBES, Report, values_of
from opencl_lab.lab.doctor.examine import Finding, Probe, examine
from opencl_lab.lab.doctor.toolchain import toolchain
from opencl_lab.lab.measuring.roofline import Peaks
from opencl_lab.workers.serving import find

PLANTED = """
import ctypes, os, time

def segfault(device):
    yield {"trying": "16 bytes", "value": 0}
    yield {"trying": "64 bytes", "value": 32}
    ctypes.string_at(0)  # a real fault: the handler that LLVM installs swallows a sent signal

def killed(device):
    yield {"trying": "a large buffer", "value": 32}
    os.kill(os.getpid(), 9)

def unclaimed_crash(device):
    yield {"trying": "a feature", "claimed": False}
    os.abort()

def claimed_crash(device):
    yield {"trying": "a feature", "claimed": True}
    os.abort()

def hang(device):
    yield {"trying": "patience"}
    if os.fork() == 0:  # a compiler that the driver has started
        with open(os.environ["PLANTED_PID"], "w") as out:
            out.write(str(os.getpid()))
        time.sleep(600)
    while True:
        time.sleep(0.01)

def garbage(device):
    yield ["not", "a", "step"]
    time.sleep(600)

def raises(device):
    yield {"trying": "arithmetic"}
    1 / 0

def silent(device):
    return iter(())

def fast_crash(device):
    yield {"trying": "one chain", "value": 2.5e11, "reached": "250 GFLOP/s"}
    os.abort()

def ends_the_process(device):
    yield {"trying": "arithmetic", "value": 7}
    print("to stdout, as drivers do", flush=True)
    os.write(2, b"LLVM ERROR: planted\\n")
    os._exit(1)

def chatty(device):
    print("to stdout, as drivers do", flush=True)
    yield {"trying": "x"}
    yield {"verdict": "ok", "value": 8, "detail": "eight"}

def made_up(driver, probe):
    from opencl_lab.symptoms.kernels import KernelRunner
    build = KernelRunner.build
    KernelRunner.build = lambda runner, source, options=(): build(runner, driver(source), options)
    return probe

def cut_loops(device):
    from opencl_lab.lab.doctor.probes.behaviour import usable
    return made_up(lambda text: text.replace("turns < most", "turns < 65535"), usable)(device)

def endless_build(device):
    from opencl_lab.lab.doctor.probes.behaviour import usable
    return made_up(lambda text: time.sleep(600), usable)(device)

def crash_of_atomics(device):
    from dataclasses import replace
    from opencl_lab.lab.doctor.probes.features import int64_atomics
    claims = replace(device, capabilities=replace(device.capabilities, int64_atomics=True))
    return made_up(lambda text: os.abort(), int64_atomics)(claims)
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "planted_probes.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PLANTED_PID", str(tmp_path / "pid"))
    return tmp_path


def plant(name: str) -> Probe:
    return Probe(f"planted_probes:{name}", name, "do something")


@pytest.fixture(scope="module")
def findings(device: Device) -> dict[str, Finding]:
    """All probes but the slowest ones, on the real device."""
    names = (
        "usable", "fp64", "int64_atomics", "barriers_in_loops", "forward_progress",
        "visible_writes",
    )  # fmt: skip
    found = {f.name: f for f in examine(device, [p for p in PROBES if p.name in names])}
    if found["usable"].verdict != "ok":
        pytest.skip(f"{device} runs no kernel: {found['usable'].detail}")
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "verdict", "value", "told"),
    [
        ("segfault", "limited", 32, "up to 32; 64 bytes: the driver ended the process (SIGSEGV"),
        ("unclaimed_crash", "no", False, "the driver ended the process (SIGABRT"),
        ("killed", "unknown", None, "a child process ended: SIGKILL"),
        ("claimed_crash", "broken", False, "the driver ended the process (SIGABRT"),
        ("garbage", "unknown", None, "TypeError"),
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
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("endless_build", "a vector addition: no answer within 5 s"),
        ("cut_loops", "a loop of 200,000 turns ends after 65,535, without an error"),
        ("crash_of_atomics", "a small kernel: the driver ended the process (SIGABRT"),
    ],
)
def test_a_made_up_driver_loses_the_capability(
    planted: Path, device: Device, name: str, told: str
) -> None:
    (finding,) = examine(device, [plant(name)], time_limit=5)
    assert (finding.verdict, finding.value) == ("broken", False) and told in finding.detail


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


@pytest.mark.full
def test_probes_of_the_real_device(findings: dict[str, Finding]) -> None:
    assert findings["barriers_in_loops"].verdict == "ok"
    assert findings["fp64"].verdict in ("ok", "no")
    assert findings["int64_atomics"].verdict in ("ok", "no")
    assert isinstance(findings["forward_progress"].value, bool)
    assert findings["visible_writes"].verdict in ("ok", "no")


def test_each_capability_and_each_peak_has_a_probe() -> None:
    names = {probe.name for probe in PROBES}
    assert {item.name for item in fields(Capabilities)} <= names
    assert {item.name for item in fields(Peaks)} <= names
    assert all(callable(find(probe.target)) for probe in PROBES)


@pytest.mark.parametrize("name", ["fp16", "fp64"])
def test_a_type_that_works_without_its_arithmetic_needs_no_other_device(
    device: Device, name: str
) -> None:
    probe = next(probe for probe in PROBES if probe.name == name)
    capabilities = replace(device.capabilities, fp16=False, fp64=False)
    lacking = replace(device, capabilities=capabilities)
    missing = lacks_type(lacking, {"fp16": "float16", "fp64": "float64"}[name])
    assert ("another device" in probe.absent) == (missing is not None) and probe.absent


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
