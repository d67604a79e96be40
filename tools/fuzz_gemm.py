"""Random matrix products by all algorithms, compared with NumPy in float64.

    python tools/fuzz_gemm.py --seconds 600 --seed 1
    python tools/fuzz_gemm.py --seed 1 --case 4711

Each case is a product of random shape, type, layout and options, on the host or on the device, by
one algorithm with one configuration, computed two or three times with different data, so that it
may be replayed. Some have NaN, infinities and denormals among their numbers, or a limit of the
device's memory. The checks are about values, within the error bound of a sum of k products; values
that are not finite, which must be where NumPy's are; `out`; and all memory around it.

The device is that of ``OCLAB_DEVICE``. The exit status is 1 if a check fails.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fuzz.arrays import Arrays
from fuzz.calls import Data
from fuzz.command_line import run_cases
from fuzz.drawer import Drawer
from fuzz.world import World, on_device

import opencl_lab as ol
from opencl_lab.core.errors import InvalidConfig, OclabError
from opencl_lab.lab.ops.gemm.references import gelu
from opencl_lab.ops.gemm import functions
from opencl_lab.ops.gemm.host import panels

SMALL = {
    "naive": ({"WG_M": 2, "WG_N": 4},),
    "tiled": ({"TILE": 8, "UNROLL": 4},),
    "blocked": (
        {"WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "SPLITS": 1},
        {"WORK_M": 2, "WORK_N": 4, "WG_M": 4, "WG_N": 4, "TILE_K": 8, "SPLITS": 3},
    ),
    "direct": ({"ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4}, {"ROWS": 3, "VECTORS": 1}),
    "gemv": ({"SPLITS": 2}, {"VECTOR": 4, "ROWS": 2, "SPLITS": 1}),
    "packed": (
        {"ROWS": 4, "VECTORS": 2, "VECTOR_WIDTH": 4, "TILE_K": 8, "UNROLL": 2},
        {"ROWS": 4, "VECTORS": 1, "VECTOR_WIDTH": 8, "TILE_K": 16, "UNROLL": 4, "SPLITS": 3,
         "PACK_B": "ahead", "PRODUCTS": 1},
        {"ROWS": 2, "VECTORS": 2, "VECTOR_WIDTH": 4, "PACK_A": True, "PACK_B": "panel"},
        {"ROWS": 2, "VECTORS": 1, "VECTOR_WIDTH": 4, "PACK_A": False, "PACK_B": "none"},
    ),
}  # fmt: skip
"""Configurations with inner tiles and edges in small matrices; they may not fit a problem."""
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 3e-8, 6e4)
LIMIT = "OCLAB_DEVICE_BYTES"


@dataclass(frozen=True)
class Case:
    """A product: its arrays, options, and how its numbers and its memory are."""

    data: tuple[Data, ...]
    options: dict[str, Any]
    out: Data | None = None
    special: bool = False
    limit: str = ""

    def __str__(self) -> str:
        how = " with NaN and infinities" * self.special + f" limit {self.limit}" * bool(self.limit)
        items = [*self.data, *([self.out] if self.out else [])]
        return "\n".join([f"gemm {self.options}{how}", *(f"    {item}" for item in items)])


def size_of(d: Drawer) -> int:
    """Draw a size: mostly small, sometimes one that has inner tiles of all algorithms."""
    if d.chance(0.03):
        return 0
    return int(d.rng.integers(100, 600) if d.chance(0.2) else d.rng.integers(1, 41))


def draw(d: Drawer) -> Case:
    """Draw a case."""
    m, n, k = size_of(d), size_of(d), size_of(d)
    if d.chance(0.2):
        m, n = (1, n) if d.chance(0.5) else (m, 1)
    if d.chance(0.1):
        k = int(d.pick((1, 2, 2000, 5000)))
    dtypes = ("f4", "f4", "f2", "c8", "f8", "c16") if d.double else ("f4", "f2", "c8")
    dtype, resident = str(d.pick(dtypes)), d.chance(0.4)
    ahead: list[tuple[int, ...]] = [(), (), ()]
    if d.chance(0.3) and m * n * k < 1 << 22:
        ahead = d.pick([
            [(3,), (3,), (3,)], [(4,), (), (4,)], [(), (2,), (2,)], [(2, 3), (3,), (2, 3)],
            [(2, 1, 2), (3, 1), (2, 3, 2)], [(0,), (), (0,)], [(1,), (1, 1), (1, 1)],
        ])  # fmt: skip
    words = ("T", "C", "N", True, False)
    options: dict[str, Any] = {f"trans_{x}": d.pick(words) for x in "ab" if d.chance(0.4)}
    turned = {x: options.get(f"trans_{x}", "N") in ("T", "C", True) for x in "ab"}
    a = d.data("a", (*ahead[0], *((k, m) if turned["a"] else (m, k))), dtype, resident)
    b = d.data("b", (*ahead[1], *((n, k) if turned["b"] else (k, n))), dtype, resident, (a,), 0.1)
    data, shape = [a, b], (*ahead[2], m, n)
    factors = (0, 2.5, -1.0, 1, 1e-3) + ((0.5 - 2j,) if dtype[0] == "c" else ())
    if d.chance(0.4):
        options["alpha"] = d.pick(factors)
    if d.chance(0.3):
        options["beta"] = d.pick(factors)
        data.append(d.data("c", shape, dtype, resident, tuple(data), 0.1))
    if d.chance(0.25):
        kind = d.pick(((n,), (1, n), (m, 1)))
        data.append(d.data("bias", kind, dtype, resident, tuple(data), 0.1))
    if d.chance(0.25) and dtype[0] != "c":
        options["activation"] = d.pick(("relu", "gelu"))
    options |= algorithm(d)
    out = None
    if d.chance(0.4):
        out = d.data("out", shape, dtype, resident, tuple(data), 0.5, out=True)
    nbytes = (m * k + k * n + m * n) * np.dtype(dtype).itemsize
    limit = str(int(nbytes * d.rng.uniform(0.2, 3)) + 1000) if d.chance(0.3) else ""
    # Lists and what is no result are refused; queues are what `fuzz_replay` is about.
    data = [replace(x, layout=replace(x.layout, queue=0), wrapped="") for x in data]
    if out is not None:
        out = replace(out, layout=replace(out.layout, queue=0, locked=False, swapped=False))
        if any(0 in item.layout.steps for item in data):  # which holds no result
            out = replace(out, alias=None)
    return Case(tuple(data), options, out, d.chance(0.25), limit)


def algorithm(d: Drawer) -> dict[str, Any]:
    """Draw an algorithm, and sometimes a configuration of it."""
    name = d.pick(("auto", "auto", "hybrid", *SMALL, "packed", "blocked"))
    if name in SMALL and d.chance(0.7):
        return {"algorithm": name, "config": d.pick(SMALL[name])}
    return {"algorithm": name} if d.chance(0.9) or name != "auto" else {}


def values_of(world: World, array: Any) -> np.ndarray:
    """Return a copy of an array, on the host and in C order."""
    if not on_device(array):
        return np.array(array)
    return np.frombuffer(world.content(array), array.dtype).reshape(array.shape).copy()


def numbers(case: Case, shape: tuple[int, ...], dtype: np.dtype, rng: Any) -> np.ndarray:
    """Return random numbers, some of them special if the case says so."""
    made = rng.standard_normal(shape)
    if dtype.kind == "c":
        made = made + 1j * rng.standard_normal(shape)
    with np.errstate(all="ignore"):
        made = np.asarray(made).astype(dtype)
        if case.special and made.size:
            places = rng.integers(made.size, size=int(rng.integers(1, 4)))
            made.reshape(-1)[places] = rng.choice(SPECIALS, places.size)
    return made


def expected(case: Case, given: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the right result in float64 or complex128, and the bound of its errors."""
    dtype = given["a"].dtype.newbyteorder("=")
    wide = np.complex128 if dtype.kind == "c" else np.float64
    sums = np.dtype("f4") if dtype == np.float16 else dtype
    alpha = complex(sums.type(case.options.get("alpha", 1)))
    beta = complex(sums.type(case.options.get("beta", 0)))
    factors = []
    for name in "ab":
        word, factor = case.options.get(f"trans_{name}", "N"), given[name].astype(wide)
        factor = factor.swapaxes(-1, -2) if word in ("T", "C", True) else factor
        factors.append(factor.conj() if word == "C" else factor)
    right = np.matmul(np.zeros_like(factors[0]), np.zeros_like(factors[1]))
    right[...] = 0
    size, k = np.abs(right), factors[0].shape[-1]
    if alpha:
        right = np.matmul(*factors) * (alpha if dtype.kind == "c" else alpha.real)
        size = abs(alpha) * np.matmul(*map(np.abs, factors))
        if not k:
            right[...], size[...] = 0, 0
    if beta:
        c = given["c"].astype(wide)
        right = right + (beta if dtype.kind == "c" else beta.real) * c
        size = size + abs(beta) * np.abs(c)
    if "bias" in given:
        right, size = right + given["bias"].astype(wide), size + np.abs(given["bias"].astype(wide))
    real = np.finfo(sums)
    bound = 4 * (k + 8) * float(real.eps) * size + (k + 8) * float(real.tiny)
    kind = case.options.get("activation")
    if kind == "relu":
        right = np.where(right < 0, 0, right)
    elif kind == "gelu":
        right = gelu(right)
        bound = 2 * bound + 40 * float(real.eps) * (size + 1)
    if dtype == np.float16:
        bound = bound + 2.0**-11 * np.abs(right) + 2.0**-25
    return right, bound


