#!/usr/bin/env bash
# Where a descending sort puts NaN, and whether 0.0 and -0.0 are one value, differ between the
# libraries: NaN is first in Polars and last in pandas and Arrow; Arrow has two zeros where the others
# have one. Polars 2.1.0, pandas 3.1.1, pyarrow 26.0.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1
seen=$("$work/venv/bin/python" - <<'END'
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

x = [1.0, float("nan"), 2.0]
order = pc.sort_indices(pa.array(x), sort_keys=[("", "descending")])
print(pl.Series(x).sort(descending=True).to_list())
print(pd.Series(x).sort_values(ascending=False).to_list(), pc.take(pa.array(x), order).to_pylist())
zeros = [0.0, -0.0]
print(len(pl.Series(zeros).unique()), len(pd.unique(pd.Series(zeros))), len(pc.unique(pa.array(zeros))))
END
)
expected=$(cat <<'END'
[nan, 2.0, 1.0]
[2.0, 1.0, nan] [2.0, 1.0, nan]
1 1 2
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
