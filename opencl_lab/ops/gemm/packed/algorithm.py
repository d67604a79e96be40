"""The matrix product by packed panels, for CPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.kernels import divides, one_of, positive, vector_width
from opencl_lab.core.plan import Argument, Buffer, Launch, LocalMemory, Plan
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace, Value
from opencl_lab.ops.gemm import launches, split_k
from opencl_lab.ops.gemm.packed.default import PAGE_BYTES, built_in, smallest
from opencl_lab.ops.gemm.packed.tiles import PIECE_ROWS, Form, Pieces, Tasks
from opencl_lab.ops.gemm.problem import GemmProblem

PHASES = 3
"""The phases: packing B, tiles, lower tiles."""
MOST_TASKS = 1 << 31
"""Tasks of a phase must be fewer, as items count them in 32 bits."""
PACKING_POLLS = 1 << 20
"""How often an item polls for the end of packing by others before it leaves the tiles to them."""


def _sums(config: Config) -> int:
    return config.integer("ROWS") * config.integer("VECTORS")


def _around(value: int) -> tuple[Value, ...]:
    """Return half a number, the number, and twice it."""
    return tuple(sorted({max(1, value // 2), value, 2 * value}))


def _places(form: Form) -> tuple[Value, ...]:
    """Return where B may be packed, where these differ."""
    lies_apart = form.panels_n > 2 and form.problem.n * form.real_type.itemsize >= PAGE_BYTES
    places = ("panel", "ahead") if lies_apart else ("none", "panel", "ahead")
    return tuple(place for place in places if replace(form, pack_b=place).fitted().pack_b == place)


class Packed(launches.Product):
    """Tiles of single threads: B packed in panels, A mostly in place, sums in vector registers.

    A configuration becomes a `tiles.Form` of the problem, `tiles.Tasks` and `tiles.Pieces` hand out
    its work, and ``gemm/packed.cl.mako`` says what a thread does with it.
    """

    name = "packed"
    templates = ("gemm/packed.cl.mako", split_k.REDUCTION)
    synchronises = False
    space = SearchSpace(
        (
            Parameter("ROWS", (2, 4, 5, 6, 8, 10, 12, 14), "rows of sums in registers"),
            Parameter("VECTORS", (1, 2, 3, 4, 5), "vectors of sums side by side"),
            Parameter("VECTOR_WIDTH", (2, 4, 8, 16), "real numbers in a vector"),
            Parameter("PANELS_M", (1, 2, 4, 8, 12, 16), "times ROWS: rows of a tile"),
            Parameter("PANELS_N", (1, 2, 4, 8, 16, 32, 64), "times the vectors: columns of a tile"),
            Parameter("TILE_K", (128, 192, 256, 384, 512), "values of k in a k tile"),
            Parameter("UNROLL", (2, 4, 8), "values of k per iteration of the inner loop"),
            Parameter("PACK_A", (False, True), "A is copied to local memory"),
            Parameter("PACK_B", ("none", "panel", "ahead"), "where B is packed"),
            Parameter("PRODUCTS", (1, 4, 16, 64, 256), "products of a stack per task"),
            Parameter("SPLITS", (1, 2, 4, 8, 16, 32), "slices of k, summed at the end"),
        ),
        (
            *map(positive, ("ROWS", "VECTORS", "PANELS_M", "PANELS_N", "TILE_K")),
            *map(positive, ("UNROLL", "PRODUCTS", "SPLITS")),
            vector_width("VECTOR_WIDTH"),
            divides("UNROLL", "TILE_K", "the inner loop makes whole iterations"),
            one_of("PACK_B", ("none", "panel", "ahead")),
            Constraint(
                lambda c: _sums(c) <= 32, "more than 32 vectors of sums do not stay in registers"
            ),
            Constraint(
                lambda c: _sums(c) * c.integer("UNROLL") <= 512,
                "more than 512 statements per iteration take too long to compile",
            ),
            Constraint(
                lambda c: c["SPLITS"] == 1 or c["PRODUCTS"] == 1,
                "a task is one slice of k or several products, not both",
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

    def search_space(self, problem: GemmProblem, device: Device) -> SearchSpace:
        """Return blocks that fill the registers, and tiles around those of the built-in form.

        Its tiles already share out evenly among the units, as only few sizes do.
        """
        form = built_in(problem, device)
        registers = 32 if device.native_vector_bytes >= 64 else 16
        chosen: dict[str, tuple[Value, ...]] = {
            "ROWS": tuple(sorted({4, 6, 8, 12, 14, form.rows})) if problem.m >= 8 else (form.rows,),
            "VECTORS": tuple(sorted({1, 2, 3, 4, form.vectors}))
            if form.panels_n > 1
            else (form.vectors,),
            "VECTOR_WIDTH": (form.width,),
            "PANELS_M": _around(form.panels_tile_m),
            "PANELS_N": _around(form.panels_tile_n),
            "TILE_K": (192, 256, 384, 512) if problem.depth > 192 else (form.tile_k,),
            "UNROLL": (2, 4),
            "PACK_A": (False, True) if problem.dtype.itemsize > 2 else (True,),
            "PACK_B": _places(form),
            "PRODUCTS": _around(form.products) if problem.batch > 1 else (1,),
            "SPLITS": _around(form.splits) if form.splits > 1 else (1,),
        }
        parameters = (replace(p, values=chosen[p.name]) for p in self.space.parameters)
        rules = (
            Constraint(
                lambda c: _sums(c) + c.integer("VECTORS") < registers,
                "sums, a row of B and a number of A do not fit in the registers",
            ),
            Constraint(
                lambda c: _sums(c) >= min(form.rows * form.vectors, registers // 2 - 4),
                "fewer vectors of sums leave registers empty",
            ),
        )
        return SearchSpace(tuple(parameters), (*self.space.constraints, *rules))

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan the product, after B is packed where that is done ahead, and the sum of slices."""
        found = launches.buffers(problem)
        if launches.is_empty(problem):
            return Plan(found, ())
        return _Planned(problem, Form.of(problem, config), device).plan(found)


