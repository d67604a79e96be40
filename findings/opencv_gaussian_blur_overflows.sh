#!/usr/bin/env bash
# cv2.GaussianBlur of a constant float32 image of 3e38 is infinite, as it adds pixels in pairs before
# it multiplies by a weight; cv2.blur and cv2.filter2D of the same image are finite. OpenCV 5.0.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 opencv-python-headless==5.0.0.93
seen=$("$work/venv/bin/python" - <<'END'
import cv2
import numpy as np

x = np.full((32, 32), 3e38, np.float32)
mean = np.full((5, 5), 0.04, np.float32)
for y in (cv2.GaussianBlur(x, (17, 17), 3), cv2.blur(x, (5, 5)), cv2.filter2D(x, -1, mean)):
    print(np.isfinite(y).all())
END
)
expected=$(cat <<'END'
False
True
True
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
