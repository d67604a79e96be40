"""Rows for tests of tables and plots."""

import numpy as np

from opencl_lab.lab.engine.row import Measurement
from opencl_lab.lab.measuring.samples import Times

FLOAT32 = np.dtype("float32")


def row(name="numpy", milliseconds=2.0, status="correct", **more):
    times = Times(milliseconds, milliseconds, milliseconds, 3)
    kind, _, algorithm = name.partition("[")[0].rpartition(":")
    return Measurement(name, kind or "library", algorithm, status, total_ms=times, **more)
