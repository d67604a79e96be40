"""Pretended devices: their limits, in the records, in the driver, and in what the library does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from command_line import oclab, oclab_process
from device_records import CPU

from opencl_lab.core.device import Capabilities
from opencl_lab.core.errors import DeviceNotFound
from opencl_lab.core.records import write_sealed
from opencl_lab.drivers import pretend
from opencl_lab.drivers.pretend import LIMITS, pretended
from opencl_lab.drivers.verdicts import verdict_file
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import Origin

REAL = replace(
    CPU,
    max_allocation=1 << 40,
    global_memory=1 << 40,
    local_memory=1 << 20,
    constant_memory=1 << 40,
    max_work_group=4096,
    max_work_items=(4096,) * 3,
    native_vector_bytes=32,
    unified_memory=True,
    shared_pointers=True,
    capabilities=Capabilities(
        fp64=True,
        int64_atomics=True,
        max_work_group=4096,
        local_memory=1 << 20,
        vector_bytes=64,
        visible_writes=True,
    ),
)


@pytest.fixture(params=LIMITS)
def limits(request):
    return LIMITS[request.param]


def test_a_record_has_the_lesser_of_both_limits(limits):
    made = pretended(REAL, limits)
    assert (made.kind, made.pretended, made.handle) == ("gpu", True, REAL.handle)
    assert made.max_work_group == made.capabilities.max_work_group == limits.group
    assert made.max_work_items == (limits.items,) * 3
    assert made.local_memory == made.capabilities.local_memory == limits.local
    assert made.constant_memory == limits.constant
    assert (made.max_allocation, made.global_memory) == (limits.allocation, limits.memory)
    assert not (made.shared_pointers or made.is_serial or made.serial_side)
    assert not (made.capabilities.visible_writes or made.capabilities.forward_progress)
    assert made.capabilities.fp64 == limits.fp64
    assert made.capabilities.int64_atomics == limits.int64_atomics
    assert not made.capabilities.fp16, "the processor has no half precision"
    small = replace(REAL, max_work_group=64, local_memory=1 << 10)
    small = replace(small, capabilities=Capabilities(max_work_group=64, local_memory=1 << 10))
    assert pretended(small, limits).capabilities.local_memory == 1 << 10
    assert pretended(small, limits).max_work_group == 64


def test_what_was_found_or_tuned_for_others_does_not_apply(limits, tmp_path, monkeypatch):
    """What doctor finds on the pretended device itself may lower limits, and lifts none."""
    monkeypatch.setenv("OCLAB_CACHE_DIR", str(tmp_path))  # other tests pretend these, too
    made = pretended(REAL, limits)
    assert made.key != REAL.key
    assert len({pretended(REAL, one).key for one in LIMITS.values()}) == len(LIMITS)
    write_sealed(verdict_file(REAL.key), {"key": REAL.key, "found": {"usable": False}})
    assert pretended(REAL, limits) == made
    found = {"local_memory": 1 << 20, "fp64": True, "max_work_group": 32, "visible_writes": True}
    write_sealed(verdict_file(made.key), {"key": made.key, "found": found})
    lowered = replace(made.capabilities, max_work_group=32)
    assert pretended(REAL, limits).capabilities == lowered
    shipped = [entry for entry in database.entries() if entry.shipped]
    assert shipped and all(database._level(entry, Origin.of(made), 0) is None for entry in shipped)


def test_an_unknown_name_is_refused(monkeypatch):
    monkeypatch.setenv(pretend.VARIABLE, "voodoo")
    with pytest.raises(DeviceNotFound, match="voodoo is none of mali, adreno"):
        pretend.asked()
    refused = oclab("--pretend", "voodoo", "devices")
    assert refused.returncode == 2 and "'voodoo' is not one of" in refused.stderr


def test_a_command_pretends(monkeypatch):
    monkeypatch.delenv("OCLAB_DEVICE")
    listed = oclab_process("--pretend", "adreno", "devices", "--json")
    (device,) = json.loads(listed.stdout)["devices"]
    assert device["pretended"] and device["name"].startswith("Adreno 750, pretended by ")


CHILD = """
import pickle
import numpy as np, pyopencl as cl, pytest
import opencl_lab as ol
from opencl_lab.core.errors import BuildError, InvalidConfig, InvalidProblem
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import Source
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.runtime.session import session_of

(device,) = ol.devices()
assert device == ol.select_device("gpu") and device.name.startswith("Mali-G52, pretended by")
assert pickle.loads(pickle.dumps(device)).handle == device.handle
rng = np.random.default_rng(1)
keys = rng.standard_normal(4097)
assert (ol.sort(keys) == np.sort(keys)).all()  # needs no arithmetic in float64
for call in (lambda: ol.gemm(np.eye(40), np.eye(40)), lambda: ol.fft.fft(keys)):
    with pytest.raises(InvalidConfig, match="no double precision.*take another device"):
        call()
with pytest.raises(InvalidProblem, match="at once"):
    check_plan(GEMM_SOLVER.plan(GemmProblem(20_000, 20_000, 1), device), device)
session = session_of(device.queue())
def built(text):
    return session.program(Source("some.cl", text), ())
built("__kernel void a(__global long *x) { atom_add(x, 1L); }")
with pytest.raises(BuildError, match="some.cl"):
    built("__kernel void a(__global double2 *x) { x[0] += x[1]; }")
kernel = cl.Kernel(built("__kernel void a(__global int *x) { x[0] = 1; }"), "a")
memory = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, 4)
kernel.set_args(memory)
cl.enqueue_nd_range_kernel(device.queue(), kernel, (384,), (384,)).wait()
with pytest.raises(cl.LogicError, match="INVALID_WORK_GROUP_SIZE"):
    cl.enqueue_nd_range_kernel(device.queue(), kernel, (512,), (512,))
"""


@pytest.mark.full
def test_limits_hold_in_a_process():
    others = {"OCLAB_DEVICE", "OCLAB_TEST_DEVICES"}
    environment = {name: text for name, text in os.environ.items() if name not in others}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD],
        env={**environment, "OCLAB_PRETEND": "mali"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
