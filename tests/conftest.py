"""What every test shares: a private cache, a device that is asked for by name, seeded examples.

Tests marked `full` run with ``-m full``, and where they are named; with ``--every N`` one in N of
the cases of each. See `suites.py`.

OCLAB_DEVICE        the device under test, as `select_device` takes it; default ``cpu``
OCLAB_PRETEND       limits that PoCL's device has instead of its own; the default is ``gpu`` then
OCLAB_TEST_DEVICES  ``all``: every device of the machine in turn, not only that one
OCLAB_TEST_CONFIGS  ``default``: the matrix runs with no other configurations than those built in
OCLAB_TEST_TARGET   what LLVM calls the processor, so that PoCL compiles for it if nothing is done
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import stat
import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path

# Before opencl_lab is imported anywhere: discovery reads the reports in the
# cache, and collection reads the devices.
os.environ["OCLAB_CACHE_DIR"] = tempfile.mkdtemp(prefix="oclab-tests-")
os.environ["OCLAB_DATA_DIR"] = os.environ["OCLAB_CACHE_DIR"] + "/data"
os.environ.setdefault("OCLAB_DEVICE", "gpu" if os.environ.get("OCLAB_PRETEND") else "cpu")
os.environ.setdefault("OCLAB_SELFTEST", "off")  # the tests themselves are harder on a device
os.environ.setdefault("POCL_CACHE_DIR", os.environ["OCLAB_CACHE_DIR"] + "/pocl")  # of all workers
# Ranks of MPICH wait without taking the processors from those that compile.
os.environ.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")

import numpy as np
import pyopencl as cl
import pytest
import suites

from opencl_lab.drivers.discovery import devices, select_device
from opencl_lab.drivers.pocl import prepared_cache
from opencl_lab.drivers.pocl_target import set_target

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start jobs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children get the default with it

CACHE_DIR = os.environ["OCLAB_CACHE_DIR"]
Path(os.environ["POCL_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)

pytest_plugins = ("shared_fixtures",)
pytest.register_assert_rewrite(*(path.stem for path in Path(__file__).parent.glob("*_checks.py")))


HOST_NAME = ctypes.create_string_buffer(os.environ.get("OCLAB_TEST_TARGET", "").encode())


def name_host():
    """Give PoCL's devices the processor `HOST_NAME`, as LLVM does where it names the host so."""
    with prepared_cache():
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    named = [set_target(item, HOST_NAME) for item in found]
    assert any(named), "there is no PoCL whose target can be set"


if HOST_NAME.value:
    name_host()


def pytest_addoption(parser):
    parser.addoption(
        "--every", type=int, default=1, metavar="N",
        help="run one in N of the cases of each test that is marked `full`",
    )  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One for each processor, and one more, as tests wait for children and for time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Let workers have tests that follow each other: most of these share programs."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    suites.select(config, items)


def pytest_unconfigure(config):
    shutil.rmtree(CACHE_DIR, ignore_errors=True)


def devices_under_test():
    """Return the devices to test on."""
    if os.environ.get("OCLAB_TEST_DEVICES") == "all":
        return devices()
    return [select_device()]


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        found = devices_under_test()
        metafunc.parametrize(
            "device", found, ids=[f"{item.kind}-{item.spec}" for item in found], scope="session"
        )


@pytest.fixture
def open_path():
    """Return an empty folder that others can enter, which they cannot below `tmp_path`."""
    with tempfile.TemporaryDirectory(prefix="oclab-test-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def serial():
    """The serial side of the device under test."""
    side = select_device().serial_side
    if side is None:
        pytest.skip("the device has no serial side")
    return side


@pytest.fixture(scope="session")
def queue(device):
    """A queue of the library's on the device under test, which tells times."""
    return device.queue(profiling=True)


@pytest.fixture
def own_queue():
    """Return what makes a queue in a context of its own.

    The context is kept: Intel's CPU runtime frees it while the queue lives.
    """
    contexts = []

    def make(handle, **properties):
        contexts.append(cl.Context([handle]))
        return cl.CommandQueue(contexts[-1], handle, **properties)

    return make


@pytest.fixture
def check_end():
    """Return what checks that a process can be ended though Ctrl-C has struck in `Popen.poll`.

    That takes a lock, which it leaves taken in an unlucky instant.
    """

    def check(process, end):
        assert process._waitpid_lock.acquire(False)
        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(timeout=10)
        hung = ending.is_alive()
        process._waitpid_lock.release()
        ending.join(timeout=10)
        assert not hung and process.returncode == -signal.SIGKILL

    return check


@pytest.fixture
def character_device():
    """Return what makes a name for `/dev/null` or `/dev/full`, by which no error can harm these.

    Root could replace them, so it gets devices of its own.
    """

    def make(path, kind):
        if os.geteuid():
            path.symlink_to(f"/dev/{kind}")
            return
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, {"null": 3, "full": 7}[kind]))
            path.open("wb").close()
        except PermissionError:
            pytest.skip("devices cannot be made here")

    return make


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(20240229)


BUSY = """
__kernel void busy(__global float *values, const int steps)
{
    float value = values[0];
    for (int step = 0; step < steps; step++) value = value * 0.999f + sin(value);
    values[0] = value;
}
"""


@pytest.fixture
def held_back():
    """Return a context in which the further commands of a queue do not start.

    User events, which serve elsewhere, crash NVIDIA's driver now and then; there a kernel is busy
    for a third of a second.
    """

    @contextmanager
    def hold(queue):
        if "NVIDIA" in queue.device.platform.name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kernel = cl.Kernel(cl.Program(queue.context, BUSY).build(), "busy")
            values = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4)
            cl.enqueue_fill_buffer(queue, values, np.float32(1), 0, 4)
            kernel.set_args(values, np.int32(7_000_000))
            cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
            queue.flush()
            yield
        else:
            gate = cl.UserEvent(queue.context)
            cl.enqueue_barrier(queue, wait_for=[gate])
            queue.flush()
            try:
                yield
            finally:
                gate.set_status(cl.command_execution_status.COMPLETE)

    return hold
