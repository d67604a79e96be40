"""Measure convolutions on a GPU, device-resident, beside PyTorch (cuDNN), over configurations.

    python tools/gpu_conv2d.py [--device SPEC] [--sizes 4096,16384] [--filters 3,7,15] [--out FILE]

Times are medians of event times of kernels for opencl_lab and of device events for PyTorch,
on the same random float32 image; PyTorch is left out where it is not installed. Every result
is compared with PyTorch's, or else with the kernel `naive`. The copy is a read and a write of
the image by PyTorch. The configurations of `register` are all tried on the first size; the
best `--keep` of each filter go on to the others, with `tiled`, `separable` and `fft` by default,
and `fft` with some sizes of blocks, which tells from which filter on it pays. All of it takes
less than a minute: each part has its share of the time, and what does not fit into that is left
out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyopencl.array

import opencl_lab as ol
from opencl_lab.operations.conv2d.arguments import bind
from opencl_lab.operations.conv2d.operation import CONV2D
from opencl_lab.runtime.session import default_queue

RUNS = 7
WARM_UP = 2
TIME_LIMIT = 55.0


def _config(window: bool, group: int, width: int, vectors: int, rows: int, **more: Any) -> dict:
    return {
        "WINDOW": window,
        "WG_X": group,
        "WG_Y": 1,
        "VECTOR_WIDTH": width,
        "VECTORS": vectors,
        "ROWS": rows,
        "STEPS_X": 1,
        "STEPS_Y": 1,
        "UNROLL": 16,
        "CONSTANT_WEIGHTS": True,
        **more,
    }


CONFIGS = (
    _config(True, 64, 4, 1, 4),
    _config(True, 64, 4, 1, 2),
    _config(True, 64, 4, 1, 3),
    _config(True, 32, 4, 1, 4, WG_Y=4),
    _config(True, 64, 4, 1, 4, UNROLL=8),
    _config(True, 64, 4, 1, 8, UNROLL=4),
    _config(True, 64, 4, 1, 8),
    _config(True, 128, 4, 1, 8),
    _config(True, 64, 4, 2, 4),
    _config(True, 64, 8, 1, 4),
    _config(True, 64, 8, 1, 8),
    _config(True, 64, 4, 1, 8, CONSTANT_WEIGHTS=False),
    _config(True, 32, 4, 1, 8, WG_Y=4),
    _config(False, 128, 1, 1, 8),
    _config(False, 128, 1, 2, 8),
    _config(False, 128, 1, 4, 4),
    _config(False, 64, 1, 4, 8),
    _config(False, 256, 1, 1, 16),
    _config(False, 128, 2, 2, 4),
)
FFT_CONFIGS = tuple(
    {"BLOCK": block, "PAIRS": pairs} for block in (128, 256, 512) for pairs in (32, 256)
)


class Case:
    """One image and filter on the device, with the right result to compare with."""

    def __init__(self, queue: Any, size: int, taps: int):
        rng = np.random.default_rng(0)
        image = rng.random((size, size), np.float32)
        line = rng.random(taps) / taps
        weights = np.outer(line, line[::-1])
        options = {"mode": "same", "boundary": "constant", "cval": 0.0, "flip": False}
        self.problem, inputs = bind(image, weights, channels_last=False, saturate=False, **options)
        self.queue = queue
        self.host = image, inputs["weights"]
        self.inputs = {n: pyopencl.array.to_device(queue, array) for n, array in inputs.items()}
        shape = self.problem.result_shape
        self.out = {"result": pyopencl.array.empty(queue, shape, np.float32)}
        self.expected: np.ndarray | None = None

    def ours(self, algorithm: str, config: dict | None = None) -> dict[str, Any]:
        """Return times in milliseconds and the largest difference from the right result."""
        times = []
        begin = time.perf_counter()
        self.out["result"].fill(np.float32(np.nan))
        for run in range(RUNS + WARM_UP):
            execution = CONV2D.run(
                self.problem,
                self.inputs,
                algorithm=algorithm,
                config=config,
                queue=self.queue,
                out=self.out,
            )
            times.append(execution.kernel_ms)
            if run == 0:
                build = (time.perf_counter() - begin) * 1e3
        result = execution.outputs["result"].get()[0, ..., 0]
        if self.expected is None:
            self.expected = result
        difference = float(np.abs(result - self.expected).max())
        if not difference <= 1e-5:
            raise SystemExit(f"wrong result by {algorithm} with {config}: off by {difference}")
        return {"ms": median(times[WARM_UP:]), "build_ms": build, "difference": difference}

    def torch(self) -> dict[str, float]:
        """Return the times of PyTorch's convolution and copy in milliseconds."""
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        image, weights = (torch.from_numpy(a).cuda()[None, None] for a in self.host)
        before = self.problem.filter_height // 2
        result = torch.nn.functional.conv2d(image, weights, padding=before)
        self.expected = result[0, 0].cpu().numpy()
        return {
            "cudnn": _timed(lambda: torch.nn.functional.conv2d(image, weights, padding=before)),
            "copy": _timed(lambda: result.copy_(image)),
        }


