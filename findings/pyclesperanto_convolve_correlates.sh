#!/usr/bin/env bash
# pyclesperanto.convolve does not turn the kernel around: it is what scipy.ndimage calls correlate. A kernel that
# shifts an image up by one row shifts it down. pyclesperanto 0.25.1 on PoCL 3.0, beside SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 "pyclesperanto[opencl]==0.25.1"
libs=$(echo "$work"/venv/lib/python3*/site-packages/pyopencl/.libs) # PoCL's, for the loader of pyclesperanto
seen=$(LD_LIBRARY_PATH="$libs" OCL_ICD_VENDORS="$libs" "$work/venv/bin/python" - <<'END'
import numpy as np
import pyclesperanto as cle
from scipy import ndimage

x, weights = np.zeros((5, 5), np.float32), np.zeros((3, 3), np.float32)
x[2, 2] = weights[0, 1] = 1
for name, y in (
    ("pyclesperanto.convolve", cle.pull(cle.convolve(x, weights))),
    ("scipy.ndimage.convolve", ndimage.convolve(x, weights)),
    ("scipy.ndimage.correlate", ndimage.correlate(x, weights)),
):
    print(name, np.argwhere(y).tolist())
END
)
expected=$(cat <<'END'
pyclesperanto.convolve [[3, 2]]
scipy.ndimage.convolve [[1, 2]]
scipy.ndimage.correlate [[3, 2]]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
