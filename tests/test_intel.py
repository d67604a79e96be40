"""Intel's CPU runtime: it is told to the loader, nobody else's drivers get lost, and why."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from intel_setting import NAMES, libraries, register

from opencl_lab.drivers import intel
from opencl_lab.drivers import wheel as pip

pytestmark = [
    pytest.mark.usefixtures("clean"),
    pytest.mark.skipif(not pip.supported(), reason="Intel has no runtime for this one"),
]


@pytest.fixture
def vendors(tmp_path):
    """The folder of the system's drivers, with two."""
    folder = tmp_path / "root" / pip.VENDORS
    folder.mkdir(parents=True)
    (folder / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    (folder / "pocl.icd").write_text("/usr/lib/libpocl.so\n")
    return folder


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


def test_what_was_interrupted_while_it_was_registered_is_taken_back(wheel, tmp_path, monkeypatch):
    monkeypatch.setattr(pip, "DRIVER", "libplanted.so")
    wheel.rename(wheel.with_name("libplanted.so"))
    environ = type(os.environ)
    write = environ.__setitem__

    def interrupted(self, name, value):
        write(self, name, value)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environ, "__setitem__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            register(tmp_path)
    intel.withdraw_unless_loaded()
    assert intel.was_withdrawn() and "OPENCL_VENDOR_PATH" not in os.environ
