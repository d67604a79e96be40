"""Binaries as the compilers of AMD and Intel make them, without code; and who makes them."""

import struct

import msgspec

AMD_KERNEL = {
    ".args": [{".address_space": "global", ".name": "x", ".offset": 0, ".size": 8}],
    ".group_segment_fixed_size": 16896,
    ".kernarg_segment_size": 56,
    ".language": "OpenCL C",
    ".max_flat_workgroup_size": 128,
    ".name": "gemm_blocked",
    ".private_segment_fixed_size": 884,
    ".sgpr_count": 30,
    ".sgpr_spill_count": 0,
    ".symbol": "gemm_blocked.kd",
    ".vgpr_count": 256,
    ".vgpr_spill_count": 224,
    ".wavefront_size": 64,
}
ZE_INFO = """---
version:         '1.20'
kernels:
  - name:            f
    execution_env:
      barrier_count:   1
      grf_count:       128
      has_no_stateless_write: true
      simd_size:       SIMD
      slm_size:        256
    payload_arguments:
      - arg_type:        global_id_offset
        offset:          0
        size:            12
    per_thread_payload_arguments:
      - arg_type:        local_id
        offset:          0
        size:            192
  - name:            g
    user_attributes:
      intel_reqd_sub_group_size: 32
    execution_env:
      grf_count:       256
      simd_size:       32
    payload_arguments:
      - arg_type:        private_base_stateless
        offset:          48
        size:            8
    per_thread_memory_buffers:
      - type:            scratch
        usage:           single_space
        size:            32768
kernels_misc_info:
  - name:            f
    args_info:
      - index:           0
        name:            x
...
"""
WARNING = """
warning: kernel f  compiled SIMD32 allocated 128 regs and spilled around 178

Build succeeded.
"""
FAKE = """#!/bin/sh
if grep -q wrong kernel.cl; then
    echo "1:1:45: error: use of undeclared identifier 'wrong'"
    exit 245
fi
cp "$(dirname "$0")/made" kernel_Gen9core.bin
if grep -q "reqd_work_group_size(16, 16" kernel.cl; then cat "$(dirname "$0")/warning"; fi
"""
"""Kernels of 16 x 16 items spill."""


def elf(**sections):
    """Return a 64-bit ELF file with these sections."""
    names = "\0".join(["", *sections, ".shstrtab", ""]).encode()
    contents = {"": b"", **sections, ".shstrtab": names}
    body, headers = b"", b""
    for name, value in contents.items():
        place = names.index(f"\0{name}\0".encode()) + 1 if name else 0
        where = 64 + len(body), len(value)
        headers += struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, *where, 0, 0, 1, 0)
        body += value
    head = b"\x7fELF\2\1\1" + bytes(33) + struct.pack("<Q", 64 + len(body)) + bytes(10)
    return head + struct.pack("<3H", 64, len(contents), len(contents) - 1) + body + headers


def amd_binary(**changes):
    """Return what Clang makes, with changed values of its one kernel."""
    kernel = {**AMD_KERNEL, **{f".{name}": value for name, value in changes.items()}}
    said = msgspec.msgpack.encode({"amdhsa.kernels": [kernel], "amdhsa.version": [1, 2]})
    note = struct.pack("<3I", 7, len(said), 32) + b"AMDGPU\0\0" + said
    return elf(**{".text": b"code", ".note": note})


def intel_binary(width=16):
    """Return what `ocloc` makes."""
    return elf(**{".text.f": b"code", ".ze_info": ZE_INFO.replace("SIMD", str(width)).encode()})


def fake_ocloc(folder):
    """Put a compiler into a folder, for OCLAB_OFFLINE, and return the folder."""
    programs = folder / "usr/bin"
    programs.mkdir(parents=True)
    (programs / "made").write_bytes(intel_binary())
    (programs / "warning").write_text(WARNING)
    (programs / "ocloc").write_text(FAKE)
    (programs / "ocloc").chmod(0o755)
    return str(folder)
