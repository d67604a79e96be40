"""The matrix product by matrix units, which multiply small matrices in one instruction."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidConfig
from opencl_lab.operations.gemm import launches
from opencl_lab.operations.gemm.problem import FLOAT32, GemmProblem
from opencl_lab.operations.gemm.tensor.space import (
    SPACE,
    STAGE_BARRIERS,
    built_in,
    items,
    problem_space,
    stage_bytes,
    step_length,
    tile,
)
from opencl_lab.plan import CUDA_GROUPS, Buffer, Launch, Plan, Work, ceil_divide, round_up
from opencl_lab.space import Config, SearchSpace

__all__ = ["Tensor"]

PACKED_ROWS = 64
"""Rows that a group of the packing kernel packs."""


class Tensor(launches.Product):
    """Matrix units, from matrices that are packed step by step in the order these units read."""

    name = "tensor"
    templates = (
        "gemm/tensor_pack.cl.mako",
        "gemm/tensor_warpgroup.cl.mako",
        "gemm/tensor_warp.cl.mako",
    )
    space = SPACE

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need matrix units, and a type and precision that they have."""
        if not device.capabilities.matrix_units:
            return "the device has no matrix units that OpenCL reaches"
        if problem.is_complex:
            return f"matrix units multiply no matrices of {problem.dtype}"
        if problem.dtype == FLOAT32 and problem.precision == "native":
            return "matrix units have no float32; precision 3xtf32 comes as near"
        if problem.batch > CUDA_GROUPS:
            return f"it multiplies at most {CUDA_GROUPS} pairs of matrices at once"
        reason = super().supports(problem, device)
        if reason is None and built_in(problem, device) is None:
            return "the device has no room for the smallest tiles"
        return reason

    def work(self, problem: GemmProblem) -> Work:
        """Return the work of the problem, done by matrix units, whose peaks are others."""
        return replace(problem.work, matrix_units=True)

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the tiles that a model of waves finds fastest, of a few that fit the device."""
        config = built_in(problem, device)
        assert config is not None, "supports() has refused"
        return config

    def search_space(self, problem: GemmProblem, device: Device) -> SearchSpace:
        """Return what differs for this type and precision, on these units."""
        return problem_space(problem, device)

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan two launches: pack both matrices, then multiply, a group a tile."""
        units = device.capabilities.warpgroup_matrix_units and problem.dtype.itemsize < 8
        if config["UNITS"] == "warpgroup" and not units:
            raise InvalidConfig(
                f"warpgroups multiply no matrices of {problem.dtype} on this device; "
                "UNITS=warp does"
            )
        if problem.dtype.itemsize == 8 and config["SUM_STEPS"]:
            raise InvalidConfig("sums of float64 are exact where they are; SUM_STEPS must be 0")
        buffers = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(buffers, ())
        packed = tuple(_packed(name, problem, config) for name in ("a", "b"))
        pack = [_pack(problem, config)] if problem.depth else []
        return Plan(buffers + packed, (*pack, _multiply(problem, config, device)))


def _parts(problem: GemmProblem) -> int:
    return 2 if problem.precision == "3xtf32" else 1


def _stored(problem: GemmProblem) -> tuple[int, int]:
    """Return how many matrices the arrays a and b hold."""
    return math.prod(problem.shape_a[:-2]), math.prod(problem.shape_b[:-2])


def _steps(problem: GemmProblem, config: Config) -> int:
    return ceil_divide(problem.depth, step_length(config, problem.dtype))


def _packed(name: str, problem: GemmProblem, config: Config) -> Buffer:
    side = "ab".index(name)
    rows = round_up((problem.m, problem.n)[side], tile(config)[side])
    length = _steps(problem, config) * step_length(config, problem.dtype)
    nbytes = rows * length * problem.dtype.itemsize * _parts(problem) * _stored(problem)[side]
    return Buffer(f"packed_{name}", "scratch", (max(nbytes, 16),), np.dtype("uint8"))


def _pack(problem: GemmProblem, config: Config) -> Launch:
    tile_m, tile_n = tile(config)
    blocks = (round_up(problem.m, tile_m) + round_up(problem.n, tile_n)) // PACKED_ROWS
    shared = launches.params(problem)
    return Launch(
        template="gemm/tensor_pack.cl.mako",
        kernel="gemm_tensor_pack",
        params={
            **{name: shared[name] for name in ("TYPE", "TRANS_A", "TRANS_B")},
            "PARTS": _parts(problem),
            "LAYOUT": "rows" if config["UNITS"] == "warpgroup" else "fragments",
            "TILE_M": tile_m,
            "TILE_N": tile_n,
            "STEP": step_length(config, problem.dtype),
        },
        global_size=(256 * blocks * _steps(problem, config), max(_stored(problem))),
        local_size=(256, 1),
        arguments={
            **{name: name for name in ("a", "b", "packed_a", "packed_b")},
            **{name: np.uint64(getattr(problem, name)) for name in ("m", "n", "k")},
            "count_a": np.uint32(_stored(problem)[0]),
            "count_b": np.uint32(_stored(problem)[1]),
        },
        local_bytes=step_length(config, problem.dtype)
        * (PACKED_ROWS + 1)
        * problem.sum_type.itemsize,
    )


def _multiply(problem: GemmProblem, config: Config, device: Device) -> Launch:
    tile_m, tile_n = tile(config)
    groups = round_up(problem.m, tile_m) // tile_m * (round_up(problem.n, tile_n) // tile_n)
    return Launch(
        template=f"gemm/tensor_{config['UNITS']}.cl.mako",
        kernel="gemm_tensor",
        params=_params(problem, config, device),
        global_size=(groups * items(config), problem.batch),
        local_size=(items(config), 1),
        arguments={
            **launches.arguments(problem),
            "packed_a": "packed_a",
            "packed_b": "packed_b",
        },
        local_bytes=config.integer("STAGES")
        * (stage_bytes(config, problem.dtype, _parts(problem)) + STAGE_BARRIERS),
    )


def _params(problem: GemmProblem, config: Config, device: Device) -> dict[str, Any]:
    """Return the parameters of the template that multiplies."""
    names = ("TRANS_A", "TRANS_B", "TYPE", "INDEX_T", "HAS_C", "BIAS", "ACTIVATION", "STACKS")
    shared = launches.params(problem)
    params = {name: shared[name] for name in names}
    params |= {name: config[name] for name in ("BLOCK_M", "BLOCK_N", "STAGES", "SUM_STEPS", "BAND")}
    params["PARTS"] = _parts(problem)
    if config["UNITS"] == "warpgroup":
        return {**params, "GROUPS": config["GROUPS_M"]}
    params |= {name: config[name] for name in ("GROUPS_M", "GROUPS_N")}
    bulk = device.capabilities.warpgroup_matrix_units  # of the same devices
    return {**params, "FRAGMENTS": config["INSTRUCTIONS"], "BULK": bulk}
