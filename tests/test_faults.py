"""Faults of a driver in the middle of a call: the call says so, and the next one is right.

Each kind of call is made to fail at each of its launches, builds and allocations, the first time
and replayed. `docs/reliability.md` says what users see.
"""

import gc
import mmap
import subprocess
import sys
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from planted import limited_group
from public_calls import CALLS, arguments, complexes, floats, integers

import opencl_lab as ol
from opencl_lab.core import memory
from opencl_lab.core.queues import gate_of
from opencl_lab.distributed import node
from opencl_lab.lab.cli.main import main
from opencl_lab.runtime import (
    bound,
    executable,
    freeing,
    programs,
    replay,
    results,
    session,
)
from opencl_lab.runtime.programs import Programs
from opencl_lab.runtime.session import session_of

LARGE = {
    "sort of many": (ol.sort, [integers(70_001)], {}),
    "unique": (ol.unique, [integers(20_001)], {}),
    "gemm of many": (ol.gemm, [floats(130, 3_001), floats(3_001, 70)], {}),
    "gemm of a vector": (ol.gemm, [floats(1, 5_001), floats(5_001, 300)], {}),
    "fft of many": (ol.fft.fft, [complexes(2, 1 << 16)], {}),
    "fft of a large prime": (ol.fft.fft, [complexes(2, 10_007)], {}),
}
FEW = ("sort", "topk", "gemm with bias", "conv2d large", "rfftn", "dctn", "fft prime")
SIDES = ("host", "device")
REFUSED = "clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES"


@pytest.fixture(autouse=True, scope="module")
def large():
    CALLS.update(LARGE)
    yield
    for name in LARGE:
        del CALLS[name]


@pytest.fixture(autouse=True)
def plain_launches(monkeypatch, device):
    """Launches with events, whose function can be replaced; GPUs have others besides."""
    monkeypatch.setattr(bound, "_starter", lambda queue: None)
    replay.forget()
    yield
    replay.forget()
    session_of(device.queue()).free()  # what is bound to the function that was replaced


class FailingCall:
    """Fails at one of the calls of a function, or from that one on."""

    def __init__(self, kind, words, function):
        self.at, self.lasting, self.count = None, False, 0
        self._kind, self._words, self._function = kind, words, function

    def __call__(self, *given, **more):
        self.count += 1
        if self.at is not None and (
            self.count == self.at or (self.lasting and self.count > self.at)
        ):
            raise self._kind(self._words)  # a new one: its frames hold memory
        return self._function(*given, **more)

    def arm(self, at=None, lasting=False):
        self.at, self.lasting, self.count = at, lasting, 0


class Made:
    """A public call with arrays of its own on one side."""

    def __init__(self, name, side, device, rng):
        self.function, _, self.options = CALLS[name]
        self.queue, self.device = device.queue(), device
        self.on_host = side == "host"
        self.arrays = arguments(name, self, rng)
        if self.on_host:
            self.options = {**self.options, "device": device}
        self.right = self.bytes()

    def put(self, array):
        return array if self.on_host else ol.to_device(array, queue=self.queue)

    def bytes(self):
        found = self.function(*self.arrays, **self.options)
        found = found if isinstance(found, tuple) else (found,)
        return b"".join(one.tobytes() if self.on_host else one.get().tobytes() for one in found)

    def fails(self, match):
        """Check that the call fails as it should, that no lock stays held, and the next call."""
        with pytest.raises(ol.LaunchError, match=match):
            self.bytes()
        check_locks(self.device)

    def is_right(self):
        assert self.bytes() == self.right


def check_locks(device):
    """Check that another thread can take all locks, and that no hidden device is left open."""
    held = []

    def look():
        for side in filter(None, (device, device.serial_side)):
            found = session_of(side.queue())
            recorded = list(found._executables._entries.values())
            locks = [found._lock, found.lock(side.queue()), replay._lock, freeing._lock]
            for lock in (*locks, *(item.lock for item in recorded)):
                if lock.acquire(timeout=1):
                    lock.release()
                else:
                    held.append(lock)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert not held
    for side in filter(None, (device, device.serial_side)):
        gate = gate_of(side.handle)
        assert gate is None or not gate.available.value


def every_call(quick):
    """Let a test have each public call on each side; the default suite has those of one name."""
    cases = [
        pytest.param(name, side, marks=() if name == quick else pytest.mark.full)
        for name in (*CALLS, *LARGE)
        for side in SIDES
    ]
    return pytest.mark.parametrize(("name", "side"), cases)


