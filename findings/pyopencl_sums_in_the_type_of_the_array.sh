#!/usr/bin/env bash
# pyopencl.array.sum of bytes wraps around, where numpy.sum takes 64 bits: ten times 200 are 208 and
# not 2000. dtype= cures it. A sum of truth values is refused. pyopencl 2026.1.4 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 mako==1.4.3 numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
import pyopencl as cl
import pyopencl.array

queue = cl.CommandQueue(cl.create_some_context(interactive=False))
x = np.full(10, 200, np.uint8)
on_device = cl.array.to_device(queue, x)
print(cl.array.sum(on_device), cl.array.sum(on_device, dtype=np.uint64), x.sum())
try:
    print(cl.array.sum(cl.array.to_device(queue, x > 0)))
except ValueError as error:
    print(error)
END
)
expected=$(cat <<'END'
208 2000 2000
unable to map dtype 'bool'
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
