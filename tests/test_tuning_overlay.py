"""Files of the tuning database: damage, versions, several processes."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress

import pytest
from tuned_entries import DEFAULT, GPU, N1024, VERSION, store, tuned, used

from opencl_lab.core.errors import OclabError
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import document, entry_of

pytestmark = pytest.mark.usefixtures("overlay")


# ----------------------------------------------------------------------- files


DAMAGES = {
    "cut short": (lambda text: text[: len(text) // 2], ""),
    "deep": (lambda text: "[" * 100_000, "nested too deeply"),
    "no entries": (lambda text: '{"schema": "oclab-tuning/2"}', "missing required field `entries`"),
    "earlier": (lambda text: text.replace("tuning/2", "tuning/1"), "tuning/1"),
    "other schema": (lambda text: '{"schema": "something", "entries": []}', "something"),
    "time": (lambda text: text.replace("1.5", "-1.5"), "time_ms: expected `float` > 0.0"),
    "size": (lambda text: text.replace('"m": 1024', '"m": "many"'), "expected `int`, got `str`"),
    "parameter": (lambda text: text.replace('"UNROLL": 1', '"UNROLL": [1]'), "entries[0].config: "),
    "name": (lambda text: text.replace('"layout"', '"lay"'), "unknown field `lay`"),
    "no text": (lambda text: "\udcff\udcfe", ""),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("found_by", ["use", "store"])
def test_a_damaged_file_is_set_aside_with_one_sentence(damage, found_by, overlay, caplog):
    change, said = DAMAGES[damage]
    store(GPU, 0)
    damaged = change(overlay.read_text()).encode(errors="surrogateescape")
    overlay.write_bytes(damaged)
    database.forget()
    if found_by == "use":
        assert used() == DEFAULT and used(problem=GemmProblem(900, 900, 900)) == DEFAULT
        assert not overlay.exists()
    else:
        store(GPU, 1)
        assert used() == tuned(1)
    (record,) = caplog.records
    assert "damaged" in record.message and "set aside" in record.message
    assert said in record.message and "\n" not in record.message
    (kept,) = overlay.parent.glob("gemm.json.damaged-*")
    assert kept.read_bytes() == damaged


def test_a_file_of_a_newer_version_is_neither_used_nor_overwritten(overlay, caplog):
    text = '{"schema": "oclab-tuning/3", "other": 1}'
    overlay.parent.mkdir(parents=True)
    overlay.write_text(text)
    assert used() == DEFAULT
    (record,) = caplog.records
    assert "oclab-tuning/3" in record.message
    with pytest.raises(OclabError, match=r"oclab-tuning/3.*update opencl_lab"):
        store(GPU, 0)
    assert overlay.read_text() == text


def test_what_cannot_be_written_is_an_error_in_one_sentence(overlay):
    overlay.parent.parent.mkdir()
    overlay.parent.write_text("a file where the folder should be")
    assert used() == DEFAULT
    with pytest.raises(OclabError, match="cannot write"):
        store(GPU, 0)


def test_changes_by_other_processes_are_seen(overlay, monkeypatch):
    store(GPU, 0)
    one = overlay.read_text()
    store(GPU, 1)
    assert used() == tuned(1)
    overlay.write_text(one)
    monkeypatch.setattr(database, "_next_check", 0.0)  # a second later
    assert used() == tuned(0)
    overlay.unlink()
    monkeypatch.setattr(database, "_next_check", 0.0)
    assert used() == DEFAULT


WRITER = """
import sys
from msgspec.structs import replace
from opencl_lab.core.space import Config
from opencl_lab.tuned import database
from opencl_lab.tuned.entry import parse
with open(sys.argv[1]) as file:
    first = parse(file.read())[0]
print("ready", flush=True)
sys.stdin.readline()
for exponent in range(24):
    size = 2**exponent
    database.add([replace(first, algorithm=sys.argv[2], sizes=dict(m=size, n=size, k=size))])
"""


@pytest.mark.full
def test_two_processes_lose_nothing(tmp_path):
    source = tmp_path / "one.json"
    source.write_text(
        json.dumps(document([entry_of(GPU, "gemm", "tiled", VERSION, N1024, tuned(0), 1.5)]))
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(source), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in ("first", "second")
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == b"ready\n"
        for writer in writers:
            writer.stdin.write(b"go\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=60)
            assert writer.returncode == 0
    finally:
        for writer in writers:
            with suppress(ProcessLookupError):
                writer.kill()
    found = database.entries()
    assert sorted((e.algorithm, e.sizes["m"]) for e in found) == [
        (name, 2**exponent) for name in ("first", "second") for exponent in range(24)
    ]
