"""Random calls of all public functions, with right results by NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from opencl_lab import fft
from opencl_lab.core.device import Device
from opencl_lab.lab.measuring.difference import UNLIKE, Difference
from opencl_lab.lab.operation import Operation
from opencl_lab.lab.ops.keys import ORDERS, exact, random_keys
from opencl_lab.lab.reference.descriptor import imported, needs
from opencl_lab.lab.reference.peers import named
from opencl_lab.lab.registry import get_operation
from opencl_lab.ops.conv2d.problem import BOUNDARIES, IMAGE_TYPES, MODES
from opencl_lab.ops.fft.problem import NORMS, SAMPLE_TYPES
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES
from opencl_lab.ops.sort.functions import argsort, sort_by_key
from opencl_lab.ops.sort.problem import KEY_TYPES

Array: TypeAlias = np.ndarray[Any, Any]
Results: TypeAlias = tuple[Array, ...]

TOLERANCE = {4: 3e-6, 8: 3e-14}
"""Largest error of a transform relative to its result, in the Euclidean norm, by bytes of a real
number. A single wrong value among a million is a thousandth."""
MOST_FLOPS = 1e9
"""What an algorithm may take that is not the fastest one."""
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 3e-8, 6e4)


@dataclass(frozen=True)
class Case:
    """A public function with its arrays and options, and what judges its results."""

    function: Callable[..., Any]
    arrays: Results
    options: dict[str, Any]
    judge: Callable[[Results], Difference]
    """Compares the results, as host arrays, with the right ones."""

    def __str__(self) -> str:
        arrays = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.arrays)
        options = "".join(
            f", {name}={f'{value.dtype}{list(value.shape)}' if hasattr(value, 'shape') else value}"
            for name, value in self.options.items()
        )
        return f"{self.function.__name__}({arrays}{options})"


Draw: TypeAlias = Callable[[int], Case]
"""Makes a call with the data of a seed."""


class Drawer:
    """Draws kinds of calls: function, shapes, types and options."""

    def __init__(self, device: Device, rng: np.random.Generator, sizes: Sequence[int] = ()):
        self._device = device
        self._rng = rng
        self._sizes = sizes  # if any, all are among these

    def draw(self, number: int) -> Draw:
        """Return a kind of call; numbers in a row are of all functions in turn."""
        return KINDS[number % len(KINDS)](self)

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        return items[int(self._rng.integers(len(items)))]

    def chance(self, share: float) -> bool:
        """Return True in such a share of all cases."""
        return bool(self._rng.random() < share)

    def dtype(self, names: Sequence[str]) -> str:
        """Return one of these types that the device has."""
        wide = () if self._device.capabilities.fp64 else ("float64", "complex128")
        found: str = self.pick([name for name in names if name not in wide])
        return found

    def size(self, most: int, least: int = 1) -> int:
        """Return a size; each order of magnitude is as likely."""
        if self._sizes:
            return min(most, max(least, int(self.pick(self._sizes))))
        return round(float(np.exp(self._rng.uniform(np.log(least), np.log(most)))))

    def algorithm(self, operation: Operation[Any], problem: Any) -> dict[str, Any]:
        """Return an algorithm that solves a problem, and a configuration if the device has it."""
        device = self._device
        able = [
            one
            for one in (named.on(device.kind) for named in operation.algorithms)
            if one.supports(problem, device) is None and one.work(problem).flops <= MOST_FLOPS
        ]
        chosen = self.pick(able)
        space = chosen.space.parameters
        values = {one.name: self.pick(one.values) for one in space if self.chance(0.5)}
        config = {"config": values} if values and chosen.allowed(problem, device, values) else {}
        return {"algorithm": chosen.name, **config}


# -------------------------------------------------------------- calls of the lab's operations


def _of_operation(name: str, how: Callable[[Drawer], dict[str, Any]], drawer: Drawer) -> Draw:
    """Return calls whose data and right results are those of an operation of the lab."""
    options, operation = how(drawer), get_operation(name)
    chosen = {"algorithm": options.pop("algorithm", "auto")}
    if drawer.chance(0.3):
        chosen = drawer.algorithm(operation, operation.problem(**options))
    special = name != "searchsorted" and drawer.chance(0.15)  # whose keys are in order
    return partial(_operation_case, operation, options, chosen, special)


def _operation_case(
    operation: Operation[Any],
    options: Mapping[str, Any],
    chosen: Mapping[str, Any],
    special: bool,
    seed: int,
) -> Case:
    problem = operation.problem(**options)
    inputs = operation.generate(problem, seed, **options)
    if special:
        _put_specials(inputs, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        expected = operation.expected(problem, inputs)
    calls = operation.calls
    call = calls.ours(problem, inputs, chosen["algorithm"]) or calls.usual(problem, inputs)
    given = call.explicit()
    if "algorithm" in given:  # some functions take none
        given |= chosen
    names = calls.returned or (operation.output,)

    def judge(results: Results) -> Difference:
        found = named(names, results if len(results) > 1 else results[0])
        fixed = operation.name != "unique"  # whose results are as long as its data say
        try:
            shaped = {
                name: array.reshape(expected[name].shape) if fixed else array
                for name, array in found.items()
            }
        except ValueError:
            return UNLIKE
        with np.errstate(all="ignore"):
            return operation.compare(problem, inputs, expected, shaped)

    return Case(call.function, call.arrays, given, judge)


def _put_specials(inputs: Mapping[str, Array], rng: np.random.Generator) -> None:
    """Put some NaN, infinities, zeros and numbers at the ends of the ranges into inputs."""
    for array in inputs.values():
        if array.dtype.kind in "fc" and array.size:
            array.flat[rng.integers(array.size, size=3)] = rng.choice(SPECIALS, 3)


def _keys(d: Drawer, most: int = 200_000) -> dict[str, Any]:
    return {
        "n": d.size(most),
        "dtype": d.dtype(KEY_TYPES),
        "order": d.pick(ORDERS) if d.chance(0.5) else "random",
    }


def _sort(d: Drawer) -> dict[str, Any]:
    rows = {"rows": d.size(40), "n": d.size(3000)} if d.chance(0.4) else {}
    return {**_keys(d), **rows, "descending": d.chance(0.3)}


def _topk(d: Drawer) -> dict[str, Any]:
    keys = _keys(d)
    return {**keys, "k": min(keys["n"], d.size(2000)), "smallest": d.chance(0.5)}


def _unique(d: Drawer) -> dict[str, Any]:
    return {**_keys(d), "counts": d.chance(0.5)}


def _search(d: Drawer) -> dict[str, Any]:
    return {**_keys(d), "m": d.size(50_000), "right": d.chance(0.5)}


def _gemm(d: Drawer) -> dict[str, Any]:
    dtype = d.dtype(ELEMENT_TYPES)
    most = 60 if dtype.startswith("complex") else 300
    options = {
        "dtype": dtype,
        **{name: d.size(most) for name in "mnk"},
        "batch": d.size(20) if d.chance(0.2) else 1,
        "trans_a": d.chance(0.3),
        "trans_b": d.chance(0.3),
        "alpha": d.pick((1.0, 1.0, -0.5)),
        "beta": d.pick((0.0, 0.0, 2.0)),
        "bias": d.pick((None, None, "row", "column")),
    }
    if not dtype.startswith("complex"):
        options["activation"] = d.pick((None, None, "relu", "gelu"))
    return options


def _conv2d(d: Drawer) -> dict[str, Any]:
    ksize = d.pick((1, 3, 3, 5, 7, 15))
    return {
        "height": d.size(300, ksize),
        "width": d.size(300, ksize),
        "ksize": ksize,
        "dtype": d.dtype(IMAGE_TYPES),
        "mode": d.pick(MODES),
        "boundary": d.pick(BOUNDARIES),
        "cval": d.pick((0.0, 1.5)),
        "flip": d.chance(0.3),
        "saturate": d.chance(0.3),
    }


def _fft(d: Drawer) -> dict[str, Any]:
    dtype = d.dtype(tuple(SAMPLE_TYPES))
    return {
        "n": d.pick((d.size(70_000), 1 << d.size(16))),
        "batch": d.size(8),
        "dtype": dtype,
        "inverse": dtype != "float16" and d.chance(0.5),
        "norm": d.pick(NORMS),
    }


def _dft(d: Drawer) -> dict[str, Any]:
    dtype = d.dtype(("complex64", "complex128"))
    return {"n": d.size(700), "batch": d.size(8), "dtype": dtype, "algorithm": "direct"}


# ------------------------------------------------------------------------------ calls of their own


def _by_index(function: Callable[..., Any], drawer: Drawer) -> Draw:
    """Return calls of `argsort` and `sort_by_key`, which are stable."""
    shape = (drawer.size(20) if drawer.chance(0.4) else 1, drawer.size(30_000))
    dtype, order = np.dtype(drawer.dtype(KEY_TYPES)), drawer.pick(ORDERS)

    def make(seed: int) -> Case:
        rng = np.random.default_rng(seed)
        keys = random_keys(shape, dtype, order, rng)
        places = np.argsort(keys, axis=-1, kind="stable")
        if function is argsort:
            return Case(argsort, (keys,), {}, partial(_exact, (places,)))
        values = rng.integers(0, 1 << 30, shape, np.int32)
        right = tuple(np.take_along_axis(array, places, -1) for array in (keys, values))
        return Case(sort_by_key, (keys, values), {}, partial(_exact, right))

    return make


def _exact(right: Results, results: Results) -> Difference:
    """Return the first difference of results that must be equal."""
    found = [exact(*pair) for pair in zip(right, results, strict=True)]
    return next((one for one in found if not one.ok), found[0])


def _close(right: Array, results: Results) -> Difference:
    """Compare a result by its error in the Euclidean norm, relative to the right one's."""
    (got,) = results
    if got.shape != right.shape:
        return UNLIKE
    bound = TOLERANCE[got.real.dtype.itemsize]
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    error = float(np.linalg.norm((got.astype(wide) - right).reshape(-1)))
    norm = float(np.linalg.norm(right.reshape(-1)))
    relative = error / norm if norm else (0.0 if error == 0 else np.inf)
    return Difference(error, relative, error_over_bound=relative / bound, rel_l2=relative)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    values: Array = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


