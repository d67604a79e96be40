"""Workers: whatever one does, who has it hears of that in time, and none stays behind."""

import math
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import opencl_lab
from opencl_lab.core.errors import BuildError
from opencl_lab.workers.link import Ended, Link, pack
from opencl_lab.workers.serving import Failed
from opencl_lab.workers.worker import Died, Worker, opening

ROOT = str(Path(opencl_lab.__file__).parents[1])


class Servant:
    """Does what a test asks for."""

    def __init__(self, refused, say):
        self._say = say
        if refused:
            raise BuildError("it does not build", log="the log", options=("-O9",))

    def echo(self, value):
        return value

    def count(self, words):
        for word in range(words):
            self._say(word)

    def sleep(self, seconds):
        self._say(os.getpid())
        time.sleep(seconds)

    def start(self):
        """Start a process that stays, as compilers of drivers do."""
        return subprocess.Popen(["sleep", "600"]).pid

    def prints(self):
        print("to stdout, as drivers do", flush=True)
        os.write(1, b"and past Python\n")
        return sys.stdin.read()

    def fail(self):
        raise ValueError("no such thing")

    def end(self, code):
        os.write(2, b"first\n  last words \n\n")
        os._exit(code)

    def signal(self, number):
        os.kill(os.getpid(), number)

    def nonsense(self, data):
        for item in Path("/proc/self/fd").iterdir():
            if item.is_socket():
                os.write(int(item.name), data)
        time.sleep(60)

    def priority(self):
        return os.getpriority(os.PRIO_PROCESS, 0)

    def ignored(self):
        return {n for n in signal.Signals if signal.getsignal(n) == signal.SIG_IGN}


TARGET = f"{__name__}:Servant"


@pytest.fixture
def worker():
    made = Worker(opening(TARGET, False))
    made.answer()
    yield made
    made.kill()


def asked(worker, *request, seconds=20.0):
    worker.send(*request)
    return worker.answer(time.monotonic() + seconds)


def gone(pid, seconds=10.0):
    """Return whether a process has ended, or does so soon."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":  # whoever adopted it has not noticed yet
            return True
        time.sleep(0.02)
    return False


# ------------------------------------------------------------------------------ messages


def test_arrays_come_through_in_writable_memory():
    x = np.arange(12).reshape(3, 4)
    sent = {"x": x, "strided": x[:, ::2], "empty": x[:0], "inf": math.inf}
    here, there = map(Link, socket.socketpair())
    here.put(sent)
    got = there.get()
    for name, value in sent.items():
        np.testing.assert_array_equal(got[name], value)
    assert got["x"].flags.writeable and pack(sent)[1].nbytes == x.nbytes
    here.close()
    with pytest.raises(Ended):
        there.get()
    with pytest.raises(Ended):
        there.put(np.zeros(1 << 20))
    there.close()
    with pytest.raises(Ended):
        there.get()


def test_a_deadline_counts_for_a_whole_message():
    here, there = map(Link, socket.socketpair())
    here.connection.sendall(struct.pack("<2Q", 1, 1000))  # and what it announces never comes
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        there.get(begin + 0.1)
    with pytest.raises(TimeoutError):  # nobody reads
        there.put(np.zeros(1 << 20), begin + 0.2)
    assert time.monotonic() - begin < 5
    here.close()
    there.close()


# ------------------------------------------------------------------------ requests and ends


def test_requests_and_what_is_said_meanwhile(worker):
    assert asked(worker, "echo", {1: "a"}) == {1: "a"}
    worker.send("count", 2)
    assert [worker.receive() for _ in range(3)] == [("said", 0), ("said", 1), ("done", None)]


def test_what_it_prints_is_no_answer_and_it_reads_nothing(worker, capfd):
    assert asked(worker, "prints") == ""
    assert capfd.readouterr() == ("", "")


def test_an_error_leaves_it_usable(worker):
    with pytest.raises(Failed, match=r"^ValueError: no such thing$") as caught:
        asked(worker, "fail")
    assert caught.value.error is None
    with pytest.raises(Failed, match=r"AttributeError: .* 'nothing'"):
        asked(worker, "nothing")
    with pytest.raises(AttributeError, match="lambda"):
        worker.send("echo", lambda: None)
    assert asked(worker, "echo", 7)


def test_our_own_errors_come_through_with_all_they_say():
    worker = Worker(opening(TARGET, True))
    with pytest.raises(Failed, match="BuildError: it does not build") as caught:
        worker.answer()
    error = caught.value.error
    assert type(error) is BuildError and error.sentence == "it does not build"
    assert (error.log, error.options) == ("the log", ("-O9",))
    with pytest.raises(Died, match="exit status 0"):
        worker.answer()  # one whose opening failed has nothing to serve with
    worker.kill()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (("end", 3), 3, r"^exit status 3 \(last words\)$"),
        (("signal", signal.SIGSEGV), -11, r"^SIGSEGV, signal 11 \(Segmentation fault\)$"),
        (("signal", signal.SIGRTMIN + 3), -37, r"^SIGRTMIN\+3|signal 37"),
    ],
)
def test_how_it_ended(worker, request_, code, words):
    with pytest.raises(Died, match=words) as caught:
        asked(worker, *request_)
    assert caught.value.code == code
    worker.send("echo", 1)
    with pytest.raises(Died):
        worker.answer()


def test_an_answer_that_is_none(worker):
    with pytest.raises(Failed, match="cannot be read"):
        asked(worker, "nonsense", struct.pack("<3Q", 1, 8, 8))


def test_one_that_is_stopped_costs_no_more_than_the_deadline(worker):
    os.kill(worker.process.pid, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        asked(worker, "echo", 1, seconds=0.2)
    worker.kill()
    assert time.monotonic() - begin < 5 and worker.process.returncode == -signal.SIGKILL


def test_the_end_is_that_of_all_it_has_started(worker):
    started = asked(worker, "start")
    worker.kill()
    assert gone(started)


def test_it_is_apart(worker):
    assert os.getpgid(worker.process.pid) == worker.process.pid
    assert {signal.SIGINT, signal.SIGTERM} <= asked(worker, "ignored")
    nicer = Worker(opening(TARGET, False), nice=3)
    nicer.answer()
    assert asked(nicer, "priority") == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    nicer.kill()


ORPHANED = """
import os, signal, sys
sys.path[:0] = [{root!r}, {tests!r}]
import test_workers as test
worker = test.Worker(test.opening(test.TARGET, False))
worker.answer()
started = test.asked(worker, "start")
worker.send("sleep", 60)
print(worker.receive()[1], started, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_orphan_ends_in_the_middle_of_a_request_with_all_it_has_started():
    script = textwrap.dedent(ORPHANED).format(root=ROOT, tests=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    worker, started = map(int, done.stdout.split())
    assert done.returncode == -signal.SIGKILL and gone(worker) and gone(started)


def test_what_a_script_defines_is_known(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path[:0] = [{ROOT!r}, {str(Path(__file__).parent)!r}]\n"
        "from opencl_lab.workers.worker import Worker, opening\n"
        "class Own:\n"
        "    pass\n"
        "if __name__ == '__main__':\n"
        "    worker = Worker(opening('test_workers:Told', Own()))\n"
        "    print(worker.receive()); worker.kill()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('said', 'Own')", done.stderr


class Told:
    """Says of what class it was given something."""

    def __init__(self, given, say):
        say(type(given).__name__)
