"""PoCL compiles for the processor of its library of built-ins, whatever LLVM calls the host."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from opencl_lab.drivers import pocl_target
from opencl_lab.drivers.pocl_target import library_target, repair_target

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="PoCL's target is changed on x86-64 Linux alone",
)

VERSION = "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF, DISTRO, POCL_DEBUG"
TRIPLE = b"x86_64-unknown-linux-gnu"
MATRIX = Path(__file__).parent / "test_matrix.py"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
ROWS = "(sort-radix or topk-radix) and (rows-float64 or type-int64)"
AVX2 = "sse2 ssse3 cx16 sse4_1 avx popcnt f16c avx2 abm fma bmi1 bmi2"


class FakeDevice:
    """Memory that looks like PoCL's device structure, with pointers to texts."""

    def __init__(self, *texts):
        self.texts = [ctypes.create_string_buffer(text, 32) for text in texts]
        self.memory = (ctypes.c_size_t * (pocl_target.STRUCTURE_BYTES // 8))()
        for place, text in enumerate(self.texts):
            self.memory[place + 79] = ctypes.addressof(text)

    @property
    def pointer(self):
        return ctypes.addressof(self.memory)

    @property
    def seen(self):
        """The texts that its pointers lead to."""
        return [ctypes.string_at(self.memory[place + 79]) for place in range(len(self.texts))]


def test_the_name_after_the_triple_is_replaced():
    device = FakeDevice(b"haswell", TRIPLE, b"znver3", b"znver3")
    words = list(device.memory)
    target = repair_target(VERSION, device.pointer)
    assert target == library_target() in pocl_target.TARGETS
    assert device.seen == [b"haswell", TRIPLE, target.encode(), b"znver3"]
    assert device.texts[2].value == b"znver3"  # which others may point to
    assert sum(old != new for old, new in zip(words, device.memory, strict=True)) == 1
    assert repair_target(VERSION, device.pointer) == target
    assert device.seen[2] == target.encode()


@pytest.mark.parametrize(
    ("version", "repaired"),
    [
        (VERSION.replace("3.0-rc2", "3.1"), True),
        (VERSION.replace("3.0-rc2", "4.0"), True),
        (VERSION.replace("3.0-rc2", "5.0"), False),
        (VERSION.replace("3.0-rc2", "1.8"), False),
        (VERSION.replace(", DISTRO", ""), False),
        ("OpenCL 3.0 CUDA 12.8", False),
        ("", False),
    ],
)
def test_releases_that_choose_a_library_themselves_are_repaired(version, repaired):
    device = FakeDevice(TRIPLE, b"generic")
    assert (repair_target(version, device.pointer) is not None) == repaired
    assert (device.seen[1] != b"generic") == repaired


@pytest.mark.parametrize(
    "texts",
    [
        (),
        (b"znver3",),
        (TRIPLE, b""),
        (TRIPLE, b"AMD EPYC"),
        (b"x86_64", b"znver3"),
        (TRIPLE, b"znver3", TRIPLE, b"znver3"),
        (TRIPLE, b"avx512", b"skylake-avx512"),  # Debian's PoCL 3.1, which needs no repair
    ],
)
def test_an_unclear_structure_is_not_touched(texts):
    device = FakeDevice(*texts)
    words = list(device.memory)
    assert repair_target(VERSION, device.pointer) is None
    assert list(device.memory) == words


@pytest.mark.parametrize("pointer", [0, 8, 1 << 46])
def test_an_unreadable_structure_is_no_crash(pointer):
    assert repair_target(VERSION, pointer) is None


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "x86_64"), ("Linux", "aarch64")])
def test_other_machines_are_not_touched(system, machine, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    device = FakeDevice(TRIPLE, b"generic")
    assert repair_target(VERSION, device.pointer) is None
    assert device.seen[1] == b"generic"


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
    if repair_target(device.platform_version, device.handle.int_ptr) is None:
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
