#!/usr/bin/env bash
# numpy.searchsorted of int64 among uint64 numbers compares both as float64: near 2^62, where float64
# has steps of 1,024, all numbers of this row are equal to it, and all places are 0 (right: 25 and
# 99). The operators compare such numbers exactly. NumPy 2.4.6.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np

keys = np.arange(2**62, 2**62 + 100, dtype=np.uint64)
values = np.array([2**62 + 25, 2**62 + 99])
print(np.searchsorted(keys, values), np.searchsorted(keys, values.astype(np.uint64)))
print(keys[25] == values[0], keys[24] == values[0])
END
)
expected=$(cat <<'END'
[0 0] [25 99]
True False
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
