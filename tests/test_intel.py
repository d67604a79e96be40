"""Intel's CPU runtime: it is told to the loader, nobody else's drivers get lost, and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyopencl as cl
import pytest

from opencl_lab import device as discovery
from opencl_lab import intel
from opencl_lab import wheel as pip
from opencl_lab.device import Device
from opencl_lab.doctor.installation import installation
from opencl_lab.errors import DeviceNotFound
from opencl_lab.runtime.session import session_of
from opencl_lab.template import Source

pytestmark = pytest.mark.skipif(not pip.supported(), reason="Intel has no runtime for this one")

NAMES = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCLAB_INTEL")
INSTALLED = pip.library()


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No choice of a user, nothing registered, and a cache of its own."""
    for name in NAMES:
        monkeypatch.setenv(name, "")  # put back what it was at the end
        monkeypatch.delenv(name)
    monkeypatch.setattr(intel, "_registered", None)
    monkeypatch.setattr(intel, "_withdrawn", None)
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """The library that a wheel has installed in a virtual environment made for the test."""
    packages = tmp_path / "venv/lib/python3/site-packages"
    packages.mkdir(parents=True)
    library = tmp_path / "venv/lib" / pip.DRIVER
    library.write_text("not a library")
    python = SimpleNamespace(path=[str(packages)], prefix=str(tmp_path / "empty"), platform="linux")
    monkeypatch.setattr(pip, "sys", python)
    return library


