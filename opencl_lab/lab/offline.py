"""What the compilers of AMD's and Intel's GPUs make of a kernel, where there is no such GPU.

The compilers are Clang with AMD's device libraries, and Intel's `ocloc`: those in the folder that
``OCLAB_OFFLINE`` names, as `tools/offline_compilers.sh` unpacks them from Debian's packages, else
those that are installed.

What they say of a kernel stands in the binary: for AMD as a MessagePack note ("User Guide for
AMDGPU Backend", LLVM project, section "Code Object V3 Metadata"), for Intel as YAML in the section
``.ze_info`` ("ZE binary info", in the documentation of the Intel Graphics Compiler).
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from opencl_lab.core.errors import BuildError, InvalidProblem, ReferenceUnavailable
from opencl_lab.core.interrupt import scratch_folder
from opencl_lab.core.plan import Plan
from opencl_lab.core.template import render
from opencl_lab.runtime.programs import FLAGS

VARIABLE = "OCLAB_OFFLINE"
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
SYSTEM = Path("/", LIBRARIES)
COMPILERS = {
    "AMD": ("Clang", (*(f"clang-{number}" for number in range(22, 14, -1)), "clang")),
    "Intel": ("ocloc", ("ocloc",)),
}
"""What a maker's compiler is called, and its programs, the best first: AMD's libraries need a Clang
that is no older."""
PACKAGES = {"AMD": "clang-15 rocm-device-libs", "Intel": "intel-opencl-icd"}
SCRATCH = re.compile(r"type: +scratch\n +usage: +\w+\n +size: +(\d+)")
NO_LIBRARIES = "cannot find ROCm device library"
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
    pretended : str
        The pretended GPU within whose limits its programs are planned.
    """

    name: str
    maker: str
    title: str
    registers: int
    granule: int
    waves: int
    pretended: str


