"""What discovery makes of drivers, stored findings, and this machine."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyopencl as cl
import pytest
from device_records import CPU

import opencl_lab as ol
from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.core.records import write_sealed
from opencl_lab.drivers import discovery as module
from opencl_lab.drivers.discovery import choose_device, here
from opencl_lab.drivers.verdicts import corrected, verdict_file

# ------------------------------------------------------------ probed capabilities


@pytest.mark.parametrize(
    "found",
    [
        {"fp64": 0, "max_work_group": True, "local_memory": "64", "magic": 1},
        {"max_work_group": 64.0, "vector_bytes": None, "usable": "yes", "handle": 1},
        {"max_work_group": 0, "local_memory": -1, "vector_bytes": 0, "max_allocation": -1},
        {"max_work_group": float("nan"), "local_memory": float("inf")},
    ],
)
def test_findings_of_wrong_types_or_names_are_ignored(found):
    device = replace(CPU, name="Half", capabilities=Capabilities(fp64=True, max_work_group=4096))
    document = {"key": device.key, "found": {**found, "fp16": True}, "more": 4}
    write_sealed(verdict_file(device.key), document)
    assert corrected(device).capabilities == replace(device.capabilities, fp16=True)


# ----------------------------------------------------------------- discovery


def fake_handle(name="Fake", kind=cl.device_type.GPU, platform=None, **more):
    """Return what discovery reads of a `pyopencl.Device`, without the optional properties."""
    structure = ctypes.create_string_buffer(8)  # begins with a pointer to the driver's table
    values = {
        "name": f" {name}  ",
        "type": kind,
        "vendor": "Vendor",
        "version": "OpenCL 1.2",
        "structure": structure,
        "int_ptr": ctypes.addressof(structure),
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
    """A platform of fake devices; an exception instead of a list breaks the driver."""

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
    monkeypatch.setattr(module.intel, "platforms", list)
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


def test_records_of_a_capable_driver(monkeypatch):
    extensions = "cl_khr_fp64 cl_khr_fp16 cl_khr_int64_base_atomics"
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
    assert claims.int64_atomics
    assert claims.inline_ptx
    assert claims.matrix_units
    assert claims.warpgroup_matrix_units
    assert claims.declared_memory == 226 << 10
    assert device.largest_buffer == device.global_memory == 1 << 32  # whatever it claims


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


def test_a_device_is_found_by_its_key_whatever_its_number(device, monkeypatch):
    found = [replace(device, device_index=index, serial_side=None) for index in range(2)]
    monkeypatch.setattr(module, "_discover", lambda: tuple(found))
    for record, index in ((found[1], 1), (replace(device, platform_index=7), 0)):
        assert here(record) is found[index]
        assert pickle.loads(pickle.dumps(record)).spec == found[index].spec
    with pytest.raises(DeviceNotFound, match=r"another .* is not here"):
        here(replace(found[0], name="another"))


# ------------------------------------------------- other code in the same process

GUEST = """
import json, os, subprocess, sys
import pyopencl as cl

def library(platform):
    for line in open("/proc/self/maps"):
        begin, _, end = line.split()[0].partition("-")
        if int(begin, 16) <= platform.int_ptr < int(end, 16):
            return os.path.basename(line.split()[-1])

def platforms():
    return [[library(one), [item.name for item in one.get_devices()]] for one in cl.get_platforms()]

def threads():
    return {task: sorted(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task")}

LOOK = "import json, os; print(json.dumps([dict(os.environ), sorted(os.sched_getaffinity(0))]))"
def process():
    child = subprocess.run([sys.executable, "-c", LOOK], stdout=-1, check=True).stdout
    environment, affinity = json.loads(child)
    environment.pop("HWLOC_PLUGINS_PATH", None)  # PoCL 3.0 sets it, whoever starts it
    name = open("/proc/self/comm").read()
    return [dict(os.environ), environment, affinity, name, cl._PYOPENCL_NO_CACHE]

when = sys.argv[1]
others = platforms() if when != "after" else None
before, running = process(), threads()
found = None
if when != "alone":
    import numpy as np
    import opencl_lab as ol
    assert process() == before
    keys = np.arange(3_000, dtype=np.int32)[::-1]
    found = {device.spec: library(device.handle.platform) for device in ol.devices()}
    for spec in found:
        assert (ol.sort(keys, device=spec) == keys[::-1]).all()
    assert process() == before
    assert running.items() <= threads().items()
assert others in (None, platforms())
print(json.dumps([platforms(), found]))
"""


@pytest.fixture(scope="module")
def second_platform():
    """A folder with the ICD file of a driver that comes first if all platforms have one device.

    It is a copy of pip's PoCL that does not know the variable for its devices.
    """
    library = next(iter(Path(cl.__file__).parent.glob(".libs/libpocl-*.so")), None)
    if library is None:
        pytest.skip("needs PoCL from pip")
    content = library.read_bytes().replace(b"POCL_DEVICES", b"POCL_NOTHING")
    content = content.replace(library.name.encode(), b"x" * len(library.name))  # its own name
    with tempfile.TemporaryDirectory(prefix="oclab-test-") as name:
        folder = Path(name) / "pyopencl" / ".libs"
        folder.mkdir(parents=True)
        for package in Path(cl.__file__).parents[1].glob("pocl_binary_distribution*"):
            (Path(name) / package.name).symlink_to(package)
        (folder / "second.so").write_bytes(content)
        (folder / "second.icd").write_text(str(folder / "second.so"))
        yield folder


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no threads to look at")
@pytest.mark.parametrize("drivers", ["own", "two"])
def test_others_see_what_they_would_see_without_us(device, drivers, request):
    """Devices, environment and processors; and our numbers of devices are theirs."""
    if "PoCL" not in device.platform_version or "PYOPENCL_NO_CACHE" in os.environ:
        pytest.skip("it is about PoCL")
    around = {**os.environ, "OCLAB_DEVICE": ""}
    if drivers == "two":
        around["OCL_ICD_VENDORS"] = str(request.getfixturevalue("second_platform"))

    def seen(when):
        done = subprocess.run(
            [sys.executable, "-c", GUEST, when],
            env=around, check=False, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    alone, _ = seen("alone")
    (one, found), (other, found_too) = seen("before"), seen("after")
    assert alone == one == other and found == found_too
    assert [found[f"{index}:0"] for index in range(len(alone))] == [name for name, _ in alone]
    assert len(alone) == 2 or drivers == "own"
