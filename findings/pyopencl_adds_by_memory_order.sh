#!/usr/bin/env bash
# Arithmetic of two pyopencl arrays of one shape goes by their memory, not by their indices: where one
# is in C order and the other in Fortran order, as after .T, the sum is wrong without an error.
# pyopencl 2026.1.4 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
import pyopencl as cl
import pyopencl.array

queue = cl.CommandQueue(cl.create_some_context(interactive=False))
a = np.arange(6, dtype=np.float32).reshape(2, 3)
b = np.arange(6, dtype=np.float32).reshape(3, 2)
on_device = cl.array.to_device(queue, a).T + cl.array.to_device(queue, b)
print(on_device.get().tolist())
print((a.T + b).tolist())
END
)
expected=$(cat <<'END'
[[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]
[[0.0, 4.0], [3.0, 7.0], [6.0, 10.0]]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
