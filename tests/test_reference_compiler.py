"""Finding a compiler, what it can do, and a record of it that is never trusted."""

import errno
import json
import os
import shutil
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
    with pytest.raises(ReferenceUnavailable, match="no cc, gcc, clang, cl on PATH"):
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


def test_what_an_interrupted_compiler_leaves_is_beside_the_library(tmp_path):
    source, library = tmp_path / "a.c", tmp_path / "a.so"
    compilers.compile_library(
        ["sh", "-c", 'echo "$TMPDIR" > "$0"', str(library)], [], source, library
    )
    assert library.read_text() == f"{tmp_path}\n"


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


CL = """#!/bin/sh
echo "$*" >> {folder}/calls
if [ $# = 0 ]; then echo 'Microsoft (R) C/C++ Optimizing Compiler Version 19.40 for x64'; exit 0; fi
for word in "$@"; do
    case "$word" in
    -openmp:llvm) rest="$rest -fopenmp" ;;
    -D*|*.c) rest="$rest $word" ;;
    -Fe*) rest="$rest -o ${{word#-Fe}}" ;;
    -nologo|-std:c11|-O2|-LD|-Fo*) ;;
    *) echo "D8021 : invalid numeric argument '$word'"; exit 2 ;;
    esac
done
exec {real} -shared -fPIC $rest
"""


@pytest.mark.full
def test_microsoft_s_compiler_gets_options_of_its_own(monkeypatch, tmp_path):
    """It is tried last; this one stands for it, and refuses other options as it does."""
    folder, real = tmp_path / "bin", real_cc()
    folder.mkdir()
    (folder / "cl").write_text(CL.format(folder=tmp_path, real=real))
    (folder / "cl").chmod(0o755)
    for tool in ("as", "ld", "sh"):  # which the real compiler starts
        (folder / tool).symlink_to(shutil.which(tool))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    scaled()
    found = compiler()
    assert found.command == (str(folder / "cl"),) and found.version.startswith("Microsoft")
    assert found.flags == ("-nologo", "-std:c11", "-O2", "-LD", "-openmp:llvm")
    load(THREADS, ScaleProblem(1))
    assert all(".obj" in call for call in (tmp_path / "calls").read_text().splitlines() if call)


@pytest.mark.full
def test_clang_serves_where_it_is_the_only_one(monkeypatch, tmp_path):
    real = shutil.which("clang")
    if real is None:
        pytest.skip("needs Clang")
    (tmp_path / "clang").symlink_to(real)
    for tool in ("as", "ld"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    scaled()
    found = compiler()
    assert found.command == (str(tmp_path / "clang"),) and "clang" in found.version
    if not found.no_openmp:
        load(THREADS, ScaleProblem(1))