TARGETS = {
    target.name: target
    for target in (
        Target("gfx900", "AMD", "Radeon RX Vega", 256, 4, 10, "amd-gcn"),
        Target("gfx90a", "AMD", "Instinct MI200", 512, 8, 8, "amd-gcn"),
        Target("gfx1030", "AMD", "Radeon RX 6800", 1024, 16, 16, "amd-rdna"),
        Target("skl", "Intel", "HD Graphics 530", 896, 128, 7, "intel-xe"),
        Target("tgllp", "Intel", "Iris Xe", 896, 128, 7, "intel-xe"),
        Target("dg2-g10", "Intel", "Arc A770", 1024, 128, 8, "intel-xe"),
        Target("pvc", "Intel", "Data Center GPU Max", 1024, 128, 8, "intel-hpc"),
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
    private_bytes : int
        Memory of each item (AMD), or of each thread (Intel), for what is spilled, and for arrays
        that are not in registers, of which Intel's compiler does not warn.
    """

    kernel: str
    target: Target
    width: int
    registers: int
    spilled: int
    local_bytes: int
    private_bytes: int = 0

    @property
    def waves(self) -> int:
        """Waves of a SIMD unit, or threads of an execution unit, as far as registers allow."""
        taken = -(-max(1, self.registers) // self.target.granule) * self.target.granule
        return min(self.target.waves, max(1, self.target.registers // taken))

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {**asdict(self), "target": self.target.name, "waves": self.waves}

    def __str__(self) -> str:
        unit, whose = ("wave", "item") if self.target.maker == "AMD" else ("thread", "thread")
        spilled = f"{self.spilled:,} spilled" if self.spilled else "nothing spilled"
        if self.private_bytes:
            spilled += f", {self.private_bytes:,} bytes of private memory"
        return (
            f"{self.registers} registers of a{'n' * (whose == 'item')} {whose}, {spilled}, "
            f"{self.local_bytes:,} bytes of local memory; {self.width} items a {unit}, "
            f"{self.waves} of {self.target.waves} {unit}s"
        )


def checked_target(name: str) -> Target:
    """Return a target by its name.

    Raises
    ------
    InvalidProblem
        If there is no such target.
    ReferenceUnavailable
        If its compiler is not there.
    """
    if name not in TARGETS:
        raise InvalidProblem(f"no target is called {name!r}: {', '.join(TARGETS)}")
    reason = missing(TARGETS[name])
    if reason is not None:
        raise ReferenceUnavailable(reason)
    return TARGETS[name]


def missing(target: Target) -> str | None:
    """Return that the compiler of a target is missing and what to do, or None if it is there."""
    if _program(target.maker) is not None:
        return None
    return _missing(target, COMPILERS[target.maker][0])


def _missing(target: Target, what: str) -> str:
    folder = os.environ.get(VARIABLE, "")
    where = f" in {VARIABLE}={folder}" if folder else ""
    return (
        f"to compile for {target.name} needs {what}, which is not here{where}: install it "
        f"(Debian 12: apt install {PACKAGES[target.maker]}), or unpack it with "
        f"tools/offline_compilers.sh of opencl_lab's source and set {VARIABLE} to that folder"
    )


def _program(maker: str) -> str | None:
    """Return the path of a maker's compiler, or None."""
    folder = os.environ.get(VARIABLE, "")
    path = str(Path(folder, "usr/bin").absolute()) if folder else None
    return next(filter(None, (shutil.which(name, path=path) for name in COMPILERS[maker][1])), None)


def compile_for(
    target: Target, source: str, options: Sequence[str] = (), seconds: float = TIME_LIMIT
) -> list[Compiled]:
    """Compile OpenCL C for a GPU, and return what its compiler says of each kernel.

    Parameters
    ----------
    target : Target
    source : str
    options : sequence of str
        Build options, as `clBuildProgram` takes them.
    seconds : float
        The longest time that it may take.

    Raises
    ------
    ReferenceUnavailable
        If the compiler is not there.
    BuildError
        If the program does not compile; with what the compiler said.
    """
    program, folder = _program(target.maker), os.environ.get(VARIABLE, "")
    if program is None:
        raise ReferenceUnavailable(_missing(target, COMPILERS[target.maker][0]))
    environment = dict(os.environ)
    libraries = Path(folder).absolute() / LIBRARIES if folder else SYSTEM
    if folder:
        paths = (libraries, libraries / "intel-opencl")
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, paths))
    if target.maker == "AMD":
        command = _clang(target, libraries, options)
    else:
        command = _ocloc(target, options)
    with scratch_folder("offline") as work:
        Path(work, "kernel.cl").write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(
                [program, *command], cwd=work, env=environment, capture_output=True, text=True,
                errors="replace", timeout=min(seconds, TIME_LIMIT), stdin=subprocess.DEVNULL,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise BuildError(
                f"the program took more than {error.timeout:.3g} s to compile for {target.name}"
            ) from None
        said = (done.stdout + done.stderr).strip()
        if NO_LIBRARIES in said:
            raise ReferenceUnavailable(_missing(target, "AMD's device libraries"))
        binaries = [*Path(work).glob("*.o"), *Path(work).glob("*.bin")]
        if done.returncode or not binaries:  # `ocloc` may fail without a status
            why = f"the program does not compile for {target.name}"
            first = BuildError(why, log=said).first_error
            raise BuildError(why + first, log=said, source=source, options=tuple(options))
        binary = binaries[0].read_bytes()
    return reported(target, binary, said)


def reported(target: Target, binary: bytes, said: str) -> list[Compiled]:
    """Return what a compiler says of the kernels in a binary; `said` is what it has printed."""
    found = _of_amd(binary) if target.maker == "AMD" else _of_intel(binary, said)
    return [Compiled(target=target, **item) for item in found]


def programs_of(plan: Plan) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """Return the programs of a plan, each once: template, source, and build options."""
    return dict.fromkeys(
        (launch.template, render(launch.template, launch.params).text, launch.options)
        for launch in plan.launches
    )


def spilling(target: Target, plan: Plan, seconds: float = TIME_LIMIT) -> str | None:
    """Return which kernel of a plan spills registers on a GPU, or does not compile; or None.

    Raises
    ------
    ReferenceUnavailable
        If the compiler is not there.
    """
    for _, source, options in programs_of(plan):
        try:
            kernels = compile_for(target, source, (*options, *FLAGS), seconds)
        except BuildError as error:
            return error.sentence
        for kernel in kernels:
            if kernel.spilled:
                return f"{kernel.kernel} spills {kernel.spilled} registers on {target.name}"
    return None


def _clang(target: Target, libraries: Path, options: Sequence[str]) -> list[str]:
    """Return arguments of Clang, which finds libraries that are not where Debian has them."""
    where = [f"--rocm-path={libraries}"] if Path(libraries, "amdgcn").is_dir() else []
    return [
        "-c", "kernel.cl", "-o", "kernel.o", "-x", "cl", "-w", "-O3", "-target",
        "amdgcn-amd-amdhsa", f"-mcpu={target.name}", *where, "-Xclang",
        "-finclude-default-header", LANGUAGE, *options,
    ]  # fmt: skip


def _ocloc(target: Target, options: Sequence[str]) -> list[str]:
    return [
        "compile", "-file", "kernel.cl", "-device", target.name, "-output", "kernel", "-options",
        " ".join((LANGUAGE, *options)), "-internal_options", "-ze-allow-zebin",
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
            "registers": kernel[".vgpr_count"],  # with those of ``.agpr_count``
            "spilled": kernel[".vgpr_spill_count"],
            "local_bytes": kernel[".group_segment_fixed_size"],
            "private_bytes": kernel[".private_segment_fixed_size"],
        }


def _of_intel(binary: bytes, said: str) -> Iterator[Mapping[str, Any]]:
    """Yield what `.ze_info` says, by its names and whole numbers; spills are in a warning."""
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
            "private_bytes": sum(map(int, SCRATCH.findall(rest))),
        }