@pytest.fixture
def vendors(tmp_path):
    """The folder of the system's drivers, with two."""
    folder = tmp_path / "root" / pip.VENDORS
    folder.mkdir(parents=True)
    (folder / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    (folder / "pocl.icd").write_text("/usr/lib/libpocl.so\n")
    return folder


def register(tmp_path):
    """Register as discovery does; return the folder that the loader is to read, None if its own."""
    intel.register(tmp_path / "root")
    name = os.environ.get("OPENCL_VENDOR_PATH")
    return Path(name) if name else None


def libraries(folder):
    """Return what the loader loads when it reads a folder."""
    return {path.read_text().split("\n")[0] for path in folder.glob("*.icd")}


SYSTEM = {"libnvidia-opencl.so.1", "/usr/lib/libpocl.so"}


def test_the_loader_gets_it_beside_the_drivers_of_the_system(wheel, vendors, tmp_path):
    folder = register(tmp_path)
    assert libraries(folder) == {str(wheel), *SYSTEM}
    assert folder.parent == tmp_path / "cache" / "icd"
    assert register(tmp_path) == folder  # a second thread, or a child process
    del os.environ["OPENCL_VENDOR_PATH"]
    before = {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
    assert register(tmp_path) == folder  # the next process finds the folder made
    assert before == {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
    assert list(folder.parent.iterdir()) == [folder]
    (vendors / "nvidia.icd").unlink()
    (vendors / "new.icd").write_text("libnew.so")
    del os.environ["OPENCL_VENDOR_PATH"]
    assert libraries(register(tmp_path)) == {str(wheel), "/usr/lib/libpocl.so", "libnew.so"}


def test_it_is_found_without_any_driver_of_the_system(wheel, tmp_path):
    assert libraries(register(tmp_path)) == {str(wheel)}


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_of_the_user_stands(wheel, vendors, tmp_path, monkeypatch, name):
    value = "off" if name == "OCLAB_INTEL" else str(tmp_path / "of the user")
    monkeypatch.setenv(name, value)
    intel.register(tmp_path / "root")
    assert {name: os.environ.get(name) for name in NAMES} == {**dict.fromkeys(NAMES), name: value}
    assert not (tmp_path / "cache" / "icd").exists()


@pytest.mark.parametrize(
    ("word", "off", "unknown"),
    [
        *[(word, True, False) for word in ("OFF", "0", "no", "False")],
        *[(word, False, False) for word in ("on", "1", "")],
        ("0ff", False, True),
    ],
)
def test_words_of_the_switch(wheel, tmp_path, monkeypatch, caplog, word, off, unknown):
    monkeypatch.setenv("OCLAB_INTEL", word)
    assert pip.awaits_registration(os.environ) != off
    assert (register(tmp_path) is None) == off
    intel.check_switch()
    assert [f"OCLAB_INTEL={word}" in text for text in caplog.messages] == [True] * unknown


def test_what_the_import_leaves_to_others(wheel, tmp_path, monkeypatch):
    assert pip.awaits_registration({})
    assert not pip.awaits_registration({"OCL_ICD_VENDORS": "/somewhere"})
    assert not pip.awaits_registration({"OPENCL_VENDOR_PATH": str(tmp_path)})
    assert pip.awaits_registration({"OPENCL_VENDOR_PATH": str(tmp_path / "gone")})
    (tmp_path / "empty/conda-meta").mkdir(parents=True)
    assert not pip.awaits_registration({})
    wheel.unlink()
    assert not pip.awaits_registration({})


def test_a_folder_that_was_cleared_is_made_again_or_forgotten(wheel, vendors, tmp_path):
    folder = register(tmp_path)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()  # `oclab cache clear`, while a process lives that starts others
    assert register(tmp_path) == folder and str(wheel) in libraries(folder)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    wheel.unlink()
    assert register(tmp_path) is None  # the loader reads the folder of the system again


@pytest.mark.parametrize("case", ["no wheel", "another machine", "system", "system, soname"])
def test_nothing_is_registered_where_there_is_nothing_to_gain(
    wheel, vendors, tmp_path, monkeypatch, case
):
    if case == "no wheel":
        wheel.unlink()
    elif case == "another machine":
        monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="aarch64"))
    elif case == "system":
        (tmp_path / "libintelocl.so.2024").touch()
        (vendors / "intel.icd").write_text(f"{tmp_path}/libintelocl.so.2024\n")
    else:
        (vendors / "intel.icd").write_text("libintelocl.so\n")
    assert register(tmp_path) is None and not (tmp_path / "cache").exists()


def test_a_file_of_the_system_for_a_library_that_is_gone_does_not_count(wheel, vendors, tmp_path):
    (vendors / "intel.icd").write_text("/opt/anaconda1anaconda2anaconda3/lib/libintelocl.so\n")
    assert str(wheel) in libraries(register(tmp_path))


@pytest.mark.parametrize("change", ["empty", "file", "content", "link", "mode"])
def test_a_folder_that_was_changed_is_made_anew(wheel, vendors, tmp_path, caplog, change):
    folder = register(tmp_path)
    del os.environ["OPENCL_VENDOR_PATH"]
    if change == "empty":
        for path in folder.iterdir():
            path.unlink()
    elif change == "file":
        (folder / "planted.icd").write_text("/tmp/planted.so")
    elif change == "content":
        (folder / intel.ICD_FILE).write_text("/tmp/planted.so\n")
    elif change == "link":
        next(path for path in folder.iterdir() if path.is_symlink()).unlink()
    else:
        (folder / intel.ICD_FILE).chmod(0o666)
    assert register(tmp_path) == folder
    assert libraries(folder) == {str(wheel), *SYSTEM}
    assert list(folder.parent.iterdir()) == [folder]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (change == "mode")
    assert all(text.startswith(f"{folder} has been made anew, because others can") for text in said)


def test_a_folder_that_cannot_be_made_anew_is_not_read(
    wheel, vendors, tmp_path, caplog, monkeypatch
):
    folder = register(tmp_path)
    (folder / "planted.icd").write_text("/tmp/planted.so")
    del os.environ["OPENCL_VENDOR_PATH"]
    monkeypatch.setattr(intel, "_remove", lambda folder: None)  # it belongs to somebody else
    other = register(tmp_path)
    assert folder not in (other, *other.parents) and libraries(other) == {str(wheel), *SYSTEM}
    (said,) = [record.getMessage() for record in caplog.records]
    assert str(folder) in said and "compiled code" not in said


def test_without_a_place_for_the_cache_a_temporary_folder_serves(wheel, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert libraries(register(tmp_path)) == {str(wheel)}


def test_a_full_disk_leaves_the_other_drivers(wheel, vendors, tmp_path, monkeypatch):
    def full(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    assert register(tmp_path) is None


def test_what_was_not_loaded_is_taken_back_for_children_too(wheel, tmp_path, monkeypatch):
    monkeypatch.setattr(pip, "DRIVER", "libplanted.so")  # this process may have the true one
    wheel.rename(wheel.with_name("libplanted.so"))
    assert register(tmp_path) is not None
    intel.withdraw_unless_loaded()
    assert intel.was_withdrawn() and os.environ["OCLAB_INTEL"] == "off"
    assert register(tmp_path) is None


DISCOVER = """
import json, os, sys
import opencl_lab as ol
from opencl_lab.device import Device
from opencl_lab.doctor.installation import installation
from opencl_lab.errors import DeviceNotFound
found = [device.platform for device in ol.devices()]
rows = {tool.name: [tool.verdict, tool.detail, tool.advice] for tool in installation()}
print(json.dumps([found, rows, os.environ.get("OPENCL_VENDOR_PATH")]))
"""


def discover(program=DISCOVER, **environ):
    """Return the platforms, the installation and the folder of drivers in a new process."""
    unset = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**unset, **environ},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_a_runtime_that_does_not_load_hides_no_other(wheel):
    search = os.pathsep.join([str(wheel.parent / "python3/site-packages"), *sys.path[1:]])
    found, rows, folder = discover(PYTHONPATH=search)
    assert found and not any(name.startswith("Intel") for name in found)
    verdict, detail, advice = rows["Intel's CPU runtime"]
    assert verdict == "broken" and "file too short" in detail and str(wheel) in detail
    assert advice == "pip install 'opencl_lab[intel]'" and folder is None


def only_pocl(monkeypatch, tmp_path, *named):
    """Return the doctor's row about Intel's runtime where drivers of these names work."""
    folder = tmp_path / "drivers"
    folder.mkdir()
    for index, name in enumerate(named):
        (folder / f"{index}.icd").write_text(name)
    works = 'from sys import argv; print("it loads, platforms: 1")'
    (tmp_path / "driver.py").write_text(works)
    monkeypatch.setattr(
        "opencl_lab.doctor.installation.__file__", str(tmp_path / "installation.py")
    )
    rows = installation(tmp_path, {"OCL_ICD_VENDORS": str(folder)})
    return next((row for row in rows if row.name == "Intel's CPU runtime"), None)


def test_the_doctor_recommends_it_where_pocl_is_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(pip, "library", lambda: None)
    row = only_pocl(monkeypatch, tmp_path, "libpocl.so.2", "/x/libpocl-21062cec.so")
    assert row is not None and row.verdict == "limited"
    assert row.advice == "pip install 'opencl_lab[intel]'" and "PoCL is the only" in row.detail


@pytest.mark.parametrize("other", ["libnvidia-opencl.so.1", "/opt/intel/libintelocl.so.2024"])
def test_the_doctor_is_silent_where_there_is_another_driver(monkeypatch, tmp_path, other):
    monkeypatch.setattr(pip, "library", lambda: None)
    assert only_pocl(monkeypatch, tmp_path, "libpocl.so.2", other) is None


def test_the_doctor_is_silent_on_other_machines(monkeypatch, tmp_path):
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="aarch64"))
    assert only_pocl(monkeypatch, tmp_path, "libpocl.so.2") is None


