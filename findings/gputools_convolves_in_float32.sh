#!/usr/bin/env bash
# gputools.convolve turns float64 arrays into float32 without a word: 1 + 2^-40 becomes 1, and the
# result is float32. gputools 0.3.1 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 mako==1.4.3 gputools==0.3.1
seen=$("$work/venv/bin/python" - <<'END'
import contextlib
import io

import numpy as np

with contextlib.redirect_stdout(io.StringIO()):
    import gputools

gputools.init_device(use_gpu=False)
x = np.full((4, 4), 1 + 2.0**-40)
y = gputools.convolve(x, np.ones((1, 1)))
print(y.dtype, y[0, 0] == 1, x[0, 0] == 1)
END
)
expected=$(cat <<'END'
float32 True False
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