class PackedBefore(Packed):
    """The same, of a B that is packed already: the input ``packed_b`` is in place of ``b``.

    It takes the configurations of `Packed` that pack B ahead, and has no other one.
    """

    def configure(
        self, problem: GemmProblem, device: Device, values: Mapping[str, Any] | None = None
    ) -> Config:
        """Return the configuration for which B was packed, as it is given."""
        return Config(values or {})

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan the product without the phase that packs."""
        form = Form.of(problem, config)
        found = [one for one in launches.buffers(problem) if one.name != "b"]
        found.insert(1, Buffer("packed_b", "in", form.packed_shape, form.real_type))
        if launches.is_empty(problem):
            return Plan(tuple(found), ())
        return _Planned(problem, form, device, packed=True).plan(tuple(found))


@dataclass(frozen=True)
class _Planned:
    """The launches of one problem."""

    problem: GemmProblem
    form: Form
    device: Device
    packed: bool = False  # whether B is packed already

    def plan(self, found: tuple[Buffer, ...]) -> Plan:
        most = max(self.tasks.number, self._pieces)
        if most >= MOST_TASKS:  # no memory can hold such a product
            raise InvalidProblem(f"{most:,} tiles are more than one product can have")
        products = [self._product(begin, end) for begin, end in self._spans()]
        if self.form.splits == 1:
            return Plan((*found, *self._scratch()), tuple(products))
        partial, adding = split_k.reduction(self.problem, self.device, self.form.splits)
        return Plan((*found, *self._scratch(), partial), (*products, adding))

    def _spans(self) -> list[tuple[int, int]]:
        """Return the range of phases of each launch: the first, and one after the last."""
        if self.form.pack_b != "ahead" or self.packed:
            return [(1, PHASES)]
        seen = self.device.capabilities.visible_writes
        return [(0, PHASES)] if seen else [(0, 1), (1, PHASES)]

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks.of(self.form, self.device.compute_units)

    def _scratch(self) -> list[Buffer]:
        problem, form = self.problem, self.form
        found = []
        if form.pack_b == "ahead" and not self.packed:
            found.append(Buffer("packed_b", "scratch", form.packed_shape, form.real_type))
        if form.sums == "scratch":
            found.append(Buffer(split_k.PARTIAL, "scratch", problem.shape, problem.sum_type))
        if self.tasks.claimed:
            words = PHASES * (self._items + 1) + 1
            found.append(Buffer("counters", "zeros", (words,), np.dtype(np.uint32)))
        return found

    @property
    def _items(self) -> int:
        tasks = self.tasks
        if not tasks.claimed:
            return tasks.number
        return max(1, min(self.device.compute_units, max(tasks.number, self._pieces)))

    @property
    def _pieces(self) -> int:
        """How many pieces of B are packed ahead."""
        return Pieces.of(self.form).number if self.form.pack_b == "ahead" else 0

    def _product(self, begin: int, end: int) -> Launch:
        """Return the launch of phases `begin` to `end` - 1."""
        problem, form, tasks = self.problem, self.form, self.tasks
        index, pieces = launches.index_of(problem), Pieces.of(form)
        load_width = max(1, launches.builtin_width(problem, self.device) // form.components)
        of_pieces: dict[str, Argument] = {
            "packed_b": "packed_b",
            "piece_n": index(pieces.columns),
            "pieces": np.uint32(pieces.number),
        }
        of_claims: dict[str, Argument] = {
            "tail_m": index(tasks.tail_m),
            "tail_down": np.uint32(tasks.tail_down),
            "layers": np.uint32(form.layers),
            "from": np.uint32(begin),
            "to": np.uint32(end),
            "counters": "counters",
        }
        return Launch(
            template="gemm/packed.cl.mako",
            kernel="gemm_packed",
            params={
                **launches.params(problem),
                "BLOCKING": form.blocking(load_width),
                "PRODUCTS": form.products,
                "CLAIMED": tasks.claimed,
                "PIECE_K": PIECE_ROWS,
                "MAX_POLLS": PACKING_POLLS,
            },
            global_size=(self._items,),
            local_size=(1,),
            arguments={
                **launches.arguments(problem),
                **({"b": "packed_b"} if self.packed else {}),  # which no phase reads then
                "products": index(problem.batch),
                "slice_k": index(form.slice_k),
                "tile_m": index(form.tile_m),
                **({"sums": split_k.PARTIAL} if form.sums != "result" else {}),
                **({"a_block": LocalMemory(form.block_bytes)} if form.pack_a else {}),
                **(of_pieces if form.pack_b == "ahead" else {}),
                **(of_claims if tasks.claimed else {}),
                "strips": np.uint32(form.tiles_n),
                "down": np.uint32(tasks.down),
                "tile_n": index(form.tile_n),
            },
            local_bytes=form.local_bytes,
        )
