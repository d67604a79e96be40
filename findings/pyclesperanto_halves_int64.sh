#!/usr/bin/env bash
# pyclesperanto.push keeps the lower 32 bits of 64-bit integers without a word: 2^32 + 5 comes back as 5, and the
# array as int32. pyclesperanto 0.25.1 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 "pyclesperanto[opencl]==0.25.1"
libs=$(echo "$work"/venv/lib/python3*/site-packages/pyopencl/.libs) # PoCL's, for the loader of pyclesperanto
seen=$(LD_LIBRARY_PATH="$libs" OCL_ICD_VENDORS="$libs" "$work/venv/bin/python" - <<'END'
import numpy as np
import pyclesperanto as cle

for dtype in (np.int64, np.uint64):
    y = cle.pull(cle.push(np.full((2, 2), 2**32 + 5, dtype)))
    print(y.dtype, y[0, 0])
END
)
expected=$(cat <<'END'
int32 5
uint32 5
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
