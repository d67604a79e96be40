"""The serial side of PoCL's device: hidden from others, and used where it is faster."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

import opencl_lab as ol
from opencl_lab.lab.registry import operations

STARTED = "import pyopencl as cl; p = cl.get_platforms(); [q.get_devices() for q in p];"
SHOW = (
    "import opencl_lab as ol;"
    "print([(d.is_serial, d.serial_side) for d in ol.devices() if d.kind == 'cpu'])"
)

AS_UNKNOWN = "from opencl_lab.drivers import pocl_builds; pocl_builds.BUILDS.clear();"
OTHERS_SEE = """
import pyopencl as cl
print([len(platform.get_devices()) for platform in cl.get_platforms()])
from opencl_lab.lab.doctor.probes.behaviour import serial_side
print(*serial_side(ol.select_device("pocl")))
"""
TWICE = """
import numpy as np
import opencl_lab as ol
import pyopencl as cl
sides = [side for one in ol.devices() for side in (one, one.serial_side)]
seen = [handle for one in cl.get_platforms() for handle in one.get_devices()]
print(len(seen), [side.handle in seen for side in sides])
x = np.arange(100)[::-1].astype(np.int32)
print(*(ol.sort(x, device=place).tolist() == np.sort(x).tolist() for place in (*sides, None)))
"""
INTERRUPTED = """
import signal, threading, time
import numpy as np
import opencl_lab as ol
from opencl_lab.core.queues import gate_of
x = np.arange(1000)[::-1].astype(np.int32)
ol.sort(x)
armed = False
def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 1e-3, 3e-4)
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        armed = True
        while True:
            ol.sort(x)
    except KeyboardInterrupt:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
gate = gate_of(ol.select_device().serial_side.handle)
taken = []
other = threading.Thread(target=lambda: taken.append(gate.lock.acquire(timeout=5)))
other.start()
other.join()
print(taken[0], gate.available.value)
"""


@pytest.fixture
def threads(serial):
    return ol.select_device()


def of_platform(device):
    return device.handle.platform.get_devices()


def run(code, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_others_see_only_the_threads(threads, serial):
    assert serial.is_serial
    assert serial.compute_units == 1
    assert "POCL_DEVICES" not in os.environ
    assert of_platform(threads) == [threads.handle]
    assert serial not in ol.devices()
    ol.sort(np.arange(10)[::-1].copy(), device=serial)
    if len(cl.get_platforms()) == 1:
        for made in (cl.Context(), cl.create_some_context(interactive=False)):
            assert made.devices == [threads.handle]
    for kind in ("DEFAULT", "CPU", "ALL"):
        chosen = cl.Context(
            dev_type=getattr(cl.device_type, kind),
            properties=[(cl.context_properties.PLATFORM, threads.handle.platform)],
        )
        assert chosen.devices == [threads.handle]


def test_it_is_found_by_text_queue_and_pickle(threads, serial):
    assert serial.spec == threads.spec + "/serial"
    assert ol.select_device(serial) is serial
    assert pickle.loads(pickle.dumps(serial)).handle == serial.handle
    assert pickle.loads(pickle.dumps(threads)).serial_side.handle == serial.handle
    assert threads.as_dict()["serial_side"] == serial.key
    assert serial.as_dict()["serial_side"] is None
    assert serial.queue().context != threads.queue().context
    assert run(
        "import opencl_lab as ol, numpy as np; d = ol.select_device('serial');"
        "print(d.is_serial, d.handle.available, ol.sort(np.arange(3)[::-1], device=d))"
    ) == "True 1 [0 1 2]\n"  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("code", "variables", "answer"),
    [
        (SHOW, {"OCLAB_SERIAL": "off"}, "[(False, None)]"),
        (STARTED + SHOW, {}, "[(False, None)]"),
        (SHOW, {"POCL_DEVICES": "pthread basic"}, "[(False, None), (False, None)]"),
        ("import os;" + SHOW + ";print(os.environ.get('POCL_DEVICES'))", {}, "None"),
    ],
    ids=["off", "started-before", "chosen-by-the-user", "not-inherited"],
)
def test_when_there_is_none(serial, code, variables, answer):
    assert answer in run(code, OCLAB_INTEL="off", **variables)


def test_an_unknown_build_has_none_and_the_doctor_says_so(serial):
    said = run(AS_UNKNOWN + SHOW + OTHERS_SEE, OCLAB_INTEL="off")
    assert said.startswith("[(False, None)]\n[1]\n")
    assert re.search(r"no serial side: the places for that.* in /.*libpocl.*, build id \w+", said)


@pytest.mark.parametrize("place", ["folder", "other-file"])
def test_a_library_that_is_registered_twice_has_one_device(serial, place, tmp_path):
    """pyopencl's own folder is read in any case, so this names it a second time."""
    own = Path(cl.__file__).parent / ".libs"
    files = list(own.glob("pocl*.icd"))
    if not files:
        pytest.skip("PoCL is not pip's")
    folder = own
    if place == "other-file":
        folder, (library,) = tmp_path, own.glob("libpocl*.so")
        (tmp_path / "other.icd").write_text(str(library))
    said = run(TWICE, OCL_ICD_VENDORS=str(folder), OCLAB_DEVICE="pocl")
    assert said == "2 [True, False]\nTrue True True\n"


def test_threads_use_both_sides_while_another_one_looks(threads, serial):
    rng = np.random.default_rng(5)
    keys = [rng.integers(0, 1000, 300 + 40 * index) for index in range(4)]
    wrong = []

    def calls(index):
        side = (serial, threads)[index % 2]
        for _ in range(40):
            if not (ol.sort(keys[index], device=side) == np.sort(keys[index])).all():
                wrong.append(index)

    workers = [threading.Thread(target=calls, args=(index,)) for index in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        assert of_platform(threads) == [threads.handle]
    assert not wrong
    assert of_platform(threads) == [threads.handle]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_interrupted_calls_leave_nothing_locked(serial):
    assert run(INTERRUPTED, OCLAB_DEVICE="pocl").split() == ["True", "0"]


@pytest.mark.parametrize(
    ("name", "options", "naive"),
    [
        ("gemm", {"size": 128}, ("naive", "tiled")),
        ("conv2d", {"size": 400, "ksize": 3}, ("naive", "tiled")),
        ("dft", {"n": 2048, "dtype": "complex64"}, ("direct-naive", "direct-tiled")),
        ("sort", {"n": 20_000}, ("odd-even-merge",)),
    ],
)
def test_slow_algorithms_stay_on_the_threads(threads, serial, name, options, naive):
    operation = operations()[name]
    problem = operation.problem(**operation.with_defaults(options))
    device = replace(threads, compute_units=4)
    assert operation.side(problem, device) == serial
    for algorithm in naive:
        assert operation.side(problem, device, algorithm) == device, algorithm
    tiny = operation.problem(**operation.with_defaults({**options, next(iter(options)): 4}))
    assert all(operation.side(tiny, device, algorithm) == serial for algorithm in naive)
