"""What the compilers of AMD's and Intel's GPUs make of a kernel, where there is no such GPU.

The compilers lie in a folder that ``OCLAB_OFFLINE`` names, as `tools/offline_compilers.sh` unpacks
them from Debian's packages: Clang with AMD's device libraries, and Intel's `ocloc`.

What they say of a kernel stands in the binary: for AMD as a MessagePack note ("User Guide for AMDGPU
Backend", LLVM project, section "Code Object V3 Metadata"), for Intel as YAML in the section
``.ze_info`` ("ZE binary info", in the documentation of the Intel Graphics Compiler).
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from opencl_lab.core.errors import BuildError, ReferenceUnavailable
from opencl_lab.core.interrupt import scratch_folder

VARIABLE = "OCLAB_OFFLINE"
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
HOW_TO_INSTALL = (
    f"unpack them with tools/offline_compilers.sh, and set {VARIABLE} to the folder that it filled"
)
LANGUAGE = "-cl-std=CL1.2"
TIME_LIMIT = 300.0
NOTE_TYPE = 32  # of AMD's metadata


@dataclass(frozen=True)
class Target:
    """A GPU to compile for.

    Attributes
    ----------
    name : str
        As its compiler calls it.
    maker : str
        ``"AMD"`` or ``"Intel"``.
    title : str
        A device that has it.
    registers : int
        Of AMD: those of 4 bytes for each item that the waves of a SIMD unit share. Of Intel: those
        of 32 bytes (of Ponte Vecchio: 64) that the threads of an execution unit share.
    granule : int
        A wave or a thread gets a multiple of so many registers.
    waves : int
        The most waves of a SIMD unit, or threads of an execution unit.
    """

    name: str
    maker: str
    title: str
    registers: int
    granule: int
    waves: int


TARGETS = {
    target.name: target
    for target in (
        Target("gfx900", "AMD", "Radeon RX Vega", 256, 4, 10),
        Target("gfx90a", "AMD", "Instinct MI200", 512, 8, 8),
        Target("gfx1030", "AMD", "Radeon RX 6800", 1024, 16, 16),
        Target("skl", "Intel", "HD Graphics 530", 896, 128, 7),
        Target("tgllp", "Intel", "Iris Xe", 896, 128, 7),
        Target("dg2-g10", "Intel", "Arc A770", 1024, 128, 8),
        Target("pvc", "Intel", "Data Center GPU Max", 1024, 128, 8),
    )
}
"""Registers and waves as LLVM's backend for AMD (`AMDGPUBaseInfo.cpp`) and Intel's oneAPI GPU
Optimization Guide have them."""


@dataclass(frozen=True)
class Compiled:
    """What a compiler says of a kernel.

    Attributes
    ----------
    kernel : str
    target : Target
    width : int
        Items that run together: of a wave, or of a thread.
    registers : int
        Registers of each item (AMD), or of each thread (Intel).
    spilled : int
        Registers, as each compiler counts them, that had to be kept in memory.
    local_bytes : int
        Local memory that the kernel declares.
    """

    kernel: str
    target: Target
    width: int
    registers: int
    spilled: int
    local_bytes: int

    @property
    def waves(self) -> int:
        """Waves of a SIMD unit, or threads of an execution unit, as far as registers allow."""
        taken = -(-max(1, self.registers) // self.target.granule) * self.target.granule
        return min(self.target.waves, max(1, self.target.registers // taken))

    def __str__(self) -> str:
        unit, whose = ("wave", "item") if self.target.maker == "AMD" else ("thread", "thread")
        spilled = f"{self.spilled:,} spilled" if self.spilled else "nothing spilled"
        return (
            f"{self.registers} registers of a{'n' * (whose == 'item')} {whose}, {spilled}, "
            f"{self.local_bytes:,} bytes of local memory; {self.width} items a {unit}, "
            f"{self.waves} of {self.target.waves} {unit}s"
        )


def missing() -> str | None:
    """Return what is missing and what to do, or None if the compilers are there."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        return f"the offline compilers are not known: {HOW_TO_INSTALL}"
    for name in ("clang-15", "ocloc"):
        if not Path(folder, "usr/bin", name).is_file():
            return f"{VARIABLE}={folder} has no usr/bin/{name}: {HOW_TO_INSTALL}"
    return None


