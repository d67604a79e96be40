"""What is tuned is kept, found again where it fits, and used; most of it without any device."""

from __future__ import annotations

import json
import logging
import runpy
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from matrix import usual_options
from msgspec import structs
from tuned_entries import DEFAULT, GPU, N1024, SISTER, TILED, VERSION, store, tuned, used

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.space import Config
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.task import problem_with
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.tuned import database, storage
from opencl_lab.tuned.entry import Origin, document, entry_of, parse

pytestmark = pytest.mark.usefixtures("overlay")


F64 = np.dtype(np.float64)
COUSIN = replace(GPU, name="Paper A100", compute_capability=(8, 0))  # same vendor
STRANGER = replace(GPU, name="Other", vendor="Other Corp", platform="Other CL", driver="1")
STRANGER = replace(STRANGER, compute_capability=None)


def ship(*entries):
    storage.SHIPPED.mkdir(exist_ok=True)
    (storage.SHIPPED / "gemm.json").write_text(json.dumps(document(entries)))
    database.forget()


# --------------------------------------------------------------- store and use


def test_what_is_stored_is_used_and_nothing_else_changes():
    assert used() == DEFAULT
    database.store(GPU, "gemm", TILED, N1024, tuned(0), 1.5)
    assert used() == tuned(0)
    assert used(problem=replace(N1024, dtype=F64)) != tuned(0)
    assert used(problem=replace(N1024, trans_a=True)) == DEFAULT
    assert used(problem=replace(N1024, alpha=2.0)) == tuned(0)  # not of the layout
    naive = GEMM.algorithm("naive")
    assert naive.configure(N1024, GPU) == naive.default_config(N1024, GPU)
    assert used(device=STRANGER) == TILED.default_config(N1024, STRANGER)


def test_explicit_values_come_before_tuned_ones():
    store(GPU, 0)
    assert used(values={"LOCAL_PAD": 0}) == tuned(0).replace(LOCAL_PAD=0)
    assert used(values=dict(DEFAULT)) == DEFAULT
    # The tuned UNROLL does not divide this tile, the default one does.
    store(GPU, 4)
    assert used(values={"TILE": 16}) == DEFAULT.replace(TILE=16)
    with pytest.raises(InvalidConfig, match="UNROLL must divide TILE"):
        used(values={"UNROLL": 5})


def test_the_environment_turns_it_off(monkeypatch):
    store(GPU, 0)
    assert used() == tuned(0)
    monkeypatch.setenv("OCLAB_TUNING", "off")
    assert used() == DEFAULT and TILED.tuned(N1024, GPU) is None
    monkeypatch.delenv("OCLAB_TUNING")
    assert used() == tuned(0)


def test_the_public_function_takes_it_from_the_next_call_on(queue, device, rng, monkeypatch):
    algorithm = SORT.algorithm("odd-even-merge")
    keys = rng.integers(0, 1000, 5000, dtype=np.int32)
    problem = SortProblem(keys.size, keys.dtype)
    seen = []
    plan = type(algorithm).plan

    def spy(self, problem, config, device):
        seen.append(config)
        return plan(self, problem, config, device)

    monkeypatch.setattr(type(algorithm), "plan", spy)
    special = algorithm.default_config(problem, device).replace(TILE=256, WORK_PER_ITEM=32)
    database.store(device, "sort", algorithm, problem, special, 1.0)
    from opencl_lab.ops.sort.functions import sort

    result = sort(keys, algorithm="odd-even-merge", queue=queue)
    np.testing.assert_array_equal(result, np.sort(keys))
    assert special in seen


# -------------------------------------------------------------------- fallback


