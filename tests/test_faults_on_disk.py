"""Faults of disks, files and clocks, and processes that are killed or run side by side.

`docs/reliability.md` says what users see, and which other tests show the rest of it.
"""

import errno
import fcntl
import io
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from command_line import QUICK, command, oclab_process
from tuned_entries import GPU, store, tuned, used

import opencl_lab as ol
from opencl_lab.core import paths
from opencl_lab.core.paths import write_json
from opencl_lab.drivers import pocl
from opencl_lab.drivers.caches import usable_folder
from opencl_lab.drivers.discovery import select_device
from opencl_lab.drivers.verdicts import store_found
from opencl_lab.tuned.storage import update_entries

CALLS = """
import sys, numpy as np, opencl_lab as ol
rng = np.random.default_rng(1)
x, a = rng.standard_normal(5000), rng.standard_normal((60, 70), np.float32)
assert (ol.sort(x) == np.sort(x)).all()
assert np.allclose(ol.gemm(a, a.T), a @ a.T, atol=1e-4)
assert np.allclose(ol.fft.rfft(a), np.fft.rfft(a), atol=1e-4)
"""


def calls(**environment):
    """Make some calls in a process of its own."""
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALLS],
        capture_output=True, text=True, timeout=240, env=env, check=False,
    )  # fmt: skip


def places(tmp_path):
    """Return the environment of a cache and a folder of data of one's own."""
    folders = {name: tmp_path / name.lower() for name in ("CACHE", "DATA", "POCL")}
    for folder in folders.values():
        folder.mkdir(mode=0o700, exist_ok=True)
    return {
        "OCLAB_CACHE_DIR": folders["CACHE"],
        "OCLAB_DATA_DIR": folders["DATA"],
        "POCL_CACHE_DIR": folders["POCL"],
    }


def files_below(tmp_path):
    return [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]


# -------------------------------------------------------------------------------------- caches


@pytest.mark.full
@pytest.mark.parametrize("damage", ["random bytes", "nothing", "a flipped bit"])
def test_damage_in_every_file_of_the_cache(tmp_path, damage, monkeypatch):
    """The next process finds it, makes all of it again, and its results are right."""
    where = places(tmp_path)
    assert calls(**where).returncode == 0
    known = oclab_process(
        "sort", "--n", 999, "--repeats", 1, "--against", "c:seq", **strings(where)
    )
    assert known.returncode == 0, known.stderr
    with monkeypatch.context() as patch:
        patch.setenv("OCLAB_CACHE_DIR", str(where["OCLAB_CACHE_DIR"]))
        store_found(select_device().key, {"fp64": False})
    write_json(where["OCLAB_DATA_DIR"] / "tuning" / "sort.json", {"format": 1, "entries": []})
    rng = np.random.default_rng(4)
    damaged = sorted(files_below(tmp_path))
    assert {path.parent.name for path in damaged} >= {"c", "verdicts", "tuning"}
    for path in damaged:
        content = np.frombuffer(path.read_bytes(), np.uint8).copy()
        if damage == "a flipped bit" and content.size:
            content[rng.integers(content.size)] ^= 1 << rng.integers(8)
        elif damage == "random bytes":
            content = rng.integers(0, 256, content.size, np.uint8)
        elif damage == "nothing":
            content = content[:0]
        path.write_bytes(content.tobytes())
    for _ in range(2):
        done = calls(**where)
        assert done.returncode == 0, done.stderr
        # Of what was only kept to save time nothing is said.
        assert all("sort.json" in line for line in done.stderr.splitlines()), done.stderr
    if damage == "nothing":  # what may be worth a look is set aside
        assert list((where["OCLAB_DATA_DIR"] / "tuning").glob("sort.json.damaged-*"))
    again = oclab_process(
        "sort", "--n", 999, "--repeats", 1, "--against", "c:seq", **strings(where)
    )
    assert again.returncode == 0 and "Traceback" not in again.stderr, again.stderr


def strings(environment):
    return {name: str(value) for name, value in environment.items()}


def test_pyopencl_s_caches_hold_nothing_of_ours_and_may_be_damaged(tmp_path):
    """They are not checked; with a damaged one, pyopencl alone makes no kernel."""
    where = {**places(tmp_path), "XDG_CACHE_HOME": tmp_path / "of others", "OCLAB_INTEL": "off"}
    assert calls(**where).returncode == 0
    kept = files_below(tmp_path / "of others")
    for path in kept:
        assert path.suffix == ".sqlite"
        assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM dict").fetchone() == (0,)
        path.write_text("damaged " * 99)
    done = calls(**where)
    assert kept and done.returncode == 0, done.stderr


