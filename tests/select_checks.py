"""What several tests of selection share."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array
from radix_checks import specials
from sort_checks import stable_order

from opencl_lab.ops.select.topk import SELECTION
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

SELECT = SELECTION
GROUPS = {"WG_SIZE": 64, "ITEM_KEYS": 4}
N = 20_011  # cut into parts, of which the last one is shorter


def right_topk(keys, k, largest=True):
    order = stable_order(keys, largest, nan_first=True)[..., :k]
    return np.take_along_axis(keys, order, -1), order


def check(results, expected):
    """Check values and indices bit by bit, of either side."""
    for got, right in zip(results, expected, strict=True):
        got = got.get() if isinstance(got, cl.array.Array) else got
        assert got.dtype == right.dtype and got.shape == right.shape
        assert got.tobytes() == np.ascontiguousarray(right).tobytes()


def hard_floats(rng, shape, dtype="float32"):
    """Return floats with many NaN of both signs, zeros of both signs, and infinities."""
    keys = rng.standard_normal(shape).astype(dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(specials(dtype), shape), keys)


def run_select(problem, keys, queue, label, device=None, algorithm=SELECT, **config):
    """Return values and places of a plan made anew."""
    device = device or session_of(queue).device
    plan = algorithm.plan(problem, algorithm.configure(problem, device, config), device)
    executable = session_of(queue).executable(("test", label), lambda: plan)
    outputs = execute(executable, {"keys": keys}, queue).outputs
    return plan, outputs["values"], outputs["places"]
