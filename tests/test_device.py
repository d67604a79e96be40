"""Discovery and selection, on machines that exist and on machines made up for the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pyopencl as cl
import pytest

import opencl_lab as ol
from opencl_lab import device as module
from opencl_lab.device import Capabilities, Device, choose_device, device_of, probe_file
from opencl_lab.paths import cache_dir, write_json

POCL = "Portable Computing Language"
NVIDIA = Device(
    "NVIDIA H200",
    "gpu",
    vendor="NVIDIA Corporation",
    platform="NVIDIA CUDA",
    platform_version="OpenCL 3.0 CUDA 12.8",
    driver="570.1",
    compute_units=132,
    clock=1980,
    compute_capability=(9, 0),
    platform_index=2,
)
SMALL_GPU = Device(
    "Intel UHD", "gpu", vendor="Intel", platform="Intel OpenCL", compute_units=24, clock=1200
)
FPGA = Device("FPGA card", "accelerator", platform="Vendor X", compute_units=1, platform_index=3)
CPU = Device(
    "cpu-haswell EPYC",
    "cpu",
    vendor="AuthenticAMD",
    platform=POCL,
    platform_version="OpenCL 3.0 PoCL 3.0-rc2",
    driver="3.0-rc2",
    compute_units=2,
    clock=2600,
    platform_index=1,
)
NEW_CPU = replace(
    CPU, platform_version="OpenCL 3.0 PoCL 6.0", driver="6.0", compute_units=4, platform_index=4
)
INTEL_CPU = Device(
    "EPYC", "cpu", platform="Intel(R) OpenCL", compute_units=2, clock=0, platform_index=6
)
SIMULATOR = Device(
    "Oclgrind Simulator",
    "cpu",
    platform="Oclgrind",
    compute_units=1000,
    clock=1000,
    simulated=True,
    platform_index=5,
)
EVERYTHING = (SIMULATOR, CPU, FPGA, SMALL_GPU, NEW_CPU, NVIDIA)


@pytest.fixture
def machine(monkeypatch):
    """Return a function that puts the given devices into the machine."""
    monkeypatch.delenv("OCLAB_DEVICE")
    monkeypatch.setattr(module, "_fallback_said", False)

    def put(*found):
        ordered = tuple(sorted(found, key=module._preference))
        monkeypatch.setattr(module, "_discover", lambda: ordered)

    return put


# ------------------------------------------------------------------- ordering


def test_order_of_devices(machine):
    machine(*EVERYTHING)
    assert ol.devices() == [NVIDIA, SMALL_GPU, FPGA, NEW_CPU, CPU, SIMULATOR]


def test_intel_s_runtime_goes_before_others_of_the_same_processor(machine, monkeypatch):
    machine(SIMULATOR, CPU, NEW_CPU, INTEL_CPU)
    assert ol.devices() == [INTEL_CPU, NEW_CPU, CPU, SIMULATOR]
    why = f"; Intel(R) OpenCL launches kernels faster than {POCL}"
    assert choose_device().reason.endswith(f"the CPU is used{why}") and choose_device().fallback
    assert choose_device("CPU").reason == f"asked for 'CPU'{why}"
    assert choose_device("pocl") == module.Selection(NEW_CPU, "asked for 'pocl'")
    assert choose_device("intel") == module.Selection(INTEL_CPU, "asked for 'intel'")
    with pytest.warns(ol.DeviceFallbackWarning, match="faster than Portable"):
        assert ol.select_device() == INTEL_CPU
    broken = replace(INTEL_CPU, capabilities=replace(CPU.capabilities, usable=False))
    machine(CPU, broken, SIMULATOR)
    assert ol.devices() == [CPU, SIMULATOR, broken]
    assert choose_device().reason == "no GPU or accelerator found, so the CPU is used"
    machine(INTEL_CPU, SIMULATOR)
    assert choose_device().reason == "no GPU or accelerator found, so the CPU is used"


def test_a_gpu_of_intel_goes_by_its_size(machine):
    machine(INTEL_CPU, SMALL_GPU, NVIDIA)
    assert ol.devices() == [NVIDIA, SMALL_GPU, INTEL_CPU]


def test_equal_devices_keep_the_order_of_the_platform(machine):
    twins = [replace(NVIDIA, device_index=index) for index in range(3)]
    machine(*reversed(twins))
    assert ol.devices() == twins


def test_more_memory_wins_between_equals(machine):
    large = replace(NVIDIA, global_memory=2 << 30, device_index=1)
    machine(NVIDIA, large)
    assert ol.devices() == [large, NVIDIA]


def test_an_unknown_clock_still_counts_compute_units(machine):
    small, large = (replace(NVIDIA, clock=0, compute_units=units) for units in (10, 20))
    machine(small, large)
    assert ol.devices()[0] == large


def test_a_device_on_which_nothing_works_comes_last(machine):
    broken = replace(NVIDIA, capabilities=replace(NVIDIA.capabilities, usable=False))
    machine(broken, CPU, SIMULATOR)
    assert ol.devices() == [CPU, SIMULATOR, broken]
    assert ol.select_device("gpu") == broken


def test_devices_is_a_list_of_the_callers_own(machine):
    machine(CPU)
    ol.devices().clear()
    assert ol.devices() == [CPU]


# ------------------------------------------------------------------ selection


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ("gpu", NVIDIA),
        (" GPU ", NVIDIA),
        ("accelerator", FPGA),
        ("cpu", NEW_CPU),
        (0, NVIDIA),
        (1, SMALL_GPU),
        ("5", SIMULATOR),
        ("0:0", SMALL_GPU),
        ("1:0", CPU),
        ("5:0", SIMULATOR),
        ("h200", NVIDIA),
        ("intel", SMALL_GPU),
        ("vendor x", FPGA),
        ("portable", NEW_CPU),
        ("pocl 3.0", CPU),
        ("PoCL 6", NEW_CPU),
        ("AuthenticAMD", NEW_CPU),
        ("oclgrind", SIMULATOR),
    ],
)
def test_specs(spec, chosen, machine, monkeypatch):
    machine(*EVERYTHING)
    selection = choose_device(spec)
    assert selection.device == chosen
    assert selection.reason == f"asked for {str(spec)!r}"
    assert not selection.fallback
    assert ol.select_device(spec) == chosen
    monkeypatch.setenv("OCLAB_DEVICE", str(spec))
    assert ol.select_device() == chosen
    assert choose_device().reason == f"$OCLAB_DEVICE is {str(spec)!r}"


def test_an_argument_wins_over_the_environment(machine, monkeypatch):
    machine(*EVERYTHING)
    monkeypatch.setenv("OCLAB_DEVICE", "cpu")
    assert ol.select_device("gpu") == NVIDIA


def test_an_empty_variable_is_no_wish(machine, monkeypatch):
    machine(*EVERYTHING)
    monkeypatch.setenv("OCLAB_DEVICE", "")
    assert ol.select_device() == NVIDIA


def test_a_device_selects_itself(machine):
    machine(CPU)
    assert ol.select_device(FPGA) is FPGA


@pytest.mark.parametrize("spec", ["tpu", "6", 6, -1, "7:0", "0:1", "", " ", "\u00b2"])
def test_an_unknown_spec_lists_what_was_seen(spec, machine):
    machine(*EVERYTHING)
    with pytest.raises(ol.DeviceNotFound) as caught:
        ol.select_device(spec)
    message = str(caught.value)
    assert repr(str(spec)) in message
    for index, device in enumerate(ol.devices()):
        assert f"{index}: {device} [{device.spec}]" in message
    assert "oclab devices" in message
    assert caught.value.exit_status == 3


@pytest.mark.parametrize("kind", ["gpu", "accelerator"])
def test_a_kind_that_is_not_there(kind, machine):
    machine(CPU)
    with pytest.raises(ol.DeviceNotFound, match=CPU.name):
        ol.select_device(kind)


@pytest.mark.parametrize("spec", [None, "gpu", "0"])
def test_no_device_at_all(spec, machine):
    machine()
    assert ol.devices() == []
    with pytest.raises(ol.DeviceNotFound, match="no OpenCL device was seen at all") as caught:
        ol.select_device(spec)
    assert "pip install" in str(caught.value)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([NVIDIA, CPU], "the only gpu"),
        ([NVIDIA, SMALL_GPU, CPU], "the largest of 2 gpu"),
        ([FPGA, CPU], "the only accelerator"),
    ],
)
def test_why_a_device_was_chosen(found, reason, machine):
    machine(*found)
    selection = choose_device()
    assert selection.device == found[0]
    assert selection.reason == reason
    assert not selection.fallback
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ol.select_device() == found[0]


def test_falling_back_to_the_cpu_is_said_once(machine):
    machine(CPU, SIMULATOR)
    assert choose_device().fallback
    with pytest.warns(ol.DeviceFallbackWarning, match="OCLAB_DEVICE=cpu") as caught:
        assert ol.select_device() == CPU
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert CPU.name in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ol.select_device() == CPU


def test_falling_back_points_at_the_line_outside_of_the_package(machine):
    machine(CPU, SIMULATOR)
    inside = {"__package__": "opencl_lab.operations.sort", "ol": ol}
    exec("def sort():\n    return ol.select_device()", inside)
    with pytest.warns(ol.DeviceFallbackWarning) as caught:
        inside["sort"]()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("spec", ["cpu", "0", "haswell"])
def test_asking_for_the_cpu_is_no_fallback(spec, machine, monkeypatch):
    machine(CPU)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ol.select_device(spec) == CPU
        monkeypatch.setenv("OCLAB_DEVICE", spec)
        assert ol.select_device() == CPU


# ---------------------------------------------------------------- the record


def test_key_is_canonical():
    assert NVIDIA.key == "gpu/nvidia-cuda/nvidia-h200-132cu/570.1"
    assert CPU.key == "cpu/portable-computing-language/cpu-haswell-epyc-2cu/3.0-rc2"
    odd = replace(CPU, name="  Intel(R) Xeon(R)\tCPU @ 2.60GHz ", driver="2024.17/x")
    assert odd.key == "cpu/portable-computing-language/intel-r-xeon-r-cpu-2.60ghz-2cu/2024.17-x"


def test_key_does_not_depend_on_the_place_in_the_machine():
    moved = replace(NVIDIA, platform_index=7, device_index=3, global_memory=1, handle=object())
    assert moved.key == NVIDIA.key
    others = [
        replace(NVIDIA, driver="571"),
        replace(NVIDIA, compute_units=66),
        replace(NVIDIA, name="NVIDIA H100"),
        replace(NVIDIA, platform="other"),
        replace(NVIDIA, kind="accelerator"),
    ]
    assert len({NVIDIA.key, *(other.key for other in others)}) == 6


def test_as_dict_survives_json():
    for device in EVERYTHING:
        record = device.as_dict()
        assert json.loads(json.dumps(record)) == record
        assert record["key"] == device.key
        assert record["spec"] == device.spec
        assert "handle" not in record
        assert set(record["capabilities"]) == set(Capabilities.__dataclass_fields__)
    assert NVIDIA.as_dict()["compute_capability"] == [9, 0]
    assert NVIDIA.as_dict()["architecture"] == "sm_90"
    assert CPU.as_dict()["compute_capability"] is None
    wide = replace(CPU, native_vector_bytes=64)
    assert CPU.architecture == "portable-computing-language_128"
    assert wide.architecture == "portable-computing-language_512"
    assert replace(CPU, platform="").architecture == ""


def test_records_are_frozen_and_compare_without_their_handle():
    assert replace(CPU, handle=object()) == CPU
    with pytest.raises(FrozenInstanceError):
        CPU.name = "other"


# ------------------------------------------------------------ probed capabilities


def test_stored_findings_correct_the_claims():
    device = replace(CPU, name="Probed", capabilities=Capabilities(fp64=True, max_work_group=4096))
    found = {"fp64": False, "max_work_group": 64, "event_timing": False}
    write_json(probe_file(device.key), {"key": device.key, "capabilities": found})
    probed = module._probed(device)
    assert probed.capabilities == replace(device.capabilities, **found)
    assert replace(probed, capabilities=device.capabilities) == device


def test_findings_of_wrong_types_or_names_are_ignored():
    device = replace(CPU, name="Half", capabilities=Capabilities(fp64=True, max_work_group=4096))
    found = {"fp64": 0, "max_work_group": True, "local_memory": "64", "magic": 1, "fp16": True}
    assert_only_half_precision_is_believed(device, found)
    assert_only_half_precision_is_believed(device, {"max_work_group": 0, "fp16": True})
    assert_only_half_precision_is_believed(
        device, {"local_memory": -1, "vector_bytes": 0, "fp16": True}
    )


def assert_only_half_precision_is_believed(device, found):
    write_json(probe_file(device.key), {"key": device.key, "capabilities": found})
    assert module._probed(device).capabilities == replace(device.capabilities, fp16=True)


@pytest.mark.parametrize(
    "report",
    [
        "{",
        "[]",
        "null",
        '{"capabilities": {"fp64": true}}',
        '{"key": "another", "capabilities": {"fp64": true}}',
        '{"key": "KEY"}',
        '{"key": "KEY", "capabilities": [1]}',
        '{"key": "KEY", "capabilities": null}',
        "\0",
    ],
)
def test_corrupt_reports_are_ignored(report):
    device = replace(CPU, name="Corrupt")
    path = probe_file(device.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.replace("KEY", device.key))
    assert module._probed(device) == device


def test_probe_files_are_single_files_in_the_cache():
    paths = {probe_file(device.key) for device in EVERYTHING}
    assert len(paths) == len(EVERYTHING)
    assert {path.parent for path in paths} == {cache_dir("doctor")}


# ----------------------------------------------------------------- discovery


def fake_handle(name="Fake", kind=cl.device_type.GPU, platform=None, **more):
    """Return what discovery reads of a `pyopencl.Device`, without the optional properties."""
    values = {
        "name": f" {name}  ",
        "type": kind,
        "vendor": "Vendor",
        "version": "OpenCL 1.2",
        "int_ptr": 0,
        "extensions": "",
        "platform": platform,
        "driver_version": "1.0",
        "opencl_c_version": "OpenCL C 1.2 ",
        "max_compute_units": 4,
        "max_clock_frequency": 1000,
        "global_mem_size": 1 << 32,
        "max_mem_alloc_size": 1 << 30,
        "local_mem_size": 1 << 15,
        "max_constant_buffer_size": 1 << 16,
        "max_work_group_size": 512,
        "max_work_item_sizes": [512, 512, 64],
    }
    return SimpleNamespace(**{**values, **more})


class FakePlatform:
    """A platform of fake devices; an exception in place of a list breaks the driver."""

    def __init__(self, name, handles):
        self.name, self.version, self.handles = name, "OpenCL 1.2 Fake", handles

    def get_devices(self):
        if isinstance(self.handles, Exception):
            raise self.handles
        for handle in self.handles:
            handle.platform = self
        return self.handles


class BrokenHandle:
    """A device whose driver answers every question with an error."""

    def __getattr__(self, name):
        raise cl.LogicError("no such device")


def discover(monkeypatch, platforms):
    def get_platforms():
        if isinstance(platforms, Exception):
            raise platforms
        return platforms

    monkeypatch.setattr(cl, "get_platforms", get_platforms)
    return module._discover.__wrapped__()


def test_a_broken_platform_does_not_hide_the_others(monkeypatch):
    found = discover(
        monkeypatch,
        [
            FakePlatform("Broken", cl.RuntimeError("driver gone")),
            FakePlatform("Empty", []),
            FakePlatform("Good", [BrokenHandle(), fake_handle("Left"), fake_handle("Right")]),
        ],
    )
    assert [(device.name, device.spec) for device in found] == [("Left", "2:1"), ("Right", "2:2")]
    assert {device.platform for device in found} == {"Good"}


@pytest.mark.parametrize("platforms", [[], cl.LogicError("PLATFORM_NOT_FOUND_KHR")])
def test_a_machine_without_a_driver(platforms, monkeypatch):
    assert discover(monkeypatch, platforms) == ()


def test_records_of_a_minimal_driver(monkeypatch):
    handle = fake_handle()
    (device,) = discover(monkeypatch, [FakePlatform("P", [handle])])
    assert device.handle is handle
    assert (device.name, device.kind, device.c_version) == ("Fake", "gpu", "OpenCL C 1.2")
    assert device.max_work_items == (512, 512, 64)
    assert device.work_group_multiple == 1
    assert device.native_vector_bytes == 16
    assert device.compute_capability is None
    assert not device.unified_memory
    assert not device.simulated
    assert device.capabilities == Capabilities(max_work_group=512, local_memory=1 << 15)


def test_records_of_a_capable_driver(monkeypatch):
    extensions = "cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups cl_khr_int64_base_atomics"
    handle = fake_handle(
        extensions=f"{extensions} cl_nv_device_attribute_query",
        compute_capability_major_nv=9,
        compute_capability_minor_nv=0,
        warp_size_nv=32,
        host_unified_memory=0,
        native_vector_width_float=8,
    )
    (device,) = discover(monkeypatch, [FakePlatform("P", [handle])])
    assert device.architecture == "sm_90"
    assert device.work_group_multiple == 32
    assert device.native_vector_bytes == 32
    claims = device.capabilities
    assert claims.fp64
    assert claims.fp16
    assert claims.subgroups
    assert claims.int64_atomics
    assert claims.inline_ptx


@pytest.mark.parametrize(
    ("bits", "kind", "simulated"),
    [
        (cl.device_type.GPU, "gpu", False),
        (cl.device_type.CPU, "cpu", False),
        (cl.device_type.ACCELERATOR, "accelerator", False),
        (cl.device_type.GPU | cl.device_type.DEFAULT, "gpu", False),
        (cl.device_type.CUSTOM, "accelerator", False),
        (cl.device_type.GPU | cl.device_type.CPU | cl.device_type.ACCELERATOR, "cpu", True),
    ],
)
def test_kinds_of_devices(bits, kind, simulated, monkeypatch):
    (device,) = discover(monkeypatch, [FakePlatform("P", [fake_handle(kind=bits)])])
    assert (device.kind, device.simulated) == (kind, simulated)


def test_discovered_devices_come_in_the_order_of_preference(monkeypatch):
    found = discover(
        monkeypatch,
        [
            FakePlatform("A", [fake_handle("cpu", cl.device_type.CPU, max_compute_units=64)]),
            FakePlatform("B", [fake_handle("small"), fake_handle("big", max_compute_units=8)]),
        ],
    )
    assert [device.name for device in found] == ["big", "small", "cpu"]


# --------------------------------------------------------- the machine itself


def test_devices_of_this_machine(device):
    found = ol.devices()
    assert device in found
    assert len({item.spec for item in found}) == len(found)
    for item in found:
        assert item.handle is not None
        assert choose_device(item.spec).device == item
        assert item.compute_units > 0
        assert 0 < item.capabilities.max_work_group <= item.max_work_group
        assert 0 < item.max_allocation <= item.global_memory
        assert json.dumps(item.as_dict())


def test_device_of_a_handle(device):
    assert device_of(device.handle) == device


def test_a_handle_that_discovery_did_not_see(device, monkeypatch):
    monkeypatch.setattr(module, "_discover", tuple)
    unseen = device_of(device.handle)
    assert (unseen.platform_index, unseen.device_index) == (-1, -1)
    assert unseen.key == device.key


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("0", "0"), ("1", "1")])
def test_workers_of_pocl_are_pinned_unless_the_user_says_otherwise(given, expected):
    environment = {name: value for name, value in os.environ.items() if name != "POCL_AFFINITY"}
    if given is not None:
        environment["POCL_AFFINITY"] = given
    program = "import os, opencl_lab as ol; ol.devices(); print(os.environ['POCL_AFFINITY'])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == expected
