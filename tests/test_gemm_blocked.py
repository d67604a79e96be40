"""The blocked matrix product: edges of every layout, slices of k, and what its model chooses."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product as product_of

import numpy as np
import pyopencl.array as cl_array
import pytest
from gemm_checks import (
    SMALL,
    assert_product,
    assert_right,
    check,
    declared_bytes,
    generated,
    made_device,
    matrices,
)

from opencl_lab.core.device import Device
from opencl_lab.core.plan import check_plan
from opencl_lab.core.template import render
from opencl_lab.ops.gemm.blocked import algorithm as blocked_module
from opencl_lab.ops.gemm.blocked.model import (
    TILES,
    _splits,
    best_tiles,
)
from opencl_lab.ops.gemm.problem import ELEMENT_TYPES, GemmProblem
from opencl_lab.ops.gemm.solver import GEMM_SOLVER
from opencl_lab.ops.gemm.split_k import reduction

BLOCKED = GEMM_SOLVER.algorithm("blocked")
GPU = made_device("gpu", 1024, 48 << 10, 132)
JOINED = made_device("gpu", 1024, 48 << 10, 132, visible_writes=True, inline_ptx=True)


def product(problem, inputs, queue, **changes):
    config = {**SMALL["blocked"], **changes}
    run = GEMM_SOLVER.run(problem, inputs, algorithm="blocked", config=config, queue=queue)
    result = run.outputs["result"]
    return result if isinstance(result, np.ndarray) else result.get()


# ------------------------------------------------------------------ what the device computes


@pytest.mark.few(1)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True), (True, True)])
def test_rows_of_any_length_are_loaded_in_vectors(trans, aligned, rng, queue, monkeypatch):
    """Rows of whole vectors and of none, tiles inside and over the edge, rests of k."""
    monkeypatch.setattr(Device, "aligns_vectors", property(lambda self: aligned))
    for m, n, k in ((40, 48, 36), (8, 16, 8), (36, 20, 4), (6, 18, 10), (41, 47, 37), (1, 1, 3)):
        problem = GemmProblem(m, n, k, trans_a=trans[0], trans_b=trans[1])
        inputs = generated(rng, problem)
        given = {name: cl_array.to_device(queue, array) for name, array in inputs.items()}
        assert_right(product(problem, given, queue), problem, inputs)


@pytest.mark.few(1)
@pytest.mark.parametrize("trans_b", [False, True])
def test_a_row_of_the_tile_takes_several_loads_of_each_item(trans_b, rng, queue):
    problem = GemmProblem(21, 37, 11, trans_a=not trans_b, trans_b=trans_b)
    few = {"WORK_M": 8, "WORK_N": 16, "WG_M": 2, "WG_N": 2, "TILE_K": 4}
    check(rng, problem, "blocked", {**SMALL["blocked"], **few}, queue)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_elements_one_after_the_other_and_meanwhile(dtype, rng, queue, monkeypatch):
    """By items that have sums alone, and by several that have the same sums."""
    for buffers, splits, along, options in (
        (1, 1, 2, {"conj_a": True, "trans_b": True}),
        (2, 3, 1, {"conj_b": True, "trans_a": True, "beta": 0.5, "bias": "column", "batch": 2}),
        (1, 2, 1, {"trans_a": True, "beta": 0.5, "bias": "row", "batch": 3}),
        (2, 3, 4, {"beta": 0.5, "bias": "row", "batch": 2}),
    ):
        monkeypatch.setattr(blocked_module, "reduces_in_launch", lambda *what, all=splits == 3: all)
        problem = GemmProblem(20, 36, 60, np.dtype(dtype), **options)
        config = {**SMALL["blocked"], "BUFFERS": buffers, "SPLITS": splits, "WG_K": along}
        config |= {"WORK_M": 4}
        check(rng, problem, "blocked", config, queue)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["cpu", "gpu", "last-group"])
@pytest.mark.parametrize("shape", [(3, 5, 4000), (16, 32, 999)])
def test_slices_of_k_are_added_alike_each_time(shape, kind, rng, queue, monkeypatch):
    """By several items that share the slices, or one; numbers of slices that nothing divides."""
    in_launch = kind == "last-group"
    monkeypatch.setattr(blocked_module, "reduces_in_launch", lambda *what: in_launch)
    monkeypatch.setattr(
        blocked_module.split_k,
        "reduction",
        lambda problem, device, splits: reduction(problem, replace(device, kind=kind), splits),
    )
    a, b, _ = matrices(rng, *shape)
    # A scalar of its own, since a session keeps what it has planned for a problem.
    alpha = {"cpu": 1, "gpu": 3, "last-group": 2}[kind]
    problem = GemmProblem(*shape, alpha=alpha)
    for splits in (2, 7, 125):
        plan = BLOCKED.plan(
            problem, BLOCKED.configure(problem, GPU, {**SMALL["blocked"], "SPLITS": splits}), GPU
        )
        assert len(plan.launches) == (1 if in_launch else 2)
        slices = int(plan.launches[-1].arguments["splits"])
        assert splits // 2 < slices <= splits
        assert int(plan.launches[0].arguments["slice_k"]) % SMALL["blocked"]["TILE_K"] == 0
        area = (8, 16) if in_launch else shape[:2]
        tiles = -(-shape[0] // 8) * -(-shape[1] // 16) if in_launch else 1
        assert plan.by_name["partial"].shape == (tiles, slices, *area)
        results = [product(problem, {"a": a, "b": b}, queue, SPLITS=splits) for _ in range(2)]
        assert_product(results[0], a, b, alpha=alpha)
        np.testing.assert_array_equal(*results)


# ------------------------------------------------------------------ plans for devices on paper


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("shape", [(40, 48, 36), (41, 47, 37), (3, 5, 7)])
def test_items_read_inside_of_the_factors(shape, trans):
    """Also those of tiles over the edges: what the source says, worked out in Python."""
    m, n, k = shape
    problem = GemmProblem(m, n, k, trans_a=trans, trans_b=trans)
    (launch,) = BLOCKED.plan(
        problem, BLOCKED.configure(problem, GPU, SMALL["blocked"]), GPU
    ).launches
    source = render(launch.template, launch.params).text.replace("/", "//")
    rest = (k - 1) % SMALL["blocked"]["TILE_K"] + 1
    for name, size, tile, first in (("a", m, 8, "first_row"), ("b", n, 16, "first_column")):
        texts = {word: re.search(rf"{name}_{word} = (.*);", source)[1] for word in ("far", "near")}
        places = re.findall(rf"{name}_at_\d+ = (.*);", source)
        lines = re.findall(rf"{name}_next_\d+ = (.*) < rest \?", source)
        last = size * k - launch.params[f"TILE_{name.upper()}"].width
        for begin, item in product_of(range(0, size, tile), range(16)):
            known = {"item": item, "m": m, "n": n, "k": k, "min": min, first: begin}
            known |= {f"{name}_{word}": eval(text, known) for word, text in texts.items()}
            for place, line in zip(places, lines, strict=True):
                assert eval(line, known) >= rest or 0 <= eval(place, known) <= last


def test_vectors_are_taken_for_aligned_where_they_are():
    problem = GemmProblem(64, 64, 64, np.dtype("float16"), trans_a=True)
    for made, aligned in ((GPU, True), (replace(GPU, unified_memory=True), False)):
        launch = BLOCKED.plan(problem, BLOCKED.configure(problem, made), made).launches[0]
        source = render(launch.template, launch.params).text.split("*/", 1)[1]
        assert "vload" in source and "vstore" in source
        assert ("vloada_half" in source) == ("vstorea_half" in source) == aligned


@pytest.mark.parametrize(
    ("shape", "splits"),
    [
        ((8192, 8192, 8192), False), ((512, 512, 512), False), ((64, 64, 1 << 20), True),
        ((64, 4096, 4096), True), ((100, 100, 100_000), True),
    ],
)  # fmt: skip
def test_the_model_fills_the_device_with_tiles_or_slices_of_k(shape, splits):
    problem = GemmProblem(*shape)
    tile, number = best_tiles(problem, GPU)[0]
    assert (number > 1) == splits
    assert tile.count(problem) * number >= 0.9 * GPU.compute_units
    assert min(shape) < 4096 or tile.rows * tile.columns >= 64 * 128


def test_small_products_with_long_sums_take_one_launch_where_groups_see_what_others_wrote():
    for shape in ((64, 64, 8192), (127, 129, 8191), (16, 16, 8192), (33, 3001, 1000)):
        problem = GemmProblem(*shape)
        for device, number in ((JOINED, 1), (GPU, 2)):
            tile, splits = best_tiles(problem, device)[0]
            plan = BLOCKED.plan(problem, BLOCKED.default_config(problem, device), device)
            check_plan(plan, device)
            assert len(plan.launches) == (number if splits > 1 else 1)
            assert device is GPU or tile.count(problem) * splits >= 0.8 * device.compute_units
        source = render(plan.launches[0].template, plan.launches[0].params).text
        assert "before_me" not in source
    (launch,) = BLOCKED.plan(problem, BLOCKED.default_config(problem, JOINED), JOINED).launches
    source = render(launch.template, launch.params).text
    assert "membar.gl" in source
    assert launch.local_bytes == declared_bytes(source, problem)


def test_slices_of_k_have_eight_steps_or_four_where_one_launch_adds_them_up():
    for device, least in ((GPU, 8), (JOINED, 4)):
        for depth in (100, 300, 1000, 8192):
            for tile in TILES:
                one, *more = _splits(tile, GemmProblem(64, 64, depth), device)
                assert one == 1
                assert all(2 <= splits <= depth / (least * tile.TILE_K) for splits in more)
    assert len(list(_splits(TILES[-2], GemmProblem(64, 64, 8192), GPU))) > 2


def test_cpus_take_the_largest_tiles_that_give_all_units_work():
    for size, units, side in ((4000, 2, 16), (300, 2, 16), (300, 16, 8), (300, 64, 4), (3, 2, 1)):
        made = made_device("cpu", 4096, 1 << 20, units)
        tile, splits = best_tiles(GemmProblem(size, size, size), made)[0]
        assert (tile.WG_M, splits) == (side, 1), (size, units)
