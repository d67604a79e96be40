"""Runs of tuning in a file of any format that is known here."""

from __future__ import annotations

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.tuning.clblast import from_clblast
from opencl_lab.lab.tuning.interchange import Recording, from_kernel_tuner, from_t4

__all__ = ["read_recording"]


def read_recording(text: str) -> Recording:
    """Return the run in a file of any format that is known here.

    Raises
    ------
    InvalidProblem
        If it is none of them.
    """
    if '"tune_params_keys"' in text:
        return from_kernel_tuner(text)
    if '"kernel_family"' in text:
        return from_clblast(text)
    if '"schema_version"' in text and '"results"' in text:
        return from_t4(text)
    raise InvalidProblem(
        "this is none of: tuned entries of opencl_lab, a cache file of Kernel Tuner, T4 results, "
        "JSON of CLBlast's tuners"
    )
