"""Binaries on disk: what is kept, what is loaded, and what is built from its source instead."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab.core.plan import Launch
from opencl_lab.core.template import Source
from opencl_lab.drivers.caches import section_files
from opencl_lab.runtime import binaries
from opencl_lab.runtime.binaries import Binary, binary_of
from opencl_lab.runtime.session import session_of

TEXT = "__kernel void f(__global int *x) { x[get_global_id(0)] += %d; }"
INTEL, OTHER = "Intel(R) OpenCL", "OpenCL of nobody"


@pytest.fixture
def loads(monkeypatch):
    """Return the sources and binaries from which programs are made."""
    made, real = [], cl.Program

    def program(context, *rest):
        made.append(rest[-1])
        return real(context, *rest)

    monkeypatch.setattr(cl, "Program", program)
    return made


@pytest.fixture
def add(monkeypatch, tmp_path, device, own_queue):
    """Return what builds a program in a new context, as another process would, and runs it.

    The driver is taken for one that keeps no binaries, or for one of which nothing is known.
    """
    if device.kind != "cpu":
        pytest.skip("made for CPUs, where builds are quick")
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(binaries, "WORTH", 0.0)
    monkeypatch.setattr(binaries, "SAVED", 1e9)

    def run(number=1, platform=INTEL):
        queue = own_queue(device.handle)
        session = session_of(queue)
        session.device = replace(device, platform=platform, platform_version="OpenCL 3.0")
        source = Source("f", TEXT % number)
        kernel = session.kernel(
            session.program(source, ()), Launch("f", "f", {}, (4,), (1,), {"x": "x"})
        )
        x = cl.array.zeros(queue, 4, np.int32)
        kernel.set_args(x.data)
        cl.enqueue_nd_range_kernel(queue, kernel, (4,), (1,))
        assert (x.get() == number).all()

    return run


def _from_binary(made):
    return [not isinstance(content, str) for content in made]


def _files(suffix=".bin"):
    return [path for path in section_files("binaries") if path.suffix == suffix]


def test_a_program_is_built_once_and_loaded_after_that(add, loads):
    add()
    assert _from_binary(loads) == [False, True]  # built, and its binary tried
    (path,) = _files()
    os.utime(path, (0, 0))
    add()
    assert _from_binary(loads[2:]) == [True]
    assert path.stat().st_mtime > 0 and path.stat().st_mode & 0o777 == 0o600
    add(2)
    assert _from_binary(loads[3:]) == [False, True] and len(_files()) == 2


def _flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 16
    path.write_bytes(content)


def _link(path):
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def _of_another_user(path):
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(path, 1234, 1234)


def _of_another_program(path):
    other = next(item for item in _files() if item != path)
    path.write_bytes(other.read_bytes())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: _flip(path, 0),
        lambda path: _flip(path, 40),
        lambda path: _flip(path, -1),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.chmod(0o622),
        _link,
        _of_another_user,
        _of_another_program,
    ],
)
def test_what_is_damaged_or_of_others_is_removed_and_built_again(add, loads, caplog, damage):
    add(2)
    add()
    path = max(_files(), key=lambda item: item.stat().st_mtime_ns)
    damage(path)
    del loads[:]
    add()
    assert _from_binary(loads) == [False, True] and not caplog.records
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    del loads[:]
    add()  # the new one is sound; its length may differ, as PoCL adds what it has compiled
    assert _from_binary(loads) == [True]


def test_a_binary_that_the_driver_refuses_is_removed(add, loads):
    add()
    (path,) = _files()
    path.write_bytes(Binary._sealed(_At(path), b"no binary"))
    del loads[:]
    add()
    assert _from_binary(loads) == [True, False, True]
    add()
    assert _from_binary(loads[3:]) == [True]


class _At:
    """As much of a `Binary` as its checksum takes."""

    def __init__(self, path):
        self.path = path


@pytest.mark.parametrize("answer", ["an error", "no kernels", "slow"])
def test_a_binary_that_does_not_serve_is_tried_once(add, loads, monkeypatch, answer):
    def loaded(self, binary):
        if answer == "an error":
            raise cl.RuntimeError("refused")
        raise ValueError("it has no kernels")

    with monkeypatch.context() as driver:
        if answer == "slow":
            driver.setattr(binaries, "SAVED", 0.0)
        else:
            driver.setattr(Binary, "_loaded", loaded)
        add()
    (trial,) = _files(".trial")
    assert not _files() and trial.stat().st_size == 0
    del loads[:]
    add()
    assert _from_binary(loads) == [False] and not _files()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_and_an_interrupt_leave_nothing(add, monkeypatch, error):
    def write(path, content):
        raise error

    monkeypatch.setattr(Path, "write_bytes", write)
    if isinstance(error, OSError):
        add()
    else:
        with pytest.raises(KeyboardInterrupt):
            add()
    assert not section_files("binaries")


ENDS = """
import os, sys
from dataclasses import replace
import pyopencl as cl
from opencl_lab.core.template import Source
from opencl_lab.drivers.discovery import select_device
from opencl_lab.runtime import binaries
from opencl_lab.runtime.session import session_of

