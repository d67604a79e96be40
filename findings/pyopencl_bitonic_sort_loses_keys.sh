#!/usr/bin/env bash
# pyopencl.bitonic_sort.BitonicSort of four keys, one of them NaN, returns other keys than it got: one
# is lost and one comes twice. Its exchanges take the minimum and the maximum by separate comparisons.
# pyopencl 2026.1.4 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 mako==1.4.3 numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.bitonic_sort import BitonicSort

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
keys = cl.array.to_device(queue, np.array([3, 1, np.nan, 2], np.float32))
BitonicSort(context)(keys)
print(keys.get())
END
)
expected=$(cat <<'END'
[1. 3. 1. 3.]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
