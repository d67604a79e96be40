"""Two plans as one: what the first gives, the second takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_lab.core.plan import Plan
from opencl_lab.ops.sort.solver import SORT_SOLVER

__all__ = ["SORT_TEMPLATES", "followed"]

SORT_TEMPLATES = tuple(
    dict.fromkeys(name for algorithm in SORT_SOLVER.algorithms for name in algorithm.templates)
)
"""Templates of a sort by whichever algorithm is the fastest."""


def followed(
    first: Plan,
    second: Plan,
    handed: Mapping[str, str],
    results: Mapping[str, tuple[str, np.dtype[Any]]],
) -> Plan:
    """Return the launches of both, one after the other.

    The inputs of the first are those of the whole. `handed` says which buffer of the first an input
    of the second is, and `results` the names and types that outputs of the second have in the
    whole.
    """
    inner = {b.name: b.name if b.role == "in" else f"first_{b.name}" for b in first.buffers}
    outer = {b.name: f"then_{b.name}" for b in second.buffers}
    outer |= {name: result for name, (result, _) in results.items()}
    outer |= {name: inner[given] for name, given in handed.items()}
    types = {name: dtype for name, (_, dtype) in results.items()}
    buffers = [
        replace(b, name=inner[b.name], role="scratch" if b.role == "out" else b.role)
        for b in first.buffers
    ]
    buffers += [
        replace(b, name=outer[b.name], dtype=types.get(b.name, b.dtype))
        for b in second.buffers
        if b.name not in handed
    ]
    launches = [launch.renamed(inner) for launch in first.launches]
    launches += [launch.renamed(outer) for launch in second.launches]
    return Plan(tuple(buffers), tuple(launches))
