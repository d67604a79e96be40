"""PoCL's cache and its linker: nothing there ends the process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab import pocl
from opencl_lab.errors import BuildError
from opencl_lab.runtime.session import session_of
from opencl_lab.template import Source

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="PoCL is repaired on x86-64 Linux alone",
)

# ------------------------------------------------------------------- the cache

WHOLE_ELF = b"\x7fELF" + bytes(0x24) + (128).to_bytes(8, "little") + bytes(10)
WHOLE_ELF += (32).to_bytes(2, "little") + (2).to_bytes(2, "little") + bytes(2 + 128)


BITCODE = b"BC\xc0\xde"
for words in (3, 0, 7):  # blocks: how they begin, how long they are, what they hold
    BITCODE += (0xC14 + 1).to_bytes(4, "little") + words.to_bytes(4, "little") + b"\x05" * 4 * words
WRAPPED = b"\xde\xc0\x17\x0b" + bytes(4) + (20).to_bytes(4, "little")
WRAPPED += len(BITCODE).to_bytes(4, "little") + bytes(4) + BITCODE + bytes(8)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty folder that POCL_CACHE_DIR names."""
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content", "kept"),
    [
        ("ab/cd/program.bc", BITCODE, True),
        ("ab/cd/program.bc", WRAPPED, True),
        ("ab/cd/program.bc", WRAPPED[:-9], False),
        ("ab/cd/program.bc", WRAPPED[:10], False),
        ("ab/cd/program.bc", BITCODE[:-1], False),
        ("ab/cd/program.bc", BITCODE[:-4], False),
        ("ab/cd/program.bc", BITCODE[:6], False),
        ("ab/cd/program.bc", BITCODE + b"more", False),
        ("ab/cd/program.bc", b"BC\xc0\xde and more", False),
        ("ab/cd/program.bc", b"", False),
        ("ab/cd/program.bc", b"BC", False),
        ("ab/cd/f/1-1-1/f.so", WHOLE_ELF, True),
        ("ab/cd/f/1-1-1/f.so", WHOLE_ELF[:-1], False),
        ("ab/cd/f/1-1-1/f.so", WHOLE_ELF[:20], False),
        ("ab/cd/f/1-1-1/f.so", b"", False),
        ("ab/cd/f/1-1-1/f.so", b"x" + WHOLE_ELF[1:], False),
        ("ab/cd/build.log", b"", True),
    ],
)
@pytest.mark.parametrize("age", ["old", ""])
def test_damaged_files_of_the_cache_are_removed(name, content, kept, age, folder):
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    if age:
        os.utime(path, (0, 0))
    pocl.prepare_cache()
    assert path.exists() == kept
    assert os.environ["POCL_CACHE_DIR"] == str(folder)
    if kept:
        assert path.read_bytes() == content


def test_files_that_are_being_written_are_kept(folder, monkeypatch):
    path = folder / "ab" / "cd" / "program.bc"
    path.parent.mkdir(parents=True)
    path.write_bytes(BITCODE[:9])
    monkeypatch.setattr(time, "sleep", lambda seconds: path.write_bytes(BITCODE[:13]))
    pocl.prepare_cache()
    assert path.exists()
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    pocl.prepare_cache()
    assert not path.exists()


def test_what_pocl_writes_is_whole(queue, tmp_path):
    if "Portable" not in queue.device.platform.name:
        pytest.skip("only PoCL has this cache")
    test_builds_work(queue)
    found = [path for path, _ in pocl._files(os.environ["POCL_CACHE_DIR"])]
    assert {path.suffix for path in found} == {".bc", ".so"}
    assert all(map(pocl._is_whole, found))
    for path in {path.suffix: path for path in found}.values():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-5])
        assert not pocl._is_whole(tmp_path / path.name)


