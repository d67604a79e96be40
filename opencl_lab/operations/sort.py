"""Sorting: the operation, its algorithm, and the public functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from opencl_lab.device import Device
from opencl_lab.errors import InvalidProblem
from opencl_lab.operation import Algorithm, Difference, Operation, Option, Problem, register
from opencl_lab.plan import Argument, Buffer, Launch, Plan, Work, round_up
from opencl_lab.reference.descriptor import Arrays, CReference, HostReference
from opencl_lab.reference.host import no_avx512_sort, numpy_avx2_environment, numpy_sort
from opencl_lab.runtime.arrays import AnyArray, Rows, as_array, is_device_array, queue_for
from opencl_lab.space import Config, Constraint, Parameter, SearchSpace

__all__ = ["SORT", "OddEvenMerge", "Sort", "SortProblem", "argsort", "sort", "sort_by_key"]

KEY_TYPES = {
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float32": "float",
    "float64": "double",
}
VALUE_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
ORDERS = ("random", "sorted", "reversed", "nearly-sorted", "few-unique", "equal", "organ-pipe")


@dataclass(frozen=True)
class SortProblem(Problem):
    """Sort `rows` rows of `n` keys each, stably.

    Parameters
    ----------
    n : int
        Keys in a row.
    dtype : numpy.dtype
        Type of the keys, in the machine's byte order.
    rows : int
    descending : bool
        Reverse NumPy's order, NaN first; equal keys keep their order all the same.
    indices : bool
        Return each key's position in its row (int64) in place of the keys.
    value_bytes : int
        Size of one value that travels with each key; 0 for none.
    """

    sizes = ("n", "rows")
    layout = ("dtype", "indices", "value_bytes")

    n: int
    dtype: np.dtype[Any]
    rows: int = 1
    descending: bool = False
    indices: bool = False
    value_bytes: int = 0

    def __post_init__(self) -> None:
        if self.n < 0 or self.rows < 0:
            raise InvalidProblem(f"n must not be negative, not {min(self.n, self.rows)}")
        if self.n * self.rows >= 2**63:
            raise InvalidProblem(f"{self.n * self.rows} keys are more than a 64-bit index counts")
        if self.dtype.name not in KEY_TYPES or not self.dtype.isnative:
            raise InvalidProblem(
                f"cannot sort keys of dtype {self.dtype}; supported: {', '.join(KEY_TYPES)}"
            )
        if self.value_bytes and self.value_bytes not in VALUE_TYPES:
            raise InvalidProblem(
                f"values of {self.value_bytes} bytes cannot travel with keys (sizes: "
                f"{', '.join(map(str, VALUE_TYPES))}); use argsort and index with its result"
            )

    @property
    def work(self) -> Work:
        """One read and one write of every key, value and index."""
        moved = 2 * (self.dtype.itemsize + self.value_bytes)
        if self.indices:
            moved = self.dtype.itemsize + 8
        return Work(flops=0, bytes=float(self.rows * self.n * moved))


def _span(config: Config) -> int:
    """Elements of a work-group in a merge pass."""
    return config.integer("WG_SIZE") * config.integer("WORK_PER_ITEM")


class OddEvenMerge(Algorithm[SortProblem]):
    """Merge sort in which every element finds its place by binary search."""

    name = "odd-even-merge"
    templates = ("sort/odd_even_merge.cl.mako",)
    space = SearchSpace(
        (
            Parameter("WG_SIZE", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), "items in a group"),
            Parameter(
                "TILE",
                (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
                "elements sorted in local memory first; 0 for none",
            ),
            Parameter(
                "WORK_PER_ITEM", (1, 2, 4, 8, 16, 64, 256, 1024, 4096), "elements of one item"
            ),
            Parameter("BLOCKED", (False, True), "an item's elements are consecutive"),
            Parameter("NARROW", (False, True), "bound the searches of a group first"),
        ),
        (
            Constraint(lambda c: c.integer("WG_SIZE") > 0, "WG_SIZE must be positive"),
            Constraint(lambda c: c.integer("WORK_PER_ITEM") > 0, "WORK_PER_ITEM must be positive"),
            Constraint(
                lambda c: c.integer("TILE") >= 0 and not c.integer("TILE") & c.integer("TILE") - 1,
                "TILE must be 0 or a power of two",
            ),
            Constraint(
                lambda c: c.integer("TILE") % c.integer("WG_SIZE") == 0,
                "TILE must be a multiple of WG_SIZE",
            ),
            Constraint(
                lambda c: not (c["NARROW"] and c["BLOCKED"]),
                "NARROW is of no use where items merge (BLOCKED)",
            ),
            Constraint(
                lambda c: not c["NARROW"] or c.integer("WG_SIZE") >= 2,
                "NARROW needs two items in a group",
            ),
            Constraint(
                lambda c: not (c["NARROW"] and _span(c) & (_span(c) - 1)),
                "NARROW needs WG_SIZE * WORK_PER_ITEM to be a power of two",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need double precision for float64 keys."""
        if problem.dtype == np.float64 and not device.capabilities.fp64:
            return "the device has no double precision"
        return None

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return long runs an item on CPUs; elsewhere more elements an item as n grows."""
        if device.kind == "cpu":
            config = Config(WG_SIZE=1, TILE=4096, WORK_PER_ITEM=4096, BLOCKED=True, NARROW=False)
        elif problem.n < 1 << 18:  # too little work to bound searches or to share it out
            config = Config(WG_SIZE=256, TILE=1024, WORK_PER_ITEM=1, BLOCKED=False, NARROW=False)
        else:
            work = 4 if problem.n < 1 << 22 else 8
            config = Config(WG_SIZE=256, TILE=2048, WORK_PER_ITEM=work, BLOCKED=False, NARROW=True)
        wg_size = min(config.integer("WG_SIZE"), device.capabilities.max_work_group)
        wg_size = 1 << wg_size.bit_length() - 1
        tile = config.integer("TILE")
        while tile * self._tile_element(problem) > device.capabilities.local_memory:
            tile //= 2
        if tile < wg_size or (wg_size > 1 and not device.capabilities.barriers_in_loops):
            tile = 0
        narrow = bool(config["NARROW"]) and wg_size >= 2
        return config.replace(WG_SIZE=wg_size, TILE=tile, NARROW=narrow)

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch of `sort_tile`, then a `merge_pass` a doubling of the blocks."""
        shape = (problem.rows, problem.n)
        values = self._values(problem)
        buffers = [Buffer("keys", "in", shape, problem.dtype)]
        buffers.append(
            Buffer("sorted", "scratch" if problem.indices else "out", shape, problem.dtype)
        )
        if problem.value_bytes:
            buffers.append(Buffer("values", "in", shape, values.dtype))
        if values.present:
            buffers.append(Buffer("sorted_values", "out", shape, values.out_dtype))
        if problem.n * problem.rows == 0:
            return Plan(tuple(buffers), ())

        passes = self._passes(problem.n, config)
        if len(passes) > 1:
            buffers.append(Buffer("spare", "scratch", shape, problem.dtype))
            if values.present:
                buffers.append(Buffer("spare_values", "scratch", shape, values.dtype))
        launches = []
        source = "keys"
        for index, width in enumerate(passes):
            left = len(passes) - 1 - index
            target = "spare" if left % 2 else "sorted"  # so that the last one is "sorted"
            launches.append(
                self._launch(problem, config, width, source, target, index == 0, left == 0)
            )
            source = target
        return Plan(tuple(buffers), tuple(launches))

    @staticmethod
    def _passes(n: int, config: Config) -> list[int]:
        """Return the width of the sorted blocks before each launch, 0 for `sort_tile`."""
        tile = config.integer("TILE")
        passes, width = ([0], tile) if tile else ([], 1)
        while width < n:
            passes.append(width)
            width *= 2
        return passes or [1]  # a single element still has to be copied

    def _launch(
        self,
        problem: SortProblem,
        config: Config,
        width: int,
        source: str,
        target: str,
        first: bool,
        last: bool,
    ) -> Launch:
        values = self._values(problem)
        index_type: Any = np.uint32 if problem.n < 2**31 else np.uint64
        arguments: dict[str, Argument] = {"source": source, "target": target}
        if values.present:
            if not (first and problem.indices):
                arguments["source_values"] = "values" if first else f"{source}_values"
            arguments["target_values"] = f"{target}_values"
        arguments["n"] = index_type(problem.n)
        wg_size, tile = config.integer("WG_SIZE"), config.integer("TILE")
        if width == 0:
            span, local_bytes = tile, tile * self._tile_element(problem)
        else:
            arguments["width"] = index_type(width)
            span = wg_size * config.integer("WORK_PER_ITEM")
            local_bytes = 2 * index_type().itemsize if config["NARROW"] else 0
        return Launch(
            template=self.templates[0],
            kernel="merge_pass" if width else "sort_tile",
            params={
                **config,
                "KEY_T": KEY_TYPES[problem.dtype.name],
                "KEY_IS_FLOAT": problem.dtype.kind == "f",
                "DESCENDING": problem.descending,
                "VALUE_T": values.type,
                "VALUE_IN_T": None if first and problem.indices else values.type,
                "VALUE_OUT_T": "long" if last and problem.indices else values.type,
                "INDEX_T": "uint" if index_type is np.uint32 else "ulong",
            },
            global_size=(round_up(problem.n, span) // span * wg_size, problem.rows),
            local_size=(wg_size, 1),
            arguments=arguments,
            local_bytes=local_bytes,
        )

    @staticmethod
    def _tile_element(problem: SortProblem) -> int:
        """Local memory of one element of the tile: both halves, key and value."""
        value_bytes = problem.value_bytes
        if problem.indices:
            value_bytes = 4 if problem.n < 2**32 else 8
        return 2 * (problem.dtype.itemsize + value_bytes)

    @staticmethod
    def _values(problem: SortProblem) -> _Values:
        if problem.indices:
            # Positions travel in the smallest type; the last launch widens them.
            dtype = np.dtype(np.uint32 if problem.n < 2**32 else np.uint64)
            return _Values(VALUE_TYPES[dtype.itemsize], dtype, np.dtype(np.int64))
        if problem.value_bytes:
            dtype = np.dtype(f"V{problem.value_bytes}")
            return _Values(VALUE_TYPES[problem.value_bytes], dtype, dtype)
        return _Values(None, np.dtype("V1"), np.dtype("V1"))


@dataclass(frozen=True)
class _Values:
    """What travels with the keys: its type in OpenCL C, on the way and at the end."""

    type: str | None
    dtype: np.dtype[Any]
    out_dtype: np.dtype[Any]

    @property
    def present(self) -> bool:
        return self.type is not None


C_TYPES = {"float32": "float", "float64": "double"}


def _c_defines(problem: SortProblem) -> dict[str, str]:
    name = problem.dtype.name
    return {
        "KEY_T": C_TYPES.get(name, f"{name}_t"),
        "KEY_IS_FLOAT": str(int(problem.dtype.kind == "f")),
        "DESCENDING": str(int(problem.descending)),
    }


def _c_arguments(
    problem: SortProblem, inputs: Arrays, outputs: Arrays, threads: int
) -> tuple[Any, ...]:
    return (inputs["keys"], outputs["sorted"], problem.rows, problem.n)


def _c_threaded(
    problem: SortProblem, inputs: Arrays, outputs: Arrays, threads: int
) -> tuple[Any, ...]:
    return (*_c_arguments(problem, inputs, outputs, threads), threads)


class Sort(Operation[SortProblem]):
    """Stable sorting in the order of `numpy.sort`."""

    name = "sort"
    summary = "Sort numbers, stably and in NumPy's order."
    options = (
        Option("n", int, 50_000, "how many keys"),
        Option("dtype", str, "int32", "type of the keys", tuple(KEY_TYPES)),
        Option("order", str, "random", "how generated keys are arranged", ORDERS, about_data=True),
        Option("descending", bool, False, "the largest key first"),
    )
    size_option = "n"
    awkward = MappingProxyType({"n": 20_011, "rows": 3})
    inputs = ("keys",)
    output = "sorted"
    algorithms = (OddEvenMerge(),)
    references = (
        CReference("c:seq", "sort.c", "sort_merge_seq", _c_defines, _c_arguments),
        CReference("c:omp", "sort.c", "sort_merge_omp", _c_defines, _c_threaded, threaded=True),
        CReference("c:qsort", "sort.c", "sort_qsort", _c_defines, _c_arguments),
        HostReference("numpy", numpy_sort),
        HostReference("numpy:avx2", numpy_sort, no_avx512_sort, numpy_avx2_environment()),
    )

    def problem(self, **options: Any) -> SortProblem:
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        return SortProblem(
            n=chosen["n"], dtype=np.dtype(chosen["dtype"]), descending=chosen["descending"]
        )

    def problem_of(self, arrays: Arrays, **options: Any) -> tuple[SortProblem, Arrays]:
        """Sort along the last axis of the array `keys`, converted to `dtype` if that is given."""
        chosen = self.with_defaults(options)
        if "n" in options:
            raise InvalidProblem("n is given by the input file; leave it out")
        keys = _keys(arrays["keys"])
        if "dtype" in options:
            keys = keys.astype(options["dtype"])
        data = Rows.of(keys, -1).data
        rows, n = data.shape
        return SortProblem(n, data.dtype, rows, chosen["descending"]), {"keys": data}

    def present(self, arrays: Arrays, outputs: Arrays) -> np.ndarray[Any, Any]:
        """Return the sorted keys in the shape of the user's array."""
        return outputs[self.output].reshape(arrays["keys"].shape)

    def generate(self, problem: SortProblem, seed: int, **options: Any) -> Arrays:
        """Return keys over the whole range of the type, or normal floats, arranged as asked."""
        order = self.with_defaults(options)["order"]
        rng = np.random.default_rng(seed)
        shape = (problem.rows, problem.n)
        if problem.dtype.kind == "f":
            keys = rng.standard_normal(shape, dtype=problem.dtype.type)
        else:
            limits = np.iinfo(problem.dtype)
            keys = rng.integers(limits.min, limits.max, shape, problem.dtype, endpoint=True)
        return {"keys": _arrange(keys, order, rng)}

    def expected(self, problem: SortProblem, inputs: Arrays) -> Arrays:
        """Return what NumPy's stable sort gives."""
        keys = np.sort(inputs["keys"], axis=-1, kind="stable")
        return {"sorted": keys[:, ::-1] if problem.descending else keys}

    def compare(self, problem: SortProblem, expected: Arrays, actual: Arrays) -> Difference:
        """Sorting moves keys and must not change them: the tolerance is zero."""
        right, given = expected["sorted"], actual["sorted"]
        if np.array_equal(right, given, equal_nan=right.dtype.kind == "f"):
            return Difference(0.0, 0.0, True)
        with np.errstate(invalid="ignore"):
            reference = right.astype(np.float64)
            difference = np.abs(reference - given.astype(np.float64))
        difference[(right == given) | ((right != right) & (given != given))] = 0
        relative = difference / (np.abs(reference) + 1e-12)
        return Difference(float(np.max(difference)), float(np.max(relative)), False)


def _arrange(
    keys: np.ndarray[Any, Any], order: str, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Rearrange random keys within each row."""
    if order == "random" or not keys.size:
        return keys
    if order == "equal":
        return np.repeat(keys[:, :1], keys.shape[1], axis=1)
    if order == "few-unique":
        few = keys[:, : min(16, keys.shape[1])]
        return np.take_along_axis(few, rng.integers(0, few.shape[1], keys.shape), axis=1)
    keys = np.sort(keys, axis=-1)
    if order == "reversed":
        keys = keys[:, ::-1]
    elif order == "organ-pipe":
        keys = np.concatenate([keys[:, ::2], keys[:, 1::2][:, ::-1]], axis=1)
    elif order == "nearly-sorted":
        for _ in range(max(1, keys.shape[1] // 100)):
            i, j = rng.integers(0, keys.shape[1], 2)
            keys[:, [i, j]] = keys[:, [j, i]]
    return np.ascontiguousarray(keys)


SORT = Sort()
register(SORT)


def _keys(array: AnyArray) -> AnyArray:
    """Return keys in the machine's byte order."""
    if not is_device_array(array) and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def sort(
    a: Any,
    *,
    axis: int | None = -1,
    descending: bool = False,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
) -> AnyArray:
    """Sort an array stably, in the order of ``numpy.sort(kind="stable")``.

    Parameters
    ----------
    a : array_like or pyopencl.array.Array
        Integers of 8 to 64 bits, float32 or float64; any shape, any strides. It
        is not changed.
    axis : int, optional
        Axis to sort along; None flattens first.
    descending : bool
        Reverse the order: the largest key first, and NaN, which NumPy counts as
        the largest, before it. Equal keys keep their order all the same.
    algorithm : str
        ``"auto"`` or the name of an algorithm of the operation ``sort``.
    config : mapping, optional
        Kernel parameters that replace the default ones.
    out : array, optional
        Receives the result; may be `a` itself. Same shape and dtype as the result.
    queue : pyopencl.CommandQueue, optional
        Where to sort a host array; default: the library's queue on `select_device()`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array
        Of the kind, shape and dtype of `a`. A device array is enqueued on the
        queue of `a` and not waited for.

    Raises
    ------
    InvalidProblem
        For an unsupported dtype, an axis out of bounds, a wrong `out`, or an
        array that does not fit into the device's memory.
    InvalidConfig
        For an unknown algorithm or a configuration that the device cannot run.
    BuildError, LaunchError
        If the device's compiler or the device itself fails.
    """
    given = as_array(a)
    array = _keys(given)
    queue = queue_for(array, queue)
    rows = Rows.of(array, axis, queue)
    target = rows.target(out, given.dtype)
    problem = SortProblem(rows.length, array.dtype, rows.count, descending)
    run = SORT.run(
        problem,
        {"keys": rows.data},
        algorithm=algorithm,
        config=config,
        queue=queue,
        out={} if target is None else {"sorted": target},
    )
    result = run.outputs["sorted"]
    if not given.dtype.isnative:
        result = result.astype(given.dtype)
    return rows.restore(result, out, queue)


def argsort(
    a: Any,
    *,
    axis: int | None = -1,
    descending: bool = False,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    out: AnyArray | None = None,
    queue: Any = None,
) -> AnyArray:
    """Return the indices that sort an array stably.

    Parameters and errors are those of `sort`.

    Returns
    -------
    numpy.ndarray or pyopencl.array.Array, int64
        Positions along `axis`, of the shape of `a`; of equal keys the first
        position comes first, ascending and descending alike.
    """
    array = _keys(as_array(a))
    queue = queue_for(array, queue)
    rows = Rows.of(array, axis, queue)
    target = rows.target(out, np.dtype(np.int64))
    problem = SortProblem(rows.length, array.dtype, rows.count, descending, indices=True)
    run = SORT.run(
        problem,
        {"keys": rows.data},
        algorithm=algorithm,
        config=config,
        queue=queue,
        out={} if target is None else {"sorted_values": target},
    )
    return rows.restore(run.outputs["sorted_values"], out, queue)


def sort_by_key(
    keys: Any,
    values: Any,
    *,
    axis: int | None = -1,
    descending: bool = False,
    algorithm: str = "auto",
    config: Mapping[str, Any] | None = None,
    queue: Any = None,
) -> tuple[AnyArray, AnyArray]:
    """Sort keys stably and move values along with them.

    Parameters
    ----------
    keys : array_like or pyopencl.array.Array
        As in `sort`.
    values : array_like or pyopencl.array.Array
        Of the shape of `keys` and on the same side, host or device; any dtype
        of 1, 2, 4, 8 or 16 bytes.

    The other parameters and errors are those of `sort`.

    Returns
    -------
    keys, values : numpy.ndarray or pyopencl.array.Array
        Both sorted by the keys.
    """
    given, value_array = as_array(keys), as_array(values)
    key_array = _keys(given)
    if is_device_array(key_array) != is_device_array(value_array):
        raise InvalidProblem("keys and values must both be host arrays or both device arrays")
    if key_array.shape != value_array.shape:
        raise InvalidProblem(
            f"keys and values must have one shape, not {key_array.shape} and {value_array.shape}"
        )
    if value_array.dtype.hasobject:
        raise InvalidProblem("values of dtype object cannot travel with keys")
    if not value_array.dtype.itemsize:
        raise InvalidProblem("values of 0 bytes cannot travel with keys")
    queue = queue_for(key_array, queue)
    queue_for(value_array, queue)
    key_rows, value_rows = Rows.of(key_array, axis, queue), Rows.of(value_array, axis, queue)
    problem = SortProblem(
        key_rows.length,
        key_array.dtype,
        key_rows.count,
        descending,
        value_bytes=value_array.dtype.itemsize,
    )
    run = SORT.run(
        problem,
        {"keys": key_rows.data, "values": value_rows.data},
        algorithm=algorithm,
        config=config,
        queue=queue,
    )
    moved = run.outputs["sorted_values"].view(value_array.dtype)
    result = run.outputs["sorted"]
    if not given.dtype.isnative:
        result = result.astype(given.dtype)
    return key_rows.restore(result, None, queue), value_rows.restore(moved, None, queue)
