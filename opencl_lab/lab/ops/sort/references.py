"""Sorts by other libraries, as references."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from opencl_lab.lab.reference.descriptor import Arrays


def sorted_rows(
    problem: Any, module: Any, keys: Any, has_nan: bool | None = None, **how: Any
) -> Any:
    """Sort by NumPy or CuPy; descending results are reversed ascending ones, with NaN last."""
    return in_order(problem, module, module.sort(keys, axis=-1, **how), has_nan)


def in_order(problem: Any, module: Any, rows: Any, has_nan: bool | None = None) -> Any:
    """Return rows of NumPy or CuPy, which are ascending, in the order of the problem.

    `has_nan`, whether a descending row has NaN, is needed on a device: a look there would wait.
    """
    if not problem.descending:
        return rows
    n = rows.shape[-1]
    if has_nan is None:
        has_nan = problem.dtype.kind == "f" and np.isnan(rows[..., -1:]).any()
    if not has_nan:
        return rows[..., ::-1]
    numbers = (rows == rows).sum(-1, keepdims=True)
    return module.take_along_axis(rows, (numbers - 1 - module.arange(n)) % n, axis=-1)


def numpy_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Sort rows by `numpy.sort`."""
    return {"sorted": sorted_rows(problem, np, inputs["keys"])}


def torch_rows(problem: Any, module: Any, keys: Any, has_nan: bool | None = None) -> Any:
    """Sort by `torch.sort`, which puts NaN first in descending order, unless signs are changed."""
    rows: Any = None if has_nan else module.sort(keys, descending=problem.descending).values
    if has_nan is None and problem.descending and problem.dtype.kind == "f":
        has_nan = module.isnan(rows[..., :1]).any()
    return -module.sort(-keys).values if has_nan else rows


def _avx512_features() -> list[str]:
    """Return NumPy's names of the AVX-512 code paths that it uses here."""
    try:
        found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    except (TypeError, KeyError):  # an old NumPy, or one built without dispatch
        return []
    return [name for name in found if name.startswith("AVX512") or name == "X86_V4"]


def numpy_avx2_environment() -> dict[str, str]:
    """Return environment variables that make NumPy sort with AVX2 instead of AVX-512.

    On some processors (AMD Zen 4), its AVX-512 sort is several times slower. Only names that this
    NumPy knows are disabled, since it warns about others.
    """
    features = _avx512_features()
    if not features:
        return {}
    disabled = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split()
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join([*disabled, *features]),
        "NPY_ENABLE_CPU_FEATURES": "",  # NumPy does not accept both
    }


def no_avx512_sort() -> str | None:
    """Return why `numpy:avx2` is unavailable or equal to `numpy` here, or None."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return f"NumPy {np.__version__} has no AVX2 sort; NumPy 2.0 has"
    if not _avx512_features():
        return "NumPy does not use AVX-512 here, so plain numpy is the same"
    return None
