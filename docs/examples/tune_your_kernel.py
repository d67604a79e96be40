"""Tune a kernel of your own: a moving mean. `oclab tune blur.cl.mako` does the same.

Run it as a script, with the number of seconds to spend:

    python docs/examples/tune_your_kernel.py 20

The kernel says itself what its arguments are. The same sandbox, correctness gate, journal and
database serve it as serve the operations of the package.
"""

import sys
from pathlib import Path

import numpy as np

import opencl_lab as ol

x = np.random.default_rng(1).standard_normal(1_000_003, dtype=np.float32)
result = ol.tune_kernel(
    Path(__file__).with_name("blur.cl.mako"),
    params={"WG_SIZE": (64, 1, 4, 16, 256), "WORK_PER_ITEM": (1, 4, 16, 64, 256, 1024)},
    fixed={"RADIUS": 8},
    arguments={"source": x, "blurred": np.empty_like(x), "n": x.size},
    global_size="ceil_div(n, WORK_PER_ITEM)",
    expected=np.convolve(x, np.full(17, 1 / 17), mode="same"),
    time_limit=float(sys.argv[1]) if len(sys.argv) > 1 else 20.0,
)
print(f"best: {result.best.config}, {result.speedup:.2f} times as fast as the first configuration")
