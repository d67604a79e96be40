"""PoCL's cache and its linker: nothing there ends the process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import replace

import pytest

from opencl_lab.core.errors import BuildError
from opencl_lab.core.template import Source
from opencl_lab.drivers import pocl
from opencl_lab.drivers.pocl_target import library_target
from opencl_lab.runtime.session import session_of

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="PoCL is repaired on x86-64 Linux alone",
)

# ------------------------------------------------------------------- the cache

PROGRAM = "AB/" + "CDEF" * 9
BC, SO = f"{PROGRAM}/program.bc", f"{PROGRAM}/f/1-1-1/f.so"
CONTENT = b"what PoCL has compiled"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty folder for this processor that POCL_CACHE_DIR names."""
    folder = tmp_path / (library_target() or "pocl")
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder))
    return folder


@pytest.mark.parametrize("name", [BC, SO, f"{PROGRAM}/build.log"])
@pytest.mark.parametrize("age", ["old", "new"])
def test_files_that_no_process_has_recorded_within_a_minute_are_removed(name, age, folder):
    path = _write(folder, name, CONTENT)
    if age == "old":
        os.utime(path, (0, 0))
    assert pocl.prepare_cache() == folder
    assert path.exists() == (age == "new" or name.endswith(".log"))


def _write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _recorded(folder):
    return set(json.loads((folder / "checked.json").read_text())["files"])


def _flip(path, byte):
    """Change one bit of a file, whose size and time of writing stay."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[byte] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _cut(path):
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-20])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace_by_a_folder(path):
    path.unlink()
    (path / "more").mkdir(parents=True)


@pytest.mark.parametrize("damage", [lambda path: _flip(path, -1), _cut, _replace_by_a_folder])
@pytest.mark.parametrize("name", [BC, SO])
def test_what_is_not_as_recorded_is_removed(folder, name, damage):
    paths = {name: _write(folder, name, 9 * CONTENT) for name in (BC, SO)}
    pocl.prepare_cache()
    damage(paths[name])
    other = paths[SO if name == BC else BC]
    other.write_bytes(other.read_bytes())  # as a copy of the cache has new times
    pocl.prepare_cache()
    assert not paths[name].exists() and other.exists()
    assert _recorded(folder) == {str(other.relative_to(folder))}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "[1]",
        lambda text: '{"files": {}}',
        lambda text: text.replace("program.bc", "program.bb"),
    ],
)
def test_nothing_is_taken_by_a_damaged_record(folder, damage):
    path = _write(folder, BC, CONTENT)
    pocl.prepare_cache()
    assert _recorded(folder) == {BC}
    record = folder / "checked.json"
    record.write_text(damage(record.read_text()))
    pocl.prepare_cache()
    assert not path.exists() and _recorded(folder) == set()


def _run(code, folder, ends=0):
    """Run a program with a cache of its own: others may be building."""
    environment = {**os.environ, "POCL_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ends, done.stderr


@pytest.fixture
def on_pocl(device):
    """Leave out what other drivers do not have."""
    if "PoCL" not in device.platform_version:
        pytest.skip("only PoCL has this cache")


UNREADABLE = """
import glob, os, sys
import numpy as np, opencl_lab as ol, pyopencl as cl
from opencl_lab.drivers.discovery import select_device
from opencl_lab.runtime.session import session_of
from opencl_lab.core.template import Source

source = Source("any", "__kernel void f(void) {}")
for _ in range(2):
    context = cl.Context([select_device().handle])
    program = session_of(cl.CommandQueue(context)).program(source, ())
    assert program.get_info(cl.program_info.KERNEL_NAMES) == "f"
    (path,) = glob.glob(os.environ["POCL_CACHE_DIR"] + "/*/*/program.bc")
    with open(path, "r+b") as file:
        assert file.seek(0, 2) > 1000  # and not what was written below
        file.truncate(0)
        file.seek(0)
        file.write(%r)
"""


@pytest.mark.usefixtures("on_pocl")
def test_what_pocl_cannot_read_is_built_again(device, folder):
    if "+Asserts" in device.platform_version:
        pytest.skip("a PoCL with assertions ends the process")
    _run(UNREADABLE % CONTENT, folder)


@pytest.mark.parametrize("chosen", ["", "mine"])
def test_the_cache_lies_in_ours_unless_the_user_chose(monkeypatch, tmp_path, chosen):
    monkeypatch.setenv("POCL_CACHE_DIR", chosen and str(tmp_path / chosen))
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # in a child process, too
        folder = pocl.prepare_cache()
        assert folder == tmp_path / (chosen or "pocl") / (library_target() or "")
        assert folder.is_dir()


def test_a_cache_that_cannot_be_written_to_is_replaced(folder, monkeypatch):
    (folder / "a file").touch()
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder / "a file" / "pocl"))
    other = pocl.prepare_cache()
    assert other.is_dir()
    assert folder not in other.parents


@pytest.mark.parametrize("name", ["AB", "AB/f.so", "link"])
@pytest.mark.parametrize("planted", ["owner", "mode"])
def test_a_cache_with_what_others_have_put_there_is_replaced(folder, caplog, name, planted):
    (folder / "AB").mkdir()
    (folder / "AB" / "f.so").write_bytes(CONTENT)
    (folder / "link").symlink_to("AB")
    folder.chmod(0o755)
    if planted == "mode":
        (folder / name).chmod(0o777)
    elif os.geteuid():
        pytest.skip("only root can give files away")
    else:
        os.chown(folder / name, 1234, 1234, follow_symlinks=False)
    other = pocl.prepare_cache()
    assert other != folder and not list(other.glob("*/*"))
    assert len(caplog.records) == 1 and str(folder) in caplog.text


@pytest.mark.parametrize(("free", "words"), [(pocl.LEAST_ROOM - 1, "disk is full"), (1e9, None)])
def test_a_build_without_room_is_an_error(device, own_queue, monkeypatch, free, words):
    if device.kind != "cpu":
        pytest.skip("it is built as for PoCL")
    monkeypatch.setattr(pocl, "free_bytes", lambda folder: free)
    assert pocl.no_room("OpenCL 3.0 CUDA 12.8") is None
    session = session_of(own_queue(device.handle))
    session.device = replace(session.device, platform_version="OpenCL 3.0 PoCL 6.0")
    source = Source("a", "__kernel void f(void) {}")
    if words is None:
        assert session.program(source, ())
    else:
        with pytest.raises(BuildError, match=words):
            session.program(source, ())


# ------------------------------------------------------------------ the linker


@pytest.mark.parametrize(
    ("version", "needed"),
    [
        ("OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6", True),
        ("OpenCL 3.0 PoCL 5.0  Linux", True),
        ("OpenCL 3.0 PoCL 6.0  Linux", False),
        ("OpenCL 3.0 PoCL 10.0  Linux", False),
        ("OpenCL 3.0 CUDA 12.8", False),
    ],
)
def test_old_releases_need_a_linker(version, needed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (pocl.linker_missing(version) is not None) == needed
    (tmp_path / "ld").touch(mode=0o755)
    assert pocl.linker_missing(version) is None


def test_a_build_without_a_linker_is_an_error(device, own_queue, tmp_path, monkeypatch):
    session = session_of(own_queue(device.handle))
    session.device = replace(session.device, platform_version="OpenCL 3.0 PoCL 3.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="binutils"):
        session.program(Source("a", "__kernel void f(void) {}"), ())
