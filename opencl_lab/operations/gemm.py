"""Matrix products: the operation, its algorithms, and the public function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Algorithm, Difference, Operation, Option, Problem, register
from opencl_lab.plan import Buffer, Launch, Plan, Work, round_up
from opencl_lab.reference.descriptor import Arrays, CReference, HostReference
from opencl_lab.reference.host_gemm import blas_gemm
from opencl_lab.runtime.arrays import (
    AnyArray,
    as_array,
    assign,
    contiguous,
    is_device_array,
    is_plain,
    queue_for,
)
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["GEMM", "Blocked", "Gemm", "GemmProblem", "Naive", "Tiled", "gemm"]

REAL_TYPES = {"float32": "float", "float64": "double"}
FLOAT32 = np.dtype("float32")
PRECISIONS = ("native",)
INDEX_LIMIT = 2**31
"""Matrices of fewer elements are indexed with 32 bits."""
CHUNK = 1 << 22
"""Elements that `Gemm.compare` looks at together."""


@dataclass(frozen=True)
class GemmProblem(Problem):
    """The product ``alpha * op(a) @ op(b) + beta * c``, with op(a) m x k and op(b) k x n.

    Parameters
    ----------
    m, n, k : int
        Rows and columns of the result, and the length of the sums.
    dtype : numpy.dtype
        float32 or float64, in the machine's byte order.
    alpha, beta : float
        With beta 0, c is not read; with alpha or k 0, a and b are not read.
    trans_a, trans_b : bool
        Whether a is stored as k x m, and b as n x k.
    precision : str
        ``native``: arithmetic in `dtype`.
    """

    sizes = ("m", "n", "k")
    layout = ("dtype", "trans_a", "trans_b", "precision")

    m: int
    n: int
    k: int
    dtype: np.dtype[Any] = FLOAT32
    alpha: float = 1.0
    beta: float = 0.0
    trans_a: bool = False
    trans_b: bool = False
    precision: str = "native"

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k) < 0:
            raise InvalidProblem(
                f"m, n and k must not be negative, not {self.m}, {self.n} and {self.k}"
            )
        if self.dtype.name not in REAL_TYPES or not self.dtype.isnative:
            raise InvalidProblem(
                f"cannot multiply matrices of dtype {self.dtype}; "
                f"supported: {', '.join(REAL_TYPES)}"
            )
        if self.precision not in PRECISIONS:
            raise InvalidProblem(
                f"there is no precision {self.precision!r} for gemm; there is: "
                f"{', '.join(PRECISIONS)}"
            )

    @property
    def depth(self) -> int:
        """Length of the sums that are really formed: 0 where alpha is 0."""
        return 0 if self.alpha == 0 else self.k

    @property
    def shape_a(self) -> tuple[int, int]:
        """Shape in which a is stored."""
        return (self.k, self.m) if self.trans_a else (self.m, self.k)

    @property
    def shape_b(self) -> tuple[int, int]:
        """Shape in which b is stored."""
        return (self.n, self.k) if self.trans_b else (self.k, self.n)

    @property
    def work(self) -> Work:
        """A multiplication and an addition a product, one read an input, one write a result."""
        elements = self.m * self.n * (2 if self.beta else 1)
        if self.m and self.n:
            elements += (self.m + self.n) * self.depth
        return Work(
            flops=2.0 * self.m * self.n * self.depth, bytes=float(elements * self.dtype.itemsize)
        )


def _positive(name: str) -> Constraint:
    return Constraint(lambda c: c.integer(name) > 0, f"{name} must be positive")


def _divides(divisor: str, number: str, why: str) -> Constraint:
    return Constraint(
        lambda c: c.integer(number) % c.integer(divisor) == 0,
        f"{divisor} must divide {number}: {why}",
    )


def _items(config: Config) -> int:
    """Return how many items a group of `Blocked` has."""
    rows = config.integer("TILE_M") // config.integer("WORK_M")
    return rows * (config.integer("TILE_N") // config.integer("WORK_N"))


def _shared(matrix: str, extent: str) -> Constraint:
    return Constraint(
        lambda c: (
            not c[f"STAGE_{matrix}"] or c.integer(extent) * c.integer("TILE_K") % _items(c) == 0
        ),
        f"the items must share the staging of {matrix} evenly: "
        f"{extent} * TILE_K must be a multiple of their number",
    )


def _vectors(config: Config) -> int:
    """Return how many vectors of sums an item of `Blocked` has."""
    return config.integer("WORK_M") * config.integer("WORK_N") // config.integer("VECTOR_WIDTH")


class _Product(Algorithm[GemmProblem]):
    """What the algorithms share: one launch over tiles of the result."""

    kernel: ClassVar[str]
    synchronises: ClassVar[bool] = True

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need double precision for float64, and barriers where items share tiles."""
        if problem.dtype == np.float64 and not device.capabilities.fp64:
            return "the device has no double precision"
        if self.synchronises and not device.capabilities.barriers_in_loops:
            return "barriers in loops do not work on the device"
        return None

    def _plan(
        self,
        problem: GemmProblem,
        params: Mapping[str, Any],
        tile: tuple[int, int],
        group: tuple[int, int],
        local_elements: int = 0,
    ) -> Plan:
        """Plan one launch; `tile` and `group` are rows and columns of a work-group."""
        shape = (problem.m, problem.n)
        buffers = [
            Buffer("a", "in", problem.shape_a, problem.dtype),
            Buffer("b", "in", problem.shape_b, problem.dtype),
            Buffer("result", "out", shape, problem.dtype),
        ]
        if problem.beta:
            buffers.append(Buffer("c", "in", shape, problem.dtype))
        if problem.m * problem.n == 0:
            return Plan(tuple(buffers), ())

        real = problem.dtype.type
        largest = max(problem.m * problem.k, problem.k * problem.n, problem.m * problem.n)
        index: Any = np.uint32 if largest < INDEX_LIMIT else np.uint64
        launch = Launch(
            template=self.templates[0],
            kernel=self.kernel,
            params={
                **params,
                "REAL_T": REAL_TYPES[problem.dtype.name],
                "INDEX_T": "uint" if index is np.uint32 else "ulong",
                "TRANS_A": problem.trans_a,
                "TRANS_B": problem.trans_b,
                "HAS_C": bool(problem.beta),
            },
            global_size=(
                round_up(problem.n, tile[1]) // tile[1] * group[1],
                round_up(problem.m, tile[0]) // tile[0] * group[0],
            ),
            local_size=(group[1], group[0]),
            arguments={
                "a": "a",
                "b": "b",
                **({"c": "c"} if problem.beta else {}),
                "result": "result",
                "m": index(problem.m),
                "n": index(problem.n),
                "k": index(problem.depth),
                # An infinite alpha times an empty sum must not become NaN.
                "alpha": real(problem.alpha if problem.depth else 0),
                "beta": real(problem.beta),
            },
            local_bytes=local_elements * problem.dtype.itemsize,
        )
        return Plan(tuple(buffers), (launch,))


