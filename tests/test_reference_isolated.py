"""References in a child process, and those in this one."""

import os
import signal
import subprocess
import sys
import textwrap
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
from opencl_lab.lab.reference.isolated import IsolatedReference

ROOT = str(Path(opencl_lab.__file__).parents[1])


@dataclass(frozen=True)
class Task:
    what: str = "double"
    descending: bool = False


def work(problem, inputs, threads):
    """Do what the problem says."""
    if problem.what == "double":
        return {name: threads * array for name, array in inputs.items()}
    if problem.what == "in place":
        inputs["x"] += 1
        return dict(inputs)
    if problem.what == "print":
        print("printed" * 10_000)
        os.system("echo shell")
        return {"read": np.array([len(sys.stdin.read())])}
    if problem.what == "environment":
        return {"value": np.array([os.environ.get("OCLAB_PROBE", "unset")])}
    if problem.what == "fail":
        raise ValueError("no such thing")
    if problem.what == "sleep":
        time.sleep(60)
    if problem.what == "exit":
        sys.stderr.write("warning: odd\nlast words\n\n")
        sys.stderr.flush()
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def unpicklable(problem, inputs, threads):
    return {"x": lambda: None}


def test_runs_and_returns_outputs():
    x = np.arange(6, dtype=np.int64).reshape(2, 3)
    inputs = {"x": x, "strided": x[:, ::2], "empty": x[:0], "none": np.zeros((0, 3))}
    with IsolatedReference(work) as child:
        child.load(Task(), inputs, 2)
        for _ in range(2):
            assert 0 < child.run() < 10
        outputs = child.outputs()
        assert outputs.keys() == inputs.keys()
        for name, array in inputs.items():
            np.testing.assert_array_equal(outputs[name], 2 * array, strict=True)
        assert outputs["x"].flags.writeable
        child.load(Task("in place"), inputs, 1)
        child.run()
        np.testing.assert_array_equal(child.outputs()["x"], x + 1)
        child.run(3)  # calls in a row
        np.testing.assert_array_equal(child.outputs()["x"], x + 4)


@pytest.mark.full
def test_large_arrays(rng):
    x = rng.random(3_000_000)
    with IsolatedReference(work) as child:
        child.load(Task(), {"x": x}, 3)
        child.run()
        np.testing.assert_array_equal(child.outputs()["x"], 3 * x)


def test_environment():
    with IsolatedReference(work, {"OCLAB_PROBE": "here"}) as child:
        child.load(Task("environment"), {}, 1)
        child.run()
        assert child.outputs()["value"][0] == "here"
    assert "OCLAB_PROBE" not in os.environ


def test_prints_do_not_mix_with_answers(capfd):
    with IsolatedReference(work) as child:
        child.load(Task("print"), {}, 1)
        child.run()
        assert child.outputs()["read"][0] == 0
    assert capfd.readouterr().out == ""


def test_a_failing_function_leaves_the_child_usable():
    with IsolatedReference(work, name="peer") as child:
        child.load(Task("fail"), {}, 1)
        with pytest.raises(LaunchError, match="peer: ValueError: no such thing"):
            child.run()
        child.load(Task(), {"x": np.ones(2)}, 2)
        child.run()
        np.testing.assert_array_equal(child.outputs()["x"], [2, 2])


@pytest.mark.full
def test_outputs_that_cannot_be_sent():
    with IsolatedReference(unpicklable) as child:
        child.load(Task(), {}, 1)
        child.run()
        with pytest.raises(LaunchError, match="lambda"):
            child.outputs()
        assert child.run() >= 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("what", "words"), [("exit", "process ended: last words$"), ("kill", r"signal 9 \(Killed\)")]
)
def test_a_dead_child_gives_its_last_words(what, words):
    with IsolatedReference(work, name="peer") as child:
        child.load(Task(what), {}, 1)
        with pytest.raises(LaunchError, match=words):
            child.run()
        with pytest.raises(LaunchError, match="closed"):
            child.run()


def test_a_function_that_cannot_be_imported():
    def local(problem, inputs, threads):
        return {}

    with (
        IsolatedReference(local) as child,
        pytest.raises(ReferenceUnavailable, match="process ended: AttributeError"),
    ):
        child.load(Task(), {"x": np.zeros(1_000_000)}, 1)


