"""The cases of every operation; a new operation joins the matrix with one row of `ROWS`.

`test_matrix.py` crosses each row with the algorithms of the operation, and with the devices under
test. Sizes around the parameters of the default configuration (tile - 1, tile, tile + 1) are added
there, for every operation. Options that choose what a kernel is compiled to do vary together, so
that a program shows several of them; each of their values occurs. Cases of such options are marked
`sweep`: configurations that cover the space (`covering.py`) are dealt out to them, and the default
one only where there are more cases than these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.lab.ops.keys import ORDERS
from opencl_lab.ops.conv2d.trials import ODD_SIZES as OBLONG
from opencl_lab.ops.gemm.trials import ODD_SIZES as BEYOND
from opencl_lab.ops.sort.problem import KEY_TYPES, SortProblem
from opencl_lab.ops.sort.trials import awkward_keys


@dataclass(frozen=True)
class Case:
    """One problem with its data.

    Parameters
    ----------
    name : str
    options : mapping
        Options of the operation, those about the data included.
    arrays : callable, optional
        ``arrays(rng)`` gives a user's arrays, for `Operation.problem_of`; without
        it `Operation.generate` makes the inputs.
    record : Problem, optional
        A problem that options cannot describe; `arrays` gives its inputs then.
    sweep : bool
        Whether it runs with other configurations than the default one. The first of an operation
        says which configurations there are.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    arrays: Callable[[np.random.Generator], dict[str, np.ndarray]] | None = None
    record: Any = None
    sweep: bool = False

    def problem(self, operation):
        """Return the problem alone, without the time that the right outputs take."""
        if self.record is not None or self.arrays is None:
            return self.record or operation.problem(**self.options)
        return operation.problem_of(self.arrays(np.random.default_rng(7)), **self.options)[0]

    def make(self, operation, seed=7):
        """Return the problem, its inputs, and the expected outputs."""
        arrays = None if self.arrays is None else self.arrays(np.random.default_rng(seed))
        if self.record is None and arrays is not None:
            problem, inputs = operation.problem_of(arrays, **self.options)
        else:
            problem = self.problem(operation)
            inputs = arrays or operation.generate(problem, seed, **self.options)
        return problem, inputs, operation.expected(problem, inputs)


def usual_options(operation, algorithm, device):
    """Return the options of a problem that an algorithm is for: none, or those of a case."""
    cases = (case.options for case in ROWS[operation.name] if case.arrays is None)
    possible = []  # on another device
    for options in ({}, *cases):
        problem = operation.problem(**options)
        with suppress(InvalidConfig, AssertionError):  # of a problem that it does not support
            algorithm.default_config(problem, device)
            if algorithm.supports(problem, device) is None:
                return options
            possible.append(options)
    assert possible, f"{algorithm.name} is for no case of {operation.name}"
    return possible[0]


def around_parameters(operation, algorithm, device):
    """Return cases of the sizes at which the default configuration changes its ways."""
    options = usual_options(operation, algorithm, device)
    config = algorithm.default_config(operation.problem(**options), device)
    values = {value for value in config.values() if type(value) is int and 2 <= value <= 20_000}
    sizes = {value + step for value in values for step in (-1, 0, 1)}
    usual = {name: value for name, value in options.items() if name not in OBLONG}
    name = operation.size_option
    return [Case(f"edge-{size}", {**usual, name: size}) for size in sorted(sizes)]


def keys_of(dtype, shape):
    """Return what makes awkward keys."""
    return lambda rng: {"keys": awkward_keys(rng, dtype, shape)}


def _among(rng):
    values = awkward_keys(rng, "float64", 6_001)
    return {"keys": np.sort(values), "values": values[::2].copy()}


def sorting(n, dtype="int16", rows=1, few=80, **options):
    """Return a case with forms of sorting that no option has: of few keys, or of any if 0."""
    problem = SortProblem(n, np.dtype(dtype), rows, **options)

    def arrays(rng):
        keys = awkward_keys(rng, dtype, few or (rows, n))
        made = {"keys": rng.choice(keys, (rows, n)) if few else keys}
        if problem.value_bytes:
            values = rng.integers(0, 256, (rows, n * problem.value_bytes), np.uint8)
            made["values"] = values.view(f"V{problem.value_bytes}")
        return made

    return Case("", arrays=arrays, record=problem)


def _special_matrices(rng):
    """A NaN and infinities: they must reach their rows and columns, and no others."""
    a, b = rng.standard_normal((2, 70, 70)).astype(np.float32)
    a[3, 5], a[40, 0], b[69, 69] = np.nan, np.inf, -np.inf
    return {"a": a, "b": b}


def _scaled_spectrum(rng):
    """Rows along the last axis of three dimensions, of far apart magnitudes."""
    shape = (3, 2, 45)
    return {"signal": rng.standard_normal(shape) * np.array([1e-9, 1, 1e9])[:, None, None]}


def _special_signal(rng):
    """A NaN and an infinity: they must reach their rows, and no others."""
    signal = rng.standard_normal((4, 60)).astype(np.complex64)
    signal[1, 7], signal[2, 0] = np.nan, np.inf
    return {"signal": signal}


