#!/usr/bin/env bash
# cv2.sort of a row with a NaN leaves the numbers on both sides of it unsorted, without an error:
# NumPy, pandas, Arrow and Polars put the NaN at one end. And cv2.sortIdx in descending order reverses
# equal keys; ascending it keeps their order, but only in rows as short as this one. OpenCV 5.0.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 opencv-python-headless==5.0.0.93
seen=$("$work/venv/bin/python" - <<'END'
import cv2
import numpy as np

print(cv2.sort(np.array([[5, 1, np.nan, 4, 2, 0]], np.float32), cv2.SORT_EVERY_ROW)[0])
equal = np.zeros((1, 6), np.float32)
print(cv2.sortIdx(equal, cv2.SORT_EVERY_ROW)[0])
print(cv2.sortIdx(equal, cv2.SORT_EVERY_ROW + cv2.SORT_DESCENDING)[0])
END
)
expected=$(cat <<'END'
[ 0.  1.  5. nan  2.  4.]
[0 1 2 3 4 5]
[5 4 3 2 1 0]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