def test_python_that_cannot_be_started(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(ReferenceUnavailable, match="/nonexistent/python"):
        IsolatedReference(work)


def test_close_ends_a_busy_child():
    child = IsolatedReference(work)
    child.load(Task("sleep"), {}, 1)
    child._worker.send("run", 1)
    time.sleep(0.2)
    begin = time.perf_counter()
    child.close()
    child.close()
    assert time.perf_counter() - begin < 5
    assert child._worker.process.poll() is not None


def test_an_interrupt_while_it_asks_for_the_child_does_not_hang(check_end):
    child = IsolatedReference(work)
    child.load(Task(), {}, 1)
    check_end(child._worker.process, child.close)


@pytest.mark.full
def test_modules_in_the_current_folder_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise RuntimeError('wrong module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    with IsolatedReference(work) as child:
        child.load(Task(), {"x": np.ones(1)}, 2)
        assert child.run() >= 0


INTERRUPTED = """
import os, sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from opencl_lab.lab.reference.isolated import IsolatedReference
from test_reference_isolated import Task, work
child = IsolatedReference(work)
child.load(Task(), {{}}, 1)
try:
    print(child._worker.process.pid, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    child.run()  # Ctrl-C did not reach it
    print("alive", flush=True)
os._exit(0) if "leave" in sys.argv else child.close()
"""


@pytest.mark.full
@pytest.mark.parametrize("how", ["close", "leave"])
def test_interrupts_are_for_the_parent_and_no_child_stays(how):
    script = textwrap.dedent(INTERRUPTED).format(root=ROOT, tests=str(Path(__file__).parent))
    parent = subprocess.Popen(
        [sys.executable, "-c", script, how],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with parent:
        pid = int(parent.stdout.readline())
        os.killpg(parent.pid, signal.SIGINT)  # as the terminal does
        assert parent.stdout.readline().strip() == "alive"
        parent.wait(20)
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        except (ProcessLookupError, FileNotFoundError):
            break
        if state == "Z":  # ended; whoever adopted it has not noticed yet
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"child {pid} outlives its parent")


def test_prepare_chooses_the_place():
    x = np.array([[3, 1, 2]])
    here = HostReference("here", work)
    there = HostReference("there", work, environment={"OCLAB_PROBE": "there"})
    for reference, value in ((here, "unset"), (there, "there")):
        prepared = prepare(reference, Task("environment"), {"x": x}, {}, 4)
        assert prepared.run() >= 0
        assert prepared.outputs()["value"][0] == value
        assert prepared.workers == 1
        prepared.close()


def test_a_child_that_dies_while_it_is_prepared_is_told_by_the_first_run(monkeypatch):
    started = []
    make = IsolatedReference.__init__

    def noted(child, *given):
        make(child, *given)
        started.append(child)
        os.kill(child._worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(IsolatedReference, "__init__", noted)
    reference = HostReference("peer", work, environment={"OCLAB_PROBE": "1"})
    prepared = prepare(reference, Task(), {"x": np.ones(3_000_000)}, {}, 1)
    with pytest.raises(ReferenceUnavailable, match="peer: its process ended: SIGKILL"):
        prepared.run()
    prepared.close()
    assert started[0]._worker.process.returncode == -signal.SIGKILL


def test_prepare_gives_threads_to_threaded_references():
    for environment in ({}, {"OCLAB_PROBE": "1"}):
        reference = HostReference("peer", work, environment=environment, threaded=True)
        prepared = prepare(reference, Task(), {"x": np.ones(1)}, {}, 4)
        prepared.run()
        assert prepared.outputs()["x"][0] == prepared.workers == 4
        prepared.close()


def test_unavailable_and_failing_references():
    absent = HostReference("peer", work, lambda: "it is not installed")
    with pytest.raises(ReferenceUnavailable, match="peer: it is not installed"):
        prepare(absent, Task(), {}, {}, 1)
    prepared = prepare(HostReference("peer", work), Task("fail"), {}, {}, 1)
    with pytest.raises(LaunchError, match="peer: ValueError: no such thing"):
        prepared.run()


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
        assert done.stderr == ""
        assert "does not use AVX-512" in done.stdout


@pytest.mark.parametrize(
    ("version", "found", "words"),
    [
        ("1.26.4", ["AVX512_SKX"], "no AVX2 sort"),
        ("2.1.0", ["ASIMDHP"], "plain numpy is the same"),
        ("2.1.0", ["AVX2", "AVX512F", "AVX512_SKX"], None),
        ("2.4.0", ["X86_V3", "X86_V4"], None),
    ],
)
def test_which_numpy_has_two_sorts(monkeypatch, version, found, words):
    monkeypatch.setattr(np, "__version__", version)
    monkeypatch.setattr(np, "show_config", lambda mode: {"SIMD Extensions": {"found": found}})
    monkeypatch.delenv("NPY_DISABLE_CPU_FEATURES", raising=False)
    reason = references.no_avx512_sort()
    assert reason is None if words is None else words in reason
    names = [name for name in found if name not in ("AVX2", "X86_V3", "ASIMDHP")]
    environment = references.numpy_avx2_environment()
    assert environment.get("NPY_DISABLE_CPU_FEATURES", "").split() == names


def test_numpy_old_enough_to_have_no_config(monkeypatch):
    def show_config():
        pass

    monkeypatch.setattr(np, "show_config", show_config)
    assert references.numpy_avx2_environment() == {}
