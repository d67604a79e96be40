"""The matrix product by matrix units, which multiply small matrices in one instruction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import (
    CUDA_GROUPS,
    Argument,
    Buffer,
    Launch,
    Plan,
    Work,
    ceil_divide,
    named,
    round_up,
)
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.gemm import launches, split_k
from opencl_lab.ops.gemm.problem import FLOAT32, GemmProblem
from opencl_lab.ops.gemm.tensor.space import (
    CHUNK,
    SPACE,
    built_in,
    is_packed,
    items,
    limbs_of,
    problem_space,
    reads_in_place,
    row_lengths,
    stages_bytes,
    step_length,
    steps_of,
    stored,
    tile,
    tiles_of,
)

TILE, HALF_TILE = 128, 64
"""Rows and columns that fill tiles of the matrix units, and those for float16."""
UNITS, UNITS_DOUBLE = 1 << 28, 200 << 20
"""Multiplications from which matrix units pay, as packing costs a launch, and those in float64."""
FEW_UNPACKED, FEW_OF_STACKS, LEAST_DEPTH, UNPACKED = 16, 32, 32, 1 << 25
"""Where nothing is packed: least rows and columns, those of stacks, least k, multiplications."""
RESULTS_DOUBLE = 1 << 18
"""Elements of all results that keep matrix units busy in float64 where k is not split."""
PACKED_ROWS = 64
"""Rows that a group of the packing kernel packs."""


class Tensor(launches.Product):
    """Products by matrix units, of packed matrices, or of half precision in place."""

    name = "tensor"
    templates = (
        "gemm/tensor_pack.cl.mako",
        "gemm/tensor_pack_halves.cl.mako",
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

    def pays(self, problem: GemmProblem, device: Device) -> bool:
        """Return whether there is enough work to fill the units, in whole tiles."""
        few, results = min(problem.m, problem.n), problem.m * problem.n * problem.batch
        work, size = results * problem.k, problem.dtype.itemsize
        if size == 8:
            enough = work >= UNITS_DOUBLE and results >= RESULTS_DOUBLE
            return device.has_double_units and few >= TILE and enough
        least = FEW_UNPACKED if problem.batch == 1 else FEW_OF_STACKS
        in_place = few >= least and problem.k >= LEAST_DEPTH and work >= UNPACKED
        if in_place and reads_in_place(problem, device):
            return True
        return few >= (HALF_TILE if size == 2 else TILE) and work >= UNITS

    def work(self, problem: GemmProblem) -> Work:
        """Return the work of the problem, marked as that of matrix units, with their own peak."""
        return replace(problem.work, matrix_units=True)

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the fastest of a few tiles that fit the device, by a model of waves."""
        config = built_in(problem, device)
        assert config is not None, "supports() has refused"
        return config

    def search_space(self, problem: GemmProblem, device: Device) -> SearchSpace:
        """Return the parameters that matter for this type and precision, on these units."""
        return problem_space(problem, device)

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan a launch that multiplies, a group per tile; where needed, after one that packs.

        Warpgroups read float16 in place, and warps float64, if rows are whole 16 bytes.
        """
        units = device.capabilities.warpgroup_matrix_units and problem.dtype.itemsize < 8
        if config["UNITS"] == "warpgroup" and not units:
            raise InvalidConfig(
                f"warpgroups multiply no matrices of {problem.dtype} on this device; "
                "UNITS=warp does"
            )
        if problem.dtype.itemsize == 8 and config["SUM_STEPS"]:
            raise InvalidConfig("sums of float64 are exact where they are; SUM_STEPS must be 0")
        readers = "warp" if problem.dtype.itemsize == 8 else "warpgroup"
        in_place = config["UNITS"] == readers and reads_in_place(problem, device)
        if not in_place:
            config = config.replace(PACK=1)
        if launches.is_empty(problem):
            return Plan(launches.buffers(problem), ())
        _, splits = _slices(problem, config)
        buffers = launches.buffers(problem)
        if splits > 1:
            if not device.capabilities.visible_writes:
                raise InvalidConfig("groups do not see what others have written; SPLITS must be 1")
            buffers += split_k.by_last_group(
                problem, tiles_of(config, problem), splits, *tile(config)
            )
        if not is_packed(config):
            return Plan(buffers, (_multiply(problem, config, device),))
        packed = tuple(_packed(name, problem, config) for name in ("a", "b"))
        pack = [_pack(problem, config, device)] if problem.depth else []
        return Plan(buffers + packed, (*pack, _multiply(problem, config, device)))


def _packed(name: str, problem: GemmProblem, config: Config) -> Buffer:
    side = "ab".index(name)
    rows = round_up((problem.m, problem.n)[side], tile(config)[side])
    length = steps_of(config, problem) * step_length(config, problem.dtype)
    nbytes = rows * length * problem.dtype.itemsize * limbs_of(problem) * stored(problem)[side]
    return Buffer(f"packed_{name}", "scratch", (max(nbytes, 16),), np.dtype("uint8"))


def _pack(problem: GemmProblem, config: Config, device: Device) -> Launch:
    tile_m, tile_n = tile(config)
    blocks = (round_up(problem.m, tile_m) + round_up(problem.n, tile_n)) // PACKED_ROWS
    halves = config["UNITS"] == "warpgroup" and problem.dtype.itemsize == 2
    items = 128 if halves else 256
    template, params, local_bytes = (_halves if halves else _transposed)(problem, config, device)
    return Launch(
        template=template,
        kernel="gemm_tensor_pack",
        params={**params, "TILE_M": tile_m, "TILE_N": tile_n},
        global_size=(items * blocks * steps_of(config, problem), max(stored(problem))),
        local_size=(items, 1),
        arguments={
            **named("a", "b", "packed_a", "packed_b"),
            **{name: np.uint64(getattr(problem, name)) for name in ("m", "n", "k")},
            "count_a": np.uint32(stored(problem)[0]),
            "count_b": np.uint32(stored(problem)[1]),
        },
        local_bytes=local_bytes,
    )


_Packing: TypeAlias = tuple[str, dict[str, Any], int]
"""A template that packs, its parameters, and its bytes of local memory."""


def _halves(problem: GemmProblem, config: Config, device: Device) -> _Packing:
    """Pack half precision, in the order of memory."""
    aligned = device.aligns_vectors
    params = {
        **{name: launches.params(problem)[name] for name in "AB"},
        **{
            f"ALIGNED_{name}": aligned and 2 * length % CHUNK == 0
            for name, length in zip("AB", row_lengths(problem), strict=True)
        },
    }
    return "gemm/tensor_pack_halves.cl.mako", params, 0


def _transposed(problem: GemmProblem, config: Config, device: Device) -> _Packing:
    """Pack numbers so that they lie along k, through local memory."""
    step = step_length(config, problem.dtype)
    params = {
        **{name: launches.params(problem)[name] for name in ("ELEMENT", "A", "B")},
        "LIMBS": limbs_of(problem),
        "LAYOUT": "rows" if config["UNITS"] == "warpgroup" else "fragments",
        "STEP": step,
    }
    local_bytes = step * (PACKED_ROWS + 1) * problem.sum_type.itemsize
    return "gemm/tensor_pack.cl.mako", params, local_bytes


def _slices(problem: GemmProblem, config: Config) -> tuple[int, int]:
    """Return the k tiles of a slice of k, and how many slices there are; warps have one."""
    steps = steps_of(config, problem)
    if config["UNITS"] == "warp" or not steps:
        return steps, 1
    slice_steps = ceil_divide(steps, config.integer("SPLITS"))
    return slice_steps, ceil_divide(steps, slice_steps)


def _multiply(problem: GemmProblem, config: Config, device: Device) -> Launch:
    slice_steps, splits = _slices(problem, config)
    tiles = tiles_of(config, problem) // problem.batch
    slices: dict[str, Argument] = {}
    if splits > 1:
        slices = {"partial": split_k.PARTIAL, "arrived": "arrived"}
        slices |= {"splits": np.uint32(splits), "slice_steps": np.uint32(slice_steps)}
    return Launch(
        template=f"gemm/tensor_{config['UNITS']}.cl.mako",
        kernel="gemm_tensor",
        params=_params(problem, config, device, splits),
        global_size=(tiles * items(config), problem.batch, splits),
        local_size=(items(config), 1, 1),
        arguments={
            **launches.arguments(problem),
            **(named("packed_a", "packed_b") if is_packed(config) else {}),
            **slices,
        },
        local_bytes=stages_bytes(config, problem) + 4 * (splits > 1),
    )


def _params(problem: GemmProblem, config: Config, device: Device, splits: int) -> dict[str, Any]:
    """Return the parameters of the template that multiplies."""
    params = launches.params(problem)
    params |= {name: config[name] for name in ("BLOCK_M", "BLOCK_N", "STAGES", "SUM_STEPS", "BAND")}
    params["LIMBS"] = limbs_of(problem)
    groups = config["UNITS"] == "warpgroup"
    params["PACKED"] = is_packed(config)
    params["STORE_WIDTH"] = _store_width(problem, device, 8 if groups else 2)
    if groups:
        way = split_k.way(splits, last_group=True)
        return {**params, "GROUPS": config["GROUPS_M"], "SPLIT_K": way}
    params |= {name: config[name] for name in ("GROUPS_M", "GROUPS_N")}
    bulk = device.capabilities.warpgroup_matrix_units  # of the same devices
    return {**params, "FRAGMENTS": config["INSTRUCTIONS"], "BULK": bulk}


def _store_width(problem: GemmProblem, device: Device, most: int) -> int:
    """Return how many elements of a row of the result are stored at once: 8 halves, 2, or 1."""
    if not device.aligns_vectors or problem.n % 2:
        return 1
    return most if problem.dtype.itemsize == 2 and problem.n % most == 0 else 2
