"""How the product by packed panels is divided: what a configuration means for a problem.

A `Form` is a configuration that fits its problem. For 1000 x 1000 x 1000 of float32, two threads
and vectors of 64 bytes, the built-in one divides it like this:

    Form     ROWS 8, panels of 3 * 16 = 48 columns, 21 of them; k tiles of 336, 336 and 328
             tiles of 21 * 8 = 168 rows and 7 * 48 = 336 columns: three strips
    Tasks    in each strip 5 tiles of 168 rows, and for the last 160 rows 2 lower ones of 88
    Pieces   B is packed ahead, in 3 * 16 = 48 pieces of 7 panels and 64 rows
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import INDEX_LIMIT
from opencl_lab.core.plan import ARGUMENT_BYTES, ceil_divide, round_up
from opencl_lab.core.space import Config
from opencl_lab.ops.gemm.launches import index_of
from opencl_lab.ops.gemm.problem import GemmProblem

LINE_BYTES = 64
"""A line of a cache. It lies between rows of a block of A, so that these do not share a set."""


@dataclass(frozen=True)
class Blocking:
    """What templates know of the micro-kernel, and of the panels and blocks that it reads.

    All in real numbers: complex matrices are real ones of twice as many columns.
    """

    rows: int  # of sums in registers; MR in BLIS
    vectors: int  # of sums beside each other
    width: int  # real numbers in a vector; even for complex numbers
    components: int  # real numbers in an element
    tile_k: int  # values of k of a block of A and a panel of B; KC in BLIS
    unroll: int  # rows of a panel of B in a trip of the inner loop; even for complex numbers
    cache_line: int  # numbers in a line of a cache, which also parts rows of a packed block of A
    pack_a: bool  # A is packed to local memory
    # Where B is packed: ``ahead``, all of it in a phase of its own; ``panel``, by the item that
    # needs it; ``none``, it is read in place.
    pack_b: str
    # Where sums lie between two k tiles: in the ``result``; in ``scratch`` memory; or there as
    # ``partial`` sums of slices of k, which another kernel adds up.
    sums: str
    load_width: int  # elements that a built-in function takes at once

    @property
    def panel(self) -> int:
        """Columns of a panel of B; NR in BLIS."""
        return self.vectors * self.width

    @property
    def a_line(self) -> int:
        """Numbers from row to row of a packed block of A."""
        return self.tile_k * self.components + self.cache_line


FIELDS = {
    "ROWS": "rows",
    "VECTORS": "vectors",
    "VECTOR_WIDTH": "width",
    "PANELS_M": "panels_tile_m",
    "PANELS_N": "panels_tile_n",
    "TILE_K": "tile_k",
    "UNROLL": "unroll",
    "PACK_A": "pack_a",
    "PACK_B": "pack_b",
    "PRODUCTS": "products",
    "SPLITS": "splits",
}
"""The fields of a `Form` that the parameters of a configuration set."""


@dataclass(frozen=True)
class Form:
    """A configuration adjusted to a problem: values that the problem rules out are replaced."""

    problem: GemmProblem
    rows: int
    vectors: int
    width: int
    panels_tile_m: int
    panels_tile_n: int
    tile_k: int
    unroll: int
    pack_a: bool
    pack_b: str
    products: int
    splits: int

    @classmethod
    def of(cls, problem: GemmProblem, config: Config) -> Form:
        """Return the form of a configuration for a problem.

        Complex numbers need vectors and iterations of whole pairs. Half precision must be packed,
        since it is not summed as such. A B that is transposed or narrower than a panel cannot be
        read in place. A stack is not packed ahead, and its products are not split over k.
        """
        return cls.of_values(problem, **{FIELDS[name]: config[name] for name in FIELDS})

    @classmethod
    def of_values(cls, problem: GemmProblem, **values: Any) -> Form:
        """Return the form that these fields have for a problem."""
        return cls(problem, **values).fitted()

    def fitted(self) -> Form:
        """Return the form with values that fit the problem."""
        problem, components = self.problem, self.components
        width, rows = max(self.width, components), max(1, min(self.rows, problem.m))
        pack_b = self.pack_b
        if pack_b == "ahead" and (problem.batch > 1 or not problem.depth):
            pack_b = "panel"
        if pack_b == "none" and (
            problem.trans_b or problem.dtype.kind != "f" or problem.dtype.itemsize == 2
            or self.vectors * width > problem.n
        ):  # fmt: skip
            pack_b = "panel"
        found = replace(
            self,
            rows=rows,
            width=width,
            unroll=round_up(self.unroll, components),
            panels_tile_m=max(1, min(self.panels_tile_m, ceil_divide(problem.m, rows))),
            pack_a=self.pack_a or problem.dtype.itemsize == 2,
            pack_b=pack_b,
            products=max(1, min(self.products, problem.batch)),
            splits=self._most_splits(),
        )
        if pack_b == "ahead" and found._overflows():
            return replace(found, pack_b="panel")
        return found

    def _overflows(self) -> bool:
        """Return whether all panels of B overflow the 32 bits that index the matrices.

        Panels are padded: those of few columns take many times the memory of B.
        """
        return math.prod(self.packed_shape) >= 1 << 32 and index_of(self.problem) is np.uint32

    def _most_splits(self) -> int:
        """Return the most slices of k whose sums 32 bits can index."""
        problem = self.problem
        if problem.batch > 1 or not problem.depth:
            return 1
        fit = (INDEX_LIMIT - 1) // max(1, problem.m * problem.n * self.components)
        return max(1, min(self.splits, problem.depth, fit))

    def config(self) -> Config:
        """Return the configuration."""
        return Config({name: getattr(self, field) for name, field in FIELDS.items()})

    def blocking(self, load_width: int) -> Blocking:
        """Return what templates know of it; built-in functions load so many elements at once."""
        return Blocking(
            rows=self.rows,
            vectors=self.vectors,
            width=self.width,
            components=self.components,
            tile_k=self.tile_k,
            unroll=self.unroll,
            cache_line=LINE_BYTES // self.real_type.itemsize,
            pack_a=self.pack_a,
            pack_b=self.pack_b,
            sums=self.sums,
            load_width=load_width,
        )

    @property
    def components(self) -> int:
        """Real numbers in an element."""
        return self.problem.components

    @property
    def real_type(self) -> np.dtype[Any]:
        """Type of the real numbers in panels."""
        return self.problem.real_type

    @property
    def sums(self) -> str:
        """Where sums are kept between k tiles."""
        if self.splits > 1:
            return "partial"
        halves = self.problem.dtype.itemsize == 2
        return "scratch" if halves and self.problem.depth > self.tile_k else "result"

    @property
    def panel(self) -> int:
        """Columns of a panel of B, in real numbers; NR in BLIS."""
        return self.vectors * self.width

    @property
    def panels_n(self) -> int:
        """Panels of B."""
        return ceil_divide(self.problem.n * self.components, self.panel)

    @property
    def packed_shape(self) -> tuple[int, int, int]:
        """The shape of B packed ahead, in real numbers: panels, of rows, of columns."""
        return self.panels_n, self.problem.depth * self.components, self.panel

    @property
    def tile_m(self) -> int:
        """Rows of a tile; MC in BLIS."""
        return self.panels_tile_m * self.rows

    @property
    def tile_n(self) -> int:
        """Columns of a tile, in real numbers; NC in BLIS."""
        return self.panels_tile_n * self.panel

    @property
    def tiles_m(self) -> int:
        """Tiles of a strip."""
        return ceil_divide(self.problem.m, self.tile_m)

    @property
    def tiles_n(self) -> int:
        """Strips, which are columns of tiles."""
        return ceil_divide(self.panels_n, self.panels_tile_n)

    @property
    def slice_k(self) -> int:
        """Length of a slice of k."""
        return ceil_divide(self.problem.depth, self.splits)

    @property
    def layers(self) -> int:
        """Slices of k, or groups of products: how many sets of tiles there are."""
        return self.splits if self.splits > 1 else ceil_divide(self.problem.batch, self.products)

    @property
    def block_bytes(self) -> int:
        """Bytes of local memory of a packed block of A."""
        real = self.real_type.itemsize
        line = self.tile_k * self.components * real + LINE_BYTES * (not self.problem.trans_a)
        return self.tile_m * line

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory that the kernel declares itself: all but a packed block of A."""
        lines = self.rows + self.tile_k * self.components * (self.pack_b == "panel")
        return lines * self.panel * self.real_type.itemsize

    def fits(self, device: Device) -> bool:
        """Return whether a work-group has room for its panels."""
        taken = self.local_bytes + (self.block_bytes + ARGUMENT_BYTES) * self.pack_a
        return taken <= device.capabilities.local_memory


