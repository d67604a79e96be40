"""Finding a compiler, what it can do, and a record of it that is never trusted."""

import errno
import json
import os
import time

import pytest
from reference_builds import (
    SCALE,
    THREADS,
    ScaleProblem,
    fake_compiler,
    own_place,
    real_cc,
    scaled,
)

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference import compiler as compilers
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.compiler import compiler, describe


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The cache of C libraries, of a test alone."""
    return own_place(tmp_path, monkeypatch)


def test_second_lookup_is_cheap():
    first = compiler()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        assert compiler() == first
        times.append(time.perf_counter() - begin)
    assert min(times) < 0.01


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": "x"}',
        '{"version": "x", "flags": 7}',
        '{"version": 1, "flags": []}',
        '{"version": "x", "flags": [7]}',
    ],
)
def test_a_damaged_record_of_the_compiler_is_made_again(place, text):
    first = compiler()
    (record,) = place.glob("compiler-*.json")
    record.write_text(text)
    assert compiler() == first
    assert json.loads(record.read_text())["version"] == first.version


def test_missing_compiler_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "/nonexistent/cc -O1")
    with pytest.raises(ReferenceUnavailable, match=r"CC=/nonexistent/cc -O1 is not there.*apt"):
        load(SCALE, ScaleProblem(1))
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReferenceUnavailable, match="no cc, gcc, clang on PATH"):
        load(SCALE, ScaleProblem(1))
    assert describe()["compiler"] is None
    assert "install" in describe()["problem"]


@pytest.mark.parametrize("value", ["'", "''", "a 'b"])
def test_malformed_cc(monkeypatch, value):
    monkeypatch.setenv("CC", value)
    with pytest.raises(ReferenceUnavailable, match="CC="):
        compiler()


def test_a_broken_compiler_is_passed_over_but_not_one_asked_for(monkeypatch, tmp_path):
    real = real_cc()
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cc").write_text("#!/bin/sh\necho 'fatal error: broken' >&2\nexit 1\n")
    (folder / "cc").chmod(0o755)
    (folder / "gcc").symlink_to(real)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert compiler().command == (str(folder / "gcc"),)
    monkeypatch.setenv("CC", "cc")
    with pytest.raises(ReferenceUnavailable, match="fatal error: broken"):
        compiler()


def test_arguments_in_cc_reach_the_compiler(monkeypatch, tmp_path):
    fake = fake_compiler(tmp_path, "")
    monkeypatch.setenv("CC", f"{fake} -g0 '-DSPACED=a b'")
    scaled()
    assert compiler().command == (str(fake), "-g0", "-DSPACED=a b")
    assert "-g0 -DSPACED=a b -O3" in (tmp_path / "calls").read_text()


REFUSE = 'case "$*" in *{flag}*) echo "error: unknown option {flag}" >&2; exit 1;; esac'


def test_compiler_without_openmp(place, monkeypatch, tmp_path):
    fake = fake_compiler(tmp_path, REFUSE.format(flag="-fopenmp"))
    monkeypatch.setenv("CC", str(fake))
    scaled()
    with pytest.raises(ReferenceUnavailable, match=r"c:threads needs OpenMP.*libgomp") as caught:
        load(THREADS, ScaleProblem(1))
    assert "unknown option -fopenmp" in str(caught.value)
    assert describe()["openmp"] is False
    assert "libomp" in describe()["problem"]
    # Once it is installed it is found, although the compiler is the same.
    assert not list(place.glob("compiler-*.json"))


def test_compiler_without_native_code(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", str(fake_compiler(tmp_path, REFUSE.format(flag="-march"))))
    scaled()
    assert "-march=native" not in compiler().flags


def test_compiler_without_half_precision(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", str(fake_compiler(tmp_path, REFUSE.format(flag="_Float16"))))
    scaled()
    with pytest.raises(ReferenceUnavailable, match=r"does not compile _Float16 .*unknown.*GCC"):
        load(SCALE, ScaleProblem(5, "_Float16"))


def test_describe():
    found = describe()
    assert found["compiler"] == compiler().version
    assert "-O3" in found["flags"]
    assert found["problem"] == "" or "OpenMP" in found["problem"]
    json.dumps(found)


def test_a_full_disk_of_temporary_files_is_no_missing_compiler(monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(compilers, "_probe_once", full)
    with pytest.raises(ReferenceUnavailable, match=r"No space left.*set TMPDIR") as refused:
        compiler()
    assert "install" not in str(refused.value)
