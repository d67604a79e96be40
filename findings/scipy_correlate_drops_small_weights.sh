#!/usr/bin/env bash
# scipy.ndimage.correlate leaves out weights whose magnitude is at most 2.2e-16, whatever the size of
# the others or of the data; correlate1d does not. A filter of 2e-16 alone gives zeros. SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from scipy.ndimage import correlate, correlate1d

x = np.full(3, 1e16)
for weight in (2e-16, 3e-16):
    print(correlate(x, [0, weight, 0]), correlate1d(x, [0, weight, 0]))
END
)
expected=$(cat <<'END'
[0. 0. 0.] [2. 2. 2.]
[3. 3. 3.] [3. 3. 3.]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
