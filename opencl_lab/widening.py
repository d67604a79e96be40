"""The launch that converts half precision to float32, for all that read float16 as it is stored."""

from __future__ import annotations

import numpy as np

from opencl_lab.plan import Launch, round_up

__all__ = ["WIDEN", "widening"]

WIDEN = "common/widen.cl.mako"


def widening(source: str, target: str, count: int, wg_size: int) -> Launch:
    """Return the launch that converts `count` numbers of float16 to float32, eight an item."""
    return Launch(
        template=WIDEN,
        kernel="widen",
        params={"WG_SIZE": wg_size},
        global_size=(round_up(-(-count // 8), wg_size),),
        local_size=(wg_size,),
        arguments={"source": source, "target": target, "count": np.uint64(count)},
    )
