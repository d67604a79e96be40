"""What discovery and the doctor say of Intel's runtime."""

from __future__ import annotations

import os
import sys

import pytest
from intel_setting import discover

from opencl_lab.drivers import intel
from opencl_lab.drivers.icd import VENDORS
from opencl_lab.lab.doctor.installation import installation

pytestmark = [
    pytest.mark.usefixtures("clean"),
    pytest.mark.skipif(not intel.supported(), reason="Intel has no runtime for this one"),
]


def test_a_runtime_that_does_not_load_hides_no_other(wheel):
    search = os.pathsep.join([str(wheel.parent / "python3/site-packages"), *sys.path[1:]])
    found, rows, reason = discover(PYTHONPATH=search)
    assert found and not any(name.startswith("Intel") for name in found)
    verdict, detail, advice = rows["Intel's CPU runtime"]
    assert verdict == "broken" and "file too short" in detail and str(wheel) in detail
    assert advice == "pip install 'opencl_lab[intel]'"
    assert reason.endswith(f"({wheel}) does not load: `oclab doctor` says why")


LOADS = """
from opencl_lab.drivers.verdicts import Verdict

class Loads:
    def __init__(self, say):
        pass

    def load(self, library):
        return Verdict("ok", "it loads, platforms: 1")
"""


def only_pocl(monkeypatch, tmp_path, *named):
    """Return the doctor's row about Intel's runtime where drivers of these names work."""
    folder = tmp_path / "drivers"
    folder.mkdir()
    for index, name in enumerate(named):
        (folder / f"{index}.icd").write_text(name)
    (tmp_path / "planted_driver.py").write_text(LOADS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("opencl_lab.lab.doctor.installation.LOADING", "planted_driver:Loads")
    rows = installation(tmp_path, {"OCL_ICD_VENDORS": str(folder)})
    return next((row for row in rows if row.name == "Intel's CPU runtime"), None)


def test_the_doctor_recommends_it_where_pocl_is_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(intel, "library", lambda: None)
    row = only_pocl(monkeypatch, tmp_path, "libpocl.so.2", "/x/libpocl-21062cec.so")
    assert row is not None and row.verdict == "limited"
    assert row.advice == "pip install 'opencl_lab[intel]'" and "PoCL is the only" in row.detail


@pytest.mark.parametrize("drivers", [0, 1])
def test_the_doctor_says_that_it_is_switched_off(wheel, tmp_path, drivers):
    folder = tmp_path / VENDORS
    folder.mkdir(parents=True)
    (folder / "pocl.icd").write_text("/nowhere/libpocl.so" * drivers)
    rows = {row.name: row for row in installation(tmp_path, {"OCLAB_INTEL": "no"})}
    row = rows["Intel's CPU runtime"]
    assert row.detail == f"{wheel} is installed, and OCLAB_INTEL is set to no"
    assert row.advice == "unset OCLAB_INTEL"
    advice = rows["drivers"].advice if "drivers" in rows else ""  # that of pyopencl works
    assert "pip install" not in advice
