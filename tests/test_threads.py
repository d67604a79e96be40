"""References keep to the threads that they are given, and these to their processors."""

import json
import os
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest
from peer_checks import host_reference

import opencl_lab
from opencl_lab.drivers.processes import PROCESSORS
from opencl_lab.lab.ops.conv2d.operation import CONV2D
from opencl_lab.lab.ops.dft.operation import DFT
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.reference import threads as held
from opencl_lab.lab.reference.execute import prepare

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="the system does not say what threads do"
)
two = pytest.mark.skipif(len(PROCESSORS) < 2, reason="one processor")
TASKS = {
    "gemm": (GEMM, {"size": 512}),
    "conv2d": (CONV2D, {"size": 700, "ksize": 9}),
    "dft": (DFT, {"n": 4096, "batch": 64}),
    "sort": (SORT, {"n": 300_000}),
}
SHARE = 0.02
"""Of all the time of processors: whoever takes less has not computed."""
QUIET = (
    0.3  # seconds until threads that wait for more work, as those of OpenBLAS, have gone to sleep
)


def prepared(name, operation, options, threads):
    options = operation.with_defaults(options)
    if name.startswith("c:") and operation is DFT:
        options |= {"n": 2048, "batch": 2}
    problem = operation.problem(**options)
    inputs = operation.generate(problem, 1, **options)
    like = {n: (a.shape, a.dtype) for n, a in operation.expected(problem, inputs).items()}
    return prepare(host_reference(operation, name), problem, inputs, like, threads)


def seconds_of_threads():
    """Return how long each thread of this process has run, in nanoseconds."""
    found = {}
    for folder in Path("/proc/self/task").iterdir():
        found[folder.name] = int((folder / "schedstat").read_text().split()[0])
    return found


def computing(call):
    """Return how many threads have computed during a call."""
    before = seconds_of_threads()
    call()
    spent = [time - before.get(name, 0) for name, time in seconds_of_threads().items()]
    return sum(time > SHARE * sum(spent) for time in spent)


@pytest.mark.few(3)
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=two)])
@pytest.mark.parametrize(
    ("operation", "name"),
    [(key, item.name) for key, (operation, _) in TASKS.items() for item in operation.references
     if item.threaded and item.kind != "mpi"],
)  # fmt: skip
def test_as_many_threads_compute_as_there_are_said_to_be(operation, name, threads):
    reference = host_reference(TASKS[operation][0], name)
    reason = getattr(reference, "unavailable", lambda: None)()
    if reason is not None:
        pytest.skip(reason)
    with closing(prepared(name, *TASKS[operation], threads)) as ready:
        ready.run(3)
        calls = max(1, round(0.2 / (ready.run(3) / 3)))
        time.sleep(QUIET)
        found = computing(lambda: ready.run(calls))
    if threads == 1:
        assert found == 1
    elif name == "opencv":  # it decides by the size
        assert found <= threads
    else:
        assert threads <= found <= threads + (name == "scipy")  # there the caller waits for them


# --- processors ---------------------------------------------------------------------------------

BOUND = """
import json, os
from pathlib import Path
import opencl_lab
from opencl_lab.drivers.processes import PROCESSORS, default_threads, on_all_processors
os.sched_setaffinity(0, {min(PROCESSORS)})  # as a runtime binds the thread that calls it
known = set(os.listdir("/proc/self/task"))
import test_threads
ready = test_threads.prepared("c:omp", *test_threads.TASKS["gemm"], %d)
known = set(os.listdir("/proc/self/task"))
ready.run(2)
new = sorted(set(os.listdir("/proc/self/task")) - known)
print(json.dumps({
    "workers": [sorted(os.sched_getaffinity(int(task))) for task in new],
    "caller": sorted(os.sched_getaffinity(0)),
    "processors": default_threads(),
}))
"""


def in_a_process(code, **environment):
    """Return what code prints in a process that has a clean environment, but for what is given."""
    root = Path(opencl_lab.__file__).parents[1]
    tests = Path(__file__).parent
    clean = {name: text for name, text in os.environ.items() if name not in held.SETTINGS}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**clean, "PYTHONPATH": f"{root}{os.pathsep}{tests}", **environment},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def bound_in_a_process(threads, **environment):
    """Run C by OpenMP from a thread that is bound; return where its threads may run."""
    return json.loads(in_a_process(BOUND % threads, **environment))


@pytest.mark.full
@two
@pytest.mark.parametrize(
    ("threads", "environment", "workers"),
    [
        (2, {}, [[held._order()[1]]] if len(PROCESSORS) > 1 else []),
        (len(PROCESSORS) + 1, {}, [sorted(PROCESSORS)] * len(PROCESSORS)),
        (2, {"OMP_PROC_BIND": "false"}, [sorted(PROCESSORS)]),
    ],
)
def test_threads_of_c_are_bound_and_inherit_no_bond(threads, environment, workers):
    found = bound_in_a_process(threads, **environment)
    assert found["workers"] == workers
    assert found["caller"] == [min(PROCESSORS)]  # as it was before
    assert found["processors"] == len(PROCESSORS)
