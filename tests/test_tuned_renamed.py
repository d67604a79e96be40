"""Entries that were stored under earlier names of parameters, values and kernels are read."""

from __future__ import annotations

import json

import pytest
from documents import row, sweep
from tuning_runs import GPU, Replay

from opencl_lab.core.space import Config
from opencl_lab.core.template import kernel_digest
from opencl_lab.lab.engine.stored import read_results
from opencl_lab.lab.registry import operations
from opencl_lab.lab.tuning.adopt import adopt, read_recording, task_of
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.interchange import Recording, to_kernel_tuner, to_t4, values_of
from opencl_lab.tuned import database, renamed
from opencl_lab.tuned.entry import parse

EARLIER = {
    "FORM": "groups", "EXCHANGE": "turns", "FEW_ROOTS": False, "JOIN": "always", "WG_SIZE": 128,
    "POINTS": 4, "TRANSFORMS": 0, "LAST_TRANSFORMS": 0, "LOCAL_LIMIT": 16384, "LOCAL_PAD": 0,
    "MAX_RADIX": 16, "VECTOR_WIDTH": 8, "BLOCK": 4, "ITEMS_PER_UNIT": 8, "SPLIT": "auto",
}  # fmt: skip


def stored(**changes):
    """Return the first entry that comes with the package, changed, as an earlier file had it."""
    content = json.loads(database.shipped_file("dft").read_text())
    content["entries"] = [{**content["entries"][0], **changes}]
    return parse(json.dumps(content))[0]


def test_parameters_and_values_have_todays_names():
    config = stored(config=EARLIER).config
    assert config["FORM"] == "local-memory" and config["EXCHANGE"] == "two-phase"
    assert config["FEW_TWIDDLES"] is False and config["FUSED"] == "always"
    assert not {"FEW_ROOTS", "JOIN"} & set(config)
    assert {name: config[name] for name in ("WG_SIZE", "SPLIT")} == {
        "WG_SIZE": 128,
        "SPLIT": "auto",
    }
    space = operations()["dft"].algorithm("fft").space
    assert set(config) == {parameter.name for parameter in space.parameters}
    assert space.violation(config) is None


@pytest.mark.parametrize(
    ("name", "earlier", "today"),
    [
        ("FORM", "lanes", "vector"),
        ("EXCHANGE", "pairs", "interleaved"),
        ("EXCHANGE", "parts", "split"),
        ("EXCHANGE", "auto", "auto"),
    ],
)
def test_each_value_has_todays_name(name, earlier, today):
    assert stored(config={**EARLIER, name: earlier}).config[name] == today


def test_the_names_of_today_stay():
    config = dict(stored(config=EARLIER).config)
    assert dict(stored(config=config).config) == config


def test_renamed_names_exist_today():
    for (operation, algorithm), names in renamed.PARAMETERS.items():
        space = operations()[operation].algorithm(algorithm).space
        values = {parameter.name: parameter.values for parameter in space.parameters}
        assert set(names.values()) <= set(values) and not set(names) & set(values)
        for name, changed in renamed.VALUES.get((operation, algorithm), {}).items():
            assert set(changed.values()) <= set(values[name])
            assert not set(changed) & set(values[name])


def test_digests_of_earlier_templates_lead_to_todays():
    """Of templates that render the same kernels: what was measured with them holds."""
    today = {
        kernel_digest(algorithm.templates)
        for operation in operations().values()
        for algorithm in operation.algorithms
    }
    assert set(renamed.DIGESTS.values()) <= today
    assert not set(renamed.DIGESTS) & today
    for earlier, digest in renamed.DIGESTS.items():
        assert stored(digest=earlier).digest == digest


def test_values_that_no_table_can_hold_are_left_as_they_are():
    config = {**EARLIER, "FORM": ["groups"], "EXCHANGE": None}
    found = renamed.renamed_config("dft", "fft", config)
    assert found["FORM"] == ["groups"] and found["EXCHANGE"] is None


def test_results_of_earlier_versions_have_todays_names(tmp_path):
    """So that a comparison with them shows no other configuration, and finds its row."""
    rows = [
        row("opencl:radix", config={"FORM": "units", "WG_SIZE": 1}),
        row("opencl:odd-even-merge", config={"FORM": "units"}),  # which has no such parameter
    ]
    radix, other = read_results(sweep(tmp_path / "old.json", *rows)).rows
    assert radix.measurement.config == {"FORM": "cpu", "WG_SIZE": 1}
    assert other.measurement.config == {"FORM": "units"}


@pytest.mark.parametrize("write", [to_kernel_tuner, to_t4])
@pytest.mark.parametrize(
    ("operation", "algorithm", "config", "name"),
    [
        ("dft", "fft", EARLIER, "FUSED"),
        ("sort", "merge-path", {"FORM": "groups", "WG_SIZE": 64, "ITEM_KEYS": 7}, "FORM"),
    ],
)
def test_runs_of_earlier_versions_are_tried(
    write, operation, algorithm, config, name, tmp_path, monkeypatch
):
    """With problems that work something out by themselves, and with fields that are None."""
    chosen = operations()[operation]
    problem = chosen.problem(n=4096)
    found = Evaluation(Config(config), "correct", times_ms=(1.0, 1.0))
    about = {"operation": operation, "algorithm": algorithm, "problem": problem.as_dict()}
    text = write(Recording("X", "k", (4096,), values_of([found]), [found], about))
    recording = read_recording(text)
    task = task_of(recording, GPU)
    assert task.problem == problem
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path))
    runner = Replay([])
    monkeypatch.setattr("opencl_lab.lab.tuning.tuner.Sandbox", lambda task, *rest: runner)
    adopt(recording, task)
    asked = runner.asked[-1]
    assert asked[name] == renamed.renamed_config(operation, algorithm, config)[name]
    assert asked["WG_SIZE"] == config["WG_SIZE"]