@every_call("sort of many")  # several launches, and counters
def test_each_launch_may_fail(name, side, device, rng, monkeypatch):
    fault = FailingCall(cl.RuntimeError, REFUSED, bound._enqueue)
    monkeypatch.setattr(bound, "_enqueue", fault)
    made = Made(name, side, device, rng)
    fault.arm()
    made.is_right()
    launches = fault.count
    for forget in (lambda: None, replay.forget):
        for at in range(1, launches + 1):
            forget()
            fault.arm(at)
            made.fails("the launch failed on .*OUT_OF_RESOURCES")
            fault.arm()
            made.is_right()
            made.is_right()


@pytest.mark.few(2)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", [*FEW, *LARGE])
def test_a_device_that_is_gone_is_one_sentence(name, side, device, rng, monkeypatch):
    gone = cl.RuntimeError, "clEnqueueNDRangeKernel failed: DEVICE_NOT_AVAILABLE"
    launch, wait = FailingCall(*gone, bound._enqueue), FailingCall(*gone, cl.CommandQueue.finish)
    monkeypatch.setattr(bound, "_enqueue", launch)
    monkeypatch.setattr(cl.CommandQueue, "finish", lambda queue: wait(queue))
    made = Made(name, side, device, rng)
    launch.arm(1, lasting=True)
    wait.arm(1, lasting=True)
    for _ in range(2):
        made.fails("DEVICE_NOT_AVAILABLE")
    launch.arm()
    wait.arm()
    made.is_right()


@pytest.fixture
def allocations(monkeypatch):
    """The fault of all allocations of device memory, each of which is tried twice."""
    fault = FailingCall(cl.MemoryError, "MEM_OBJECT_ALLOCATION_FAILURE", lambda run: run())
    real = freeing.with_room
    for module in (freeing, results, session, executable):
        monkeypatch.setattr(module, "with_room", lambda run, *size: real(lambda: fault(run), *size))
    return fault


@every_call("fft prime")  # tables, results and scratch memory
def test_each_allocation_may_fail(name, side, device, rng, allocations):
    made = Made(name, side, device, rng)

    def begin(at, lasting):
        replay.forget()
        ol.free_memory()
        gc.collect()  # tables live as long as anything refers to them
        allocations.arm(at, lasting)

    begin(None, False)
    made.is_right()
    count = allocations.count
    for at in range(1, count + 1):
        begin(at, False)
        made.is_right()  # what is idle is freed, and it is tried again
    for at in {1, (count + 1) // 2, count} if count else ():  # none where all is used in place
        begin(at, True)
        made.fails("ran out of memory")
        allocations.arm()
        made.is_right()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [*FEW, *LARGE])
def test_each_build_may_fail(name, device, rng, monkeypatch):
    made = Made(name, "host", device, rng)
    sides = [session_of(side.queue()) for side in (device, device.serial_side) if side]
    fault = FailingCall(cl.RuntimeError, "BUILD_PROGRAM_FAILURE: error: planted", Programs._built)
    monkeypatch.setattr(Programs, "_built", lambda *given, **more: fault(*given, **more))
    # A program that does not build with few declarations is tried with all.
    monkeypatch.setattr(programs, "with_declarations", lambda version, text: None)

    def begin(at):
        for one in sides:
            one.free()
        replay.forget()
        fault.arm(at)

    begin(None)
    made.is_right()
    for at in range(1, fault.count + 1):
        begin(at)
        with pytest.raises(ol.BuildError, match="did not build on"):
            made.bytes()
        check_locks(device)
        fault.arm()
        made.is_right()


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell a process's memory so")
def test_calls_that_fail_leave_no_memory_taken(side, device, rng, monkeypatch):
    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    fault = FailingCall(cl.RuntimeError, "planted", bound._enqueue)
    monkeypatch.setattr(bound, "_enqueue", fault)
    monkeypatch.setitem(CALLS, "large", (ol.sort, [integers(1_000_003)], {}))
    made = Made("large", side, device, rng)
    fault.arm()
    made.is_right()
    launches = fault.count

    def fail(times):
        for _ in range(times):
            fault.arm(launches)
            made.fails("planted")

    fail(3)
    before = resident_bytes()
    fail(40)
    assert resident_bytes() - before < 64 << 20  # a call takes 4 to 12 MB
    fault.arm()
    made.is_right()


def test_a_launch_that_fails_is_status_4(monkeypatch, capsys):
    fault = FailingCall(cl.RuntimeError, REFUSED, bound._enqueue)
    fault.arm(1, lasting=True)
    monkeypatch.setattr(bound, "_enqueue", fault)
    assert main(["sort", "--n", "1000", "--against", "none"]) == 4
    said = capsys.readouterr()
    assert "OUT_OF_RESOURCES" in said.out + said.err and "Traceback" not in said.err


