"""`oclab sort` of files above a limit: right, checked, and written whole or not at all."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from opencl_lab.drivers.discovery import select_device
from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.values import BYTE_COUNT
from opencl_lab.lab.ops.sort.file import sort_file
from opencl_lab.ops.sort import out_of_core

LIMIT = "6M"  # of which constant buffers take a part
N = 900_000


@pytest.fixture
def keys(rng):
    return rng.integers(-(2**31), 2**31, N, np.int32)


@pytest.fixture
def given(tmp_path, keys):
    path = tmp_path / "in" / "keys.npy"
    path.parent.mkdir()
    np.save(path, keys)
    return path


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "sorted.npy"


def sort(*arguments):
    return main(["sort", *map(str, arguments), "--memory-limit", LIMIT])


def test_a_file_is_sorted_and_checked(given, out, keys, capsys):
    before = given.read_bytes()
    assert sort(given, "-o", out, "-v") == 0
    told = capsys.readouterr().out
    assert "sort: 900,000 int32 keys, opencl:radix in" in told and " runs of " in told
    assert "GB/s; correct (checked in" in told and "device: " in told
    assert told.splitlines()[-1] == f"written: {out}"
    assert "references are not run" in told and "stages, which overlap" in told
    np.testing.assert_array_equal(np.load(out), np.sort(keys))
    assert given.read_bytes() == before
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.full
def test_the_document(given, out, keys, capsys, tmp_path):
    table = tmp_path / "rows.csv"
    assert sort(given, "-o", out, "--json", "--descending", "--csv", table) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "oclab/1" and document["command"] == "sort"
    assert document["problem"]["n"] == N and document["problem"]["descending"]
    assert "nan_first" not in document["problem"]
    ours, *others = document["results"]
    assert ours["implementation"] == "opencl:radix" and ours["ok"]
    assert ours["total_ms"]["runs"] == 1 and ours["kernel_ms"] > 0 and ours["gbps"] > 0
    assert {row["status"] for row in others} == {"unavailable"}
    assert {row["implementation"] for row in others} >= {"c:seq", "c:omp", "numpy"}
    assert document["output"] == str(out)
    assert document["parts"]["count"] > 2 and document["parts"]["merged"]
    assert len(table.read_text().splitlines()) == 2 + len(others)
    np.testing.assert_array_equal(np.load(out), np.sort(keys)[::-1])


@pytest.mark.parametrize("layout", ["big-endian", "fortran", "rows", "few-rows"])
def test_layouts_of_files(layout, tmp_path, out, rng, capsys):
    path, axis = tmp_path / "keys.npy", []
    shape = {"rows": (900, 1000), "few-rows": (2, 450_000), "fortran": (1000, 900)}.get(layout, N)
    array = rng.integers(-(2**31), 2**31, shape, np.int32)
    stored, right = array, np.sort(array)
    if layout == "big-endian":
        stored = array.astype(">i4")
    if layout == "fortran":
        stored, right, axis = np.asfortranarray(array), np.sort(array, axis=0), ["--axis", 0]
    np.save(path, stored)
    assert sort(path, "-o", out, "--against", "none", *axis) == 0
    told = capsys.readouterr().out
    assert ("batches of" if layout in ("rows", "fortran") else "runs of") in told
    result = np.load(out)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, right)


def test_a_file_may_be_sorted_in_its_own_place(given, keys):
    link = given.with_name("link.npy")
    link.symlink_to(given)
    assert sort(given, "-o", link, "--quiet") == 0
    np.testing.assert_array_equal(np.load(given), np.sort(keys))
    assert link.is_symlink() and len(list(given.parent.iterdir())) == 2


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ([], 2, "name a .npy file for the result with -o"),
        (["-o", "OUT.csv"], 2, "into a .npy file"),
        (["-o", "OUT.npy", "--algorithm", "all"], 2, "name one algorithm"),
        (["-o", "OUT.npy", "--repeats", 3], 2, "leave --repeats out"),
        (["-o", "OUT.npy", "--resident"], 2, "leave --resident out"),
        (["-o", "OUT.npy", "--against", "numpy"], 3, "numpy cannot run here"),
        (["-o", "OUT.npy", "--dtype", "float32"], 2, "leave --dtype out"),
        (["-o", "/dev/stdout"], 2, "/dev/stdout"),
    ],
)
def test_what_takes_a_whole_array_is_refused_before_the_run(
    more, status, words, given, out, capsys, monkeypatch
):
    monkeypatch.chdir(out.parent)
    assert sort(given, *more) == status
    told = capsys.readouterr()
    assert words in told.err and not told.out
    assert len(told.err.splitlines()) == 1 or "Usage" in told.err
    assert not list(out.parent.iterdir())


def test_a_limit_without_a_file_or_size_is_refused(capsys):
    assert main(["sort", "--n", "1000", "--memory-limit", "1G"]) == 2
    assert "--memory-limit is for a .npy file" in capsys.readouterr().err
    for text in ("", "-1", "nan", "12Q"):
        assert main(["sort", "x.npy", "--memory-limit", text]) == 2
        assert "Invalid value for '--memory-limit'" in capsys.readouterr().err
    assert BYTE_COUNT.convert("1.5 GiB", None, None) == 1.5 * 2**30


def test_a_host_with_little_memory(given, out, monkeypatch, capsys):
    plain = ["sort", str(given), "-o", str(out), "--against", "none"]
    monkeypatch.setattr("opencl_lab.lab.ops.sort.file.host_memory", lambda: 10 * N)
    assert main(plain) == 0
    assert "opencl:radix in 1 batch of" in capsys.readouterr().out
    monkeypatch.setenv("OCLAB_DEVICE_BYTES", "6e6")
    assert main(plain) == 0
    assert " runs of " in capsys.readouterr().out


@pytest.mark.parametrize("fault", ["order", "keys"])
def test_a_wrong_result_is_not_written(fault, given, out, monkeypatch, capsys):
    right = out_of_core._sort

    def wrong(parts, queue, keys, sorted_keys):
        run = right(parts, queue, keys, sorted_keys)
        host = sorted_keys if isinstance(sorted_keys, np.ndarray) else sorted_keys.get(queue)
        host[0, 0] = host[0, 5 if fault == "keys" else -1]
        if host is not sorted_keys:
            sorted_keys.set(host, queue)
        return run

    out.write_bytes(b"before")
    monkeypatch.setattr(out_of_core, "_sort", wrong)
    assert sort(given, "-o", out) == 1
    told = capsys.readouterr()
    assert "wrong: " in told.out and "is not written: the result is wrong" in told.err
    assert out.read_bytes() == b"before" and len(list(out.parent.iterdir())) == 1


# What may go wrong half way.


def test_a_full_disk_leaves_the_old_file(given, out, capsys):
    out.write_bytes(b"before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * N, before[1]))  # half of the file
    try:
        status = sort(given, "-o", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = capsys.readouterr()
    assert status == 2 and told.err == f"oclab: cannot write {out}: File too large\n"
    assert out.read_bytes() == b"before" and len(list(out.parent.iterdir())) == 1


@pytest.mark.parametrize("how", ["became shorter", "was changed"])
def test_a_file_that_is_changed_meanwhile(how, given, out, monkeypatch, capsys):
    right, calls = out_of_core._sort, []

    def change(*arguments):
        calls.append(0)
        if how == "became shorter":
            os.truncate(given, 1000)
        elif len(calls) == 2:
            with given.open("r+b") as file:
                file.seek(200)
                file.write(bytes(1000))
        return right(*arguments)

    monkeypatch.setattr(out_of_core, "_sort", change)
    assert sort(given, "-o", out) == 2
    told = capsys.readouterr()
    assert told.err == f"oclab: {given} {how} while it was read\n" and not told.out
    assert not list(out.parent.iterdir())


SLOW = """
import signal, sys, time
for name in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(name, signal.SIG_DFL)  # nohup has them ignored
from opencl_lab.__main__ import main
from opencl_lab.ops.sort import out_of_core
from opencl_lab.lab.ops.sort.file import sort_file
sort = out_of_core._sort
count = 0
def slow(*given):
    global count
    count += 1
    if count == part:
        print("now", flush=True)
    if count >= part:
        time.sleep(0.5)
    return sort(*given)
out_of_core._sort = slow
part = int(sys.argv.pop(1))
sys.exit(main())
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("merging", "number"),
    [
        (False, signal.SIGINT),
        (True, signal.SIGTERM),
        (False, signal.SIGHUP),
        (False, signal.SIGKILL),
        (True, signal.SIGKILL),
    ],
)
def test_a_signal_half_way_leaves_no_target(merging, number, given, out, tmp_path):
    job = sort_file(given, {}, select_device(), limit=6 * 2**20)
    runs = job.split.runs
    part = 1 + runs // 2 + (runs if merging else 0)  # the first one warms up
    assert runs >= 3
    arguments = ["sort", given, "-o", out, "--memory-limit", LIMIT, "--against", "none"]
    script = tmp_path / "oclab"  # signals are handled in processes of this name
    script.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, script, str(part), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "now\n"
    time.sleep(0.08)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    left = [path.name for path in out.parent.iterdir()]
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        assert all(name.startswith(".oclab-") and name != out.name for name in left)
        assert len(left) <= 1
        return
    assert (process.returncode, output) == (130, "") and errors.endswith("oclab: interrupted\n")
    assert not left
