"""What several tests of the radix sort and of merging share."""

from __future__ import annotations

import numpy as np
import pytest

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.ops.sort.merge_path import MergePath
from opencl_lab.ops.sort.radix_cpu import RadixCpu
from opencl_lab.ops.sort.radix_gpu import RadixGpu
from opencl_lab.ops.sort.sample_sort import SampleSort
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of


class MergePathAnywhere(MergePath):
    """Merging by groups, also on CPUs, which would refuse it."""

    def supports(self, problem, device):
        return None


class SampleSortAnywhere(SampleSort):
    """By samples, also on CPUs, likewise."""

    def supports(self, problem, device):
        return None


SORTS = {
    "radix-cpu": RadixCpu(),
    "radix-gpu": RadixGpu(),
    "merge": MergePathAnywhere(),
    "by-samples": SampleSortAnywhere(),
}
"""Sorts for CPUs and for GPUs: CPUs run all of them."""
TILES = {"WG_SIZE": 64, "ITEM_KEYS": 4, "DIGIT_BITS": 6}
# Small tiles: many of them, of which the last is not full, and passes of both parities.
FORMS = {
    "cpu": ("radix-cpu", {}),
    "streamed": ("radix-cpu", {"DIGIT_BITS": 8, "STREAM": True}),
    "scan": ("radix-gpu", {"FORM": "scan", **TILES}),
    "onesweep": ("radix-gpu", {"FORM": "onesweep", **TILES}),
    "impatient": ("radix-gpu", {"FORM": "onesweep", **TILES, "MAX_POLLS": 0}),
    "merge": ("merge", {"WG_SIZE": 32, "ITEM_KEYS": 5}),
    "samples": (
        "by-samples",
        {"WG_SIZE": 64, "ITEM_KEYS": 32, "TILE_ITEMS": 16, "BUCKET_ITEMS": 4, "SPACING": 86}
        | {"DIGIT_BITS": 6},
    ),
}
N = 20_011  # cut by units, many tiles of groups; no multiple of anything
GPU = Device(
    "made", "gpu", compute_units=8, global_memory=1 << 40, max_allocation=1 << 40,
    max_work_group=256, max_work_items=(256, 256, 256),
    capabilities=Capabilities(max_work_group=256, local_memory=32 << 10),
)  # fmt: skip


def need(form, queue):
    """Return how a form is asked for, and skip if it is for other devices.

    Public functions know it where `sorts_by_name` is used.
    """
    algorithm, config = FORMS[form]
    if algorithm.endswith("cpu") and session_of(queue).device.kind != "cpu":
        pytest.skip("a form for CPUs")
    return {"algorithm": algorithm, "config": config}


def planned(form, problem, queue, device=None):
    """Return the plan of a form."""
    name, config = FORMS[form]
    algorithm, device = SORTS[name], device or session_of(queue).device
    return algorithm.plan(problem, algorithm.configure(problem, device, config), device)


def sorted_by(plan, keys, queue, label):
    """Return what a plan makes of rows of keys."""
    executable = session_of(queue).executable(("test", label), lambda: plan)
    return execute(executable, {"keys": keys}, queue).outputs["sorted"]


def skewed(name, rng, n=N):
    """Return int32 keys that are hard for one form or another."""
    wide = rng.integers(-(2**31), 2**31, n).astype(np.int32)
    if name == "one-bucket":  # but for few, which span the range of all
        return np.where(rng.random(n) < 0.99, wide & 0xFFF, wide)
    if name == "alternating":
        return np.where(np.arange(n) % 2, -(2**31), 2**31 - 1).astype(np.int32)
    if name == "one-digit":
        return (rng.integers(0, 64, n) << 12).astype(np.int32)
    if name == "high-bit":
        return (rng.integers(0, 2, n) << 31).astype(np.uint32).view(np.int32)
    if name == "zipf":
        return np.minimum(rng.zipf(1.3, n), 2**31 - 1).astype(np.int32)
    if name == "zipf-down":
        return np.minimum(rng.zipf(1.3, n), 2**31 - 1).astype(np.int32) * np.int32(-1)
    if name == "half-equal":  # and few that a sample does not see, at both ends
        keys = np.minimum(rng.zipf(2.2, n), 10**6).astype(np.int32) + np.int32(100)
        keys[[1, n // 2 + 1, n - 2]] = -5, 2**31 - 1, 99
        return keys
    if name == "heavy-bucket":  # of two keys that are close, in a range whose low end is full
        keys = np.where(rng.random(n) < 0.7, rng.integers(0, 4, n), wide & 0x3FFFFFFF)
        return np.where(rng.random(n) < 0.2, 5000 + (wide & 1), keys).astype(np.int32)
    if name == "few-bits-differ":  # codes that insertion would have to move far
        return (((wide & 7) << 28) | (np.arange(n, 0, -1) % 4096)).astype(np.int32)
    if name == "hidden":  # from a sample, which takes every (n // 1024)-th key, but for some digits
        return np.where(np.arange(n) % max(n // 1024, 1), wide, 1 << 20).astype(np.int32)
    if name == "tiles-in-turns":  # a tile of groups has one digit, and its neighbours none of it
        return (np.arange(n) // 256 % 3 << 18).astype(np.int32)
    if name == "organ-pipe":
        return np.minimum(np.arange(n), np.arange(n)[::-1]).astype(np.int32)
    if name == "sawtooth":  # teeth as long as no tile, part or chunk
        return (np.arange(n) % 1009 * -7).astype(np.int32)
    if name == "equal":
        return np.full(n, 7, np.int32)
    return np.sort(wide) if name == "sorted" else wide


def ordered(name, keys, rng):
    """Return keys in an order that is there already, or nearly: whole, or in some slopes."""
    keys = np.sort(keys)
    if name == "down":
        return keys[::-1].copy()
    if name == "slopes":  # which begin within chunks, three of them upside down
        slopes = np.split(rng.permutation(keys), [90, keys.size // 3, keys.size // 3 + 5000])
        slopes = [np.sort(slope) for slope in slopes]
        return np.concatenate([slopes[0], *(slope[::-1] for slope in slopes[1:])])
    if name == "turned":
        return np.roll(keys, 1234)
    if name in ("swapped", "swapped-down"):
        places = rng.choice(keys.size, 60, replace=False)
        keys[places] = keys[places[::-1]]
        return keys if name == "swapped" else keys[::-1].copy()
    if name == "appended":
        keys[-200:] = rng.choice(keys, 200)
    return keys


ORDERS = ("up", "down", "slopes", "turned", "swapped", "swapped-down", "appended")


def specials(dtype):
    """Return zeros and NaN of both signs, infinities, and NaN of the least and largest payloads."""
    few = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
    code = few.view(f"u{few.itemsize}")
    ends = np.array([code[2] + 1, code[3] + 1, code[3] - 1, ~code[4]], code.dtype)
    return np.concatenate([few, ends.view(dtype)])


SKEWS = (
    "uniform", "one-bucket", "alternating", "one-digit", "high-bit", "zipf", "few-bits-differ",
    "equal", "sorted", "zipf-down", "half-equal", "heavy-bucket", "hidden", "tiles-in-turns",
    "organ-pipe", "sawtooth",
)  # fmt: skip
