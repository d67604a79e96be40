"""Without what other systems lack, calls and commands work, or say what is missing.

This stands for Windows and macOS, on which nothing was run. `tools` such as mypy check the types
there.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import threading
import time

import pytest

from opencl_lab.core import paths, systems
from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.core.paths import locked
from opencl_lab.lab.files import blocks
from opencl_lab.lab.reference import mpi
from opencl_lab.workers import worker as workers
from opencl_lab.workers.link import Ended, Link
from opencl_lab.workers.worker import Died, Worker, opening

HIDDEN = '''
"""Python starts with this: what Windows lacks is not there, nor are the files of Linux."""
import os, select, signal, socket, sys

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
MISSING = {
    os: "chown fork forkpty geteuid getloadavg getpgrp getpriority killpg posix_fallocate preadv "
    "pwritev register_at_fork sched_getaffinity sched_setaffinity setpriority statvfs sysconf",
    select: "epoll poll POLLHUP POLLRDHUP",
    signal: "SIGALRM SIGHUP alarm",
    socket: "AF_UNIX",
}
for module, names in MISSING.items():
    for name in names.split():
        delattr(module, name)


def hide(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(2, "not on this system", arguments[0])


sys.addaudithook(hide)
'''
CALLS = """
import numpy as np, opencl_lab as ol

x = np.random.default_rng(0).integers(0, 1000, 5000)
assert (ol.sort(x) == np.sort(x)).all() and (ol.argsort(x) == np.argsort(x, kind="stable")).all()
a = np.random.default_rng(1).random((70, 50), np.float32)
assert np.allclose(ol.gemm(a, a.T), a @ a.T, rtol=1e-4)
print("right")
"""


@pytest.fixture
def elsewhere(tmp_path):
    """Return what runs Python with arguments as on another system, and returns what it printed."""
    if platform.system() != "Linux":
        pytest.skip("this is another system")
    (tmp_path / "sitecustomize.py").write_text(HIDDEN)
    search = [str(tmp_path), *(path for path in sys.path if path)]

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.full
def test_calls_work_without_what_other_systems_lack(elsewhere):
    assert elsewhere("-c", CALLS) == "right\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sort --n 1000 --against none", "ok"),
        ("sort --n 1000 --against c:omp", "c:omp"),
        ("doctor", "ranks connect by Unix sockets"),  # its probes run in workers
        ("cache info", "oclab-tests-"),
    ],
)
def test_commands_work_without_what_other_systems_lack(elsewhere, command, words):
    assert words in elsewhere("-m", "opencl_lab", *command.split())


@pytest.mark.full
def test_files_are_sorted_without_what_other_systems_lack(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setenv("OCLAB_DEVICE_BYTES", "1M")  # so that it is read and written in parts
    make = "import sys, numpy as np; x = np.random.default_rng(0).random(200_000, np.float32)\n"
    compare = "y = np.load(sys.argv[2]); print((y == np.sort(np.load(sys.argv[1]))).all())"
    files = [str(tmp_path / "keys.npy"), str(tmp_path / "sorted.npy")]
    elsewhere("-c", make + "np.save(sys.argv[1], x)", *files)
    elsewhere("-m", "opencl_lab", "sort", files[0], "-o", files[1], "--against", "none")
    assert elsewhere("-c", "import sys, numpy as np\n" + compare, *files) == "True\n"


# ------------------------------------------------------------ workers without inherited sockets


class PortServant:
    """Answers with what it gets."""

    def __init__(self, say):
        self._say = say

    def echo(self, value):
        return value

    def end(self):
        os._exit(3)


@pytest.fixture
def at_port(monkeypatch):
    """Take away Unix sockets, so that workers connect to a port."""
    monkeypatch.delattr(socket, "AF_UNIX")


@pytest.mark.usefixtures("at_port")
def test_workers_connect_to_a_port():
    made = Worker(opening(f"{__name__}:PortServant"))
    try:
        assert made.connection.family == socket.AF_INET
        made.answer(time.monotonic() + 30)
        made.send("echo", b"x" * 100_000)
        assert made.answer(time.monotonic() + 30) == b"x" * 100_000
        made.send("end")
        with pytest.raises(Died, match="exit status 3"):
            made.answer(time.monotonic() + 30)
    finally:
        made.kill()


@pytest.mark.usefixtures("at_port")
def test_nobody_else_is_listened_to(monkeypatch):
    """Another process that connects first, and does not know the secret, is turned away."""
    create, refused = socket.create_server, []

    def watched(address):
        server = create(address)
        stranger = socket.create_connection(server.getsockname())
        stranger.sendall(b"s" * 32 + b"anything to unpickle")
        refused.append(stranger)
        return server

    monkeypatch.setattr(socket, "create_server", watched)
    made = Worker(opening(f"{__name__}:PortServant"))
    try:
        made.answer(time.monotonic() + 30)
        made.send("echo", 7)
        assert made.answer(time.monotonic() + 30) == 7
        refused[0].settimeout(5)
        with pytest.raises((ConnectionError, Ended)):
            if not refused[0].recv(1):
                raise Ended
    finally:
        refused[0].close()
        made.kill()


@pytest.mark.usefixtures("at_port")
def test_a_process_that_ends_before_it_connects_is_reported(monkeypatch):
    monkeypatch.setattr(workers, "START", "raise SystemExit('no such module')")
    made = Worker(opening(f"{__name__}:PortServant"))
    try:
        with pytest.raises(Died, match=r"exit status 1 \(no such module\)"):
            made.answer(time.monotonic() + 30)
    finally:
        made.kill()


@pytest.mark.parametrize("pending", [False, True])
def test_the_end_of_a_link_is_seen_without_poll(monkeypatch, pending):
    monkeypatch.delattr("select.poll")
    here, there = socket.socketpair()
    link = Link(here)
    with here, there:
        if pending:
            there.sendall(b"unread")
        assert not link.ended(0.0) and not link.ended(0.15)
        if pending:
            here.recv(6)
        closing = threading.Timer(0.1, there.close)
        closing.start()
        assert link.ended(10.0)
        closing.join()
    assert link.ended()


def test_ranks_need_unix_sockets(at_port):
    assert mpi.no_mpi() == mpi.NO_SOCKETS
    with pytest.raises(ReferenceUnavailable, match="Unix sockets"):
        mpi._unix_socket()


# ------------------------------------------------------------------------------------- files


def test_a_lock_keeps_others_out(tmp_path):
    order = []

    def second():
        with locked(tmp_path / "x"):
            order.append(2)

    with locked(tmp_path / "x"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append(1)
    thread.join()
    assert order == [1, 2]


def test_files_are_read_and_written_without_places(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "preadv")
    monkeypatch.delattr(os, "pwritev")
    path = tmp_path / "x"
    path.write_bytes(bytes(10))
    with path.open("r+b") as file:
        assert blocks._write_at(file.fileno(), memoryview(b"abc"), 4) == 3
        target = memoryview(bytearray(4))
        assert blocks._read_at(file.fileno(), target, 5) == 4 and bytes(target) == b"bc\0\0"


def test_room_and_owners_are_unknown_without_calls_for_them(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "statvfs")
    monkeypatch.delattr("shutil.disk_usage")
    monkeypatch.delattr(os, "geteuid")
    assert paths.free_bytes(tmp_path) == float("inf") and systems.user() == 0