REAL_INPUT = ("rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn")
SCIPY = (
    *("hfft2", "hfftn", "ihfft2", "ihfftn"),
    *("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn"),
)
NUMPY = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfft", "ihfft")


def transforms() -> tuple[str, ...]:
    """Return the transforms for which this machine has references, besides those of `dft`."""
    return NUMPY if needs("scipy")() else (*NUMPY, *SCIPY)


def _transform(drawer: Drawer) -> Draw:
    """Return calls of a transform of several axes, a Hermitian, or a cosine or sine transform."""
    name = drawer.pick(transforms())
    several = name.endswith(("2", "n"))
    shape = tuple(drawer.size(60, 2) for _ in range(drawer.pick((2, 3) if several else (1, 2))))
    if not several:
        shape = (*shape[:-1], drawer.size(3000, 2))
    cosine = name.lstrip("i").startswith(("dct", "dst"))
    real = cosine or name in REAL_INPUT
    types = ("float32", "float64") if real else ("complex64", "complex128")
    dtype = drawer.dtype(types)
    options: dict[str, Any] = {"norm": drawer.pick(NORMS)}
    if cosine:
        options["type"] = drawer.pick((2, 3, 4))
    elif several and drawer.chance(0.5):
        options["axes"] = drawer.pick(((0, 1), (1, 0)))
    library = np.fft if name in NUMPY else imported("scipy.fft")
    wide = np.float64 if real else np.complex128

    def make(seed: int) -> Case:
        array = _random(np.random.default_rng(seed), shape, dtype)
        right = getattr(library, name)(array.astype(wide), **options)
        return Case(getattr(fft, name), (array,), options, partial(_close, right))

    return make


