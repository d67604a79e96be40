#!/usr/bin/env bash
# The transform of eight real numbers, of which the second is NaN, has one real part that is a number,
# by OpenCV, NumPy and SciPy: that of a quarter of the sampling rate, where the factor of the NaN is 0
# and the product is left out. So no check of a transform can ask for NaN everywhere. OpenCV 5.0.0,
# NumPy 2.4.6, SciPy 1.17.1.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 opencv-python-headless==5.0.0.93
seen=$("$work/venv/bin/python" - <<'END'
import cv2
import numpy as np
import scipy.fft

x = np.zeros((1, 8), np.float32)
x[0, 1] = np.nan
print(cv2.dft(x)[0])
for right in (np.fft.rfft(x), scipy.fft.rfft(x)):
    print(right.real[0])
END
)
expected=$(cat <<'END'
[nan nan nan  0. nan nan nan nan]
[nan nan  0. nan nan]
[nan nan  0. nan nan]
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
