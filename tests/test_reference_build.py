"""C references: finding a compiler, compiling, and a cache that is never trusted."""

import os
import shutil
import stat
from dataclasses import dataclass

import numpy as np
import pytest

from opencl_lab.core.errors import BuildError, ReferenceUnavailable
from opencl_lab.lab.reference import build
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.compiler import compiler, describe
from opencl_lab.lab.reference.descriptor import CReference
from opencl_lab.lab.reference.execute import prepare

SOURCE = """
#include <errno.h>
#include <stdint.h>
int scale(const TYPE *x, TYPE *y, int64_t n, double factor) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (TYPE)(factor * (double)x[i]);
    return 0;
}
int threads(int64_t *y, int64_t wanted) {
#ifdef _OPENMP
#pragma omp parallel num_threads((int)wanted)
#pragma omp atomic
    *y += 1;
    return 0;
#else
    return wanted > 1 ? EINVAL : (int)(*y = 0);
#endif
}
int fail(void) { return ENOMEM; }
"""


@dataclass(frozen=True)
class ScaleProblem:
    n: int
    type: str = "float"


def define(problem):
    return {"TYPE": problem.type}


def scale_arguments(problem, inputs, outputs):
    return inputs["x"], outputs["y"], problem.n, 2.5


SCALE = CReference("c:scale", "scale.c", "scale", define, scale_arguments)
THREADS = CReference(
    "c:threads", "scale.c", "threads", define, lambda p, i, o: (o["y"],), threaded=True
)
FAIL = CReference("c:fail", "scale.c", "fail", define, lambda p, i, o: ())


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The cache of C libraries, of a test alone, with a folder of sources."""
    sources = tmp_path / "csrc"
    sources.mkdir()
    (sources / "scale.c").write_text(SOURCE)
    for name in ("threads.c", "export.h"):  # the library binds threads, whoever asks for them
        shutil.copy(build.SOURCES / name, sources)
    monkeypatch.setattr(build, "SOURCES", sources)
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "c"


def fake_compiler(folder, script):
    """Return a shell script that stands for a compiler; it logs its calls."""
    path = folder / "fakecc"
    path.write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\n{script}\nexec {real_cc()} "$@"\n')
    path.chmod(0o755)
    return path


def real_cc():
    path = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if path is None:
        pytest.skip("needs a C compiler")
    return path


def scaled(n=5):
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    load(SCALE, ScaleProblem(n))(x, y, n, 2.5)
    np.testing.assert_array_equal(y, 2.5 * x)


def libraries(place):
    return sorted(place.glob("*.so"))


def test_changed_source_and_header_are_compiled_again(place):
    scaled()
    (build.SOURCES / "scale.c").write_text(SOURCE.replace("factor *", "1 + factor *"))
    x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
    load(SCALE, ScaleProblem(1))(x, y, 1, 2.5)
    assert y[0] == 3.5
    (build.SOURCES / "common.h").write_text("/* new */")
    load(SCALE, ScaleProblem(1))
    assert len(libraries(place)) == 3


def test_a_damaged_library_is_built_again(place):
    scaled()
    (library,) = libraries(place)
    good = library.read_bytes()
    middle = len(good) // 2
    for bad in (good[:middle], b"", good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]):
        damaged = library.with_suffix(".damaged")
        damaged.write_bytes(bad)
        damaged.chmod(0o700)
        damaged.replace(library)  # the one before is mapped here, and stays whole
        scaled()
        assert libraries(place) == [library] and library.read_bytes() == good


def test_threads_are_honoured():
    if compiler().no_openmp:
        pytest.skip(compiler().no_openmp)
    for threads in (1, 2, 3):
        like = {"y": ((1,), np.dtype(np.int64))}
        prepared = prepare(THREADS, ScaleProblem(1), {}, like, threads)
        prepared.outputs()["y"][:] = 0
        prepared.run()
        assert prepared.outputs()["y"][0] == prepared.workers == threads


def test_source_that_does_not_compile():
    (build.SOURCES / "scale.c").write_text("int scale(void) { return missing; }\n")
    with pytest.raises(BuildError, match=r"does not compile scale\.c.*missing") as caught:
        load(SCALE, ScaleProblem(1))
    assert "missing" in caught.value.log
    assert "1 | int scale" in caught.value.details()
    assert "-DTYPE=float" in caught.value.options


@pytest.mark.parametrize("where", ["file", "folder", "above"])
def test_what_others_can_write_is_not_loaded(open_path, monkeypatch, where):
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(open_path / "cache"))
    place = open_path / "cache" / "c"
    load(SCALE, ScaleProblem(1))
    (library,) = place.glob("scale-*.so")
    assert stat.S_IMODE(library.stat().st_mode) == 0o700
    place.parent.chmod(0o755)
    {"file": library, "folder": place, "above": place.parent}[where].chmod(0o777)
    inode, opened = library.stat().st_ino, []
    plain_open = build._open
    monkeypatch.setattr(build, "_open", lambda path: opened.append(path) or plain_open(path))
    scaled()
    (path,) = opened
    assert path.stat().st_ino != inode and not path.stat().st_mode & 0o077
    assert (path.parent == place) == (where == "file")


def test_inputs_are_made_contiguous_and_outputs_poisoned():
    x = np.arange(10, dtype=np.float32)[::2]
    prepared = prepare(SCALE, ScaleProblem(5), {"x": x}, {"y": ((6,), x.dtype)}, 3)
    assert (prepared.outputs()["y"].view(np.uint8) == 0xCD).all()
    assert prepared.run() > 0
    assert prepared.workers == 1
    np.testing.assert_array_equal(prepared.outputs()["y"][:5], 2.5 * x)
    assert (prepared.outputs()["y"][5:].view(np.uint8) == 0xCD).all()
    prepared.close()


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