def test_levels_from_near_to_far():
    wanted = GemmProblem(1024, 1024, 1024)
    ship(
        entry_of(GPU, "gemm", "tiled", VERSION, wanted, tuned(4), 1.0),
        entry_of(COUSIN, "gemm", "tiled", VERSION, wanted, tuned(4), 0.5),
    )
    store(COUSIN, 3)
    store(SISTER, 2)
    store(GPU, 1, GemmProblem(2048, 512, 1024))
    store(GPU, 0, GemmProblem(2048, 1024, 1024))
    store(GPU, 2, GemmProblem(4096, 1024, 1024))  # too far
    store(GPU, 3, GemmProblem(1100, 1024, 1024))
    store(STRANGER, 3)
    found = database.lookup(GPU, "gemm", "tiled", wanted, VERSION)
    told = [(m.level, m.entry.shipped, m.entry.sizes["m"], m.entry.device.name) for m in found]
    exact, near, architecture, vendor = database.LEVELS
    assert told == [
        (exact, False, 1100, "Paper H100"),
        (exact, True, 1024, "Paper H100"),
        (near, False, 2048, "Paper H100"),
        (near, False, 2048, "Paper H100"),
        (architecture, False, 1024, "Paper H200"),
        (vendor, False, 1024, "Paper A100"),
        (vendor, True, 1024, "Paper A100"),
    ]


def test_the_nearest_size_and_not_any_size():
    store(GPU, 0, GemmProblem(256, 256, 256))
    store(GPU, 1, GemmProblem(8192, 8192, 8192))
    assert used(problem=GemmProblem(500, 512, 512)) == tuned(0)
    assert used(problem=GemmProblem(4000, 4096, 4096)) == tuned(1)
    # Four times as far in one size is too far: skinny matrices are something else.
    assert used(problem=GemmProblem(512, 256, 256)) == tuned(0)
    assert used(problem=GemmProblem(1024, 256, 256)) == DEFAULT
    assert used(problem=GemmProblem(1, 256, 256)) != tuned(0)
    assert TILED.tuned(GemmProblem(0, 256, 256), GPU) is None


def test_where_a_model_chooses_only_this_device_and_nearly_this_size_count():
    wanted = GemmProblem(1024, 1024, 1024)
    old_driver = replace(GPU, driver="older")
    for device, size in ((SISTER, 1024), (COUSIN, 1024), (GPU, 900), (GPU, 1000), (GPU, 2048)):
        store(device, 0, GemmProblem(size, size, size))
    ship(entry_of(old_driver, "gemm", "tiled", VERSION, wanted, tuned(4), 1.0))
    found = database.lookup(GPU, "gemm", "tiled", wanted, VERSION, modelled=True)
    told = [(match.entry.sizes["m"], match.entry.device.unit) for match in found]
    unit = Origin.of(GPU).unit
    assert told == [(1000, unit), (1024, unit)]
    names = {algorithm.name for algorithm in GEMM.algorithms if algorithm.modelled}
    assert names == {"gemv", "tensor", "packed", "blocked", "direct"}


def test_a_cpu_takes_no_configuration_of_one_with_other_vectors():
    cpu = replace(GPU, kind="cpu", compute_capability=None, native_vector_bytes=64)
    store(cpu, 1)
    narrow = replace(cpu, name="Paper i3", native_vector_bytes=32)
    assert used(device=replace(cpu, name="Paper Xeon")) == tuned(1)
    assert used(device=narrow) == TILED.default_config(N1024, narrow)


def test_shipped_entries_serve_other_drivers_and_empty_ones_are_valid(caplog):
    entry = entry_of(GPU, "gemm", "tiled", VERSION, N1024, tuned(0), 1.0)
    ship(entry, structs.replace(entry, version=0, sizes={**entry.sizes, "m": 4096}))
    newer = replace(GPU, driver="590.0")
    assert used() == tuned(0)
    assert TILED.tuned(N1024, newer)[1].level == "same architecture"
    assert used(problem=replace(N1024, m=4000)) == DEFAULT  # only the stale one is near
    assert not caplog.records
    assert [item.shipped for item in database.entries()] == [True, True]
    assert database.clear() == 0 and used() == tuned(0)


