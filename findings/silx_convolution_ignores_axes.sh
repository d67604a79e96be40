#!/usr/bin/env bash
# silx's Convolution checks the axes of a batched convolution and then takes the last ones, whichever were
# asked for: lines along axis 0 are convolved along axis 1, and so are those along axis 1. A kernel of two
# dimensions always goes over the last two axes of a volume. silx 3.1.3 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 mako==1.4.3 silx==3.1.3
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from silx.opencl.convolution import Convolution


def extent(shape, weights, axes):
    """Return by how many places a single one is spread along each axis."""
    x = np.zeros(shape, np.float32)
    x[tuple(n // 2 for n in shape)] = 1
    y = Convolution(shape, np.ones(weights, np.float32), axes=axes)(x)
    return [int(np.ptp(places)) + 1 for places in np.nonzero(y)]


for axis in range(2):
    print("lines of an image, axis", axis, extent((8, 8), (3,), (axis,)))
for axis in range(3):
    print("images of a volume, axis", axis, extent((8, 8, 8), (3, 3), (axis,)))
END
)
expected=$(cat <<'END'
lines of an image, axis 0 [1, 3]
lines of an image, axis 1 [1, 3]
images of a volume, axis 0 [1, 3, 3]
images of a volume, axis 1 [1, 3, 3]
images of a volume, axis 2 [1, 3, 3]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
