#!/usr/bin/env bash
# numpy.unique of datetime64 with equal_nan=False returns one NaT, and two if counts are asked for as
# well. With axis=0 it never joins rows that have NaN, whatever equal_nan says. NumPy 2.4.6.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import numpy as np

times = np.array(["NaT", "2020-01-01", "NaT"], "M8[D]")
print(len(np.unique(times, equal_nan=False)))
print(len(np.unique(times, equal_nan=False, return_counts=True)[0]))
rows = np.array([[np.nan], [np.nan], [1]])
print(len(np.unique(rows)), len(np.unique(rows, axis=0, equal_nan=True)))
END
)
expected=$(cat <<'END'
2
3
2 3
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
