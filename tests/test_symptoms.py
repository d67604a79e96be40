"""Checks by symptom: right on a sound device, and each fault that is planted is seen."""

import re

import numpy as np
import pytest

from opencl_lab.lab.doctor.probes import behaviour
from opencl_lab.selftest import symptoms
from opencl_lab.selftest.symptoms import BASICS
from opencl_lab.selftest.trial import Trial, Wrong


@pytest.fixture
def plant(monkeypatch):
    """Return a function that makes a driver which takes other source text for what it is given."""
    build = Trial.build

    def plant(old, new, unless="no such option"):
        def rewritten(self, source, options=()):
            made, count = re.subn(old, new, source)
            return build(self, made if count and unless not in options else source, options)

        monkeypatch.setattr(Trial, "build", rewritten)

    return plant


@pytest.mark.parametrize("name", [name for name, _ in BASICS])
def test_a_sound_device_has_no_symptom(device, name):
    dict(BASICS)[name](device)


FAULTS = [
    ("plain kernel", r"\+ b\[", "- b[", "4096 of 4096"),
    ("long loops", r"turns < most", "turns < min(most, 65535u)", "of 200,000 turns ends after 65,"),
    (
        "long loops",
        r"(outer|size) \+ i; outer",
        r"min(size + (uint)i, 362u); outer",
        "within a loop",
    ),
    ("barriers in branches", r"v \+= 3 \* tile\[.*\]", "v += 3 * v", "all items take"),
    ("barriers in branches", r"barrier\(CLK_LOCAL_MEM_FENCE\);", "", "all items take"),
    ("stores before barriers", r"if \(l % 3 == 1\).*", "", "under a condition"),
    ("stores before barriers", r"barrier\(CLK_LOCAL_MEM_FENCE\);\n  }", "}", "under a condition"),
    ("stores before barriers", r"barrier\(\w+\);(\n  // What.*)", r"\1", "under a condition"),
    ("butterflies", r"tile\[l\] = v;\s*barrier.*", "tile[l] = v;", "without optimisation, too"),
    ("butterflies", r"tile\[l\] = a;\s*barrier.*", "tile[l] = a;", "butterflies"),
]


@pytest.mark.parametrize(("name", "old", "new", "told"), FAULTS)
def test_each_fault_is_seen(device, plant, name, old, new, told):
    plant(old, new)
    with pytest.raises(Wrong, match=re.escape(told)):
        dict(BASICS)[name](device)


def test_a_fault_of_the_optimiser_is_called_one(device, plant):
    plant(r"fma\(-c, b, t\)", "fma(-c, b, t + (l < 56))", unless="-cl-opt-disable")
    with pytest.raises(Wrong, match="optimiser's fault"):
        symptoms.butterflies(device)


def test_what_many_turns_make_is_what_one_turn_makes_many_times():
    x = np.random.default_rng(1).integers(0, 1 << 32, 5, dtype=np.uint32)
    expected, turns = x.copy(), np.array([0, 1, 2, 1000, 77], np.uint32)
    for turn in range(max(turns)):
        expected = np.where(turn < turns, expected * np.uint32(1664525) + 1013904223, expected)
    np.testing.assert_array_equal(symptoms.after(x, turns), expected)


@pytest.mark.parametrize(
    ("probe", "old", "new", "told"),
    [
        (behaviour.usable, "turns < most", "turns < min(most, 65535u)", "without an error"),
        (behaviour.barriers_in_loops, r"if \(l % 3 == 1\).*", "", "work-group of 64: what items"),
    ],
)
def test_a_symptom_takes_the_capability_away(device, plant, probe, old, new, told):
    plant(old, new)
    *_, last = probe(device)
    assert last["verdict"] == "broken" and last["value"] is False and told in last["detail"]
