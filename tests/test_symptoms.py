"""Checks by symptom: right on a sound device, and each fault that is planted is seen."""

import re
from dataclasses import replace

import pyopencl as cl
import pytest

from opencl_lab.lab.doctor.probes import barriers, behaviour, features, limits, vectors
from opencl_lab.lab.doctor.probing import ProbeSession
from opencl_lab.selftest import basics
from opencl_lab.selftest.kernels import KernelRunner, Wrong, check


@pytest.fixture
def plant(monkeypatch):
    """Return a function that makes a driver which takes other source text for what it is given."""
    build = KernelRunner.build

    def plant(old, new, unless="no such option"):
        def rewritten(self, source, options=()):
            made, count = re.subn(old, new, source)
            return build(self, made if count and unless not in options else source, options)

        monkeypatch.setattr(KernelRunner, "build", rewritten)

    return plant


def checked(device, name):
    """Run the check of this name."""
    if name in basics.CHECKS:
        basics.CHECKS[name](device)
    else:
        session = ProbeSession(device)
        getattr(barriers, name.replace(" ", "_"))(session, session.size(64))


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
    ("butterflies", r"tile\[l\] = v;\s*barrier.*", "tile[l] = v;", "exchanges of items"),
    ("butterflies", r"tile\[l\] = a;\s*barrier.*", "tile[l] = a;", "a pair of numbers"),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "old", "new", "told"), FAULTS)
def test_each_fault_is_seen(device, plant, name, old, new, told):
    if name == "butterflies" and device.kind != "cpu":
        pytest.skip("items of a warp need no barrier to see each other's stores")
    plant(old, new)
    with pytest.raises(Wrong, match=re.escape(told)) as caught:
        checked(device, name)
    assert "without optimisation" not in str(caught.value)


def test_a_fault_of_the_optimiser_is_called_one(device, plant):
    plant(r"fma\(-c, b, t\)", "fma(-c, b, t + (l < 56))", unless="-cl-opt-disable")
    with pytest.raises(Wrong, match=r"a pair of .*; without optimisation it is right$"):
        checked(device, "butterflies")


LOOPS_END = ("turns < most", "turns < min(most, 65535u)")
ALL_STORES = (limits.local_memory, r"tile\[i\] = hash")
SUMS, FORMS = "a * b + a", vectors.vector_bytes
PROBED = [
    (behaviour.usable, *LOOPS_END, False, "without an error"),
    (barriers.barriers_in_loops, r"if \(l % 3 == 1\).*", "", False, "group of 64: what items"),
    (limits.max_work_group, r"\+= tile", "+= get_local_size(0) > 64 ? 0 : tile", 64, "64 of"),
    (*ALL_STORES, "tile[i & ~1u] = hash", 0, "0 of"),
    (*ALL_STORES, "if (i < 40000) tile[i] = hash", 1 << 17, "131072 of"),
    (limits.max_allocation, r"s\[places(.*?)\]\]", r"s[places\1] % 67108864]", 1 << 28, "256 MiB"),
    (FORMS, r"vstore3\(x \* y \+ x", "vstore3(x * y", 1, f"{SUMS}, char, vectors of 3"),
    pytest.param(FORMS, r"const uint8 y = .*;", "const uint8 y = x;", 16,
                 f"{SUMS}, uint, vectors of 8", marks=pytest.mark.full),
    pytest.param(FORMS, "convert_double4", "0.5 * convert_double4", 16,
                 "convert_double, double, vectors of 4", marks=pytest.mark.full),
    (FORMS, r"select\(x, y, x < y\), i, c", "x, i, c", 1, "select, char, vectors of 3"),
    (FORMS, "vstore_half2_rte", "vstore_half2_rtz", 1, f"{SUMS}, half in memory, vectors of 2"),
    (features.int64_atomics, r"add\(total, mine", "add(total, (uint)mine", False, "1 of 1"),
    (features.int64_atomics, r"= atom_xchg\(last", "= (ulong)atomic_xchg((global uint *)last",
     False, "are wrong"),
    (features.fp64, r"fma\(", "(float)fma(", False, "claimed by the driver; "),
    (behaviour.event_timing, "i < rounds", "i < rounds / 2", False, "results are wrong"),
]  # fmt: skip
SOUND = {getattr(case, "values", case)[0] for case in PROBED}


@pytest.mark.full
@pytest.mark.parametrize("probe", sorted(SOUND, key=lambda probe: probe.__name__))
def test_probes_find_a_sound_device_sound(device, probe):
    *_, last = probe(device)
    assert last.word in ("ok", "no"), last


@pytest.mark.few(2)
@pytest.mark.parametrize(("probe", "old", "new", "value", "told"), PROBED)
def test_a_symptom_takes_a_capability_away(device, plant, probe, old, new, value, told):
    if probe is limits.local_memory and device.local_memory < 1 << 18:
        pytest.skip("the fault is planted beyond its local memory")
    small = replace(device, max_allocation=min(device.max_allocation, 1 << 29))
    small = replace(small, local_memory=min(device.local_memory, 1 << 18))
    plant(old, new)
    *_, last = probe(small)
    assert last.word in ("broken", "limited", "no") and last.value == value, last
    assert told in last.detail, last


@pytest.mark.parametrize("works", [True, False])
def test_what_is_not_claimed_is_tried(device, works, monkeypatch):
    tried = []

    def ends(session, program, size):
        tried.append(size)
        if size > 2 << 30 and not works:
            raise cl.LogicError("create_buffer", -61, "larger than claimed")

    monkeypatch.setattr(limits, "_ends", ends)
    claims = replace(device, unified_memory=False, max_allocation=2 << 30, global_memory=8 << 30)
    *_, last = limits.max_allocation(claims)
    assert last.word == "ok" and max(tried) > 2 << 30
    assert last.value == (max(tried) if works else None), last
    found = replace(claims.capabilities, max_allocation=last.value or 0)
    assert replace(claims, capabilities=found).largest_buffer == (15 << 29 if works else 2 << 30)

    half = replace(device, max_work_group=64, max_work_items=(64,) * 3)
    monkeypatch.setattr(limits, "check", check if works else refuse_above(64))
    *_, last = limits.max_work_group(half)
    assert last.word == "ok" and last.value == (128 if works else 64), last


def refuse_above(size):
    """Return a check that finds results of larger groups wrong."""
    sizes = iter((1, size, 2 * size))

    def refusing(result, expected):
        if next(sizes) > size:
            raise Wrong("beyond the claim")

    return refusing
