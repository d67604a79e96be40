"""Measure the FFT on a CPU beside FFTW and SciPy, in turns, from memory to memory.

    python tools/cpu_fft.py [--device SPEC] [--cases 1024x1024,262144x1] [--config JSON]

A case is length x batch of complex64. Launches are enqueued on buffers of the device and waited
for; FFTW runs a plan made with FFTW_MEASURE on aligned arrays. Every result is checked against
NumPy in double precision. Figures are medians, ratios above 1 mean that opencl_lab is faster.
`--direct` measures the direct transform beside a product with a prebuilt matrix.

A runtime may bind the thread that calls it to a processor, which threads that others start from
it would inherit: each is called on the processors that it left the thread on, and the libraries
on all. Intel's runtime binds it with DPCPP_CPU_CU_AFFINITY=close and DPCPP_CPU_PLACES=cores in
the environment; else its second thread often waits for the processor that the first one has.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pyopencl as cl

import opencl_lab as ol
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.runtime.session import default_queue, session_of

CASES = "1024x1024,4096x256,256x4096,1000x1024,16384x1,65536x1,262144x1,1048576x1,4194304x1"
BUDGET = 2.0  # seconds of measuring a case
CALLS = 5  # timed calls of a turn
REST = 0.03  # seconds before a turn


def ours(device: ol.Device, n: int, signal: np.ndarray, algorithm: str, config: dict) -> tuple:
    """Return a function that transforms once, and one that fetches the spectrum."""
    queue = default_queue(device, profiling=True)
    batch = signal.size // n
    problem = DftProblem(n, signal.dtype, batch)
    chosen = DFT.algorithm(algorithm)
    settled = chosen.configure(problem, device, config)
    plan = chosen.plan(problem, settled, device)
    executable = session_of(queue).executable(
        ("cpu_fft", algorithm, problem, settled), lambda: plan
    )
    flags = cl.mem_flags
    buffers = {
        spec.name: cl.Buffer(queue.context, flags.READ_WRITE, max(spec.nbytes, 1))
        for spec in plan.buffers
        if spec.role not in ("table", "zeros")
    }
    cl.enqueue_copy(queue, buffers["signal"], signal)

    def run() -> None:
        executable.enqueue(queue, buffers)
        queue.finish()

    def fetch() -> np.ndarray:
        result = np.empty_like(signal)
        cl.enqueue_copy(queue, result, buffers["spectrum"])
        return result

    return run, fetch


def peers(signal: np.ndarray, threads: int) -> dict[str, Callable[[], object]]:
    """Return the libraries that are installed, ready to transform."""
    found: dict[str, Callable[[], object]] = {}
    try:
        import pyfftw

        source, target = (pyfftw.empty_aligned(signal.shape, signal.dtype) for _ in range(2))
        plan = pyfftw.FFTW(source, target, threads=threads, flags=("FFTW_MEASURE",))
        source[:] = signal
        found["fftw"] = plan.execute
    except ImportError:
        pass
    try:
        import scipy.fft

        found["scipy"] = lambda: scipy.fft.fft(signal, workers=threads)
    except ImportError:
        pass
    return found  # not PyTorch, whose threads spin between its turns and slow down the others


def processors(chosen: set[int] | None = None) -> set[int] | None:
    """Return those that this thread may run on, if the system tells; move it to `chosen` before."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    if chosen is not None:
        os.sched_setaffinity(0, chosen)
    return os.sched_getaffinity(0)


def in_turns(
    functions: dict[str, Callable[[], object]], bound: set[int] | None = None
) -> dict[str, float]:
    """Return the median time of each in microseconds; "ours" runs on the processors `bound`.

    A turn is one call that nobody times and then some that count. Before it the process rests
    until no thread of another library spins: FFTW's, of OpenMP, do so for 10 ms after a
    transform, and would keep a compute unit from whoever comes next.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    everywhere = processors()
    for function in functions.values():
        function()
    begin = time.perf_counter()
    turns = list(functions.items())
    order = random.Random(0)
    while time.perf_counter() - begin < BUDGET or len(times[turns[0][0]]) < 3 * CALLS:
        order.shuffle(turns)  # who follows whom matters: caches
        for name, function in turns:
            processors(bound if name == "ours" else everywhere)
            time.sleep(REST)
            function()
            for _ in range(CALLS):
                start = time.perf_counter()
                function()
                times[name].append((time.perf_counter() - start) * 1e6)
    processors(everywhere)
    return {name: median(values) for name, values in times.items()}


def report(case: str, times: dict[str, float], error: float) -> None:
    """Print one row."""
    own = times.pop("ours")
    others = ", ".join(f"{name} {t:9.0f} us ({t / own:.2f}x)" for name, t in times.items())
    print(f"{case:>14} {own:9.0f} us  error {error:.1e}  {others}", flush=True)


def main() -> None:
    """Print a row a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--direct", action="store_true")
    arguments = parser.parse_args()
    everywhere = processors()
    device = ol.select_device(arguments.device)
    print(device)
    rng = np.random.default_rng(0)
    ours(device, 1024, np.zeros(1 << 16, np.complex64), "fft", {})[0]()
    bound = processors()
    processors(everywhere)
    configs = [json.loads(text) for text in arguments.config] or [{}]
    cases = "2048x1,8192x1" if arguments.direct and arguments.cases == CASES else arguments.cases
    for case in cases.split(","):
        n, batch = map(int, case.split("x"))
        signal = rng.standard_normal((batch, n, 2), np.float32).view(np.complex64)[..., 0]
        right = np.fft.fft(signal.astype(np.complex128))
        if arguments.direct:
            power = np.outer(np.arange(n), np.arange(n)) % n
            matrix = np.exp(-2j * np.pi * power / n).astype(np.complex64)
            others = {"W @ x": lambda m=matrix, x=signal: m @ x.T}
        else:
            others = peers(signal, arguments.threads)
        for config in configs:
            algorithm = "direct-tiled" if arguments.direct else "fft"
            run, fetch = ours(device, n, signal, algorithm, config)
            times = in_turns({"ours": run, **others}, bound)
            error = np.linalg.norm(fetch() - right) / np.linalg.norm(right)
            report(case, times, float(error))
            if len(configs) > 1:
                print(f"{'':14} {config}")


if __name__ == "__main__":
    main()
