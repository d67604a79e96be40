"""Files of the library's own: replaced whole or not at all, and read without surprises."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading

import pytest

from opencl_lab.paths import cache_dir, read_json, replace_file, write_json


def test_cache_dir_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path
    assert cache_dir("doctor", "x.json") == tmp_path / "doctor" / "x.json"
    assert not cache_dir("doctor").exists()


@pytest.mark.parametrize("value", [None, ""])
def test_cache_dir_of_the_platform(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("OCLAB_CACHE_DIR")
    else:
        monkeypatch.setenv("OCLAB_CACHE_DIR", value)
    assert cache_dir().is_absolute()
    assert "opencl_lab" in cache_dir().parts


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


def test_an_interrupted_first_write_leaves_nothing(tmp_path):
    def interrupted():
        with replace_file(tmp_path / "a.json") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_is_no_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_files_get_the_permissions_of_a_plain_open(umask, tmp_path):
    # In a process of its own: the mask is one for all threads.
    program = (
        "import os, sys, pathlib; from opencl_lab.paths import write_json\n"
        f"os.umask({umask}); write_json(pathlib.Path(sys.argv[1]), 1); print(os.umask(0))"
    )
    path = tmp_path / "a.json"
    done = subprocess.run(
        [sys.executable, "-c", program, path], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == umask
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_write_json_makes_the_folder(tmp_path):
    path = tmp_path / "a" / "b" / "c.json"
    write_json(path, {"key": [1, "ü", None]})
    assert read_json(path) == {"key": [1, "ü", None]}
    assert json.loads(path.read_text(encoding="utf-8")) == {"key": [1, "ü", None]}


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"a": 1', b"\xff\xfe\x00", b"{'a': 1}", b'{"a": 1} x']
)
def test_corrupt_json_reads_as_none(content, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert read_json(path) is None


def test_missing_json_reads_as_none(tmp_path):
    assert read_json(tmp_path / "a.json") is None
    assert read_json(tmp_path / "no folder" / "a.json") is None
    assert read_json(tmp_path) is None


def test_concurrent_writers_leave_one_whole_document(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, [-1] * 2_000)
    start = threading.Barrier(5)
    torn = []

    def write(number):
        start.wait()
        for _ in range(20):
            write_json(path, [number] * 2_000)

    def read():
        start.wait()
        for _ in range(100):
            document = read_json(path)
            if document is None or len(document) != 2_000 or len(set(document)) != 1:
                torn.append(document)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    threads.append(threading.Thread(target=read))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torn == []
    document = read_json(path)
    assert len(document) == 2_000
    assert set(document) <= {0, 1, 2, 3}
    assert len(set(document)) == 1
    assert list(tmp_path.iterdir()) == [path]
