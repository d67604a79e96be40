"""The repair of PoCL's processor name touches that name alone, and lets builds work."""

from __future__ import annotations

import ctypes
import platform
import uuid
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

from opencl_lab import pocl
from opencl_lab.errors import BuildError
from opencl_lab.runtime.session import session_of
from opencl_lab.template import Source

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="PoCL is repaired on x86-64 Linux alone",
)

GENERIC = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-generic"
KNOWN = {b"haswell", b"x86-64"}


class FakeDevice:
    """Memory that looks like PoCL's device structure, with pointers to texts."""

    def __init__(self, *texts):
        self.texts = [ctypes.create_string_buffer(text, 16) for text in texts]
        self.memory = (ctypes.c_size_t * (pocl.DEVICE_BYTES // 8))()
        for place, text in enumerate(self.texts):
            self.memory[10 * place + 3] = ctypes.addressof(text)

    @property
    def pointer(self):
        return ctypes.addressof(self.memory)

    @property
    def contents(self):
        return [text.raw for text in self.texts]


def test_the_name_is_replaced_by_one_that_llvm_knows():
    device = FakeDevice(b"sse4", b"generic", b"generic-name")
    words, before = list(device.memory), device.contents
    assert pocl.repair_generic_cpu(GENERIC, device.pointer)
    assert device.texts[1].value in KNOWN
    assert device.contents[0] == before[0]
    assert device.contents[2] == before[2]
    assert device.contents[1][8:] == before[1][8:]  # no byte beyond the old name
    assert list(device.memory) == words


def test_a_second_repair_finds_nothing_to_do():
    device = FakeDevice(b"generic")
    assert pocl.repair_generic_cpu(GENERIC, device.pointer)
    after = device.contents
    assert not pocl.repair_generic_cpu(GENERIC, device.pointer)
    assert device.contents == after


@pytest.mark.parametrize(
    "version",
    [
        "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-haswell",
        "OpenCL 3.0 PoCL HSTR: generic-x86_64-pc-linux-gnu-znver3",
        "OpenCL 3.0 CUDA-generic",
        "OpenCL 3.0 PoCL HSTR: cpu-generic (later)",
        "",
    ],
)
def test_other_versions_are_not_touched(version):
    device = FakeDevice(b"generic")
    before = device.contents
    assert not pocl.repair_generic_cpu(version, device.pointer)
    assert device.contents == before


def test_a_repaired_device_has_the_vectors_of_its_new_name():
    assert pocl.repaired_vector_bytes(GENERIC) in (16, 32)
    assert pocl.repaired_vector_bytes(GENERIC.replace("generic", "skylake-avx512")) is None
    assert pocl.repaired_vector_bytes("OpenCL 3.0 CUDA-generic") is None


def test_other_versions_are_not_even_read():
    assert not pocl.repair_generic_cpu("OpenCL 1.2", 0)


@pytest.mark.parametrize("texts", [(), (b"znver3",), (b"generic", b"generic")])
def test_an_unclear_structure_is_not_touched(texts):
    device = FakeDevice(*texts)
    before = device.contents
    assert not pocl.repair_generic_cpu(GENERIC, device.pointer)
    assert device.contents == before


@pytest.mark.parametrize("pointer", [0, 8, 1 << 46])
def test_an_unreadable_structure_is_no_crash(pointer):
    assert not pocl.repair_generic_cpu(GENERIC, pointer)


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "x86_64"), ("Linux", "aarch64")])
def test_other_machines_are_not_touched(system, machine, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    device = FakeDevice(b"generic")
    assert not pocl.repair_generic_cpu(GENERIC, device.pointer)
    assert device.texts[0].value == b"generic"


def test_the_known_names_fit_into_the_place_of_the_old_one():
    name = pocl._known_processor()
    assert len(name) == len(pocl.UNKNOWN)
    assert name.rstrip(b"\0") in KNOWN


# ------------------------------------------------------------------ the linker


@pytest.mark.parametrize(
    ("version", "needed"),
    [
        ("OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6", True),
        ("OpenCL 3.0 PoCL 5.0  Linux", True),
        ("OpenCL 3.0 PoCL 6.0  Linux", False),
        ("OpenCL 3.0 PoCL 10.0  Linux", False),
        ("OpenCL 3.0 CUDA 12.8", False),
    ],
)
def test_old_releases_need_a_linker(version, needed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (pocl.linker_missing(version) is not None) == needed
    (tmp_path / "ld").touch(mode=0o755)
    assert pocl.linker_missing(version) is None


def test_a_build_without_a_linker_is_an_error(device, own_queue, tmp_path, monkeypatch):
    session = session_of(own_queue(device.handle))
    session.device = replace(session.device, platform_version="OpenCL 3.0 PoCL 3.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="binutils"):
        session.program(Source("a", "__kernel void f(void) {}"), ())


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")  # Intel's compiler says "done"
def test_builds_work(queue):
    """A source that no cache has seen builds and runs: with PoCL 3.0 on Zen 5, the repaired way."""
    number = uuid.uuid4().int % 2**31
    source = f"__kernel void f(__global int *target) {{ target[get_global_id(0)] = {number}; }}"
    program = cl.Program(queue.context, source).build()
    target = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4 * 8)
    kernel = cl.Kernel(program, "f")
    kernel.set_args(target)
    cl.enqueue_nd_range_kernel(queue, kernel, (8,), (4,))
    result = np.zeros(8, np.int32)
    cl.enqueue_copy(queue, result, target)
    assert (result == number).all()
