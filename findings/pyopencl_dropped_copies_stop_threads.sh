#!/usr/bin/env bash
# pyopencl waits where the event of a copy of a NumPy array is dropped while the copy is pending, also
# with is_blocking=False, and holds Python's lock meanwhile: no other thread runs. Here the copy waits
# for a kernel of a second or so, and a thread that counts every millisecond stands still.
# pyopencl 2026.1.4 on PoCL 3.0.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "pyopencl[pocl]==2026.1.4" pocl-binary-distribution==3.0 numpy==2.4.6
seen=$("$work/venv/bin/python" - <<'END'
import threading
import time

import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
text = """
kernel void spin(global float *x, const long n) {
    float s = x[0];
    for (long i = 0; i < n; i++) s = s * 0.999f + 1.0f;
    x[0] = s;
}
"""
spin = cl.Kernel(cl.Program(context, text).build(), "spin")
host = np.zeros(1, np.float32)
there = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)


def run(rounds):
    spin.set_args(there, np.int64(rounds))
    return cl.enqueue_nd_range_kernel(queue, spin, (1,), (1,))


run(1000).wait()
begin = time.perf_counter()
run(10**7).wait()
rounds = int(10**7 / (time.perf_counter() - begin))  # for a second

count = 0


def counting():
    global count
    while True:
        time.sleep(0.001)
        count += 1


threading.Thread(target=counting, daemon=True).start()
for kept in (True, False):
    run(rounds)
    queue.flush()
    begin, before = time.perf_counter(), count
    event = cl.enqueue_copy(queue, there, host, is_blocking=False)
    enqueued = time.perf_counter() - begin
    if kept:
        event.wait()
    else:
        del event
    waited = time.perf_counter() - begin
    print(
        "event.wait:" if kept else "del event: ",
        "returns at once," if enqueued < 0.2 else "blocks,",
        "waits," if waited > 0.4 else "does not wait,",
        "others run" if count - before > 100 else "others stand still",
    )
END
)
expected=$(cat <<'END'
event.wait: returns at once, waits, others run
del event:  returns at once, waits, others stand still
END
)
printf '%s\n' "$seen"
[[ "$seen" == "$expected" ]] || { printf 'It was:\n%s\n' "$expected"; exit 1; }
