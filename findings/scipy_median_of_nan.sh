#!/usr/bin/env bash
# scipy.ndimage.median_filter of the same seven numbers, one of them NaN, depends on the number of
# dimensions: another algorithm serves one dimension. In 1-D the NaN fills its window here, in 2-D it
# acts as the least or the largest number, by its place in the window. SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from scipy.ndimage import median_filter

x = np.array([1, 2, np.nan, 4, 5, 6, 7])
print(median_filter(x, 3))
print(median_filter(x[None], (1, 3))[0])
END
)
expected=$(cat <<'END'
[ 1. nan nan nan  5.  6.  7.]
[1. 1. 2. 5. 5. 6. 7.]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
