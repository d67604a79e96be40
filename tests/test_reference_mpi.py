"""References over MPI: ranks that run, fail, die, hang and end, and the product by them."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import opencl_lab as ol
from opencl_lab.core.errors import LaunchError, ReferenceUnavailable
from opencl_lab.drivers.processes import default_threads
from opencl_lab.lab.cli.main import main
from opencl_lab.lab.engine.references import workers_of
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.reference import mpi
from opencl_lab.lab.reference.descriptor import CReference, MpiReference

pytestmark = pytest.mark.full
ROOT = str(Path(ol.__file__).parents[1])
NO_MPI = mpi.no_mpi()
needs_mpi = pytest.mark.skipif(NO_MPI is not None, reason=NO_MPI or "")
KERNEL = CReference("threads", "threads.c", "count_threads", lambda _: {}, lambda *_: ())


def ranks_do(world, task, inputs):
    """Do what the task says, on the rank that it names."""
    rank = world.Get_rank()
    pids = world.gather(os.getpid())
    outputs = {"pids": np.array(pids)} if rank == 0 else {}

    def call():
        if task["what"] == "wait" or (task["what"] == "exit" and rank != task["rank"]):
            time.sleep(60)
        if rank != task["rank"]:
            return
        if task["what"] == "exit":
            sys.stderr.write("last words: error 7\n")
            sys.stderr.flush()
            os._exit(7)
        if task["what"] == "fail":
            raise ValueError("no such thing")
        if rank == 0:
            outputs["sum"] = inputs["x"].sum(keepdims=True)

    if task["what"] == "refuse":
        raise MemoryError("too much")
    return call, outputs


def reference(what="sum", rank=0):
    return MpiReference(
        "mpi:test", ranks_do, lambda problem: {"what": what, "rank": rank}, KERNEL, mpi.no_mpi
    )


@pytest.fixture
def mpiexec(tmp_path, monkeypatch):
    """Return what puts a script in the place of `mpiexec`."""

    def install(text):
        path = tmp_path / "mpiexec"
        path.write_text(text)
        path.chmod(0o700)
        monkeypatch.setattr(mpi, "find_mpiexec", lambda: str(path))

    return install


def below(process):
    """Return the processes that a process has started, and those that these have."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(path.parent.name)] = int(parent)
    found = {process}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


@pytest.fixture
def nothing_left():
    """No process that a test has started is left at its end."""
    before = below(os.getpid())
    yield
    assert all(map(ended, below(os.getpid()) - before))


def ended(pid, seconds=10.0):
    """Return whether a process has ended, or does so soon."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # nobody reaps it, as its parent has been killed
            return True
        time.sleep(0.02)
    return False


@needs_mpi
def test_ranks_run_and_end(nothing_left):
    ranks = mpi.Ranks(reference(), None, {"x": np.arange(5)}, 3)
    try:
        assert 0 <= ranks.run(4) < 10
        assert ranks.outputs()["sum"][0] == 10
        pids = ranks.outputs()["pids"]
        assert len(set(pids)) == 3 and set(pids) <= below(os.getpid())
    finally:
        ranks.close()
    assert all(map(ended, pids))
    with pytest.raises(LaunchError, match="ended"):
        ranks.run()
    ranks.close()


@needs_mpi
@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("exit", LaunchError, "mpi:test x2: rank . of 2 died: last words: error 7"),
        ("fail", LaunchError, "mpi:test x2: rank 1: ValueError: no such thing"),
        ("refuse", ReferenceUnavailable, "rank .: MemoryError: too much"),
        ("wait", LaunchError, "no answer within 0 s; all ranks were ended"),
    ],
)
def test_a_rank_that_fails_ends_all(what, error, words, nothing_left, monkeypatch):
    begin = time.monotonic()
    ranks = None
    try:
        with pytest.raises(error, match=words):
            ranks = mpi.Ranks(reference(what, rank=1), None, {"x": np.ones(2)}, 2)
            if what == "wait":
                monkeypatch.setattr(mpi, "CALL_SECONDS", 0.3)
            ranks.run()
        assert time.monotonic() - begin < 15
    finally:
        if ranks is not None:
            ranks.close()


@needs_mpi
def test_ctrl_c_leaves_nothing(nothing_left):
    ranks = mpi.Ranks(reference("wait"), None, {"x": np.ones(2)}, 2)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ranks.run()
    ranks.close()
    assert time.monotonic() - begin < 10


@needs_mpi
def test_ranks_end_with_a_parent_that_is_killed():
    code = f"""
        import os, signal, sys
        sys.path[:0] = [{ROOT!r}, {str(Path(__file__).parent)!r}]
        import numpy as np
        import test_reference_mpi as test
        ranks = test.mpi.Ranks(test.reference(), None, {{"x": np.ones(2)}}, 2)
        print(*test.below(os.getpid()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    pids = list(map(int, done.stdout.split()))
    assert len(pids) >= 3, done.stderr
    assert all(map(ended, pids))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho 'error: no slots' >&2; exit 5\n", "ended: error: no slots"),
        ("#!/bin/sh\nexec sleep 60\n", "did not start all ranks within 0.5 s"),
    ],
)
def test_mpiexec_that_brings_up_nothing(mpiexec, monkeypatch, script, words):
    mpiexec(script)
    monkeypatch.setattr(mpi, "START_SECONDS", 0.5)
    with pytest.raises(ReferenceUnavailable, match=words):
        mpi.Ranks(reference(), None, {}, 2)


def test_without_mpi_there_is_one_row_that_says_so(monkeypatch, capsys, device):
    monkeypatch.setattr(mpi, "find_mpiexec", lambda: None)
    (item,) = [item for item in GEMM.references if item.name == "mpi:c"]
    assert "no mpiexec on PATH" in item.unavailable()
    assert "pip install mpi4py mpich" in item.unavailable()
    assert workers_of(item, (1, 2), True) == {"mpi:c": 1}
    assert main(["gemm", "--size", "16", "--against", "mpi:c", "--repeats", "1"]) == 3
    assert "mpi:c: no mpiexec" in capsys.readouterr().err


@needs_mpi
def test_rows_of_all_worlds(device):
    rows = ol.compare("gemm", size=97, dtype="float64", against="mpi:c", repeats=1, device=device)
    found = {row.implementation: row for row in rows if row.kind == "mpi"}
    assert list(found) == ["mpi:c x1", "mpi:c x2", "mpi:c x4"]
    for count, row in zip((1, 2, 4), found.values(), strict=True):
        assert row.ok and row.threads == row.workers == count and row.label == row.implementation
        assert row.difference.max_rel < 1e-8
        crowded = count > default_threads()
        assert (f"{count} ranks on" in row.note) == crowded


@needs_mpi
@pytest.mark.parametrize(
    "options",
    [
        {"m": 3, "n": 5, "k": 7, "beta": 1.5, "alpha": -2.0},  # fewer rows than ranks
        {"m": 0, "n": 5, "k": 7},
        {"m": 5, "n": 6, "k": 0, "beta": 2.0},
        {"m": 67, "n": 130, "k": 65, "trans_a": True, "trans_b": True, "dtype": "float64"},
    ],
    ids=str,
)
def test_shares_of_four_ranks(options):
    problem = GEMM.problem(**options)
    inputs = GEMM.generate(problem, 3)
    (item,) = [item for item in GEMM.references if item.name == "mpi:c"]
    ranks = mpi.Ranks(item, problem, inputs, 4)
    try:
        ranks.run(2)
        expected = GEMM.expected(problem, inputs)
        assert GEMM.compare(problem, inputs, expected, ranks.outputs()).ok
    finally:
        ranks.close()
