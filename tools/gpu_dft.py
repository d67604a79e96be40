"""Verify and time the transforms on a GPU, device-resident, beside cuFFT and VkFFT.

    python tools/gpu_dft.py [--device SPEC] [--out FILE] [--cases 0,3] [--sweep] [--seconds 50]
    python tools/gpu_dft.py [--device SPEC] --real

cuFFT is that of CuPy or PyTorch, VkFFT that of pyvkfft, built for OpenCL; what is not installed
is left out. Complex64; each result is checked against cuFFT in double precision, or NumPy where
there is no cuFFT. Times are medians of event times: of all kernels of a transform for opencl_lab,
between events or markers around it for the others. TB/s counts one read and one write of the
signal. `--sweep` also tries configurations of the local-memory form, one parameter and then
combinations, best first; `--seconds` bounds the whole run. `--real` takes float32 to its spectrum
and back instead of all that, beside whole calls of `rfft` and `irfft`, between events.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

import opencl_lab as ol
from opencl_lab.operations.dft.operation import DFT
from opencl_lab.operations.dft.problem import DftProblem
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import default_queue, session_of

RUNS = 7
FILL = 128 << 20  # bytes of a signal where the length alone is given
CASES = [
    (256, 65_536),
    (1024, 16_384),
    (4096, 4096),
    (32_768, 512),
    (1 << 20, 16),
    (1 << 24, 1),
    (3**10, 0),
    (5**7, 0),
    (1000, 0),
    (1009, 0),
]
REAL_CASES = [
    (256, 65_536),
    (1024, 16_384),
    (4096, 4096),
    (1 << 20, 16),
    (1000, 16_777),
    (1001, 16_384),
    (1009, 16_627),
    (3**13, 8),
]
DIRECT = (32_768, 1)
SINGLE = {
    "POINTS": (4, 8, 16, 32),
    "MAX_RADIX": (4, 8, 16, 32),
    "TRANSFORMS": (0, 4, 8, 16, 32),
    "LAST_TRANSFORMS": (0, 4, 8, 16, 32),
    "WG_SIZE": (64, 128, 256),
    "LOCAL_PAD": (0, 16, 32, 64),
    "EXCHANGE": ("interleaved", "split", "two-phase"),
    "FEW_TWIDDLES": (False, True),
}
DIRECT_CONFIGS = [
    {"WG_SIZE": wg, "WORK_PER_ITEM": work, "BLOCKS": blocks, "TILE": 64, "RESEED": reseed}
    for wg, work, blocks, reseed in itertools.product((64, 128), (1, 2, 4), (4, 8), (16, 32))
]


class Peer:
    """cuFFT through CuPy or PyTorch, or nothing."""

    def __init__(self) -> None:
        self.name = ""
        for name, start in (("cupy", self._cupy), ("torch", self._torch)):
            try:
                start()
            except Exception as error:
                print(f"{name}: {error}")
                continue
            self.name = name
            return

    def _cupy(self) -> None:
        import cupy

        cupy.zeros(1)
        self.put, self.fetch = cupy.asarray, cupy.asnumpy
        self.fft = lambda x: cupy.fft.fft(x, axis=-1)
        self.rfft, self.irfft = cupy.fft.rfft, cupy.fft.irfft
        self.event = cupy.cuda.Event
        self.elapsed = cupy.cuda.get_elapsed_time
        self.free = cupy.get_default_memory_pool().free_all_blocks

    def _torch(self) -> None:
        import torch

        torch.zeros(1).cuda()
        self.put = lambda x: torch.from_numpy(x).cuda()
        self.fetch = lambda x: x.cpu().numpy()
        self.fft = torch.fft.fft
        self.rfft, self.irfft = torch.fft.rfft, torch.fft.irfft
        self.event = lambda: torch.cuda.Event(enable_timing=True)
        self.elapsed = lambda a, b: a.elapsed_time(b)
        self.free = torch.cuda.empty_cache

    def time(self, signal: np.ndarray, transform: Callable[[Any], Any] | None = None) -> float:
        """Return the median time of a transform, forward if none is given, in milliseconds."""
        source = self.put(signal)
        transform = transform or self.fft
        times = []
        for _ in range(RUNS + 2):
            begin, end = self.event(), self.event()
            begin.record()
            transform(source)
            end.record()
            end.synchronize()
            times.append(float(self.elapsed(begin, end)))
        return median(times[2:])

    def right(self, rows: np.ndarray) -> np.ndarray:
        """Return the spectrum of some rows in double precision."""
        wide = rows.astype(np.complex128)
        return self.fetch(self.fft(self.put(wide))) if self.name else np.fft.fft(wide)


def vkfft_time(source: Any) -> float | None:
    """Return the median time of a transform by VkFFT in milliseconds, None where there is none."""
    try:
        from pyvkfft.opencl import VkFFTApp

        queue, shape = source.queue, source.shape[:2]
        rows = source.reshape(shape)
        plan = VkFFTApp(shape, source.dtype, queue, axes=(1,), inplace=False, norm=0)
    except (ImportError, OSError, RuntimeError) as error:
        print(f"vkfft: {error}")
        return None
    target = cl.array.empty_like(rows)
    times = []
    for _ in range(RUNS + 2):
        begin = cl.enqueue_marker(queue)
        plan.fft(rows, target)
        end = cl.enqueue_marker(queue)
        queue.finish()
        times.append((end.profile.end - begin.profile.end) * 1e-6)
    return median(times[2:])


def ours(
    device: ol.Device, problem: DftProblem, source: Any, algorithm: str, config: dict[str, Any]
) -> tuple[float, list[float], Any, dict[str, Any]]:
    """Return the median kernel time, that of each launch, the spectrum and the configuration."""
    queue = default_queue(device, profiling=True)
    chosen = DFT.algorithm(algorithm)
    settled = chosen.configure(problem, device, config)
    executable = session_of(queue).executable(
        ("gpu_dft", algorithm, problem, settled), lambda: chosen.plan(problem, settled, device)
    )
    runs = [execute(executable, {"signal": source}, queue) for _ in range(RUNS + 1)]
    queue.finish()
    launches = [[ms for _, ms in run.profile()] for run in runs[1:]]
    each = [median(column) for column in zip(*launches, strict=True)]
    return median(map(sum, launches)), each, runs[-1].outputs["spectrum"], dict(settled)


def error_of(spectrum: Any, rows: list[int], right: np.ndarray, n: int) -> float:
    """Return the greatest relative error of some rows in the Euclidean norm."""
    worst = 0.0
    for row, expected in zip(rows, right, strict=True):
        actual = np.empty(n, np.complex64)
        cl.enqueue_copy(spectrum.queue, actual, spectrum.base_data, src_offset=row * n * 8)
        worst = max(worst, float(np.linalg.norm(actual - expected) / np.linalg.norm(expected)))
    return worst


def attempt(row: dict[str, Any], run: Callable[[], tuple], check: Callable[[Any], float]) -> bool:
    """Fill a row of the table; return whether it was right."""
    try:
        row["ms"], row["launches_ms"], spectrum, row["config"] = run()
        row["error"] = check(spectrum)
        row["ok"] = row["error"] < 1e-6
    except ol.OclabError as problem:
        row["ok"], row["problem"] = False, str(problem).splitlines()[0][:200]
    return bool(row["ok"])


def main() -> None:
    """Print a row a case, and a row a configuration with --sweep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--seconds", type=float, default=50.0)
    parser.add_argument("--cases", default="")
    parser.add_argument("--shrink", type=int, default=1, help="divide batches, for weak devices")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    device = ol.select_device(arguments.device)
    peer = Peer()
    queue = default_queue(device, profiling=True)
    print(f"{device}; cuFFT through {peer.name or 'nothing'}")
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(0)
    if arguments.real:
        for n, batch in REAL_CASES:
            signal = rng.standard_normal((max(1, batch // arguments.shrink), n), np.float32)
            _real(device, peer, signal)
        return
    picked = [int(part) for part in arguments.cases.split(",") if part]
    cases = [(*case, "fft") for case in CASES] + [(*DIRECT, "direct-tiled")]
    cases = [case for i, case in enumerate(cases) if not picked or i in picked]
    pool = rng.standard_normal(2 * FILL // 8, np.float32).view(np.complex64)
    prepared = []
    for n, batch, algorithm in cases:
        batch = max(1, (batch or FILL // 8 // n) // arguments.shrink)
        signal = pool[: n * batch].reshape(batch, n)
        some = sorted({0, batch // 2, batch - 1})
        right = peer.right(signal[some])
        problem = DftProblem(n, signal.dtype, batch)
        source = cl.array.to_device(queue, signal.reshape(batch, n, 1))

        def check(spectrum: Any, some: list[int] = some, right: Any = right, n: int = n) -> float:
            return error_of(spectrum, some, right, n)

        row: dict[str, Any] = {"n": n, "batch": batch, "algorithm": algorithm}
        attempt(row, lambda p=problem, s=source, a=algorithm: ours(device, p, s, a, {}), check)
        row["peer_ms"] = peer.time(signal) if peer.name else None
        row["vkfft_ms"] = vkfft_time(source) if algorithm == "fft" else None
        _show(row)
        rows.append(row)
        prepared.append((row, problem, source, check))
        if peer.name:
            peer.free()
    if arguments.sweep:
        for index, (row, problem, source, check) in enumerate(prepared):
            left = end - time.monotonic()
            rows += _sweep(device, row, problem, source, check, left / (len(prepared) - index))
    if arguments.out:
        arguments.out.write_text(json.dumps({"device": device.as_dict(), "rows": rows}, indent=1))


def _real(device: ol.Device, peer: Peer, signal: np.ndarray) -> None:
    """Print the times of real rows to their spectrum and back."""
    batch, n = signal.shape
    some = [0, batch - 1]
    for inverse in (False, True):
        data = np.fft.rfft(signal).astype(np.complex64) if inverse else signal
        right = signal[some] if inverse else np.fft.rfft(signal[some].astype(float))
        scale = 1 / n if inverse else 1.0
        problem = DftProblem.of(n, signal.dtype, batch, inverse, scale)
        shape, _ = problem.signal
        source = cl.array.to_device(default_queue(device, profiling=True), data.reshape(shape))
        ms, each, result, _ = ours(device, problem, source, "fft", {})
        rows = result.get().reshape(batch, -1)[some]
        error = max(np.linalg.norm(rows - right, axis=1) / np.linalg.norm(right, axis=1))
        line = f"{'irfft' if inverse else 'rfft'} {n} x {batch}"
        line = f"{line:>28} {ms:9.4f} ms  error {error:.1e}"
        if peer.name:
            call = partial(peer.irfft, n=n) if inverse else peer.rfft
            other = peer.time(data, call)
            line += f"  cuFFT {other:8.4f} ms ({other / ms:.2f}x)"
            peer.free()
        print(line, " [" + " ".join(f"{part:.3f}" for part in each) + "]", flush=True)


def _sweep(
    device: ol.Device,
    base: dict[str, Any],
    problem: DftProblem,
    source: Any,
    check: Callable[[Any], float],
    seconds: float,
) -> list[dict[str, Any]]:
    """Change one parameter at a time from the best so far, until the time is over."""
    end = time.monotonic() + seconds
    best = dict(base)
    direct = base["algorithm"] != "fft"
    changes = (
        DIRECT_CONFIGS
        if direct
        else [{name: value} for name, values in SINGLE.items() for value in values]
    )
    tried = []
    for change in changes:
        config = {**best.get("config", {}), **change}
        if time.monotonic() > end or config == best.get("config"):
            continue
        row = {key: base[key] for key in ("n", "batch", "algorithm", "peer_ms")}
        right = attempt(
            row, lambda c=config: ours(device, problem, source, base["algorithm"], c), check
        )
        row["change"] = change
        tried.append(row)
        if right and row["ms"] < best.get("ms", math.inf):
            best = dict(row)
            _show(row)
    return tried


def _show(row: dict[str, Any]) -> None:
    label = f"{row['algorithm']} {row['n']} x {row['batch']}"
    if "ms" not in row:
        print(f"{label:>28}  {row.get('problem')}", flush=True)
        return
    moved = 16e-9 * row["n"] * row["batch"]
    peer = row.get("peer_ms")
    other = "" if not peer else f"  cuFFT {peer:8.4f} ms ({peer / row['ms']:.2f}x)"
    if row.get("vkfft_ms"):
        other += f"  VkFFT {row['vkfft_ms']:8.4f} ms ({row['vkfft_ms'] / row['ms']:.2f}x)"
    each = " ".join(f"{ms:.3f}" for ms in row["launches_ms"][:6])
    print(
        f"{label:>28} {row['ms']:9.4f} ms {moved / row['ms']:6.2f} TB/s  error {row['error']:.1e}"
        f"{'' if row['ok'] else ' WRONG'}{other}  [{each}] {row.get('change', '')}",
        flush=True,
    )


if __name__ == "__main__":
    main()
