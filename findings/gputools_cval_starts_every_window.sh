#!/usr/bin/env bash
# cval of gputools' uniform_filter, min_filter and max_filter is no value beyond the edges: every window
# starts with it. Means far from the edges become larger by it, once for each axis; maxima are never less.
# gputools 0.3.1 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 mako==1.4.3 gputools==0.3.1
seen=$("$work/venv/bin/python" - <<'END'
import contextlib
import io

import numpy as np
from scipy import ndimage

with contextlib.redirect_stdout(io.StringIO()):
    import gputools
from gputools.convolve import max_filter, uniform_filter

gputools.init_device(use_gpu=False)
x = np.ones((9, 9), np.float32)
mean = uniform_filter(x, 3, cval=1)[4, 4].round(3)
print("mean ", mean, ndimage.uniform_filter(x, 3, mode="constant", cval=1)[4, 4])
print("max  ", max_filter(x, 3, cval=5)[4, 4], ndimage.maximum_filter(x, 3, mode="constant", cval=5)[4, 4])
END
)
expected=$(cat <<'END'
mean  3.0 1.0
max   5.0 1.0
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
