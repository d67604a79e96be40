"""Discovery and selection, on machines that exist and on machines made up for the test."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import replace

import pytest
from device_records import CPU, EVERYTHING, FPGA, NEW_CPU, NVIDIA, POCL, SIMULATOR, SMALL_GPU

import opencl_lab as ol
from opencl_lab.core.device import Capabilities, Device
from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.drivers import discovery as module
from opencl_lab.drivers.discovery import choose_device

INTEL_CPU = Device(
    "EPYC", "cpu", platform="Intel(R) OpenCL", compute_units=2, clock=0, platform_index=6
)


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


def test_a_device_on_which_nothing_works_comes_last(machine):
    broken = replace(NVIDIA, capabilities=replace(NVIDIA.capabilities, usable=False))
    machine(broken, CPU, SIMULATOR)
    assert ol.devices() == [CPU, SIMULATOR, broken]
    assert ol.select_device("gpu") == broken


# ------------------------------------------------------------------ selection


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ("gpu", NVIDIA),
        ("accelerator", FPGA),
        ("cpu", NEW_CPU),
        (1, SMALL_GPU),
        ("5", SIMULATOR),
        ("0:0", SMALL_GPU),
        ("1:0", CPU),
        ("h200", NVIDIA),
        ("intel", SMALL_GPU),
        ("vendor x", FPGA),
        ("pocl 3.0", CPU),
        ("PoCL 6", NEW_CPU),
        ("AuthenticAMD", NEW_CPU),
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


@pytest.mark.parametrize("wrong", [1.5, ["cpu"], object()], ids=["float", "list", "object"])
def test_what_is_no_choice_of_a_device(wrong):
    """A number such as 2.5 would be found in the name of a processor."""
    with pytest.raises(ol.DeviceNotFound, match="queues are given as queue="):
        ol.sort([2, 1], device=wrong)


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


# ---------------------------------------------------------------- the record


def test_key_is_canonical():
    assert NVIDIA.key == "gpu/nvidia-cuda/nvidia-h200-132cu/570.1"
    assert CPU.key == "cpu/portable-computing-language/cpu-haswell-epyc-2cu/3.0-rc2"
    odd = replace(CPU, name="  Intel(R) Xeon(R)\tCPU @ 2.60GHz ", driver="2024.17/x")
    assert odd.key == "cpu/portable-computing-language/intel-r-xeon-r-cpu-2.60ghz-2cu/2024.17-x"


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


def test_records_are_pickled_and_find_their_device_again(device):
    copy = pickle.loads(pickle.dumps(device))
    assert copy == device and copy.handle == device.handle
    assert copy.queue() is device.queue() and device.queue(profiling=True) is not device.queue()
    elsewhere = pickle.loads(pickle.dumps(replace(device, name="another", platform_index=7)))
    assert elsewhere.name == "another" and elsewhere.handle is None
    assert pickle.loads(pickle.dumps(elsewhere)) == elsewhere
    with pytest.raises(DeviceNotFound, match=r"another .* is the record of a device that is not h"):
        elsewhere.queue()
