#!/usr/bin/env bash
# PoCL lists the device that runs kernels in the calling thread before the one with threads, in
# whatever order POCL_DEVICES names them, so that programs which take the first device run on one
# processor. PoCL 3.0 (pocl-binary-distribution 3.0).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import os
import subprocess
import sys

listing = (
    "import pyopencl as cl\n"
    "print([d.name.split('-')[0] for p in cl.get_platforms() for d in p.get_devices()])"
)
for order in ("pthread basic", "basic pthread"):
    environment = {**os.environ, "POCL_DEVICES": order}
    subprocess.run([sys.executable, "-c", listing], env=environment, check=True)
END
)
expected=$(cat <<'END'
['basic', 'pthread']
['basic', 'pthread']
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