def wrong(got: np.ndarray, right: np.ndarray, bound: np.ndarray) -> str:
    """Return what is wrong about a result, or nothing."""
    if got.shape != right.shape:
        return f"shape {got.shape} instead of {right.shape}"
    wide = got.astype(right.dtype)
    with np.errstate(all="ignore"):
        near = np.abs(wide - right) <= bound
        if got.dtype.kind == "c":  # which part of an infinity is infinite is nobody's promise
            same = ~np.isfinite(wide) & ~(np.isfinite(right) & np.isfinite(bound))
        else:
            same = (np.isnan(wide) & np.isnan(right)) | (wide == right)
            most = float(np.finfo(got.dtype).max)
            same |= (
                np.isinf(wide)
                & (np.sign(wide) == np.sign(right))
                & (np.abs(right) + bound > most * (1 + 2**-12))
            )
    bad = ~(near | same)
    if not bad.any():
        return ""
    at = tuple(int(place) for place in np.argwhere(bad)[0])
    return (
        f"{int(bad.sum())} of {bad.size} wrong; at {at}: {got[at]}, not {right[at]} +- {bound[at]}"
    )


def perform(world: World, case: Case, seed: list[int]) -> tuple[str, str]:
    """Make a product once; return what is wrong, and the error that it ended with."""
    rng = np.random.default_rng(seed)
    arrays = Arrays(world, lambda shape, dtype, rng: numbers(case, shape, dtype, rng))
    made = {item.name: arrays.make(item, rng) for item in case.data}
    out = arrays.make(case.out, rng) if case.out is not None else None
    world.finish()
    given = {name: values_of(world, array) for name, array in made.items()}
    before = arrays.bytes()
    named = {name: array for name, array in made.items() if name not in "ab"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ol.gemm(made["a"], made["b"], **named, **case.options, out=out)
    except InvalidConfig as problem:
        return "", str(problem)
    except OclabError as problem:
        few = case.limit and "too few for" in str(problem)
        return "" if few else f"{type(problem).__name__}: {problem}", str(problem)
    except Exception as problem:  # nothing else may come out
        traceback.print_exc()
        return f"{type(problem).__name__}: {problem}", str(problem)
    world.finish()
    with np.errstate(all="ignore"):
        right, bound = expected(case, given)
    got = values_of(world, result)
    texts = [wrong(got, right, bound)]
    if out is not None and result is not out:
        texts.append("the result is not out")
    texts += around(world, arrays, before, out, got)
    return "; ".join(filter(None, texts)), ""


def around(
    world: World, arrays: Arrays, before: dict[str, bytes], out: Any, got: np.ndarray
) -> list[str]:
    """Return which memory has changed that must not."""
    found = []
    target = arrays.blocks.get("out")
    for name, after in arrays.bytes().items():
        right = before[name]
        if out is not None and arrays.blocks[name] is target and out.size:
            block = np.frombuffer(right, np.uint8).copy()
            offset = out.offset if on_device(out) else out.ctypes.data - target.ctypes.data
            np.ndarray(out.shape, out.dtype, block.data, offset, out.strides)[...] = got
            right = block.tobytes()
        if after != right:
            found.append(f"memory around {name} has changed")
    return found


def check(world: World, seed: int, case: int) -> list[str]:
    """Make the products of one case; return what is wrong."""
    drawer = Drawer(world, np.random.default_rng([seed, case]))
    drawn = draw(drawer)
    name = drawn.options.get("algorithm", "auto")
    world.counts[name] += 1
    found = []
    for place in range(3):
        limited = drawn.limit and place != 1  # the limit may change between calls
        os.environ[LIMIT] = drawn.limit if limited else ""
        text, error = perform(world, drawn, [seed, case, place])
        world.errors[name] += bool(error)
        if text:
            found.append(f"call {place}: {text}\n{drawn}")
        if error:
            break
    return found


if __name__ == "__main__":
    functions.LARGE = panels.SMALL = 0  # small matrices go tile by tile, too, where a limit says so
    sys.exit(run_cases(str(__doc__), check))
