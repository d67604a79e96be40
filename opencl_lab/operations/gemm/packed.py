"""The matrix product by packed panels, for CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.kernels import c_type, divides, one_of, positive, vector_width
from opencl_lab.operations.gemm import launches
from opencl_lab.operations.gemm.packed_default import built_in, smallest
from opencl_lab.operations.gemm.packed_tiles import Form
from opencl_lab.operations.gemm.problem import GemmProblem
from opencl_lab.plan import Buffer, Launch, LocalMemory, Plan
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["Packed"]

SUM_SPAN = 256
"""Elements of the result that an item of the kernel that adds up parts does."""


def _sums(config: Config) -> int:
    return config.integer("ROWS") * config.integer("VECTORS")


class Packed(launches.Product):
    """Panels of both matrices packed by each thread, sums in its vector registers."""

    name = "packed"
    templates = (
        "gemm/packed.cl.mako",
        "gemm/packed_ahead.cl.mako",
        "gemm/packed_sum.cl.mako",
    )
    synchronises = False
    space = SearchSpace(
        (
            Parameter("ROWS", (2, 4, 6, 8, 10, 12, 14), "rows of sums in registers"),
            Parameter("VECTORS", (1, 2, 3, 4), "vectors of sums beside each other"),
            Parameter("VECTOR_WIDTH", (2, 4, 8, 16), "real numbers in a vector"),
            Parameter("PANELS_M", (1, 2, 4, 8, 12, 16), "times ROWS: rows of an item"),
            Parameter("PANELS_N", (1, 2, 4, 8, 16, 32, 64), "times the vectors: columns of one"),
            Parameter("TILE_K", (128, 192, 256, 384, 512), "length of a step along k"),
            Parameter("UNROLL", (2, 4, 8), "values of k a trip of the inner loop"),
            Parameter("PACK_A", (False, True), "A is copied to local memory"),
            Parameter("PACK_B", ("none", "panel", "ahead"), "where B is packed"),
            Parameter("PRODUCTS", (1, 4, 16, 64, 256), "products of a stack an item"),
            Parameter("SPLITS", (1, 2, 4, 8, 16, 32), "parts of k that are added up apart"),
        ),
        (
            *map(positive, ("ROWS", "VECTORS", "PANELS_M", "PANELS_N", "TILE_K")),
            *map(positive, ("UNROLL", "PRODUCTS", "SPLITS")),
            vector_width("VECTOR_WIDTH"),
            divides("UNROLL", "TILE_K", "the inner loop makes whole trips"),
            one_of("PACK_B", ("none", "panel", "ahead")),
            Constraint(
                lambda c: _sums(c) <= 32, "more than 32 vectors of sums do not stay in registers"
            ),
            Constraint(
                lambda c: _sums(c) * c.integer("UNROLL") <= 512,
                "more than 512 statements a trip take too long to compile",
            ),
            Constraint(
                lambda c: c["SPLITS"] == 1 or c["PRODUCTS"] == 1,
                "an item does one part of k or several products, not both",
            ),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need a CPU: its threads have caches of their own and vectors that broadcast."""
        reason = super().supports(problem, device)
        if reason is None and device.kind != "cpu":
            return "it is for CPUs, whose threads have caches of their own"
        if reason is None and not smallest(problem, device).fits(device):
            return "the device has no room for the smallest panels in local memory"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return panels that fill the vector registers, and tiles that keep all units busy."""
        return built_in(problem, device).config()

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan the packing of B where it is done ahead, the product, and the sum of its parts."""
        found = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(found, ())
        return _Planned(problem, Form.of(problem, config), device).plan(found)


@dataclass(frozen=True)
class _Planned:
    """The launches of one problem."""

    problem: GemmProblem
    form: Form
    device: Device

    def plan(self, found: tuple[Buffer, ...]) -> Plan:
        ahead, parted = self.form.pack_b == "ahead", self.form.splits > 1
        return Plan(
            (*found, *self._scratch()),
            (*[self._pack()] * ahead, self._product(), *[self._sum()] * parted),
        )

    def _scratch(self) -> list[Buffer]:
        problem, form = self.problem, self.form
        found = []
        if form.pack_b == "ahead":
            shape = (form.panels_n, problem.depth * form.parts, form.panel)
            found.append(Buffer("packed_b", "scratch", shape, form.real_type))
        if form.sums != "result":
            shape = (form.splits, problem.m, problem.n)
            if form.sums == "scratch":
                shape = problem.shape
            found.append(Buffer("sums", "scratch", shape, problem.sum_type))
        return found

    def _params(self, names: tuple[str, ...]) -> dict[str, Any]:
        values = {**launches.params(self.problem), **self.form.params()}
        return {name: values[name] for name in names}

    def _launch(
        self, kernel: str, template: str, grid: tuple[int, ...], params: Any, arguments: Any
    ) -> Launch:
        return Launch(template, kernel, params, grid, (1,) * len(grid), arguments)

    def _pack(self) -> Launch:
        problem, form = self.problem, self.form
        index = launches.index_of(problem)
        names = ("TYPE", "INDEX_T", "TRANS_B", "CONJ_A", "CONJ_B", "VECTORS", "VECTOR_WIDTH")
        step_n, step_k = form.pack_steps()
        return self._launch(
            "gemm_pack",
            "gemm/packed_ahead.cl.mako",
            (-(-form.panels_n // step_n), -(-problem.depth // step_k)),
            {**self._params(names), "ACTIVATION": "", "STEP_N": step_n, "STEP_K": step_k},
            {
                "b": "b",
                "packed": "packed_b",
                "n": index(problem.n),
                "k": index(problem.depth),
            },
        )

    def _product(self) -> Launch:
        problem, form = self.problem, self.form
        index = launches.index_of(problem)
        most = max(1, self.device.capabilities.vector_bytes // problem.sum_type.itemsize)
        steps = form.splits if form.splits > 1 else -(-problem.batch // form.products)
        return self._launch(
            "gemm_packed",
            "gemm/packed.cl.mako",
            (form.tiles_n, form.tiles_m, steps),
            {**launches.params(problem), **form.params(), "LOAD_WIDTH": most},
            {
                **launches.arguments(problem),
                "products": index(problem.batch),
                "share": index(form.share),
                "tile_m": index(form.tile_m),
                **({"packed_b": "packed_b"} if form.pack_b == "ahead" else {}),
                **({"sums": "sums"} if form.sums != "result" else {}),
                **({"a_block": LocalMemory(form.block_bytes)} if form.pack_a else {}),
                "tile_n": index(form.tile_n),
            },
        )

    def _sum(self) -> Launch:
        problem = self.problem
        names = ("TYPE", "INDEX_T", "HAS_C", "BIAS", "ACTIVATION", "STACKS")
        values = launches.params(problem)
        return self._launch(
            "gemm_sum_parts",
            "gemm/packed_sum.cl.mako",
            (-(-problem.n // SUM_SPAN), problem.m),
            {**{name: values[name] for name in names}, "SPAN": SUM_SPAN},
            {
                **launches.arguments(problem),
                "number": np.uint32(self.form.splits),
                "sums": "sums",
            },
        )