binaries.WORTH, binaries.SAVED = 0.0, 1e9
binaries.Binary._loaded = lambda self, binary: os._exit(7)
session = session_of(select_device().queue())
session.device = replace(
    session.device, platform="Intel(R) OpenCL", platform_version="OpenCL 3.0"
)
session.program(Source("f", "__kernel void f(void) {}"), ())
print("built")
"""


@pytest.mark.full
def test_a_binary_that_ends_the_process_does_so_once(device, tmp_path):
    if device.kind != "cpu":
        pytest.skip("made for CPUs, where builds are quick")
    ended = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", ENDS],
            env={**os.environ, "OCLAB_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(2)
    ]
    assert [done.returncode for done in ended] == [7, 0], ended[1].stderr
    assert ended[1].stdout == "built\n"


@pytest.mark.parametrize("keeps", [True, False])
def test_whether_a_driver_keeps_binaries_is_seen_by_its_second_build(
    add, loads, monkeypatch, keeps
):
    """The second build of one that does takes next to no time."""
    monkeypatch.setattr(binaries, "SAVED", 0.5)
    clock = iter([0.0, 1.0, 10.0, 10.1 if keeps else 11.0, 20.0, 20.1])
    monkeypatch.setattr(binaries.time, "perf_counter", lambda: next(clock))
    add(platform=OTHER)
    assert _from_binary(loads) == [False] and len(_files(".seen")) == 1 and not _files()
    add(platform=OTHER)
    assert _from_binary(loads[1:]) == ([False] if keeps else [False, True])
    assert len(_files()) == (not keeps)


def test_quick_builds_are_not_kept(add, monkeypatch):
    monkeypatch.setattr(binaries, "WORTH", 1e9)
    add()
    add(platform=OTHER)
    assert not section_files("binaries")


def test_a_binary_belongs_to_all_that_it_depends_on(fresh, device, monkeypatch, tmp_path):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    one = replace(device, platform=OTHER, platform_version="OpenCL 3.0", kind="cpu")

    def path(record=one, text=TEXT, flags=("-w",)):
        return binary_of(fresh.context, record, text, list(flags)).path

    found = [path(), path(text=TEXT + " "), path(flags=("-w", "-g")), path(flags=())]
    changes = ("driver", "platform_version", "name", "c_version", "platform")
    found += [path(replace(one, **{name: "another"})) for name in changes]
    monkeypatch.setenv("CL_CONFIG_CPU_TARGET_ARCH", "core-avx2")
    found.append(path())
    monkeypatch.setattr(binaries, "cpu_fields", lambda: {"flags": "of another processor"})
    found.append(path())
    assert len(set(found)) == len(found) and path() == path()


@pytest.mark.parametrize(
    "change", [{"platform_version": "OpenCL 3.0 PoCL 9"}, {"simulated": True}, "off", "include"]
)
def test_programs_whose_binaries_are_not_kept(fresh, device, monkeypatch, change):
    record = replace(device, platform_version="OpenCL 3.0")
    text = TEXT
    assert binary_of(fresh.context, record, text, []) is not None
    if change == "off":
        monkeypatch.setenv("OCLAB_BINARIES", "off")
    elif change == "include":  # what the file holds may change
        text = '#  include "mine.h"\n' + TEXT
    else:
        record = replace(record, **change)
    assert binary_of(fresh.context, record, text, []) is None


def test_those_unused_for_the_longest_time_go(tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "binaries"
    folder.mkdir(mode=0o700)
    paths = [folder / f"{number:040x}.{'bin' if number % 2 else 'seen'}" for number in range(10)]
    for age, path in enumerate(paths):
        path.write_bytes(bytes(age))
        os.utime(path, (1000 - age, 1000 - age))
    mine = folder / "mine.bin"
    mine.touch()
    most = 8 * binaries.LEAST_BYTES
    binaries._bound(10 * binaries.LEAST_BYTES)
    assert len(_files()) + len(_files(".seen")) == 10
    binaries._bound(most)
    assert {path for path in paths if path.exists()} == set(paths[:6]) and mine.exists()


def test_a_folder_that_others_can_write_to_is_not_used(add, open_path, monkeypatch, caplog):
    folder = open_path / "binaries"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(open_path))
    add()
    assert not list(folder.iterdir())
    assert len(caplog.records) == 1 and f"others can write to {folder}" in caplog.text
