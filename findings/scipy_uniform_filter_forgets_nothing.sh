#!/usr/bin/env bash
# scipy.ndimage.uniform_filter1d is a running sum: what has left the window stays in its rounding.
# After one large number, means of ones are 0; a NaN fills the rest of the line. correlate1d with
# equal weights has neither. SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from scipy.ndimage import correlate1d, uniform_filter1d

x = np.ones(9)
x[2] = 2.0**60
print(uniform_filter1d(x, 3)[5:], correlate1d(x, np.full(3, 1 / 3))[5:])
x[2] = np.nan
print(np.isnan(uniform_filter1d(x, 3)).sum(), np.isnan(correlate1d(x, np.full(3, 1 / 3))).sum())
END
)
expected=$(cat <<'END'
[0. 0. 0. 0.] [1. 1. 1. 1.]
8 3
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
