"""Compilers of GPUs that are not here: what is read from their reports, and who asks them.

Where the compilers are not there, what they make is: binaries without code (`offline_reports.py`).
"""

import json
import re

import pytest
from command_line import oclab, one_sentence
from offline_reports import WARNING, amd_binary, fake_ocloc, intel_binary
from tuning_runs import in_journal, replay

from opencl_lab.core.errors import BuildError, InvalidProblem, ReferenceUnavailable
from opencl_lab.lab import offline
from opencl_lab.lab.offline import TARGETS, compile_for, missing
from opencl_lab.lab.tuning.tuner import SearchOptions

HERE = [target for target in TARGETS.values() if missing(target) is None]
SOURCE = """__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void f(__global float *x)
{
    __local float all[64];
    all[get_local_id(0)] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = all[get_local_id(0) ^ 1];
}
"""
ONE = ("source", "gemm", "--size", 20, "--algorithm", "tiled")


@pytest.fixture
def ocloc(tmp_path, monkeypatch):
    monkeypatch.setenv(offline.VARIABLE, fake_ocloc(tmp_path / "compilers"))


# ------------------------------------------------------------------ reports


def report(**changes):
    (found,) = offline.reported(TARGETS["gfx900"], amd_binary(**changes), "")
    return found


def test_amd_notes_say_what_a_kernel_takes():
    found = report()
    assert (found.kernel, found.width, found.registers, found.spilled) == (
        "gemm_blocked", 64, 256, 224,
    )  # fmt: skip
    assert (found.local_bytes, found.private_bytes, found.waves) == (16896, 884, 1)
    assert str(found) == (
        "256 registers of an item, 224 spilled, 884 bytes of private memory, 16,896 bytes of local "
        "memory; 64 items a wave, 1 of 10 waves"
    )
    # All registers of gfx90a are counted once, and the accumulators again.
    both = report(vgpr_count=382, agpr_count=126)
    assert both.registers == 382


@pytest.mark.parametrize(
    "target, registers, waves",
    [
        ("gfx900", 1, 10), ("gfx900", 25, 9), ("gfx900", 128, 2), ("gfx900", 129, 1),
        ("gfx90a", 64, 8), ("gfx90a", 382, 1), ("gfx1030", 64, 16), ("gfx1030", 65, 12),
        ("skl", 128, 7), ("pvc", 128, 8), ("pvc", 256, 4),
    ],
)  # fmt: skip
def test_waves_share_registers(target, registers, waves):
    found = offline.Compiled("f", TARGETS[target], 64, registers, 0, 0)
    assert found.waves == waves and found.as_dict()["target"] == target


def test_intel_says_part_in_the_binary_and_spills_in_a_warning():
    f, g = offline.reported(TARGETS["pvc"], intel_binary(16), WARNING)
    assert (f.kernel, f.width, f.registers, f.spilled, f.local_bytes) == ("f", 16, 128, 178, 256)
    assert (g.kernel, g.width, g.registers, g.spilled, g.local_bytes) == ("g", 32, 256, 0, 0)
    assert (f.private_bytes, g.private_bytes, g.waves) == (0, 32768, 4)
    assert "178 spilled, 256 bytes of local" in str(f) and "nothing spilled, 32,768 bytes" in str(g)
    assert not offline.reported(TARGETS["pvc"], intel_binary(16), "Build succeeded.")[0].spilled


def test_a_compiler_in_the_folder_is_asked(ocloc):
    f, g = compile_for(TARGETS["skl"], SOURCE)
    assert (f.spilled, g.kernel) == (0, "g")
    assert compile_for(TARGETS["skl"], SOURCE.replace("64, 1", "16, 16"))[0].spilled == 178
    with pytest.raises(BuildError, match="does not compile for skl") as caught:
        compile_for(TARGETS["skl"], "wrong")
    assert "undeclared identifier 'wrong'" in caught.value.log
    assert caught.value.sentence.endswith("skl: " + caught.value.log)