def test_the_doctor_says_that_a_choice_of_the_user_keeps_it_out(wheel, monkeypatch, tmp_path):
    row = only_pocl(monkeypatch, tmp_path, "libpocl.so.2")
    assert row is not None and row.verdict == "limited" and str(wheel) in row.detail
    assert row.advice == "unset OCL_ICD_VENDORS"


@pytest.mark.parametrize("drivers", [0, 1])
def test_the_doctor_says_that_it_is_switched_off(wheel, tmp_path, drivers):
    folder = tmp_path / pip.VENDORS
    folder.mkdir(parents=True)
    (folder / "pocl.icd").write_text("/nowhere/libpocl.so" * drivers)
    rows = {row.name: row for row in installation(tmp_path, {"OCLAB_INTEL": "no"})}
    row = rows["Intel's CPU runtime"]
    assert row.detail == f"{wheel} is installed, and OCLAB_INTEL is set to no"
    assert row.advice == "unset OCLAB_INTEL"
    advice = rows["drivers"].advice if "drivers" in rows else ""  # that of pyopencl works
    assert "pip install" not in advice


@pytest.mark.parametrize("found", [(), (Device("some", "cpu", platform="PoCL"),)])
@pytest.mark.parametrize("in_time", [False, True])
def test_it_is_said_why_it_was_withdrawn(wheel, tmp_path, monkeypatch, found, in_time):
    monkeypatch.setattr(pip, "DRIVER", "libplanted.so")
    wheel = wheel.rename(wheel.with_name("libplanted.so"))
    loader = None if in_time else tmp_path / "libOpenCL.so"
    monkeypatch.setattr(intel, "loader_library", lambda: loader)
    register(tmp_path)
    intel.withdraw_unless_loaded()
    monkeypatch.setattr(discovery, "_discover", lambda: found)
    monkeypatch.delenv("OCLAB_DEVICE", raising=False)
    texts = []
    for spec in (None, "intel", "cpu"):
        try:
            texts.append(discovery.choose_device(spec).reason)
        except DeviceNotFound as error:
            texts.append(str(error))
    for text in texts:
        assert str(wheel) in text and ("does not load" in text) == in_time
        assert ("call opencl_lab.devices() before" in text) != in_time
        assert "pip install" not in text


