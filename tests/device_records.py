"""Devices that are not there."""

from __future__ import annotations

from dataclasses import replace

from opencl_lab.core.device import Device

POCL = "Portable Computing Language"
NVIDIA = Device(
    "NVIDIA H200",
    "gpu",
    vendor="NVIDIA Corporation",
    platform="NVIDIA CUDA",
    platform_version="OpenCL 3.0 CUDA 12.8",
    driver="570.1",
    compute_units=132,
    clock=1980,
    compute_capability=(9, 0),
    platform_index=2,
)
SMALL_GPU = Device(
    "Intel UHD", "gpu", vendor="Intel", platform="Intel OpenCL", compute_units=24, clock=1200
)
FPGA = Device("FPGA card", "accelerator", platform="Vendor X", compute_units=1, platform_index=3)
CPU = Device(
    "cpu-haswell EPYC",
    "cpu",
    vendor="AuthenticAMD",
    platform=POCL,
    platform_version="OpenCL 3.0 PoCL 3.0-rc2",
    driver="3.0-rc2",
    compute_units=2,
    clock=2600,
    platform_index=1,
)
NEW_CPU = replace(
    CPU, platform_version="OpenCL 3.0 PoCL 6.0", driver="6.0", compute_units=4, platform_index=4
)
SIMULATOR = Device(
    "Oclgrind Simulator",
    "cpu",
    platform="Oclgrind",
    compute_units=1000,
    clock=1000,
    simulated=True,
    platform_index=5,
)
EVERYTHING = (SIMULATOR, CPU, FPGA, SMALL_GPU, NEW_CPU, NVIDIA)