@pytest.mark.parametrize("limited", ["process", "group"])
@pytest.mark.parametrize("side", SIDES)
def test_what_a_limit_does_not_leave_is_not_asked_of_the_driver(
    limited, side, device, rng, monkeypatch, tmp_path
):
    if not device.unified_memory:
        pytest.skip("its memory is not that of the process")
    x = rng.integers(0, 99, 1 << 21, dtype=np.int32)
    call = partial(ol.sort, x if side == "host" else ol.to_device(x))
    small = ol.sort(x[:1000])
    with monkeypatch.context() as patch:
        if limited == "process":
            patch.setattr(memory, "process_left", lambda: 4 << 20)
            words = "ulimit -v"
        else:
            limited_group(patch, tmp_path, limit=64 << 20, used=62 << 20, cached=1 << 20)
            words = "container"
        ol.free_memory()
        patch.setattr(programs, "no_room", lambda version: None)  # asked by builds
        with pytest.raises(ol.LaunchError, match=words):
            call()
        patch.setattr(memory, "process_left", lambda: 10 << 20)
        assert np.array_equal(ol.sort(x[:1000]), small)
    found = call()
    assert np.array_equal(found if side == "host" else found.get(), np.sort(x))


def test_idle_memory_is_a_part_of_what_a_container_has(device, own_queue, monkeypatch):
    if not device.unified_memory:
        pytest.skip("its memory is not the host's")
    monkeypatch.setattr(session, "host_memory", lambda: 8 << 20)
    context = own_queue(device.handle).context
    assert session.Session(context, device)._most_idle == 2 << 20
    monkeypatch.setenv("OCLAB_POOL_BYTES", "4096")
    assert session.Session(context, device)._most_idle == 4096


def test_a_group_has_left_what_it_can_give_back(monkeypatch, tmp_path):
    limited_group(monkeypatch, tmp_path, limit=100 << 20, used=90 << 20, cached=30 << 20)
    assert memory.host_memory() == 100 << 20
    assert memory.group_left() == 40 << 20
    assert memory.why_no_room(40 << 20) is None
    assert "100 MiB more" in memory.why_no_room(100 << 20)


@pytest.mark.parametrize(
    ("before", "left", "error"), [(False, 100, "DeviceNotFound"), (True, 60, "BuildError")]
)
def test_a_process_with_little_memory_gets_a_sentence(device, before, left, error):
    """PoCL would crash, or wait for ever."""
    if "PoCL" not in device.platform_version or sys.platform != "linux":
        pytest.skip("that is asked for PoCL alone")
    limited = (
        "import resource, numpy as np, opencl_lab as ol\n"
        "from opencl_lab.core import memory\n"
        "from opencl_lab.drivers import discovery\n"
        f"if {before}: ol.devices()\n"
        "pages = int(memory.SIZES.read_text().split()[0])\n"
        f"most = pages * resource.getpagesize() + ({left} << 20)\n"
        "before = resource.getrlimit(resource.RLIMIT_AS)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))\n"
        "try: ol.sort(np.arange(5000))\n"
        f"except ol.{error} as error: assert 'ulimit -v' in error.sentence, error\n"
        "else: raise AssertionError\n"
        "resource.setrlimit(resource.RLIMIT_AS, before)\n"
        "assert (ol.sort(np.arange(5000)[::-1]) == np.arange(5000)).all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", limited],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("free", "ranks", "refused"),
    [(64, 8, False), (64, 16, True), (16, 2, True), (14, 4, False), (2, 2, True), (2, 0, False)],
)
def test_mpich_with_too_little_shared_memory_is_not_started(monkeypatch, free, ranks, refused):
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    monkeypatch.delenv(memory.MPICH_RANKS, raising=False)
    if ranks:
        monkeypatch.setenv(memory.MPICH_RANKS, str(ranks))
    usage = SimpleNamespace(free=free << 20)
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda place: usage)
    with pytest.raises(ol.OclabError, match="shm") if refused else nullcontext():
        memory.check_shared()


def test_shared_memory_is_taken_before_it_is_written_to(tmp_path):
    """A write to a page that is not there would end the process by SIGBUS."""
    page = mmap.PAGESIZE
    with (tmp_path / "window").open("w+b") as file:
        file.truncate(8 * page)
        with mmap.mmap(file.fileno(), 8 * page) as mapped:
            window = np.frombuffer(mapped, np.uint8)
            assert node._reserved(window[100:])
            file.truncate(4 * page)
            found = node._reserved(window[: 4 * page]), node._reserved(window[5 * page + 7 :])
            del window
    if found == (True, True):
        pytest.skip("this system does not tell")
    assert found == (True, False)
