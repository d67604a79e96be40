"""What documents say of the machine: who else uses it, packages, compiler, commit, a GPU."""

import json
import os
import subprocess

import pytest
from command_line import QUICK, oclab

from opencl_lab.lab.measuring import environment, load
from opencl_lab.lab.measuring.load import Counters
from opencl_lab.lab.reference.compiler import compiler, known

KEYS = {
    "started", "system", "python", "cpu", "processors", "memory_bytes", "packages", "compiler",
    "git", "variables", "load", "busy", "gpu", "gpu_end",
}  # fmt: skip


# --------------------------------------------------------------- who else uses the processors


@pytest.fixture
def four(monkeypatch, tmp_path):
    """A machine with four processors, without limits of a container."""
    monkeypatch.setattr(load, "default_threads", lambda: 4)
    monkeypatch.setattr(load, "QUOTAS", (tmp_path / "cpu.max", tmp_path / "v1.cfs_quota_us"))
    return tmp_path


@pytest.mark.parametrize(
    ("worked", "own", "others"),
    [
        (0.2, 0.1, None),
        (2.1, 2.0, None),  # that is this process
        (1.9, 0.0, None),  # a tenth below a quarter of four processors, in two seconds
        (2.1, 0.0, "1.1"),
        (8.0, 2.0, "3.0"),
        (0.0, 0.5, None),  # ticks are coarse
    ],
)
def test_others_are_what_processors_did_without_this_process(worked, own, others, four):
    before, now = Counters(10.0, 500.0, 3.0), Counters(12.0, 500.0 + worked, 3.0 + own)
    said = load.busy(before, now)
    assert (f"other processes use {others} of 4 processors" in said) is (others is not None)
    assert bool(said) is (others is not None)


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_with_a_quota_needs_no_more_than_that(version, four):
    before, now = Counters(0.0, 0.0, 0.0), Counters(1.0, 2.9, 0.0)
    assert "2.9 of 4" in load.busy(before, now)
    for quota, is_busy in ((100000, False), (-1, True), ("max", True), (200000, True)):
        if version == 2:
            (four / "cpu.max").write_text(f"{quota} 100000\n")
        else:
            (four / "v1.cfs_quota_us").write_text(f"{quota}\n")
            (four / "v1.cfs_period_us").write_text("100000\n")
        assert bool(load.busy(before, now)) is is_busy, quota


# --------------------------------------------------------------- the state of a GPU


# --------------------------------------------------------------- what is recorded


def test_the_record(device, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    start = environment.begin(device, load.sample())
    compiler()
    found = environment.record(start, known())
    assert set(found) == KEYS and json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["processors"] >= 1 and found["cpu"] and found["python"].startswith("CPython 3.")
    assert found["started"].endswith("+00:00") and found["variables"]["OMP_NUM_THREADS"] == "3"
    assert {"opencl_lab", "numpy", "pyopencl"} <= set(found["packages"])
    assert set(found["compiler"]) == {"path", "version", "flags"}
    assert "-O3" in found["compiler"]["flags"]


def git(folder, *arguments):
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder), "PATH": os.environ["PATH"]}
    named = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(
        ["git", *named, *arguments], cwd=folder, env=own, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def recorded(device, tmp_path, monkeypatch):
    """Return what tells an entry of the record, where the package lies in a folder."""

    def entry(name, folder=tmp_path):
        monkeypatch.setattr(environment, "PACKAGE", folder / "opencl_lab")
        return environment.record(environment.begin(device, load.sample()))[name]

    return entry


def test_the_commit_of_a_checkout(recorded, tmp_path, monkeypatch):
    assert recorded("git") is None
    git(tmp_path, "init", "-q")
    file = tmp_path / "file"
    file.write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "-a", "v1", "-m", "a tag, which is no commit")
    commit = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))  # as in a hook
    assert recorded("git") == {"commit": commit, "changed": False}
    file.write_text("2")
    assert recorded("git") == {"commit": commit, "changed": True}
    below = tmp_path / "lib"
    below.mkdir()
    assert recorded("git", below) is None  # a package installed within somebody's checkout


# --------------------------------------------------------------- documents and the warning


@pytest.mark.full
def test_people_are_told_that_the_machine_is_busy(monkeypatch, tmp_path, device, undrawn):
    said = "the machine is busy: so and so"  # and perhaps its GPU, which other tests use
    monkeypatch.setattr(load, "busy", lambda before, now: said)
    commands = (("sort", "--n", 300, *QUICK), ("bench", "sort", "--sizes", 300, *QUICK))
    for number, command in enumerate(commands):
        out = ("--out", tmp_path / str(number)) if command[0] == "bench" else ()
        result = oclab(*command, *out)
        lines = result.stdout.splitlines()
        assert lines[0].startswith("device: ") and lines[1].startswith(said)
        assert lines.count(lines[1]) == 1 and result.stderr == ""
        quiet = oclab(*command, *out, "--quiet")
        assert quiet.stdout == quiet.stderr == ""
        content = json.loads(oclab(*command, *out, "--json").stdout)
        assert content["environment"]["busy"].startswith(said)
    stored = json.loads((tmp_path / "1" / "results.json").read_text())
    assert stored["environment"]["busy"].startswith(said)