def _timed(call: Callable[[], Any]) -> float:
    import torch

    times = []
    for _ in range(RUNS + WARM_UP):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return median(times[WARM_UP:])


def _peers(case: Case) -> dict[str, float]:
    try:
        return case.torch()
    except ImportError:
        case.ours("naive")  # what all others are compared with
        return {}


def _row(case: Case, algorithm: str, config: dict | None, peers: dict) -> dict[str, Any]:
    try:
        found = case.ours(algorithm, config)
    except ol.OclabError as error:
        return {"algorithm": algorithm, "config": config, "error": str(error)}
    seconds, work = found["ms"] * 1e-3, case.problem.work
    taps = case.problem.filter_height
    row = {
        "algorithm": algorithm,
        "config": config,
        **found,
        "gbps": work.bytes / seconds * 1e-9,
        "tflops": 2e-12 * taps**2 * case.problem.height * case.problem.width / seconds,
    }
    if peers:
        row["times_cudnn"] = peers["cudnn"] / found["ms"]
        row["of_copy"] = peers["copy"] / found["ms"]
    return row


def _show(row: dict[str, Any]) -> None:
    config = row["config"]
    name = row["algorithm"] + ("" if config is None else " " + _short(config))
    if "error" in row:
        print(f"  {name}: {row['error']}", flush=True)
        return
    beside = ""
    if "times_cudnn" in row:
        beside = f" {row['times_cudnn']:6.2f}x cuDNN {row['of_copy']:5.2f} of copy"
    print(
        f"  {row['ms']:8.3f} ms {row['gbps']:7.0f} GB/s {row['tflops']:6.2f} TFLOP/s{beside}"
        f"  built in {row['build_ms']:5.0f} ms  {name}",
        flush=True,
    )


def _short(config: dict[str, Any]) -> str:
    if "WINDOW" not in config:
        return ", ".join(f"{name}={value}" for name, value in config.items())
    way = "window" if config["WINDOW"] else "taps"
    space = "constant" if config["CONSTANT_WEIGHTS"] else "global"
    return (
        f"{way} {config['WG_X']}x{config['WG_Y']} items, {config['VECTORS']} x "
        f"{config['VECTOR_WIDTH']} values, {config['ROWS']} rows, {space}"
    )


def main() -> None:
    """Print a table a size and filter, and write all rows."""
    begin = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--sizes", default="4096,16384")
    parser.add_argument("--filters", default="3,7,15")
    parser.add_argument("--keep", type=int, default=4, help="configurations for later sizes")
    parser.add_argument("--out", type=Path, help="JSON file for all rows")
    arguments = parser.parse_args()
    device = ol.select_device(arguments.device)
    queue = default_queue(device, profiling=True)
    print(device)
    rows: list[dict[str, Any]] = []
    chosen = {taps: list(CONFIGS) for taps in map(int, arguments.filters.split(","))}
    sizes = list(map(int, arguments.sizes.split(",")))
    left = len(sizes) * len(chosen)
    for size in sizes:
        for taps, configs in chosen.items():
            now = time.perf_counter()
            until = now + max(0.0, begin + TIME_LIMIT - now) / left
            left -= 1
            case = Case(queue, size, taps)
            peers = _peers(case)
            beside = "".join(f", {name} {ms:.3f} ms" for name, ms in peers.items())
            print(f"{size} x {size}, {taps} x {taps}{beside}", flush=True)
            found = []
            for algorithm, config in (
                ("register", None),
                ("separable", None),
                ("tiled", None),
                ("fft", None),
                *(("fft", config) for config in FFT_CONFIGS),
                *(("register", config) for config in configs),
            ):
                if config in configs and time.perf_counter() > until:
                    print("  no time for more configurations")
                    break
                row = _row(case, algorithm, config, peers)
                _show(row)
                found.append({"size": size, "taps": taps, **peers, **row})
            rows += found
            measured = [row for row in found if row["config"] in configs and "ms" in row]
            measured.sort(key=lambda row: row["ms"])
            chosen[taps] = [row["config"] for row in measured[: arguments.keep]]
            if arguments.out is not None:  # also if a later case fails
                text = json.dumps({"device": device.as_dict(), "rows": rows}, indent=1)
                arguments.out.write_text(text, encoding="utf-8")
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
