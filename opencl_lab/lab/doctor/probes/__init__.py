"""The probes: one function each, run in a child process by `opencl_lab.lab.doctor.child`.

A probe is a generator of steps, plain JSON-able dicts. A step with a
``trying`` says what is attempted next and what holds so far; when the driver
takes the process down there, that is the finding. The last step has a
``verdict`` and ends the probe:

``ok``
    It works.
``no``
    The device does not claim it and it does not work either.
``limited``
    It works, up to less than the device claims; ``value`` says how far.
``broken``
    The device claims it and it fails.

Everything is checked by running: several drivers compile at the first launch
only, and several build what they then compute wrongly.
"""

from __future__ import annotations

from opencl_lab.lab.doctor.probes.behaviour import (
    barriers_in_loops,
    event_timing,
    forward_progress,
    usable,
    visible_writes,
)
from opencl_lab.lab.doctor.probes.features import fp16, fp64, inline_ptx, int64_atomics, subgroups
from opencl_lab.lab.doctor.probes.limits import local_memory, max_work_group, vector_bytes
from opencl_lab.lab.doctor.probes.matrix import (
    declared_memory,
    flops16_matrix,
    flops32_matrix,
    flops64_matrix,
    matrix_units,
    warpgroup_matrix_units,
)
from opencl_lab.lab.doctor.probes.throughput import (
    cached_bytes,
    copy_bytes,
    flops32,
    flops64,
)
from opencl_lab.lab.doctor.probes.transfers import (
    fetch_bytes,
    fetch_plain_bytes,
    send_bytes,
    send_plain_bytes,
)

__all__ = [
    "barriers_in_loops",
    "cached_bytes",
    "copy_bytes",
    "declared_memory",
    "event_timing",
    "fetch_bytes",
    "fetch_plain_bytes",
    "flops16_matrix",
    "flops32",
    "flops32_matrix",
    "flops64",
    "flops64_matrix",
    "forward_progress",
    "fp16",
    "fp64",
    "inline_ptx",
    "int64_atomics",
    "local_memory",
    "matrix_units",
    "max_work_group",
    "send_bytes",
    "send_plain_bytes",
    "subgroups",
    "usable",
    "vector_bytes",
    "visible_writes",
    "warpgroup_matrix_units",
]
