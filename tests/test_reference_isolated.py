"""References in a worker, and those in this process."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import opencl_lab
from opencl_lab.core.errors import LaunchError, ReferenceUnavailable
from opencl_lab.lab.ops.sort import references
from opencl_lab.lab.reference.descriptor import HostReference
from opencl_lab.lab.reference.execute import prepare

ROOT = str(Path(opencl_lab.__file__).parents[1])
THERE = {"OCLAB_PROBE": "there"}


@dataclass(frozen=True)
class Task:
    what: str = "multiply"


def work(problem, inputs, threads):
    """Do what the problem says."""
    if problem.what == "fail":
        raise ValueError("no such thing")
    if problem.what == "exit":
        sys.stderr.write("warning: odd\nlast words\n\n")
        sys.stderr.flush()
        os._exit(3)
    if problem.what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    value = np.array([os.environ.get("OCLAB_PROBE", "unset")])
    return {name: threads * array for name, array in inputs.items()} | {"value": value}


def prepared_of(what="multiply", inputs=None, function=work, threaded=True):
    reference = HostReference("peer", function, environment=THERE, threaded=threaded)
    return prepare(reference, Task(what), inputs or {}, {}, 4)


def test_a_reference_with_variables_runs_in_a_process_that_has_them(rng):
    x = np.arange(6, dtype=np.int64).reshape(2, 3)
    inputs = {
        "x": x,
        "strided": x[:, ::2],
        "none": np.zeros((0, 3)),
        "large": rng.random(3_000_000),
    }
    there = prepared_of(inputs=inputs)
    here = prepare(HostReference("here", work, threaded=True), Task(), inputs, {}, 4)
    for prepared, value in ((there, "there"), (here, "unset")):
        assert 0 < prepared.run() < 10 and prepared.run(3) > 0 and prepared.workers == 4
        outputs = prepared.outputs()
        assert outputs.pop("value")[0] == value and outputs.keys() == inputs.keys()
        for name, array in inputs.items():
            np.testing.assert_array_equal(outputs[name], 4 * array, strict=True)
        prepared.close()
    assert "OCLAB_PROBE" not in os.environ
    prepared = prepared_of(threaded=False)
    assert prepared.workers == 1
    prepared.close()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("fail", "peer: ValueError: no such thing"),
        ("exit", "peer: its process ended: last words$"),
        ("kill", r"signal 9 \(Killed\)"),
    ],
)
def test_a_failing_or_dying_function_says_why(what, words):
    prepared = prepared_of(what)
    with pytest.raises(LaunchError, match=words):
        prepared.run()
    prepared.close()


def test_what_cannot_start_is_unavailable(monkeypatch):
    def local(problem, inputs, threads):
        return {}

    prepared = prepared_of(function=local)
    with pytest.raises(ReferenceUnavailable, match="peer: AttributeError"):
        prepared.run()
    prepared.close()
    with pytest.raises(ReferenceUnavailable, match="peer: it is not installed"):
        prepare(HostReference("peer", work, lambda: "it is not installed"), Task(), {}, {}, 1)
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(ReferenceUnavailable, match="/nonexistent/python"):
        prepared_of()


def test_close_ends_a_busy_child_and_an_interrupt_does_not_hang(check_end):
    prepared = prepared_of()
    prepared.run()
    begin = time.perf_counter()
    check_end(prepared._worker.process, prepared.close)
    assert time.perf_counter() - begin < 10


def test_numpy_without_avx512(monkeypatch):
    reason = references.no_avx512_sort()
    if reason:
        assert not references._avx512_features() or "AVX2 sort" in reason
        pytest.skip(reason)
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", references._avx512_features()[-1])
    environment = {**os.environ, **references.numpy_avx2_environment()}
    script = "from opencl_lab.lab.ops.sort import references; print(references.no_avx512_sort())"
    for enabled in ("", "AVX2"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            cwd=ROOT,
            env={"NPY_ENABLE_CPU_FEATURES": enabled, **environment},
            capture_output=True,
            text=True,
        )
        assert done.stderr == "" and "does not use AVX-512" in done.stdout