KERNELS = """
#define GROUP __attribute__((reqd_work_group_size(1, 1, 1)))
__kernel GROUP void one(void) {}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void many(void) {}
"""


@pytest.mark.parametrize("platform", ["Intel(R) OpenCL", "Portable Computing Language"])
def test_intel_s_compiler_is_spared_work_on_groups_of_one_item(
    device, own_queue, monkeypatch, platform
):
    session = session_of(own_queue(device.handle))
    session.device = replace(session.device, platform=platform)
    texts = []

    class Program:
        def __init__(self, context, text):
            texts.append(text)

        def build(self, options):
            return self

    monkeypatch.setattr(cl, "Program", Program)
    session.program(Source("a", KERNELS), ())
    hint = ", intel_vec_len_hint(1)" if platform.startswith("Intel") else ""
    one = f"((reqd_work_group_size(1, 1, 1){hint}))"
    (text,) = texts  # PoCL gets declarations before it
    assert text.endswith(KERNELS.replace("((reqd_work_group_size(1, 1, 1)))", one))


# --------------------------------------------------------------- the runtime itself

needs_it = pytest.mark.skipif(INSTALLED is None, reason="Intel's runtime is not installed here")
PARENT = """
import json, os, subprocess, sys
import opencl_lab as ol
here = [[device.platform, device.spec] for device in ol.devices()]
child = "import json, os, opencl_lab as ol; print(json.dumps(["
child += "[[d.platform, d.spec] for d in ol.devices()], os.environ.get('OPENCL_VENDOR_PATH')]))"
there = subprocess.run([sys.executable, "-c", child], stdout=-1, check=True, text=True).stdout
print(json.dumps([here, ol.device.choose_device().reason, *json.loads(there)]))
"""


@needs_it
def test_it_is_found_and_preferred_and_children_see_the_same(tmp_path):
    here, reason, there, folder = discover(PARENT, OCLAB_DEVICE="")
    assert here[0][0] == "Intel(R) OpenCL" and there == here
    assert libraries(Path(folder)) >= {str(INSTALLED)}
    assert len(here) == 1 or reason.endswith(f"launches kernels faster than {here[1][0]}")


@needs_it
def test_pyopencl_alone_sees_it_once_the_package_is_imported():
    program = "import json, opencl_lab, pyopencl as cl\n"
    program += "print(json.dumps([item.name for item in cl.get_platforms()]))"
    assert "Intel(R) OpenCL" in discover(program)


@needs_it
def test_a_process_that_has_started_opencl_goes_on_without(tmp_path):
    started = "import pyopencl as cl; cl.get_platforms()\n"
    here, _, there, folder = discover(started + PARENT, OCLAB_DEVICE="")
    assert here == there and here[0][0] != "Intel(R) OpenCL" and folder is None
    _, rows, _ = discover(started + DISCOVER)
    verdict, detail, advice = rows["Intel's CPU runtime"]
    assert verdict == "limited" and "had started before" in detail and "devices()" in advice