def _shift(drawer: Drawer) -> Draw:
    name = drawer.pick(("fftshift", "ifftshift"))
    shape = tuple(drawer.size(80) for _ in range(drawer.pick((1, 2, 3))))
    dtype = drawer.dtype(("float32", "int16", "complex64", "float64"))

    def make(seed: int) -> Case:
        array = (99 * _random(np.random.default_rng(seed), shape, "float64")).astype(dtype)
        right = getattr(np.fft, name)(array)
        judge = partial(_same_bytes, right)
        return Case(getattr(fft, name), (array,), {}, judge)

    return make


def _same_bytes(right: Array, results: Results) -> Difference:
    (got,) = results
    same = got.dtype == right.dtype and got.shape == right.shape and np.array_equal(got, right)
    return Difference.exact(0.0, 0.0, True) if same else UNLIKE


KINDS: tuple[Callable[[Drawer], Draw], ...] = (
    partial(_of_operation, "sort", _sort),
    partial(_of_operation, "topk", _topk),
    partial(_of_operation, "unique", _unique),
    partial(_of_operation, "searchsorted", _search),
    *[partial(_of_operation, "gemm", _gemm)] * 2,
    *[partial(_of_operation, "conv2d", _conv2d)] * 2,
    *[partial(_of_operation, "dft", _fft)] * 2,
    partial(_of_operation, "dft", _dft),
    partial(_by_index, argsort),
    partial(_by_index, sort_by_key),
    *[_transform] * 3,
    _shift,
)