def compile_for(target: Target, source: str, options: Sequence[str] = ()) -> list[Compiled]:
    """Compile OpenCL C for a GPU, and return what its compiler says of each kernel.

    Parameters
    ----------
    target : Target
    source : str
    options : sequence of str
        Build options, as `clBuildProgram` takes them.

    Raises
    ------
    ReferenceUnavailable
        If the compilers are not there.
    BuildError
        If the program does not compile; with what the compiler said.
    """
    reason = missing()
    if reason is not None:
        raise ReferenceUnavailable(reason)
    root = Path(os.environ[VARIABLE]).absolute()
    with scratch_folder("offline") as folder:
        Path(folder, "kernel.cl").write_text(source, encoding="utf-8")
        made = "kernel.o" if target.maker == "AMD" else "kernel.bin"
        command = (_clang if target.maker == "AMD" else _ocloc)(root, target, options)
        paths = (root / LIBRARIES, root / LIBRARIES / "intel-opencl")
        environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, paths))}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True,
            errors="replace", timeout=TIME_LIMIT, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        binaries = sorted(Path(folder).glob("*.bin")) or sorted(Path(folder).glob(made))
        if done.returncode or not binaries:
            said = (done.stdout + done.stderr).strip()
            raise BuildError(f"{target.name}: the program does not compile", log=said)
        binary = binaries[0].read_bytes()
    found = _of_amd(binary) if target.maker == "AMD" else _of_intel(binary, done.stdout)
    return [Compiled(target=target, **item) for item in found]


def _clang(root: Path, target: Target, options: Sequence[str]) -> list[str]:
    return [
        str(root / "usr/bin/clang-15"), "-c", "kernel.cl", "-o", "kernel.o", "-x", "cl", "-w", "-O3",
        "-target", "amdgcn-amd-amdhsa", f"-mcpu={target.name}", f"--rocm-path={root / LIBRARIES}",
        "-Xclang", "-finclude-default-header", LANGUAGE, *options,
    ]  # fmt: skip


def _ocloc(root: Path, target: Target, options: Sequence[str]) -> list[str]:
    return [
        str(root / "usr/bin/ocloc"), "compile", "-file", "kernel.cl", "-device", target.name,
        "-output", "kernel", "-options", " ".join((LANGUAGE, *options)),
        "-internal_options", "-ze-allow-zebin",
    ]  # fmt: skip


def _sections(binary: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the sections of a 64-bit ELF file."""
    (start,) = struct.unpack_from("<Q", binary, 40)
    size, count, names = struct.unpack_from("<3H", binary, 58)
    headers = [struct.unpack_from("<IIQQQQ", binary, start + size * n) for n in range(count)]
    table = headers[names][4]
    for name, _, _, _, offset, length in headers:
        end = binary.index(b"\0", table + name)
        yield binary[table + name : end].decode("ascii"), binary[offset : offset + length]


def _of_amd(binary: bytes) -> Iterator[Mapping[str, Any]]:
    note = dict(_sections(binary))[".note"]
    name_size, size, kind = struct.unpack_from("<3I", note)
    assert kind == NOTE_TYPE, kind
    start = 12 + -(-name_size // 4) * 4
    for kernel in msgspec.msgpack.decode(note[start : start + size])["amdhsa.kernels"]:
        yield {
            "kernel": kernel[".name"],
            "width": kernel[".wavefront_size"],
            "registers": kernel[".vgpr_count"] + kernel.get(".agpr_count", 0),
            "spilled": kernel[".vgpr_spill_count"],
            "local_bytes": kernel[".group_segment_fixed_size"],
        }


def _of_intel(binary: bytes, said: str) -> Iterator[Mapping[str, Any]]:
    """Yield what `.ze_info` says, by its YAML's names and whole numbers; spills are in a warning."""
    spilled = dict(re.findall(r"kernel (\w+) +compiled SIMD.* spilled around (\d+)", said))
    text = dict(_sections(binary))[".ze_info"].decode("utf-8")
    text = text.partition("\nkernels:")[2].partition("\nkernels_misc_info:")[0]
    for part in re.split(r"\n  - name: +", text)[1:]:
        name, _, rest = part.partition("\n")
        numbers = {key: int(n) for key, n in re.findall(r"(\w+): +(\d+)\s*(?=\n|$)", rest)}
        yield {
            "kernel": name.strip(),
            "width": numbers["simd_size"],
            "registers": numbers["grf_count"],
            "spilled": int(spilled.get(name.strip(), 0)),
            "local_bytes": numbers.get("slm_size", 0),
        }
