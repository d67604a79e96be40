#!/usr/bin/env bash
# silx.math.medianfilt with mode="shrink" cuts windows at the borders; of the two numbers that are
# left at the end of a line the median is the larger one, and not their mean as by numpy.median. A NaN
# in the window is left out. silx 3.1.3.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 silx==3.1.3
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from silx.math.medianfilter import medfilt1d

print(medfilt1d(np.array([9, 1, 5, 2, 7], np.float32), 3, mode="shrink"), np.median([9, 1]))
print(medfilt1d(np.array([1, 2, np.nan, 4, 5], np.float32), 3))
END
)
expected=$(cat <<'END'
[9. 5. 2. 5. 7.] 5.0
[1. 2. 4. 5. 5.]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
