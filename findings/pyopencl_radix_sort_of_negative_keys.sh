#!/usr/bin/env bash
# pyopencl.algorithm.RadixSort with int32 keys puts the negative ones last: it sorts by the bits of
# the keys, also where key_dtype is signed. pyopencl 2026.1.4 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 mako==1.4.3 numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl.algorithm import RadixSort

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
sort = RadixSort(context, "int *k", "k[i]", ["k"], key_dtype=np.int32)
(keys,), _ = sort(cl.array.to_device(queue, np.array([3, -1, 2, -7], np.int32)))
print(keys.get())
END
)
expected=$(cat <<'END'
[ 2  3 -7 -1]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
