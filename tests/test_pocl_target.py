"""PoCL compiles for the processor of its library of built-ins, whatever LLVM calls the host.

And what is written in PoCL's memory: only where a known build has what is expected there.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from opencl_lab.drivers import pocl_builds
from opencl_lab.drivers.pocl_serial import _hide
from opencl_lab.drivers.pocl_target import TARGETS, library_target, repair_target

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="the builds of PoCL that are known are for x86-64 Linux",
)

CPU, NAME = 2, "pthread-AMD EPYC"
TEXTS = (NAME.encode(), b"x86_64-unknown-linux-gnu", b"znver3")
PYPI = "9668b5f6ec1fe949d547a549029789188340beb7"
MATRIX = Path(__file__).parent / "test_matrix.py"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
ROWS = "(sort-radix or topk-radix) and (rows-float64 or type-int64)"
AVX2 = "sse2 ssse3 cx16 sse4_1 avx popcnt f16c avx2 abm fma bmi1 bmi2"


class FakeDevice:
    """Memory with the fields of a build where the build has them, and what a driver says."""

    def __init__(self, layout, kind=CPU, available=1, texts=TEXTS):
        self.memory = ctypes.create_string_buffer(b"\1" * 1024)
        self.layout, self.int_ptr = layout, ctypes.addressof(self.memory)
        self.texts = [ctypes.create_string_buffer(text) for text in texts]
        self.type, self.name, self.available = CPU, NAME, ctypes.c_uint32(available)
        at = self.int_ptr
        ctypes.c_uint64.from_address(at + layout.kind).value = kind
        if layout.behind:
            self.point(layout.available, ctypes.addressof(self.available))
        else:
            ctypes.c_uint32.from_address(at + layout.available).value = available
        for place, text in zip((layout.name, *(layout.target or ())), self.texts, strict=False):
            self.point(place, ctypes.addressof(text))

    def point(self, place, address):
        ctypes.c_void_p.from_address(self.int_ptr + place).value = address

    def info(self, handle, item, size, place, _):
        """Answer as `clGetDeviceInfo` of a device of `CPU` that is available."""
        value = ctypes.c_uint64(CPU) if item == 0x1000 else ctypes.c_uint32(1)
        ctypes.memmove(place, ctypes.byref(value), size)
        return 0

    @property
    def state(self):
        """All that could be written."""
        return self.memory.raw, self.available.value, [text.raw for text in self.texts]


def fake_device(build, monkeypatch, **other):
    """Return a device of a build, to which all belong; one that is not known is like PyPI's."""
    monkeypatch.setattr(pocl_builds, "library_of", lambda table: ("libpocl.so", build))
    return FakeDevice(pocl_builds.BUILDS.get(build, pocl_builds.BUILDS[PYPI]), **other)


any_build = pytest.mark.parametrize("build", [*pocl_builds.BUILDS, "unknown"])


def differing(device, after):
    return [at for at, (old, new) in enumerate(zip(device[0], after[0], strict=True)) if old != new]


@any_build
def test_only_the_pointer_to_the_name_is_replaced(build, monkeypatch):
    device = fake_device(build, monkeypatch)
    layout, before = device.layout, device.state
    target = repair_target(device)
    after = device.state
    if layout.target is None or build == "unknown":
        assert target is None and after == before
        return
    assert target == library_target() in TARGETS
    begin = layout.target[1]
    assert set(differing(before, after)) <= set(range(begin, begin + 8))
    assert after[1:] == before[1:]  # others may point to the old name
    assert ctypes.string_at(pocl_builds.word(device.int_ptr + begin)) == target.encode()
    assert repair_target(device) == target


@any_build
def test_only_type_and_availability_are_hidden(build, monkeypatch):
    device = fake_device(build, monkeypatch)
    layout, before = device.layout, device.state
    gate = _hide(device.info, device.int_ptr, NAME)
    after = device.state
    if build == "unknown":
        assert gate is None and after == before
        return
    assert ctypes.c_uint64.from_address(device.int_ptr + layout.kind).value == 0
    assert (gate.available.value, device.available.value) == (0, 0 if layout.behind else 1)
    changed = {layout.kind} if layout.behind else {layout.kind, layout.available}
    assert set(differing(before, after)) == changed and after[2] == before[2]


OTHERS = (
    {"kind": 4},
    {"kind": CPU + (1 << 32)},
    {"available": 0},
    {"available": 257},
    {"texts": (b"basic-AMD EPYC", *TEXTS[1:])},
)
OTHER_TARGETS = (
    {"texts": (TEXTS[0], b"x86_64", TEXTS[2])},
    {"texts": (*TEXTS[:2], b"AMD EPYC")},
    {"texts": (*TEXTS[:2], b"")},
)


@pytest.mark.parametrize(
    ("build", "other"),
    [
        *((build, other) for build in pocl_builds.BUILDS for other in OTHERS),
        *((PYPI, other) for other in OTHER_TARGETS),
    ],
)
def test_nothing_is_written_where_something_else_is_found(build, other, monkeypatch):
    device = fake_device(build, monkeypatch, **other)
    before = device.state
    assert repair_target(device) is None
    assert _hide(device.info, device.int_ptr, NAME) is None
    assert device.state == before


def test_a_build_is_recognised_by_the_library_that_is_loaded(device):
    assert pocl_builds.library_of(id(device)) == ("", "")
    if "PoCL 3.0-rc2" in device.platform_version:  # as PyPI has it
        path, build = pocl_builds.library_of(pocl_builds.word(device.handle.int_ptr))
        assert Path(path).name.startswith("libpocl") and build == PYPI
        assert not pocl_builds.unknown_build(device)


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        ("", None),
        ("sse2", "x86-64"),
        ("sse2 ssse3", "x86-64"),
        ("sse2 ssse3 cx16", "core2"),
        ("sse2 ssse3 cx16 sse4_1 popcnt", "penryn"),
        ("sse2 ssse3 cx16 sse4_1 popcnt avx", "sandybridge"),
        ("sse2 ssse3 cx16 sse4_1 popcnt avx f16c", "ivybridge"),
        ("sse2 ssse3 cx16 sse4_1 popcnt avx f16c xop fma4", "bdver1"),
        (AVX2, "haswell"),
        (AVX2.replace("abm ", ""), "ivybridge"),
        (f"{AVX2} avx512f avx512bw avx512cd avx512dq avx512vl", "skylake-avx512"),
    ],
)
def test_the_library_follows_from_the_flags(flags, target):
    assert library_target(set(flags.split())) == target


@pytest.mark.full
def test_numbers_of_eight_bytes_whatever_llvm_calls_the_host(device, tmp_path):
    """With an empty cache, so that all is compiled: `znver3` crashed in LLVM.

    `.ci/run` runs all of the matrix that has such numbers, on more names.
    """
    if repair_target(device.handle) is None:
        pytest.skip("it is no PoCL that is repaired")
    done = subprocess.run(
        [*PYTEST, MATRIX, "-k", ROWS, "-m", "full or not full"],
        env={
            **os.environ,
            "OCLAB_TEST_TARGET": "znver3",
            "OCLAB_TEST_CONFIGS": "default",
            "POCL_CACHE_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