CLEARED = """
import os, shutil
from opencl_lab.discovery import select_device
from opencl_lab.runtime.session import default_queue, session_of
from opencl_lab.template import Source

session = session_of(default_queue(select_device()))
for name in ("first", "second"):
    session.program(Source(name, f"__kernel void {name}(void) {{}}"), ())
    assert os.listdir(os.environ["POCL_CACHE_DIR"])
    shutil.rmtree(os.environ["POCL_CACHE_DIR"])
"""


def test_builds_outlive_a_cache_that_is_cleared(device, tmp_path):
    if "PoCL" not in device.platform_version:
        pytest.skip("only PoCL has this cache")
    # In a process with a cache of its own: others may be building.
    environment = {**os.environ, "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLEARED],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_was_checked_is_not_read_again(folder, monkeypatch):
    path = folder / "ab" / "cd" / "program.bc"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"BC\xc0\xde")
    os.utime(path, (0, 0))
    read = []
    monkeypatch.setattr(pocl, "_is_bitcode", lambda path: read.append(path) or True)
    pocl.prepare_cache()
    pocl.prepare_cache()
    assert read == [path]
    os.utime(path, (time.time() - 100, time.time() - 100))  # older than the last check
    pocl.prepare_cache()
    assert read == [path]
    os.utime(folder / "checked", (0, 0))
    pocl.prepare_cache()
    assert read == [path, path]


def test_the_cache_lies_in_ours_unless_the_user_chose(monkeypatch, tmp_path):
    monkeypatch.setenv("POCL_CACHE_DIR", "")
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    pocl.prepare_cache()
    assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "pocl")
    assert (tmp_path / "pocl").is_dir()


def test_a_cache_that_cannot_be_written_to_is_replaced(folder, monkeypatch):
    (folder / "a file").touch()
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder / "a file" / "pocl"))
    pocl.prepare_cache()
    other = Path(os.environ["POCL_CACHE_DIR"])
    assert other.is_dir()
    assert folder not in other.parents


@pytest.mark.parametrize("name", ["AB", "AB/f.so", "link"])
@pytest.mark.parametrize("planted", ["owner", "mode"])
def test_a_cache_with_what_others_have_put_there_is_replaced(folder, caplog, name, planted):
    (folder / "AB").mkdir()
    (folder / "AB" / "f.so").write_bytes(WHOLE_ELF)
    (folder / "link").symlink_to("AB")
    folder.chmod(0o755)
    if planted == "mode":
        (folder / name).chmod(0o777)
    elif os.geteuid():
        pytest.skip("only root can give files away")
    else:
        os.chown(folder / name, 1234, 1234, follow_symlinks=False)
    pocl.prepare_cache()
    other = Path(os.environ["POCL_CACHE_DIR"])
    assert other != folder and not list(other.glob("*/*"))
    assert len(caplog.records) == 1 and str(folder) in caplog.text


@pytest.mark.parametrize(("free", "words"), [(pocl.LEAST_ROOM - 1, "disk is full"), (1e9, None)])
def test_a_build_without_room_is_an_error(device, own_queue, monkeypatch, free, words):
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


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")  # Intel's compiler says "done"
def test_builds_work(queue):
    """A source that no cache has seen builds and runs."""
    number = uuid.uuid4().int % 2**31
    source = f"__kernel void f(__global int *target) {{ target[get_global_id(0)] = {number}; }}"
    program = cl.Program(queue.context, source).build()
    target = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4 * 8)
    kernel = cl.Kernel(program, "f")
    kernel.set_args(target)
    cl.enqueue_nd_range_kernel(queue, kernel, (8,), (4,))
    result = np.zeros(8, np.int32)
    cl.enqueue_copy(queue, result, target)
    assert (result == number).all()


def test_files_that_vanish_hide_no_others(tmp_path):
    names = [f"{letter}.so" for letter in "abcdef"]
    for name in names[::2]:
        (tmp_path / name).touch()
    for name in names[1::2]:
        (tmp_path / name).symlink_to(tmp_path / "gone")
    assert sorted(path.name for path, _ in pocl._files(str(tmp_path))) == names[::2]
    assert not list(pocl._files(str(tmp_path / "gone")))