class Naive(_Product):
    """One work-item for one element of the result; nothing is shared."""

    name = "naive"
    templates = ("gemm/naive.cl.mako",)
    kernel = "gemm_naive"
    synchronises = False
    space = SearchSpace(
        (
            Parameter("WG_M", (1, 2, 4, 8, 16, 32), "rows of a work-group"),
            Parameter("WG_N", (1, 4, 8, 16, 32, 64, 128, 256), "columns of a work-group"),
        ),
        (_positive("WG_M"), _positive("WG_N")),
    )

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return groups along the rows on GPUs, whose items share memory transactions."""
        rows, columns = (32, 8) if device.kind == "cpu" else (8, 32)
        columns = _fit(columns, min(device.capabilities.max_work_group, device.max_work_items[0]))
        rows = _fit(
            rows, min(device.capabilities.max_work_group // columns, device.max_work_items[1])
        )
        return Config(WG_M=rows, WG_N=columns)

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch with an item for every element, whole groups."""
        group = config.integer("WG_M"), config.integer("WG_N")
        return self._plan(problem, config, group, group)


class Tiled(_Product):
    """Square tiles of both matrices in local memory, one element of the result an item."""

    name = "tiled"
    templates = ("gemm/tiled.cl.mako",)
    kernel = "gemm_tiled"
    space = SearchSpace(
        (
            Parameter("TILE", (8, 16, 32), "rows and columns of a tile and of the group"),
            Parameter("LOCAL_PAD", (0, 1), "elements between the rows of a tile"),
            Parameter("UNROLL", (1, 2, 4, 8, 16, 32), "products a trip of the inner loop"),
        ),
        (
            _positive("TILE"),
            _positive("UNROLL"),
            Constraint(lambda c: c.integer("LOCAL_PAD") >= 0, "LOCAL_PAD must not be negative"),
            _divides("UNROLL", "TILE", "the inner loop makes whole trips"),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need a work-group and local memory for the least tile."""
        reason = super().supports(problem, device)
        if reason is None and not self._fits(8, problem, device):
            return "the device has no room for work-groups of 8 x 8 items with their tiles"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the largest tile that suits the kind of device and fits it."""
        tile = 32
        while tile > 8 and not self._fits(tile, problem, device):
            tile //= 2
        return Config(TILE=tile, LOCAL_PAD=1, UNROLL=8)

    @staticmethod
    def _fits(tile: int, problem: GemmProblem, device: Device) -> bool:
        return (
            tile * tile <= device.capabilities.max_work_group
            and tile <= min(device.max_work_items[:2])
            and 2 * tile * (tile + 1) * problem.dtype.itemsize <= device.capabilities.local_memory
        )

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, a group of TILE x TILE items a tile."""
        tile = config.integer("TILE")
        local = 2 * tile * (tile + config.integer("LOCAL_PAD"))
        return self._plan(problem, config, (tile, tile), (tile, tile), local)


class Blocked(_Product):
    """A block of the result in the registers of each item, tiles in local memory."""

    name = "blocked"
    templates = ("gemm/blocked.cl.mako",)
    kernel = "gemm_blocked"
    space = SearchSpace(
        (
            Parameter("TILE_M", (12, 16, 24, 32, 48, 64, 96, 128, 192), "rows of a work-group"),
            Parameter("TILE_N", (8, 16, 32, 64, 128, 256), "columns of a work-group"),
            Parameter("TILE_K", (4, 8, 16, 32, 64, 128, 256), "length of a step along k"),
            Parameter("WORK_M", (1, 2, 4, 6, 8, 12, 16), "rows of an item"),
            Parameter("WORK_N", (1, 2, 4, 8, 16, 32), "columns of an item"),
            Parameter("VECTOR_WIDTH", (1, 2, 4, 8, 16), "columns in a vector"),
            Parameter("VECTOR_ROWS", (1, 2, 4), "rows of A read at once from local memory"),
            Parameter("LOCAL_PAD", (0, 1), "vectors between the lines of a tile"),
            Parameter("UNROLL", (1, 2, 4, 8, 16), "values of k a trip of the inner loop"),
            Parameter("STAGE_A", (False, True), "A goes through local memory"),
            Parameter("STAGE_B", (False, True), "B goes through local memory"),
            Parameter(
                "STAGE_UNROLL",
                (0, 1, 2, 4),
                "loads under way while staging; 0: the compiler's choice",
            ),
        ),
        (
            *map(_positive, ("TILE_M", "TILE_N", "TILE_K", "WORK_M", "WORK_N", "UNROLL")),
            Constraint(
                lambda c: c["VECTOR_WIDTH"] in (1, 2, 4, 8, 16),
                "VECTOR_WIDTH must be a width of OpenCL's vectors: 1, 2, 4, 8 or 16",
            ),
            Constraint(
                lambda c: c["VECTOR_ROWS"] in (1, 2, 4, 8, 16),
                "VECTOR_ROWS must be a width of OpenCL's vectors: 1, 2, 4, 8 or 16",
            ),
            Constraint(lambda c: c.integer("LOCAL_PAD") >= 0, "LOCAL_PAD must not be negative"),
            _divides("WORK_M", "TILE_M", "each item owns as many rows"),
            _divides("WORK_N", "TILE_N", "each item owns as many columns"),
            _divides("VECTOR_WIDTH", "WORK_N", "an item's columns are whole vectors"),
            _divides("VECTOR_ROWS", "WORK_M", "an item's rows are whole vectors"),
            _divides("VECTOR_ROWS", "VECTOR_WIDTH", "else padding would misalign vectors of rows"),
            _divides("UNROLL", "TILE_K", "the inner loop makes whole trips"),
            _shared("A", "TILE_M"),
            _shared("B", "TILE_N"),
            Constraint(
                lambda c: c["VECTOR_ROWS"] == 1 or bool(c["STAGE_A"]),
                "VECTOR_ROWS reads local memory, so it needs STAGE_A",
            ),
            Constraint(
                lambda c: c["LOCAL_PAD"] == 0 or bool(c["STAGE_A"]) or bool(c["STAGE_B"]),
                "LOCAL_PAD pads local memory, so it needs STAGE_A or STAGE_B",
            ),
            Constraint(
                lambda c: c.integer("STAGE_UNROLL") >= 0, "STAGE_UNROLL must not be negative"
            ),
            Constraint(
                lambda c: c["STAGE_UNROLL"] == 0 or bool(c["STAGE_A"]) or bool(c["STAGE_B"]),
                "STAGE_UNROLL unrolls staging, so it needs STAGE_A or STAGE_B",
            ),
            Constraint(
                lambda c: c.integer("WORK_M") * c.integer("WORK_N") <= 512,
                "more than 512 sums an item do not fit in any registers",
            ),
            Constraint(
                lambda c: _vectors(c) <= 64,
                "more than 64 vectors of sums an item do not stay in registers",
            ),
            Constraint(
                lambda c: _vectors(c) * c.integer("UNROLL") <= 512,
                "more than 512 statements a trip take too long to compile",
            ),
        ),
    )

    def supports(self, problem: GemmProblem, device: Device) -> str | None:
        """Need local memory and a work-group for the least of the built-in configurations."""
        reason = super().supports(problem, device)
        if reason is None and not self._fits(self._configs(problem, device)[-1], problem, device):
            return "the device has no room for the smallest tiles"
        return reason

    def default_config(self, problem: GemmProblem, device: Device) -> Config:
        """Return the largest tiles that fit the device, fill it, and waste little at edges."""
        configs = self._configs(problem, device)
        for config in configs:
            tile_m, tile_n = config.integer("TILE_M"), config.integer("TILE_N")
            rows, columns = round_up(problem.m, tile_m), round_up(problem.n, tile_n)
            if (
                self._fits(config, problem, device)
                and rows * columns >= 2 * device.compute_units * tile_m * tile_n
                and rows * columns <= 2 * problem.m * problem.n
            ):
                return config
        return configs[-1]

    @staticmethod
    def _configs(problem: GemmProblem, device: Device) -> list[Config]:
        """Return the built-in configurations for this kind of device, large tiles first."""
        word = problem.dtype.itemsize
        if device.kind == "cpu":
            # Items run one after the other: a few long steps along k, tiles that live in the
            # second cache. Rows of A are read in place, where they lie along k.
            common = Config(
                TILE_K=128,
                WORK_M=6,
                WORK_N=64 // word,
                VECTOR_WIDTH=64 // word,
                VECTOR_ROWS=1,
                LOCAL_PAD=1,
                UNROLL=1,
                STAGE_A=problem.trans_a,
                STAGE_B=True,
                STAGE_UNROLL=0,
            )
            return [
                common.replace(TILE_M=6 * factor, TILE_N=factor * 32 // word)
                for factor in (16, 8, 4, 2)
            ]
        common = Config(
            TILE_K=32,
            VECTOR_WIDTH=16 // word,
            VECTOR_ROWS=16 // word,
            LOCAL_PAD=1,
            UNROLL=8,
            STAGE_A=True,
            STAGE_B=True,
            STAGE_UNROLL=2 if word == 4 else 0,
        )
        smaller = [
            common.replace(TILE_M=tile, TILE_N=tile, TILE_K=min(32, tile), WORK_M=4, WORK_N=4)
            for tile in (64, 32, 16)
        ]
        largest = common.replace(TILE_M=128, TILE_N=128, WORK_M=8, WORK_N=8)
        if word == 8:  # the same tiles would leave room for one group on a processor
            largest = largest.replace(TILE_M=64, TILE_K=16, UNROLL=16)
        return [largest, *smaller]

    def _fits(self, config: Config, problem: GemmProblem, device: Device) -> bool:
        local = self._local_elements(config) * problem.dtype.itemsize
        limit = min(device.capabilities.max_work_group, device.max_work_items[0])
        return _items(config) <= limit and local <= device.capabilities.local_memory

    def plan(self, problem: GemmProblem, config: Config, device: Device) -> Plan:
        """Plan one launch, a group of items a tile of the result."""
        tile = config.integer("TILE_M"), config.integer("TILE_N")
        group = 1, _items(config)
        vector = config.integer("VECTOR_WIDTH")
        # Built-in functions may not take every vector; the kernel puts these together from pieces.
        load = min(vector, max(1, device.capabilities.vector_bytes // problem.dtype.itemsize))
        return self._plan(
            problem, {**config, "LOAD_WIDTH": load}, tile, group, self._local_elements(config)
        )

    @staticmethod
    def _local_elements(config: Config) -> int:
        pad = config.integer("LOCAL_PAD") * config.integer("VECTOR_WIDTH")
        line = 0
        if config["STAGE_A"]:
            line += config.integer("TILE_M") + pad
        if config["STAGE_B"]:
            line += config.integer("TILE_N") + pad
        return config.integer("TILE_K") * line


def _fit(value: int, limit: int) -> int:
    """Return the largest power of two that is above neither `value` nor `limit`, at least 1."""
    return 1 << max(1, min(value, limit)).bit_length() - 1


def _c_reference(name: str, function: str, threaded: bool = False) -> CReference:
    return CReference(
        name,
        "gemm.c",
        function,
        defines=lambda problem: {"REAL_T": REAL_TYPES[problem.dtype.name]},
        arguments=lambda problem, inputs, outputs, threads: (
            inputs["a"],
            inputs["b"],
            inputs.get("c", outputs["result"]),  # not read where beta is 0
            outputs["result"],
            problem.m,
            problem.n,
            problem.k,
            int(problem.trans_a),
            int(problem.trans_b),
            float(problem.alpha),
            float(problem.beta),
            *((threads,) if threaded else ()),
        ),
        threaded=threaded,
    )


class Gemm(Operation[GemmProblem]):
    """The matrix product of BLAS, row-major."""

    name = "gemm"
    summary = "Multiply matrices: alpha * op(A) @ op(B) + beta * C."
    options = (
        Option("size", int, 1024, "rows and columns of square matrices"),
        Option("m", int, None, "rows of the result; default: size"),
        Option("n", int, None, "columns of the result; default: size"),
        Option("k", int, None, "length of the sums; default: size"),
        Option("dtype", str, "float32", "type of the elements", tuple(REAL_TYPES)),
        Option("alpha", float, 1.0, "factor of the product"),
        Option("beta", float, 0.0, "factor of C, which is not read where it is 0"),
        Option("trans_a", bool, False, "A is stored as k rows of m"),
        Option("trans_b", bool, False, "B is stored as n rows of k"),
        Option("precision", str, "native", "how the arithmetic is done", PRECISIONS),
    )
    size_option = "size"
    awkward = MappingProxyType({"m": 211, "n": 197, "k": 103})
    inputs = ("a", "b")
    output = "result"
    algorithms = (Blocked(), Tiled(), Naive())
    references = (
        _c_reference("c:seq", "gemm_seq"),
        _c_reference("c:blocked", "gemm_blocked"),
        _c_reference("c:omp", "gemm_omp", threaded=True),
        HostReference("blas", blas_gemm, threaded=True),
    )

    def problem(self, **options: Any) -> GemmProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        size = chosen.pop("size")
        for name in ("m", "n", "k"):
            chosen[name] = size if chosen[name] is None else chosen[name]
        return GemmProblem(**{**chosen, "dtype": np.dtype(chosen["dtype"])})

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[GemmProblem, Arrays]:
        """Multiply `a` by `b`, and add `c` where beta is not 0; in `dtype` if that is given."""
        chosen = self.with_defaults(options)
        given = [name for name in ("size", "m", "n", "k") if name in options]
        if given:
            raise InvalidProblem(f"{given[0]} is given by the input files; leave it out")
        matrices = {
            name: array.astype(chosen["dtype"], copy=False) if "dtype" in options else array
            for name, array in arrays.items()
        }
        return _settle(
            matrices["a"],
            matrices["b"],
            matrices.get("c"),
            alpha=chosen["alpha"],
            beta=chosen["beta"],
            trans_a=chosen["trans_a"],
            trans_b=chosen["trans_b"],
            precision=chosen["precision"],
        )

    def generate(self, problem: GemmProblem, seed: int, **options: Any) -> Arrays:
        """Return uniform numbers between -1 and 1, and a C where beta is not 0."""
        rng = np.random.default_rng(seed)
        shapes = {"a": problem.shape_a, "b": problem.shape_b}
        if problem.beta:
            shapes["c"] = (problem.m, problem.n)
        return {
            name: 2 * rng.random(shape, problem.dtype.type) - 1 for name, shape in shapes.items()
        }

    def expected(self, problem: GemmProblem, inputs: Arrays) -> Arrays:
        """Return the result by the host's BLAS in float64, and the norms that `compare` needs.

        ``rows`` and ``columns`` are the Euclidean norms of the rows of alpha op(a)
        and the columns of op(b): by Cauchy and Schwarz their products are bounds of
        the elements of ``|alpha| |op(a)| |op(b)|``.
        """
        result = np.zeros((problem.m, problem.n))
        rows, columns = np.zeros(problem.m), np.zeros(problem.n)
        with np.errstate(invalid="ignore", over="ignore"):
            if problem.depth:
                a = inputs["a"].T if problem.trans_a else inputs["a"]
                b = inputs["b"].T if problem.trans_b else inputs["b"]
                a, b = a.astype(np.float64), b.astype(np.float64)
                result = problem.alpha * (a @ b)
                rows = np.abs(problem.alpha) * np.sqrt(np.einsum("ij,ij->i", a, a))
                columns = np.sqrt(np.einsum("ij,ij->j", b, b))
            if problem.beta:
                result += problem.beta * inputs["c"].astype(np.float64)
            return {"result": result.astype(problem.dtype), "rows": rows, "columns": columns}

    def compare(self, problem: GemmProblem, expected: Arrays, actual: Arrays) -> Difference:
        """Compare within the a-priori error bound of a sum of k products.

        Whatever the order of the sum, its error is at most ``gamma |a| |b|`` with
        ``gamma = k u / (1 - k u)`` and unit roundoff ``u`` (N. Higham, "Accuracy and
        Stability of Numerical Algorithms", section 3.5). A few roundings are added
        for alpha, beta and the expected result, which in float64 has this error too.
        """
        right, given = expected["result"], actual["result"]
        if given.shape != right.shape or given.dtype != right.dtype:
            return Difference(np.inf, np.inf, False)
        limits = np.finfo(problem.dtype)
        growth = (problem.depth + 4) * float(limits.eps) / 2
        gamma = growth / (1 - growth) if growth < 0.5 else 2 * growth
        if problem.dtype == np.float64:
            gamma *= 2
        # |beta c| is at most |result| + |alpha a b|.
        rows = expected["rows"] * (2 if problem.beta else 1)
        columns = expected["columns"]
        max_abs = max_rel = 0.0
        ok = True
        step = max(1, CHUNK // max(problem.n, 1))
        for first in range(0, problem.m, step):
            part = slice(first, first + step)
            reference, value = right[part].astype(np.float64), given[part].astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                error = np.abs(reference - value)
                bound = gamma * (np.outer(rows[part], columns) + np.abs(reference))
                same = (reference == value) | (np.isnan(reference) & np.isnan(value))
                error[same] = 0
                error[np.isnan(error)] = np.inf
                bound += (problem.depth + 4) * float(limits.tiny)
                ok = ok and bool(np.all(same | ((error <= bound) & np.isfinite(error))))
                relative = error / (np.abs(reference) + 1e-12)
                relative[np.isnan(relative)] = np.inf
            max_abs = max(max_abs, float(np.max(error, initial=0)))
            max_rel = max(max_rel, float(np.max(relative, initial=0)))
        return Difference(max_abs, max_rel, ok)


GEMM = Gemm()
register(GEMM)


def _check_matrices(matrices: Mapping[str, AnyArray]) -> None:
    """Require matrices of one dtype on one side."""
    for name, matrix in matrices.items():
        if matrix.ndim > 2:
            raise InvalidProblem(
                f"{name} has {matrix.ndim} dimensions; gemm takes one product of matrices at a "
                "time, batches are not supported: call it for each matrix"
            )
        if matrix.ndim < 2:
            raise InvalidProblem(
                f"{name} has {matrix.ndim} dimensions, not 2; reshape a vector to one row or column"
            )
    if len({is_device_array(matrix) for matrix in matrices.values()}) > 1:
        raise InvalidProblem(
            f"{', '.join(matrices)} must all be host arrays or all be device arrays"
        )
    names = {name: matrix.dtype.name for name, matrix in matrices.items()}
    if not set(names.values()) <= set(REAL_TYPES) or len(set(names.values())) > 1:
        found = ", ".join(f"{name} is {dtype}" for name, dtype in names.items())
        raise InvalidProblem(
            f"the matrices must all be {' or all '.join(REAL_TYPES)}: {found}; "
            "convert with astype, nothing is converted silently"
        )


def _real(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InvalidProblem(f"{name} must be a real number, not {value!r}") from error


def _stored(array: AnyArray, queue: Any) -> tuple[AnyArray, bool]:
    """Return a plain array, and whether it is the transpose of `array`; copy only if it must."""
    if not is_plain(array) and is_plain(array.T):
        return array.T, True
    return contiguous(array, queue), False


def _settle(
    a: AnyArray,
    b: AnyArray,
    c: AnyArray | None,
    *,
    alpha: Any,
    beta: Any,
    trans_a: bool,
    trans_b: bool,
    precision: str,
    queue: Any = None,
) -> tuple[GemmProblem, dict[str, AnyArray]]:
    """Return the problem of a user's matrices, and these as its inputs."""
    alpha, beta = _real("alpha", alpha), _real("beta", beta)
    matrices = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": c}
    _check_matrices(matrices)
    m, k = a.shape[::-1] if trans_a else a.shape
    rows_b, n = b.shape[::-1] if trans_b else b.shape
    if k != rows_b:
        raise InvalidProblem(
            f"a gives sums of length {k} and b of length {rows_b}: "
            f"a is {a.shape[0]} x {a.shape[1]}{', transposed' if trans_a else ''}, "
            f"b is {b.shape[0]} x {b.shape[1]}{', transposed' if trans_b else ''}"
        )
    if c is None and beta:
        raise InvalidProblem(f"beta is {beta:g}, so c is needed")
    if c is not None and tuple(c.shape) != (m, n):
        raise InvalidProblem(f"c must have the shape of the result, {(m, n)}, not {tuple(c.shape)}")
    inputs = {}
    inputs["a"], turned_a = _stored(a, queue)
    inputs["b"], turned_b = _stored(b, queue)
    if beta:
        inputs["c"] = contiguous(c, queue)
    dtype = np.dtype(a.dtype.name)
    trans_a, trans_b = bool(trans_a) != turned_a, bool(trans_b) != turned_b
    problem = GemmProblem(m, n, k, dtype, alpha, beta, trans_a, trans_b, precision)
    return problem, inputs


def _target(
    out: AnyArray | None, problem: GemmProblem, matrices: tuple[AnyArray, ...]
) -> AnyArray | None:
    """Return `out` if a kernel can write it directly: plain, and apart from all inputs."""
    if out is None:
        return None
    if is_device_array(out) != is_device_array(matrices[0]):
        raise InvalidProblem("out must be on the same side as the inputs, host or device")
    shape = (problem.m, problem.n)
    if tuple(out.shape) != shape or out.dtype != problem.dtype:
        raise InvalidProblem(
            f"out must have shape {shape} and dtype {problem.dtype}, "
            f"not {tuple(out.shape)} and {out.dtype}"
        )
    if not out.size or not is_plain(out):
        return None
    if is_device_array(out):
        shared = any(out.base_data == matrix.base_data for matrix in matrices)
    else:
        shared = any(np.may_share_memory(out, matrix) for matrix in matrices)
    return None if shared else out


def gemm(
    a: Any,
    b: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    c: Any = None,
    trans_a: bool = False,
    trans_b: bool = False,
    precision: str = "native",
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
) -> AnyArray:
    """Return ``alpha * op(a) @ op(b) + beta * c``, where op transposes if asked.

    Parameters
    ----------
    a, b : array_like or pyopencl.array.Array
        Matrices of float32 or of float64, both on the host or both on a device;
        any shape, any strides. A transposed view such as ``x.T`` is not copied.
    alpha, beta : float
        As in BLAS: with ``beta=0``, `c` is not read; with ``alpha=0``, `a` and
        `b` are not read, so that NaN in them does not reach the result.
    c : array_like or pyopencl.array.Array, optional
        Of the shape of the result; needed where `beta` is not 0. It is not
        changed, unless `out` is `c`.
    trans_a, trans_b : bool
        Multiply by the transpose of `a`, of `b`.
    precision : str
        ``"native"``: the arithmetic is that of the dtype.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``gemm``.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result; may be any of the inputs. Shape and dtype of the result.
    queue : pyopencl.CommandQueue, optional
        Where to multiply host arrays; default: the library's queue on `select_device()`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the kind and dtype of `a`. With device arrays the product is enqueued
        on the queue of `a` and not waited for.

    Raises
    ------
    InvalidProblem
        For shapes that do not fit each other, an unsupported or mixed dtype, more
        than two dimensions, an unknown precision, a missing `c`, a wrong `out`, or
        arrays that do not fit into the device's memory.
    InvalidConfig
        For an unknown algorithm or a configuration that the device cannot run.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    matrices = tuple(as_array(matrix) for matrix in ((a, b) if c is None else (a, b, c)))
    queue = queue_for(matrices[0], queue)
    for matrix in matrices[1:]:
        queue_for(matrix, queue)
    problem, inputs = _settle(
        matrices[0],
        matrices[1],
        None if c is None else matrices[2],
        alpha=alpha,
        beta=beta,
        trans_a=trans_a,
        trans_b=trans_b,
        precision=precision,
        queue=queue,
    )
    target = _target(out, problem, matrices)
    run = GEMM.run(
        problem,
        inputs,
        algorithm=algorithm,
        config=config,
        queue=queue,
        out={} if target is None else {"result": target},
    )
    result = run.outputs["result"]
    if out is None or target is not None:
        return result
    assign(out, result, queue)
    return out
