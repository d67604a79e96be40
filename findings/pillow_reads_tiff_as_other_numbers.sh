#!/usr/bin/env bash
# Pillow reads some TIFF files as other numbers than they hold, without a word: int8 as uint8, uint32
# as int32, and colours of 16 bits by their high bytes. And it writes uint32 so that others read int32.
# Pillow 13.0.0, beside tifffile 2026.3.3, which reads all of them as they are.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy==2.4.6 pillow==13.0.0 tifffile==2026.3.3
seen=$(cd "$work" && venv/bin/python - <<'END'
import numpy as np
import tifffile
from PIL import Image

for array in (
    np.array([[-3, 5]], np.int8),
    np.array([[3_000_000_000, 5]], np.uint32),
    np.array([[[258, 300, 65535]] * 2], np.uint16),
):
    tifffile.imwrite("x.tif", array, photometric="rgb" if array.ndim == 3 else "minisblack")
    read = np.asarray(Image.open("x.tif"))
    print(array.dtype, array.ravel()[:3].tolist(), "->", read.dtype, read.ravel()[:3].tolist())
Image.fromarray(np.array([[3_000_000_000, 5]], np.uint32)).save("y.tif")
print("uint32 written ->", tifffile.imread("y.tif").dtype, tifffile.imread("y.tif").ravel().tolist())
END
)
printf '%s\n' "$seen"
expected=$(cat <<'END'
int8 [-3, 5] -> uint8 [253, 5]
uint32 [3000000000, 5] -> int32 [-1294967296, 5]
uint16 [258, 300, 65535] -> uint8 [1, 1, 255]
uint32 written -> int32 [-1294967296, 5]
END
)
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
