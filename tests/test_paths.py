"""Files of the library's own: replaced whole or not at all, and read without surprises."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import check_target, replace_file


def test_replace_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with replace_file(path) as temporary:
        assert temporary.parent == tmp_path
        assert temporary != path
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_the_old_file(error, tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")

    def interrupted():
        with replace_file(path) as temporary:
            temporary.write_text("half of the n")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_files_get_the_permissions_of_a_plain_open(umask, tmp_path):
    # In a process of its own: the mask is one for all threads.
    program = (
        "import os, sys, pathlib; from opencl_lab.core.paths import write_json\n"
        f"os.umask({umask}); write_json(pathlib.Path(sys.argv[1]), 1); print(os.umask(0))"
    )
    path = tmp_path / "a.json"
    done = subprocess.run(
        [sys.executable, "-c", program, path], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == umask
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


# ------------------------------------------------------------- a user's targets


def _write(path, text="new"):
    check_target(path)
    with replace_file(path) as temporary:
        assert temporary.suffix == path.suffix
        temporary.write_text(text)


def test_links_are_followed(tmp_path):
    target, missing = tmp_path / "there" / "a.csv", tmp_path / "there" / "missing.csv"
    target.parent.mkdir()
    target.write_text("old")
    for link, end in ((tmp_path / "1.csv", target), (tmp_path / "2.csv", missing)):
        link.symlink_to(end)
        _write(link)
        assert link.is_symlink() and end.read_text() == "new"
    assert {path.name for path in target.parent.iterdir()} == {"a.csv", "missing.csv"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_modes_and_owners_are_kept(tmp_path, mode):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    before = path.stat()
    with replace_file(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == mode  # before there is anything in it
        temporary.write_text("new")
    after = path.stat()
    assert path.read_text() == "new" and after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_what_cannot_be_replaced_is_written_where_it_is(tmp_path, monkeypatch):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("old and longer")
    other.hardlink_to(path)
    _write(path)
    assert other.read_text() == "new"
    other.unlink()

    def forbidden(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    inode = path.stat().st_ino
    monkeypatch.setattr(Path, "replace", forbidden)  # a mount point; another's in a sticky folder
    _write(path, "newer")
    assert path.read_text() == "newer" and path.stat().st_ino == inode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [errno.ENOSPC, errno.EOPNOTSUPP])
def test_a_full_disk_leaves_what_is_written_where_it_is(failure, tmp_path, monkeypatch):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("the only copy")
    other.hardlink_to(path)

    def no_space(handle, offset, size):
        os.ftruncate(handle, size)  # some file systems have grown it by then
        raise OSError(failure, os.strerror(failure))

    monkeypatch.setattr(os, "posix_fallocate", no_space)
    text = "new, and longer than that"
    if failure == errno.ENOSPC:
        with pytest.raises(OSError, match="No space left"):
            _write(path, text)
        text = "the only copy"
    else:
        _write(path, text)
    assert path.read_text() == other.read_text() == text


def test_pipes_and_devices_are_written_to(tmp_path, character_device):
    pipe, got = tmp_path / "pipe.csv", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    _write(pipe)
    reader.join(10)
    assert got == ["new"] and pipe.is_fifo()
    null, full = tmp_path / "null.csv", tmp_path / "full.csv"
    character_device(null, "null")
    character_device(full, "full")
    _write(null)
    with pytest.raises(OSError, match="No space left"):
        _write(full)
    assert null.is_char_device() and full.is_char_device()


def test_open_files_go_on_where_they_are(tmp_path):
    with (tmp_path / "a").open("w+") as file:
        print("printed", file=file, flush=True)
        link = tmp_path / "link"
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        _write(link, "written\n")
        print("after", file=file, flush=True)
    assert (tmp_path / "a").read_text() == "printed\nwritten\nafter\n"


def test_targets_that_cannot_be_are_refused_early(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with (tmp_path / "file").open() as reading, socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)
        server.bind("listening")
        for path, words in (
            (tmp_path, "folder"),
            (tmp_path / "no" / "x.csv", "no does not exist"),
            (tmp_path / "file" / "x.csv", "does not exist"),
            (tmp_path / "listening", "socket"),
            (tmp_path / "loop", "links"),
            (Path(f"/dev/fd/{reading.fileno()}"), "reading only"),
            (Path("/proc/x.csv"), "nothing can be made in the folder /proc"),
        ):
            with pytest.raises(InvalidProblem, match=f"cannot write {path}: .*{words}"):
                check_target(path)
    monkeypatch.setattr(os, "access", lambda *args, **options: False)
    with pytest.raises(InvalidProblem, match="may not be changed"):
        check_target(tmp_path / "file")
