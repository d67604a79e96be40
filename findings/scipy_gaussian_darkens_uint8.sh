#!/usr/bin/env bash
# scipy.ndimage.gaussian_filter of a constant uint8 image darkens it: results are truncated, not
# rounded, after each axis, and the weights add up to a little less than 1. So 1 becomes 0, and 100
# becomes 98 in two dimensions. SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from scipy.ndimage import gaussian_filter

for value in (1, 100):
    shapes = ((9,), (9, 9))
    print([np.unique(gaussian_filter(np.full(s, value, np.uint8), 2.5)).tolist() for s in shapes])
END
)
expected=$(cat <<'END'
[[0], [0]]
[[99], [98]]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
