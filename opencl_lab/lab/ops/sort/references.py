"""Sorts by other libraries, as references."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

from opencl_lab.core.errors import ReferenceUnavailable
from opencl_lab.lab.reference.descriptor import Arrays


def numpy_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Sort rows by `numpy.sort`; descending results are reversed ascending ones."""
    keys = np.sort(inputs["keys"], axis=-1)
    return {"sorted": keys[:, ::-1] if problem.descending else keys}


def torch_sort(problem: Any, inputs: Arrays, threads: int) -> Arrays:
    """Sort rows by `torch.sort` on the processor, which also computes indices."""
    torch = importlib.import_module("torch")
    try:
        result = torch.sort(torch.from_numpy(inputs["keys"]), descending=problem.descending)
    except (RuntimeError, TypeError) as error:
        reason = f"PyTorch does not sort {problem.dtype}: {str(error).splitlines()[0]}"
        raise ReferenceUnavailable(reason) from error
    return {"sorted": result.values.numpy()}


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
