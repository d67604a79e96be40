"""What the doctor says of tools, drivers and the way to a device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from opencl_lab.core.device import Device
from opencl_lab.drivers import discovery as device_module
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.doctor import tables_of
from opencl_lab.lab.doctor.diagnose import Report
from opencl_lab.lab.doctor.installation import installation
from opencl_lab.lab.doctor.toolchain import Tool, toolchain


def test_missing_tools_come_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    tools = {tool.name: tool for tool in toolchain()}
    assert tools["C compiler"].verdict == "no" and "no-such-compiler" in tools["C compiler"].detail
    assert tools["C compiler"].advice and tools["OpenMP"].advice
    assert tools["MPI"].verdict == "ok" or "pip install mpi4py mpich" in tools["MPI"].advice


def test_a_compiler_without_openmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("cc") or shutil.which("gcc")
    if real is None:
        pytest.skip("no C compiler")
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *-fopenmp*) echo "planted error" >&2; exit 1;; esac\n'
        f'exec {real} "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))
    tools = {tool.name: tool for tool in toolchain()}
    assert tools["C compiler"].verdict == "ok"
    assert tools["OpenMP"].verdict == "broken" and "planted error" in tools["OpenMP"].detail
    assert "libgomp" in tools["OpenMP"].advice


def test_the_way_to_a_device_is_looked_at_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencl_lab.drivers.intel.library", lambda: None)
    vendors = tmp_path / "etc/OpenCL/vendors"
    for folder in (vendors, tmp_path / "dev/dri", tmp_path / "sys/class/drm/renderD128/device"):
        folder.mkdir(parents=True)
    (vendors / "amd.icd").write_text("libamdocl64-planted.so\n")
    (vendors / "empty.icd").write_text("\n")
    (vendors / "libc.icd").write_text("libc.so.6\n")
    (tmp_path / "sys/class/drm/renderD128/device/vendor").write_text("0x8086\n")
    for node in ("nvidiactl", "nvidia0", "kfd", "dri/renderD128"):
        (tmp_path / "dev" / node).touch()
    may = {str(tmp_path / "dev/kfd"): False}
    monkeypatch.setattr("os.access", lambda path, mode: may.get(str(path), True))
    monkeypatch.setattr(Path, "group", lambda self: "render")
    real = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **how: _Owned(real(self, **how)))
    tools = {tool.name: tool for tool in installation(tmp_path, {"PYOPENCL_HOME": str(tmp_path)})}
    found = {name: (tool.verdict, tool.detail) for name, tool in tools.items()}
    assert found.pop("ICD loader")[0] == "ok"
    expected = {
        "amd.icd": ("broken", "libamdocl64-planted.so: cannot open shared object file", "rocm"),
        "empty.icd": ("broken", "names no library", "remove the file"),
        "libc.icd": ("broken", "not the library of an OpenCL driver", "remove the file"),
        "PoCL for pyopencl": ("missing", "pip", 'pip install "pyopencl[pocl]"'),
        "drivers": ("missing", "none of them works", "pocl-opencl-icd"),
        "NVIDIA GPU": ("broken", "no ICD file names libnvidia-opencl.so.1", "> /etc/OpenCL"),
        "AMD GPU": ("broken", "kfd: you may not read and write", "usermod -aG render $USER"),
        "Intel GPU": ("broken", "no ICD file names libigdrcl.so", "apt install intel-opencl-icd"),
        "GPU of Intel or AMD": ("ok", "renderD128", ""),
    }
    assert set(found) == set(expected)
    for name, (verdict, detail, advice) in expected.items():
        assert found[name][0] == verdict and detail in found[name][1], found[name]
        assert advice in tools[name].advice


class _Owned:
    """What `stat` says of a file that belongs to a group and that the group may use."""

    st_gid = 44

    def __init__(self, info: Any):
        self._info = info
        self.st_mode = info.st_mode | 0o660

    def __getattr__(self, name: str) -> Any:
        return getattr(self._info, name)


def test_variables_of_the_loader_are_followed(tmp_path: Path) -> None:
    def named(**environ: str) -> dict[str, Tool]:
        return {tool.name: tool for tool in installation(tmp_path, environ)}

    broken = named(OCL_ICD_VENDORS="/nonexistent")
    assert "unset OCL_ICD_VENDORS" in broken["$OCL_ICD_VENDORS"].advice
    assert "/nonexistent: cannot open" in broken["$OCL_ICD_VENDORS"].detail
    assert "PoCL for pyopencl" not in broken and broken["drivers"].verdict == "missing"
    folder = tmp_path / "empty"
    folder.mkdir()
    for variable in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"):
        empty = named(**{variable: str(folder)})
        assert empty[str(folder)].detail == "no *.icd in this folder"
        assert empty["drivers"].detail == "no ICD file names any"
    (folder / "own.icd").write_text("libnothere.so")
    assert named(OCL_ICD_VENDORS=str(folder / "own.icd"))["own.icd"].verdict == "broken"
    libraries = named(OCL_ICD_FILENAMES="libnothere.so")["$OCL_ICD_FILENAMES"]
    assert libraries.verdict == "broken" and libraries.advice


def test_the_doctor_without_a_patient(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device_module, "_discover", lambda: ())
    monkeypatch.delenv("OCLAB_DEVICE")
    monkeypatch.setattr("opencl_lab.lab.cli.doctor.toolchain", lambda: (Tool("MPI", "no", "none"),))
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nonexistent")
    assert main(["doctor"]) == 3
    said = capsys.readouterr()
    words = ("ICD loader", "$OCL_ICD_VENDORS", "unset OCL_ICD_VENDORS", "NVIDIA GPU", "MPI")
    assert all(word in said.out for word in words)
    assert said.err == "oclab: no OpenCL device is there; the list says what to install\n"
    assert main(["doctor", "--json", "--device", "gpu"]) == 3
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert document["device"] is None and document["toolchain"][0]["name"] == "MPI"
    assert document["installation"][0]["name"] == "ICD loader"
    assert "'gpu'" in said.err
    assert main(["devices"]) == 3
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "`oclab doctor`" in said.err


def test_a_pyopencl_that_does_not_load_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "pyopencl.py").write_text("raise ImportError('libOpenCL.so.1: planted')")
    own = Path(device_module.__file__).parents[2]
    search = os.pathsep.join([str(tmp_path), str(own), os.environ.get("PYTHONPATH", "")])
    script = (
        "from opencl_lab.lab.cli import main; import opencl_lab.lab.cli.doctor as d\n"
        "d.toolchain = lambda: ()\n"
        "print(main(['doctor']), main(['devices']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "libOpenCL.so.1: planted" in done.stdout and "ocl-icd-libopencl1" in done.stdout
    assert done.stdout.endswith("3 3\n")
    assert "pyopencl cannot be loaded (libOpenCL.so.1: planted); `oclab doctor`" in done.stderr


def test_the_report_tells_broken_drivers_beside_a_device_that_works(device: Device) -> None:
    installed = (Tool("ICD loader", "ok", "there"), Tool("x.icd", "broken", "gone", "repair"))
    report = Report(device, (), (), None, installed)
    console = Console(width=100)
    for everything, names in ((False, ["x.icd"]), (True, ["ICD loader", "x.icd"])):
        with console.capture() as capture:
            console.print(*tables_of(report, everything=everything))
        said = capture.get()
        assert [name for name in ("ICD loader", "x.icd") if name in said] == names
    assert [item["name"] for item in report.as_dict()["installation"]] == ["ICD loader", "x.icd"]
