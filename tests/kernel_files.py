"""Kernels in files of a user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import KernelText

KERNELS = Path(__file__).parent / "kernels"
N = 3001
X = np.random.default_rng(5).standard_normal(N, dtype=np.float32)


def planted(device, faults, **changes):
    text = KernelText(KERNELS / "planted.cl.mako", None, {"FAULT": faults}, {"WG_SIZE": 16})
    arguments = {"source": X, "doubled": np.empty_like(X), "n": N}
    return kernel_file(text, arguments, "n", outputs=["doubled"], device=device, **changes)