@dataclass(frozen=True)
class Tasks:
    """How tiles are handed out: in each strip full tiles, and lower ones for the last rows."""

    down: int  # full tiles of a strip
    tail_m: int  # rows of a lower tile
    tail_down: int  # lower tiles at the end of a strip
    number: int  # tiles of all strips and slices of k
    claimed: bool  # whether items claim them one by one

    @classmethod
    def of(cls, form: Form, units: int) -> Tasks:
        """Return the tasks of a form for `units` threads.

        Where threads have more than one tile, about the last one of each is cut in two.
        """
        strips, down = form.tiles_n, form.tiles_m
        whole = strips * down * form.layers
        cut = 0
        if whole > units and form.panels_tile_m > 1 and form.layers == 1:
            cut = min(down // 2, ceil_divide(units, strips))
        tail_m = ceil_divide(form.panels_tile_m, 2) * form.rows
        rows_left = max(0, form.problem.m - (down - cut) * form.tile_m)
        tail_down = ceil_divide(rows_left, tail_m) if cut else 0
        return cls(
            down=down - cut,
            tail_m=tail_m,
            tail_down=tail_down,
            number=(down - cut + tail_down) * strips * form.layers,
            claimed=form.pack_b == "ahead" or whole > units,
        )


PIECE_PANELS, PIECE_ROWS = 8, 64
"""Most panels of B, and rows of them, in a packing task."""


@dataclass(frozen=True)
class Pieces:
    """How packing B ahead is handed out: pieces of some panels and rows."""

    columns: int
    number: int

    @classmethod
    def of(cls, form: Form) -> Pieces:
        """Return the pieces of a form, with about equally many panels each."""
        panels = ceil_divide(form.panels_n, ceil_divide(form.panels_n, PIECE_PANELS))
        strips = ceil_divide(form.panels_n, panels)
        return cls(
            panels * form.panel // form.components,
            strips * ceil_divide(form.problem.depth, PIECE_ROWS),
        )