SHIPPED = sorted(storage.SHIPPED.glob("*.json"))
TOOLS = Path(__file__).parents[1] / "tools"
TOOL = runpy.run_path(str(TOOLS / "tune_shipped.py"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_each_shipped_entry_has_an_effect_on_its_device(path, monkeypatch):
    monkeypatch.setattr(storage, "SHIPPED", path.parent)
    devices, entries = TOOL["known_devices"](), parse(path.read_text(), shipped=True)
    for entry in entries:
        assert entry.operation == path.stem and TOOL["refusal"](entry, devices) is None
        device, operation = devices[entry.device.key], operations()[entry.operation]
        assert Origin.of(device) == entry.device
        problem = problem_with(operation, {**entry.layout, **entry.sizes})
        algorithm = operation.choose(problem, device)
        assert algorithm.tuned(problem, device)[1].entry == entry


def test_what_would_have_no_effect_is_not_shipped():
    refusal, devices = TOOL["refusal"], TOOL["known_devices"]()
    device = next(item for item in devices.values() if item.kind == "gpu")
    radix, problem = SORT.algorithm("radix").on("gpu"), SortProblem(1 << 24, F64)
    default = radix.default_config(problem, device)
    entry = entry_of(device, "sort", "radix", 1, problem, default.replace(WG_SIZE=256), 1.0)
    assert refusal(entry, devices) is None
    for changes, why in (
        ({"algorithm": "bogo"}, "no such algorithm"),
        ({"device": structs.replace(entry.device, key="other")}, "no record"),
        ({"version": 0}, "has changed since"),
        ({"sizes": {"n": 1000, "rows": 1}}, "auto takes"),
        ({"config": entry.config.replace(WG_SIZE=2048)}, "not allowed"),
        ({"config": default}, "the built-in"),
    ):
        assert why in refusal(structs.replace(entry, **changes), devices)


def test_all_problems_to_tune_for_shipping_can_be_planned():
    for device in TOOL["known_devices"]().values():
        for (name, options), _ in TOOL["wanted"](device, "sort,gemm,conv2d,dft"):
            task = TOOL["task_of"](name, options, device)
            assert task.algorithm.space.parameters and task.plan(task.built_in).launches
            assert all(task.plan(task.built_in, check).launches for check in task.check_problems)
    assert len(TOOL["wanted"](device, "sort, dft")) > len(TOOL["wanted"](device, "dft")) > 0


# ----------------------------------------------------------------------- stale


def test_an_entry_of_an_earlier_version_is_skipped_with_a_sentence(caplog):
    """Its kernel was another, with other parameters, and problems had fewer sizes."""
    sizes = {"m": 1024, "n": 1024, "k": 1024}
    store(GPU, 0, version=VERSION - 1, sizes=sizes, config=Config(BLOCK=16))
    with caplog.at_level(logging.WARNING, "opencl_lab"):
        assert used() == DEFAULT
        assert used(device=SISTER) == DEFAULT
    (record,) = caplog.records
    assert "kernel has changed" in record.message and "oclab tune gemm" in record.message
    store(GPU, 1, sizes=sizes)  # of today's kernel, as nobody can have stored it
    assert used() == DEFAULT


def test_a_changed_driver_makes_stale_and_says_so_once(caplog):
    store(GPU, 0)
    updated = replace(GPU, driver="590.2")
    with caplog.at_level(logging.WARNING, "opencl_lab"):
        assert used(device=updated) == DEFAULT
        assert used(device=updated, problem=GemmProblem(1000, 1000, 1000)) == DEFAULT
    (record,) = caplog.records
    assert "driver was 580.1 and is 590.2" in record.message
    assert used() == tuned(0)  # two drivers may live side by side
    store(updated, 1)
    assert used(device=updated) == tuned(1) and used() == tuned(0)


def test_algorithms_name_their_operation_and_every_template_they_launch(device):
    for operation in operations().values():
        for algorithm in operation.algorithms:
            assert algorithm.operation == operation.name
            options = {**usual_options(operation, algorithm, GPU), operation.size_option: 5000}
            problem = operation.problem(**operation.with_defaults(options))
            plan = algorithm.plan(problem, algorithm.default_config(problem, GPU), GPU)
            assert plan.launches
            assert {launch.template for launch in plan.launches} <= set(
                algorithm.on(GPU.kind).templates
            )
        names = set(problem.as_dict())
        assert set(problem.sizes) | set(problem.layout) <= names
        assert not set(problem.sizes) & set(problem.layout)
        held = {item.name for item in fields(problem)}  # others follow from these
        for changes in operation.check_changes(problem):
            assert held & set(problem.sizes) <= set(changes)
            assert replace(problem, **changes).work.bytes < 1e7
