"""A C source, references to its functions, and compilers that stand in for the real one."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest

from opencl_lab.lab.reference import build
from opencl_lab.lab.reference.build import load
from opencl_lab.lab.reference.descriptor import CReference

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


def own_place(tmp_path, monkeypatch):
    """Give a test a cache and a folder of sources of its own; return the cache."""
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
