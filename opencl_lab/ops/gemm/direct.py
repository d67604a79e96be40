"""The product of small matrices, read in place, with all sums in registers: for CPUs."""

from __future__ import annotations

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import Element, largest_power, positive, vector_width
from opencl_lab.core.plan import (
    Argument,
    Launch,
    LocalMemory,
    Plan,
    ceil_divide,
    passed_room,
    round_up,
)
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.gemm import launches
from opencl_lab.ops.gemm.packed.tiles import LINE_BYTES, Blocking
from opencl_lab.ops.gemm.problem import GemmProblem

MANY_REGISTERS, FEW_REGISTERS = (8, 3), (4, 3)
"""Rows and vectors of sums for 32 and for 16 vector registers. Shapes that suit a product better
take 0.9 to 1 of the time, and a program each, which takes 0.1 s or more to build."""
FEW_BLOCKS = 3
"""Blocks from which on these rows are always taken; of fewer, half as many may fit better."""
MOST_PANEL = 1 << 18
"""Bytes of a copied panel, which should stay in the L2 cache."""
ITEMS = 4
"""Items per thread, where there are several."""


class Direct(launches.Product):
    """A panel of columns per item: no k tiles, nothing packed that can be read in place."""

    name = "direct"
    templates = ("gemm/direct.cl.mako",)
    synchronises = False
    takes_integers = True
    space = SearchSpace(
        (
            Parameter("ROWS", (1, 2, 4, 5, 6, 8, 10, 12, 14), "rows of sums in registers"),
            Parameter("VECTORS", (1, 2, 3, 4), "vectors of sums side by side"),
            Parameter("VECTOR_WIDTH", (1, 2, 4, 8, 16), "real numbers in a vector"),
        ),
        (
            positive("ROWS"),
            positive("VECTORS"),
            vector_width("VECTOR_WIDTH"),
            Constraint(
                lambda c: c.integer("ROWS") * c.integer("VECTORS") <= 32,
                "more than 32 vectors of sums do not stay in registers",
            ),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need a CPU, and room for a copied panel of one vector."""
        reason = super().supports(problem, device)
        if reason is None and device.kind != "cpu":
            return "it is for CPUs, whose items have many registers"
        if reason is None and problem.dtype == np.float16:
            return "it does not convert half precision"
        if reason is None and _panel_bytes(problem, 1, _width(problem, device)) > _room(device):
            return "the device has no room for copied columns in local memory"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the block of sums that most products share, as far as they fill it."""
        width = _width(problem, device)
        many = device.native_vector_bytes >= 64
        rows, vectors = MANY_REGISTERS if many else FEW_REGISTERS
        narrow = width < device.native_vector_bytes // problem.number_bytes
        if narrow or _panel_bytes(problem, vectors, width) > _room(device):
            vectors = 1
        if problem.m < FEW_BLOCKS * rows and 0 < problem.m % rows <= rows // 2:
            rows //= 2
        rows = largest_power(rows, max(1, problem.m))
        return Config(ROWS=rows, VECTORS=vectors, VECTOR_WIDTH=width)

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch with an item for each panel, and for some rows if there are threads."""
        buffers = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(buffers, ())
        width = min(config.integer("VECTOR_WIDTH"), _width(problem, device))
        width = max(width, problem.components)
        rows = min(config.integer("ROWS"), problem.m)
        vectors = config.integer("VECTORS")
        panels = ceil_divide(problem.n * problem.components, vectors * width)
        index, shared = launches.index_of(problem), launches.params(problem)
        if problem.is_integer and width > 1:
            # Vectors of int16 are not promoted to int, so that overflows would be undefined.
            shared["ELEMENT"] = Element.of(f"u{problem.dtype.itemsize}")
        packs = _packs(problem)
        panel: dict[str, Argument] = {
            "b_panel": LocalMemory(max(1, _panel_bytes(problem, vectors, width)))
        }
        tile_m = _tile_m(problem, rows, panels, device)
        launch = Launch(
            template=self.templates[0],
            kernel="gemm_direct",
            params={
                **shared,
                "BLOCKING": _blocking(problem, rows, width, device),
                "VECTORS": vectors,
                "PACK_B": packs,
            },
            global_size=(panels, ceil_divide(problem.m, tile_m), problem.batch),
            local_size=(1, 1, 1),
            arguments={
                **launches.arguments(problem),
                **(panel if packs else {}),
                "tile_m": index(tile_m),
            },
        )
        return Plan(buffers, (launch,))


def _packs(problem: GemmProblem) -> bool:
    return problem.trans_b or problem.is_complex


def _width(problem: GemmProblem, device: Device) -> int:
    """Return the real numbers of a vector: as many as the device's have, but at most a row."""
    line = max(1, problem.n) * problem.components
    return largest_power(16, device.native_vector_bytes // problem.number_bytes, line)


def _room(device: Device) -> int:
    return min(MOST_PANEL, passed_room(device))


def _panel_bytes(problem: GemmProblem, vectors: int, width: int) -> int:
    """Return the bytes of a copied panel; 0 if B is read in place."""
    numbers = problem.depth * problem.components * vectors * width
    return numbers * problem.number_bytes * _packs(problem)


def _tile_m(problem: GemmProblem, rows: int, panels: int, device: Device) -> int:
    """Return the rows of an item: all of them for one thread, else enough items for all."""
    if device.compute_units == 1:
        return problem.m
    tiles = ceil_divide(ITEMS * device.compute_units, panels * problem.batch)
    return round_up(ceil_divide(problem.m, tiles), rows)


def _blocking(problem: GemmProblem, rows: int, width: int, device: Device) -> Blocking:
    """Return what templates know of blocks; a vector of columns is copied by itself."""
    return Blocking(
        rows=rows,
        vectors=1,
        width=width,
        components=problem.components,
        tile_k=0,
        unroll=1,
        cache_line=LINE_BYTES // problem.number_bytes,
        pack_a=False,
        pack_b="panel" if _packs(problem) else "none",
        sums="result",
        load_width=largest_power(device.capabilities.vector_bytes // problem.number_bytes),
    )