def test_a_missing_compiler_is_said_with_what_to_install(monkeypatch, tmp_path):
    for name, packages in (("gfx900", "clang-15 rocm-device-libs"), ("pvc", "intel-opencl-icd")):
        monkeypatch.setenv(offline.VARIABLE, str(tmp_path))
        with pytest.raises(ReferenceUnavailable, match=f"apt install {packages}.*OCLAB_OFFLINE"):
            compile_for(TARGETS[name], SOURCE)
    monkeypatch.setenv(offline.VARIABLE, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert all(map(missing, TARGETS.values()))
    (tmp_path / "clang-16").write_text("#!/bin/sh\necho error: cannot find ROCm device library\n")
    (tmp_path / "clang-16").chmod(0o755)
    assert missing(TARGETS["gfx900"]) is None
    with pytest.raises(ReferenceUnavailable, match="gfx900 needs AMD's device libraries"):
        compile_for(TARGETS["gfx900"], SOURCE)


# ------------------------------------------------------------------ commands


def test_source_says_what_a_compiler_makes_of_the_kernels(device, ocloc):
    where = ("--device", device.spec)
    printed = oclab(*ONE, "--compile", "skl", *where)
    assert printed.returncode == 0, printed.stderr
    assert re.search(
        r"f on skl +128 registers of a thread, (178|nothing) spilled, ", printed.stdout
    )
    (program,) = json.loads(oclab(*ONE, "--compile", "skl", "--json", *where).stdout)["programs"]
    keys = ("kernel", "target", "width", "registers", "local_bytes", "private_bytes", "waves")
    assert [program["compiled"][1][key] for key in keys] == ["g", "skl", 32, 256, 0, 32768, 3]
    (program,) = json.loads(oclab(*ONE, "--json", *where).stdout)["programs"]
    assert program["compiled"] == []


def test_commands_say_which_compiler_is_missing(device, tmp_path):
    there = {offline.VARIABLE: str(tmp_path), "OCLAB_DEVICE": device.spec}
    for command in (ONE, ("tune", "gemm", "--size", 20)):
        refused = oclab(*command, "--compile", "pvc", **there)
        assert refused.returncode == 3 and one_sentence(refused), refused
        assert "to compile for pvc needs ocloc" in refused.stderr
        assert oclab(*command, "--compile", "voodoo", **there).returncode == 2


# ------------------------------------------------------------------ tuner


@pytest.mark.usefixtures("private_data")
def test_the_tuner_leaves_out_what_spills(task, ocloc):
    best = replay(task)[0].best.config
    assert best["TILE"] == 16
    result, runner = replay(task, compile_for="skl")
    left_out = [item for item in result.evaluations if item.status == "constraints"]
    assert left_out and all(item.config["TILE"] == 16 for item in left_out)
    assert {item.reason for item in left_out} == {"f spills 178 registers on skl"}
    assert task.built_in not in {item.config for item in left_out}  # it is compared in any case
    assert {config for config in runner.asked if config["TILE"] == 16} <= {task.built_in}
    assert result.task.compile_for == "skl"
    # Neither run resumes from the other's journal.
    assert result.resumed == 0 and replay(task)[0].best.config == best
    assert all(item.status == "correct" for item in in_journal(task).values())
    assert set(left_out) <= set(in_journal(result.task).values())


def test_the_tuner_refuses_what_no_compiler_is_for(tmp_path, monkeypatch):
    with pytest.raises(InvalidProblem, match="no target is called 'gfx9': gfx900"):
        SearchOptions(compile_for="gfx9")
    monkeypatch.setenv(offline.VARIABLE, str(tmp_path))
    with pytest.raises(ReferenceUnavailable, match="needs ocloc"):
        SearchOptions(compile_for="skl")


# ------------------------------------------------------------------ with the compilers


@pytest.mark.parametrize("target", HERE, ids=lambda target: target.name)
def test_the_compilers_say_what_a_kernel_takes(target):
    try:
        (found,) = compile_for(target, SOURCE, ("-cl-kernel-arg-info", "-w"))
    except ReferenceUnavailable as error:  # a Clang without AMD's libraries
        pytest.skip(str(error))
    assert (found.kernel, found.local_bytes, found.spilled) == ("f", 256, 0)
    assert 1 <= found.registers <= 128 and found.width in (8, 16, 32, 64)
    with pytest.raises(BuildError) as caught:
        compile_for(target, SOURCE.replace("float all", "voodoo all"))
    assert "voodoo" in caught.value.log