def _real_part(arrays):
    return {name: array.real for name, array in arrays.items()}


DFT_SIZES = (0, 1, 2, 3, 8, 13, 17, 100, 1000, 1009, 1024)  # tests of its own know all lengths


def _colours(rng):
    """A batch of colour images."""
    return {"image": rng.integers(0, 255, (2, 37, 53, 3), np.uint8, endpoint=True)}


def _special_image(rng):
    """A NaN and infinities: they must reach what lies under the filter, and no more."""
    image = rng.standard_normal((40, 70)).astype(np.float32)
    image[3, 5], image[39, 0], image[20, 60] = np.nan, np.inf, -np.inf
    return {"image": image}


GEMM_SIZES = (0, 1, 3, 7, 8, 9, 32, 33, 127, 128)
PIXELS = (  # each type, mode and boundary; those of mode valid are not looked at
    ("uint8", "same", "nearest", False),
    ("int16", "valid", "constant", True),
    ("uint16", "full", "reflect", False),
    ("float64", "same", "constant", True),
    ("float32", "full", "wrap", False),
    ("float16", "same", "mirror", True),
)
FILTERS: dict[str, dict[str, Any]] = {  # each filter, type and mode
    "gradient": {"gradient": 1.5, "mode": "constant", "cval": 2.0},
    "mean": {"mean": 4, "dtype": "uint16", "mode": "mirror"},
    "minimum": {"minimum": 5, "dtype": "int16", "depth": 9, "mode": "wrap"},
    "maximum": {"maximum": 6, "dtype": "float64", "mode": "nearest"},
    "median": {"median": 3, "axes": (0, 2), "depth": 9},
    "percentile": {"percentile": 30.0, "ksize": 7, "dtype": "uint8", "mode": "wrap"},
    "sobel": {"sobel": True, "dtype": "uint8", "channels": 3},
    "prewitt": {"prewitt": True, "axis": 0, "dtype": "float64", "mode": "nearest"},
    "laplace": {"laplace": True, "dtype": "int32", "depth": 9, "mode": "mirror"},
    "cut": {"gaussian": 2.0, "dtype": "uint8", "mode": "constant", "cval": 7.0},
}
RECTANGLE = {"m": 70, "n": 131, "k": 45}  # less than most tiles
DESCENDING = ("uint8", "int32", "float32")  # other cases have two of them in ascending order
SIZES = (0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 8_191, 8_192, 8_193, 50_000, 1_000_003)

BORROWED = {
    ("conv2d", "separable"): "register",
    ("conv2d", "adaptive"): "fft",
}
"""Algorithms with the kernels of another one, for which pairs of values are looked at."""

SWEPT_ELSEWHERE = {"unique"}
"""Operations whose configurations are those of another one, which sweeps them."""

