"""Binaries on disk: what is kept, what is loaded, and what is built from its source instead."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab.core.plan import Launch
from opencl_lab.core.template import Source
from opencl_lab.drivers.caches import section_files
from opencl_lab.runtime import binaries
from opencl_lab.runtime.binaries import binary_of
from opencl_lab.runtime.session import session_of

TEXT = "__kernel void f(__global int *x) { x[get_global_id(0)] += %d; }"
INTEL = "Intel(R) OpenCL"


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

    The driver is taken for Intel's, or for another one.
    """
    if device.kind != "cpu":
        pytest.skip("made for CPUs, where builds are quick")
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(binaries, "WORTH", 0.0)

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


def _files():
    return [path for path in section_files("binaries") if path.suffix == ".bin"]


def test_a_program_is_built_once_and_loaded_after_that(add, loads):
    add()
    assert _from_binary(loads) == [False]
    (path,) = _files()
    add()
    assert _from_binary(loads[1:]) == [True] and path.stat().st_mode & 0o777 == 0o600
    add(2)
    assert _from_binary(loads[2:]) == [False] and len(_files()) == 2


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
    assert _from_binary(loads) == [False] and not caplog.records
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    del loads[:]
    add()  # the new one is sound; its length may differ, as PoCL adds what it has compiled
    assert _from_binary(loads) == [True]


def test_a_binary_belongs_to_all_that_it_depends_on(fresh, device, monkeypatch, tmp_path):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))
    one = replace(device, platform=INTEL, platform_version="OpenCL 3.0", kind="cpu")

    def path(record=one, text=TEXT, flags=("-w",)):
        return binary_of(fresh.context, record, text, list(flags)).path

    found = [path(), path(text=TEXT + " "), path(flags=("-w", "-g")), path(flags=())]
    changes = ("driver", "platform_version", "name", "c_version")
    found += [path(replace(one, **{name: "another"})) for name in changes]
    monkeypatch.setenv("CL_CONFIG_CPU_TARGET_ARCH", "core-avx2")
    found.append(path())
    monkeypatch.setattr(binaries, "cpu_fields", lambda: {"flags": "of another processor"})
    found.append(path())
    assert len(set(found)) == len(found) and path() == path()


@pytest.mark.parametrize(
    "change", [{"platform": "Portable Computing Language"}, {"kind": "gpu"}, "off", "include"]
)
def test_programs_whose_binaries_are_not_kept(fresh, device, monkeypatch, change):
    record = replace(device, platform=INTEL, kind="cpu")
    text = TEXT
    assert binary_of(fresh.context, record, text, []) is not None
    if change == "off":
        monkeypatch.setenv("OCLAB_BINARIES", "off")
    elif change == "include":  # what the file holds may change
        text = '#  include "mine.h"\n' + TEXT
    else:
        record = replace(record, **change)
    assert binary_of(fresh.context, record, text, []) is None


def test_all_go_where_they_have_become_too_many(add, loads, monkeypatch):
    add()
    monkeypatch.setattr(binaries, "MOST_BYTES", 1)
    add(2)
    assert len(_files()) == 1
    add()
    assert _from_binary(loads) == [False, False, False]
