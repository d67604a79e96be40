#!/usr/bin/env bash
# scipy.signal.correlate of two bool arrays by method="fft" is almost only True: whatever the transforms
# leave of a zero counts as True. Integers are rounded first, and bool is not. SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np
from scipy.signal import correlate

x = np.zeros(50, bool)
x[[3, 7, 8]] = True
for method in ("direct", "fft"):
    found = correlate(x, x, method=method)
    print(method, found.dtype, "few True" if found.sum() < 10 else "mostly True" if found.sum() > 50 else "?")
print("int8", np.array_equal(*(correlate(*[x.astype("i1")] * 2, method=m) for m in ("direct", "fft"))))
END
)
expected=$(cat <<'END'
direct bool few True
fft bool mostly True
int8 True
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
