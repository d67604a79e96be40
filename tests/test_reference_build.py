"""Compiling C references, and a cache that is never trusted."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference_builds import (
    FAIL,
    SCALE,
    SOURCE,
    THREADS,
    ScaleProblem,
    fake_compiler,
    libraries,
    own_place,
    scaled,
)

from opencl_lab.core.errors import BuildError, LaunchError, ReferenceUnavailable
from opencl_lab.lab.reference import build
from opencl_lab.lab.reference import compiler as compilers
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.compiler import compiler
from opencl_lab.lab.reference.execute import prepare


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The cache of C libraries, of a test alone."""
    return own_place(tmp_path, monkeypatch)


def test_macros_make_libraries_of_their_own(place):
    scaled()
    load(SCALE, ScaleProblem(5, "double"))
    assert len(libraries(place)) == 2


def test_second_load_compiles_nothing(place, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", str(fake_compiler(tmp_path, "")))
    scaled()
    calls = (tmp_path / "calls").read_text()
    scaled()
    assert (tmp_path / "calls").read_text() == calls


def test_changed_source_and_header_are_compiled_again(place):
    scaled()
    (build.SOURCES / "scale.c").write_text(SOURCE.replace("factor *", "1 + factor *"))
    x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
    load(SCALE, ScaleProblem(1))(x, y, 1, 2.5)
    assert y[0] == 3.5
    (build.SOURCES / "common.h").write_text("/* new */")
    load(SCALE, ScaleProblem(1))
    assert len(libraries(place)) == 3


def test_another_processor_does_not_take_our_library(place, monkeypatch):
    scaled()
    for module in (build, compilers):
        monkeypatch.setattr(module, "cpu_text", lambda: "another")
    scaled()
    assert len(libraries(place)) == len(list(place.glob("compiler-*.json"))) == 2


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


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from opencl_lab.lab.reference import build
build.SOURCES = Path({sources!r})
import reference_builds as t
t.scaled()
print("fine")
"""


def start_child():
    tests = str(Path(__file__).parent)
    script = CHILD.format(tests=tests, sources=str(build.SOURCES))
    root = str(Path(build.__file__).parents[3])
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.full
def test_processes_build_at_once(place):
    outputs = [child.communicate(timeout=120)[0] for child in [start_child() for _ in range(4)]]
    assert [output.strip() for output in outputs] == ["fine"] * 4
    scaled()
    assert not list(place.glob(".build-*"))


def test_threads_are_honoured():
    if compiler().no_openmp:
        pytest.skip(compiler().no_openmp)
    for threads in (1, 2, 3):
        like = {"y": ((1,), np.dtype(np.int64))}
        prepared = prepare(THREADS, ScaleProblem(1), {}, like, threads)
        prepared.outputs()["y"][:] = 0
        prepared.run()
        assert prepared.outputs()["y"][0] == prepared.workers == threads


def test_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    before = dict(os.environ)
    scaled()
    assert dict(os.environ) == before
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    scaled()
    assert os.environ["OMP_WAIT_POLICY"] == "active"


def test_source_that_does_not_compile():
    (build.SOURCES / "scale.c").write_text("int scale(void) { return missing; }\n")
    with pytest.raises(BuildError, match=r"does not compile scale\.c.*missing") as caught:
        load(SCALE, ScaleProblem(1))
    assert "missing" in caught.value.log
    assert "1 | int scale" in caught.value.details()
    assert "-DTYPE=float" in caught.value.options


def test_error_number_of_the_function():
    prepared = prepare(FAIL, ScaleProblem(1), {}, {}, 1)
    with pytest.raises(LaunchError, match="c:fail: Cannot allocate memory"):
        prepared.run()


def test_arguments_that_c_cannot_take():
    function = load(SCALE, ScaleProblem(2))
    with pytest.raises(TypeError, match="contiguous"):
        function(np.zeros((4, 4))[:, 1])
    with pytest.raises(TypeError, match="str"):
        function("text")


def test_cache_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path / "file"))
    scaled()
    assert (tmp_path / "file").read_text() == ""


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


def test_cache_folder_that_nothing_can_be_loaded_from(monkeypatch):
    def refuse(library):
        raise OSError("failed to map segment from shared object")

    monkeypatch.setattr(build, "_open", refuse)
    with pytest.raises(ReferenceUnavailable, match="OCLAB_CACHE_DIR"):
        load(SCALE, ScaleProblem(1))


def test_inputs_are_made_contiguous_and_outputs_poisoned():
    x = np.arange(10, dtype=np.float32)[::2]
    prepared = prepare(SCALE, ScaleProblem(5), {"x": x}, {"y": ((6,), x.dtype)}, 3)
    assert (prepared.outputs()["y"].view(np.uint8) == 0xCD).all()
    assert prepared.run() > 0
    assert prepared.workers == 1
    np.testing.assert_array_equal(prepared.outputs()["y"][:5], 2.5 * x)
    assert (prepared.outputs()["y"][5:].view(np.uint8) == 0xCD).all()
    prepared.close()
