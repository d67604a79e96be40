"""Intel's CPU runtime: where it is, whether it is wanted, and what is said if it does not load."""

from __future__ import annotations

import pytest
from intel_setting import NAMES

from opencl_lab.drivers import icd, intel

pytestmark = [
    pytest.mark.usefixtures("clean"),
    pytest.mark.skipif(not intel.supported(), reason="Intel has no runtime for this one"),
]


@pytest.fixture
def loads(monkeypatch):
    """Let every library load; return what was loaded."""
    loaded = []
    monkeypatch.setattr(intel, "platforms_of", lambda library: loaded.append(library) or [1, 2])
    monkeypatch.setattr(intel, "works_alone", lambda platform: platform == 2)
    return loaded


def test_the_library_of_the_wheel_is_loaded_wherever_opencl_was_started(wheel, loads):
    assert intel.platforms() == [2]
    assert loads == [str(wheel)] and not intel.why_missing()


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_of_the_user_stands(wheel, loads, tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "off" if name == "OCLAB_INTEL" else str(tmp_path / "of the user"))
    assert intel.platforms() == [] == loads and not intel.why_missing()


def test_a_library_that_does_not_load_is_named(wheel):
    assert intel.platforms() == []
    assert str(wheel) in intel.why_missing() and "does not load" in intel.why_missing()


@pytest.mark.parametrize(("first", "loader", "alone"), [
    (1234, icd.SECOND, True), (icd.TAG, b"", True), (icd.TAG, icd.SECOND, False),
])  # fmt: skip
def test_platforms_that_need_the_loader_are_left_out(monkeypatch, tmp_path, first, loader, alone):
    """Others tell where their functions are; a newer loader wants to say that itself."""
    table = (icd.ctypes.c_uint64 * 1)(first)
    platform = (icd.ctypes.c_uint64 * 1)(icd.ctypes.addressof(table))
    (tmp_path / "loader").write_bytes(b"\0" + loader)
    monkeypatch.setattr(icd, "loader_library", lambda: tmp_path / "loader")
    assert icd.works_alone(icd.ctypes.addressof(platform)) == alone
