"""The launch that converts half precision to float32, for all that read float16 as it is stored."""

from __future__ import annotations

import numpy as np

from opencl_lab.core.kernels import item_launch
from opencl_lab.core.plan import Argument, Launch, ceil_divide

__all__ = ["WIDEN", "widening"]

WIDEN = "common/widen.cl.mako"


def widening(source: str, target: str, count: int, wg_size: int) -> Launch:
    """Return the launch that converts `count` numbers of float16 to float32, eight an item."""
    arguments: dict[str, Argument] = {
        "source": source,
        "target": target,
        "count": np.uint64(count),
    }
    return item_launch(WIDEN, "widen", ceil_divide(count, 8), {"WG_SIZE": wg_size}, arguments)
