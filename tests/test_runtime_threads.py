"""Threads and forks that share a session, and tables of plans."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from runtime_kernels import SMALL, together

import opencl_lab as ol
from opencl_lab.runtime.session import session_of

# --------------------------------------------------------------------- threads


@pytest.fixture
def eager_threads():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("side", ["host", "device"])
def test_threads_that_sort_at_once(side, fresh, rng, eager_threads):
    data = [rng.integers(0, 2**31, (10, n), np.int32) for n in (3_000, 3_000, 3_000, 2_999)]
    alone = session_of(fresh).exclusive(
        fresh
    )  # NVIDIA's driver needs it for copies of pyopencl too

    def work(mine):
        if side == "device":
            with alone:
                mine = [cl.array.to_device(fresh, row) for row in mine]
        done = [ol.sort(row, algorithm="odd-even-merge", config=SMALL, queue=fresh) for row in mine]
        if side == "host":
            return done
        with alone:
            return [row.get() for row in done]

    results = together(*(partial(work, mine) for mine in data))
    for given, result in zip(data, results, strict=True):
        np.testing.assert_array_equal(result, np.sort(given))


# --------------------------------------------------------------------- forking

FORKING = """
import multiprocessing, threading, warnings
import numpy as np
import pyopencl as cl
import opencl_lab as ol

keys = np.array([2, 1])
warnings.simplefilter("ignore")

def use(queue):
    try:
        queue.put(ol.sort(keys).tolist())
    except ol.LaunchError as error:
        queue.put(str(error))

def forked():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=use, args=(queue,), daemon=True)
    process.start()
    return queue.get(timeout=30)

assert forked() == [1, 2]  # before the first use
discover, waiting, going = cl.get_platforms, threading.Event(), threading.Event()

def slow():
    waiting.set()
    going.wait()
    return discover()

cl.get_platforms = slow
first = threading.Thread(target=ol.devices)
first.start()
waiting.wait()
assert "forked after OpenCL had started" in forked()  # in the middle of it
going.set()
first.join()
assert "forked after OpenCL had started" in forked()
for _ in range(3):  # from the second one on they are replayed
    assert ol.sort(keys).tolist() == [1, 2]
assert "start processes by multiprocessing's 'spawn'" in forked()
try:
    import scipy.fft
except ImportError:
    pass
else:
    def use(queue):  # the backend hands host arrays on to SciPy
        before = dict(ol.scipy_backend.calls)
        with scipy.fft.set_backend(ol.scipy_backend):
            queue.put(scipy.fft.fft(keys).real.tolist())
        assert ol.scipy_backend.calls == {**before, "elsewhere": before["elsewhere"] + 1}

    assert forked() == [3, 1]
"""


@pytest.mark.full
def test_a_forked_process_works_or_says_why_not():
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


# --------------------------------------------------------------------- the end of the process


AT_THE_END = """
import atexit, threading, time

def registered_before():
    thread.join(10)
    print(thread.is_alive(), sort([3, 1, 2]))

atexit.register(registered_before)
from opencl_lab import sort

def go_on():
    while True:
        sort([3, 1, 2])
        calls.append(1)

def registered_after():
    known, end = len(calls), time.monotonic() + 10
    while len(calls) < known + 2 and time.monotonic() < end:
        time.sleep(0.001)
    print(len(calls) >= known + 2)

calls = []
atexit.register(registered_after)
thread = threading.Thread(target=go_on, daemon=True)
thread.start()
while not calls:
    time.sleep(0.001)
"""


def test_daemon_threads_that_call_when_the_process_ends():
    command = [sys.executable, "-W", "ignore", "-c", AT_THE_END]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nFalse [1 2 3]\n", "")


INTERRUPTED_WHILE_IT_DELETES = """
import os, signal, sys, time
from opencl_lab.core.early import command

class Deleted:
    def __del__(self):
        if command.told is not None:
            raise ValueError("something else")
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

command.raises = True
try:
    Deleted()
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted")
Deleted()
"""


def test_an_interrupt_while_an_object_is_deleted_is_not_lost(tmp_path):
    command = tmp_path / "oclab"  # the command line has handlers of its own
    command.write_text(INTERRUPTED_WHILE_IT_DELETES)
    search = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=search,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n")
    assert "KeyboardInterrupt" not in done.stderr and "ValueError: something else" in done.stderr


IN_A_SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys
options = ["legacy"] if sys.version_info >= (3, 13) else []
one = interpreters.create(*options, **({} if options else {"isolated": False}))
interpreters.run_string(one, '''
import sys
sys.path[:] = %r
try:
    import opencl_lab.fft
except ImportError as error:
    print(error, flush=True)
''' % sys.path)
interpreters.destroy(one)
"""


def test_a_subinterpreter_is_refused():
    command = [sys.executable, "-W", "ignore", "-c", IN_A_SUBINTERPRETER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "opencl_lab cannot run in a subinterpreter" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")