@pytest.mark.full
@pytest.mark.parametrize("age", [-(10**9), 10**9], ids=["past", "future"])
def test_a_clock_that_has_jumped_costs_nothing_but_time(tmp_path, age):
    where = places(tmp_path)
    assert calls(**where).returncode == 0
    for path in files_below(tmp_path):
        os.utime(path, (time.time() + age, time.time() + age))
    for _ in range(2):
        done = calls(**where)
        assert done.returncode == 0 and not done.stderr


@pytest.mark.full
def test_processes_that_fill_one_cache_at_once(tmp_path):
    where = {**os.environ, **strings(places(tmp_path))}
    started = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", CALLS], env=where,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]  # fmt: skip
    for process in started:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0 and not errors
    assert calls(**places(tmp_path)).returncode == 0


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
@pytest.mark.parametrize("size", ["40k", "600k", "3m", "17m"])
def test_a_cache_on_a_small_disk(tmp_path, size):
    """The calls are right, or one sentence says what to do; nothing else is full."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(small)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        for _ in range(2):
            done = calls(**places(small))
            assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_quota_that_is_used_up(tmp_path, monkeypatch):
    """Files can be made and not be written, though the disk has room: another folder is taken."""

    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    assert usable_folder(tmp_path, 1) == tmp_path
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda **how: Full())
        instead = usable_folder(tmp_path, 1)
    assert instead != tmp_path and instead.is_dir()


def test_nowhere_to_write_at_all(tmp_path, open_path, monkeypatch):
    """The folder itself is taken, but not one that others can write to."""

    def nowhere(**how):
        raise FileNotFoundError(errno.ENOENT, "no usable temporary folder")

    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    assert usable_folder(tmp_path, 1) == tmp_path
    (tmp_path / "file").touch()
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "file" / "pocl"))
    assert (tmp_path / "file") in pocl.prepare_cache().parents
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    open_path.chmod(0o777)
    with pytest.raises(ol.OclabError, match=r"others can write .* no usable temporary folder"):
        usable_folder(open_path, 1)


@pytest.mark.full
def test_files_that_may_not_grow_are_an_error_and_no_crash(tmp_path):
    """PoCL writes a file at each build, also of what it has compiled before."""
    where = places(tmp_path)
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "import numpy as np, opencl_lab as ol\n"
        "x = np.random.default_rng(1).standard_normal(5000)\n"
        "try: assert (ol.sort(x) == np.sort(x)).all()\n"
        "except ol.BuildError as error: assert 'ulimit -f' in error.sentence\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", limited], env={**os.environ, **strings(where)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def no_locks(monkeypatch):
    """A file system without locks, such as some that come over a network."""

    def flock(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    paths._warn_of_no_locks.cache_clear()


def test_without_locks_results_are_kept_with_one_warning(no_locks, private_data, caplog):
    store(GPU, 1)
    store(GPU, 2)
    assert used() == tuned(2)
    warnings = [record for record in caplog.records if "file locks" in record.message]
    assert len(warnings) == 1


def test_other_errors_of_locks_are_no_reason_to_go_on(monkeypatch, tmp_path):
    def flock(file, operation):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(ol.OclabError, match=f"cannot write .*{os.strerror(errno.EIO)}"):
        update_entries(tmp_path / "sort.json", lambda entries: entries)
    assert not (tmp_path / "sort.json").exists()


# ----------------------------------------------------------------------------- files and clocks


@pytest.mark.full
def test_a_sort_of_a_file_that_is_killed_leaves_the_old_result(tmp_path):
    rng = np.random.default_rng(3)
    keys, target = tmp_path / "keys.npy", tmp_path / "sorted.npy"
    np.save(keys, rng.standard_normal(12_000_000))
    target.write_bytes(b"the old one")
    line = command("sort", keys, "-o", target, "--memory-limit", "40M", *QUICK, "--quiet")
    process = subprocess.Popen(line, start_new_session=True)
    try:
        while not (parts := list(tmp_path.glob(".oclab-*"))) or parts[0].stat().st_size < 1000:
            assert process.poll() is None, "it has ended before it wrote anything"
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert target.read_bytes() == b"the old one"
    others = set(tmp_path.iterdir()) - {keys, target}
    assert all(path.name.startswith(".oclab-") for path in others)
    assert subprocess.run(line, check=False).returncode == 0
    assert np.array_equal(np.load(target), np.sort(np.load(keys)))