ROWS: dict[str, list[Case]] = {
    "dft": [
        *(Case(f"n-{n}", {"n": n}) for n in DFT_SIZES),
        *(Case(f"batch-{b}x{n}", {"n": n, "batch": b}) for b, n in ((0, 8), (3, 60), (19, 27))),
        Case("inverse", {"n": 120, "batch": 5, "inverse": True}),
        Case("ortho", {"n": 45, "batch": 2, "inverse": True, "norm": "ortho"}),
        Case("float64", {"n": 384, "batch": 2, "dtype": "complex128"}),
        *(
            Case(f"{dtype}-{n}-{inverse}", {"dtype": dtype, "n": n, "batch": 3, "inverse": inverse})
            for dtype, inverse, sizes in (
                ("float32", False, (0, 1, 2, 45, 100)),
                ("float32", True, (1, 2, 45, 100)),
                ("float64", True, (131,)),
                ("float16", False, (2, 77)),
            )
            for n in sizes
        ),
        Case("magnitudes", arrays=_scaled_spectrum),
        Case("special", arrays=_special_signal),
        Case("special-real", {"dtype": "float16"}, lambda rng: _real_part(_special_signal(rng))),
        Case("sweep", {"n": 336, "batch": 3}, sweep=True),
        Case("sweep-prime", {"n": 131, "batch": 2, "inverse": True}, sweep=True),
        Case("sweep-real", {"n": 99, "batch": 2, "dtype": "float32"}, sweep=True),
        Case("sweep-back", {"n": 98, "batch": 2, "dtype": "float32", "inverse": True}, sweep=True),
    ],
    "sort": [
        *(Case(f"n-{n}", {"n": n}) for n in SIZES),
        *(Case(f"order-{order}", {"n": 50_000, "order": order}) for order in ORDERS),
        *(
            Case(
                f"type-{name}",
                {"n": 5_001, "dtype": name, "descending": name in DESCENDING},
                sweep=True,
            )
            for name in KEY_TYPES
        ),
        Case("rows", arrays=lambda rng: {"keys": rng.integers(0, 99, (5, 7, 257), np.int32)}),
        Case("rows-float64", arrays=lambda rng: {"keys": rng.standard_normal((100, 20))}),
        Case("special-float32", arrays=keys_of("float32", 6_001)),
        Case("special-float64", {"descending": True}, arrays=keys_of("float64", 6_001)),
        Case("sweep", {"n": 5_003}, sweep=True),
        replace(sorting(3_001, "float32", 2, indices=True), name="argsort", sweep=True),
        replace(sorting(5_003, descending=True, value_bytes=8), name="pairs", sweep=True),
    ],
    "topk": [  # tests of its own know more
        *(Case(f"n-{n}", {"n": n}) for n in (0, 1, 2, 257)),
        Case("all", {"n": 300, "k": 300, "smallest": True}),
        Case("none", {"n": 300, "k": 0}),
        Case("ties", {"n": 30_000, "k": 7_000, "order": "few-unique"}),
        Case("rows", {"k": 9}, lambda rng: {"keys": rng.integers(0, 99, (5, 7, 257), np.int32)}),
        Case("rows-float64", {"k": 3}, lambda rng: {"keys": rng.standard_normal((100, 20))}),
        Case("special", arrays=keys_of("float32", 6_001)),
        Case("sweep", {"n": 5_003, "order": "few-unique", "k": 77, "rows": 2}, sweep=True),
    ],
    "unique": [
        *(Case(f"n-{n}", {"n": n}) for n in (0, 1, 2)),
        Case("special", {"counts": True}, keys_of("float32", 6_001)),
        Case("sweep", {"n": 5_003, "counts": True}, sweep=True),
    ],
    "searchsorted": [
        *(Case(f"{n}-{m}", {"n": n, "m": m}) for n, m in ((0, 9), (9, 0), (1, 1), (2_001, 5_003))),
        Case("special", {"right": True}, _among),
        Case("sweep", {"n": 5_003, "m": 3_001}, sweep=True),
    ],
    "gemm": [
        *(Case(f"size-{size}", {"size": size}) for size in (*GEMM_SIZES, 300)),
        *(
            Case(f"shape-{m}x{n}x{k}", {"m": m, "n": n, "k": k})
            for m, n, k in (
                (0, 5, 3),
                (5, 0, 3),
                (5, 3, 0),
                (1, 700, 3),
                (700, 1, 65),
                (33, 65, 700),
            )
        ),
        *(
            Case(
                f"blas-{'NT'[ta]}{'NT'[tb]}-{alpha}-{beta}",
                {**BEYOND, "trans_a": ta, "trans_b": tb, "alpha": alpha, "beta": beta},
                sweep=True,
            )
            for ta, tb, alpha, beta in (
                (False, True, -0.5, 2.0),
                (True, False, -0.5, 2.0),
                (True, True, 1.0, 0.0),
            )
        ),
        Case("no-product", {**RECTANGLE, "alpha": 0.0, "beta": -1.0}),
        Case("float64", {**BEYOND, "dtype": "float64", "beta": 1.0}, sweep=True),
        Case(
            "half-stack",
            {**RECTANGLE, "dtype": "float16", "batch": 3, "bias": "row", "activation": "gelu"},
            sweep=True,
        ),
        Case(
            "complex-stack",
            {**RECTANGLE, "dtype": "complex64", "batch": 2, "trans_a": "C", "bias": "column"},
            sweep=True,
        ),
        Case("relu", {**BEYOND, "alpha": -0.5, "bias": "column", "activation": "relu"}, sweep=True),
        Case("special", arrays=_special_matrices),
        Case("few-columns", {**BEYOND, "n": 3, "beta": 0.5}, sweep=True),
        Case("few-rows", {**BEYOND, "m": 5, "trans_a": True}, sweep=True),
        Case("sweep", BEYOND, sweep=True),
        Case("sweep-TT", {**BEYOND, "trans_a": True, "trans_b": True, "beta": 0.5}, sweep=True),
    ],
    "filter": [
        *(Case(f"size-{size}", {"size": size}) for size in (0, 1, 130)),
        *(Case(name, {**OBLONG, **options}, sweep=True) for name, options in FILTERS.items()),
        Case("colours", {"median": 5}, arrays=_colours),
        Case("special", {"gaussian": 1.0}, arrays=_special_image),
        Case("special-median", {"median": 3}, arrays=_special_image),
        Case("sweep", OBLONG, sweep=True),
    ],
    "conv2d": [
        *(Case(f"size-{size}", {"size": size}) for size in (0, 1, 130)),
        *(
            Case(
                f"{dtype}-{mode}-{boundary}",
                {
                    **OBLONG,
                    "dtype": dtype,
                    "mode": mode,
                    "boundary": boundary,
                    "cval": 2.0,
                    **({"flip": True, "ksize": 4, "batch": 2} if turned else {}),
                    "saturate": dtype == "int16",
                },
                sweep=True,
            )
            for dtype, mode, boundary, turned in PIXELS
        ),
        Case("separable", {**OBLONG, "filter": "gaussian", "ksize": 5, "mode": "full"}, sweep=True),
        Case("colours", {"filter": "emboss", "boundary": "mirror"}, arrays=_colours),
        Case("special", {"filter": "gaussian"}, arrays=_special_image),
        Case("sweep", {**OBLONG, "ksize": 5, "boundary": "reflect"}, sweep=True),
    ],
}
