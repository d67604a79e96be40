"""Sorts by other libraries, as references."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays


def numpy_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Sort rows as a NumPy user does; descending is the ascending result, reversed."""
    keys = np.sort(inputs["keys"], axis=-1)
    return {"sorted": keys[:, ::-1] if problem.descending else keys}


def torch_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Sort rows by `torch.sort` on the processor, which makes indices, too.

    Raises
    ------
    ReferenceUnavailable
        For types that PyTorch does not sort.
    """
    torch = importlib.import_module("torch")
    try:
        result = torch.sort(torch.from_numpy(inputs["keys"]), descending=problem.descending)
    except (RuntimeError, TypeError) as error:
        reason = f"PyTorch sorts no {problem.dtype}: {str(error).splitlines()[0]}"
        raise ReferenceUnavailable(reason) from error
    return {"sorted": result.values.numpy()}


def _avx512_features() -> list[str]:
    """Return the AVX-512 code paths that this NumPy uses, by the names that it gives them."""
    try:
        found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    except (TypeError, KeyError):  # an old NumPy, or one built without dispatch
        return []
    return [name for name in found if name.startswith("AVX512") or name == "X86_V4"]


def numpy_avx2_environment() -> dict[str, str]:
    """Return the environment in which NumPy sorts with AVX2 where here it uses AVX-512.

    On some processors (AMD Zen 4) its AVX-512 sort is several times slower. Only
    names that this NumPy knows are disabled, as it warns of all others.
    """
    features = _avx512_features()
    if not features:
        return {}
    disabled = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split()
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join([*disabled, *features]),
        "NPY_ENABLE_CPU_FEATURES": "",  # NumPy refuses to have both
    }


def no_avx512_sort() -> str | None:
    """Return why sorting with AVX2 would not differ from plain NumPy here, or None."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return f"NumPy {np.__version__} has no AVX2 sort; it came with 2.0"
    if not _avx512_features():
        return "NumPy does not use AVX-512 here, so that plain numpy is the same"
    return None
