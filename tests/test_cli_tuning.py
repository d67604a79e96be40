"""`oclab tuning`: what is listed, shown, exchanged and cleared."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tuning_runs import written

from opencl_lab.lab.cli import main
from opencl_lab.lab.ops.gemm.operation import GEMM
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.journal import runs
from opencl_lab.lab.tuning.task import TuningTask
from opencl_lab.ops.gemm.problem import GemmProblem
from opencl_lab.tuned import database, storage

TILED = GEMM.algorithm("tiled")
PROBLEM = GemmProblem(40, 40, 40)


@pytest.fixture(autouse=True)
def overlay(tmp_path, monkeypatch):
    """An empty overlay and no shipped data, for each test its own."""
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("OCLAB_TUNING", raising=False)
    monkeypatch.setattr(storage, "SHIPPED", tmp_path / "shipped")
    database.forget()
    yield tmp_path / "data" / "tuning"
    database.forget()


@pytest.fixture
def oclab(capsys):
    """Run a command and return its exit status and what it printed."""

    def run(*arguments):
        status = main(["tuning", *map(str, arguments)])
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def content(oclab):
    """Run a command that must succeed and return its JSON document."""

    def run(*arguments):
        status, out, err = oclab(*arguments, "--json")
        assert status == 0, err
        found = json.loads(out)
        assert found["schema"] == "oclab/1" and found["command"] == f"tuning {arguments[0]}"
        assert found.pop("arguments") == ["tuning", *map(str, arguments), "--json"]
        return found

    return run


def other(device, **changes):
    """A configuration that is not the default one."""
    return TILED.default_config(PROBLEM, device).replace(**{"TILE": 8, "UNROLL": 4, **changes})


def store(device):
    database.store(device, "gemm", TILED, PROBLEM, other(device), 1.25)


def journal(device, name="tiled", problem=PROBLEM):
    """Write a journal as the tuner does, and return its task and evaluations."""
    task = TuningTask(GEMM, name, problem, device)
    right, failed, time = other(device), other(device, LOCAL_PAD=0), "2026-11-21T11:00:00Z"
    evaluations = [
        Evaluation(right, "correct", "", (2.0, 1.0, 3.0), 5.5, 0.5, time),
        Evaluation(failed, "compile", "no", (), 5.5, 0.5, time),
    ]
    written(task, *evaluations)
    return task, evaluations


def refused(result, *words):
    """A refusal is exit status 2 and one sentence."""
    status, out, err = result
    lines = [line for line in err.splitlines() if line.strip() and "Usage" not in line]
    return status == 2 and out == "" and len(lines) <= 2 and all(word in err for word in words)


# --------------------------------------------------------------------- list


def test_list_tells_current_stale_and_unknown_entries(device, oclab, content, overlay):
    status, out, _ = oclab("list")
    assert status == 0 and "nothing is tuned" in out and str(overlay) in out
    store(device)
    text = (overlay / "gemm.json").read_text()
    (record,) = json.loads(text)["entries"]
    others = [
        {**record, "sizes": {"m": 999, "n": 9, "k": 9}, "version": 0},
        {**record, "sizes": {"m": 888, "n": 8, "k": 8}, "algorithm": "bogo"},
        {**record, "sizes": {"m": 777, "n": 7, "k": 7}, "device": {
            **record["device"], "key": record["device"]["key"] + "-old", "driver": "0.1-old"}},
        {**record, "sizes": {"m": 666, "n": 6, "k": 6}, "device": {
            **record["device"], "key": "gpu/other/other/1", "name": "Elsewhere"}},
        {**record, "sizes": {"m": 555, "n": 5, "k": 5}, "version": 0, "device": {
            **record["device"], "key": "gpu/other/other/1", "name": "Elsewhere"}},
    ]  # fmt: skip
    document = {"schema": "oclab-tuning/2", "entries": [record, *others]}
    (overlay / "gemm.json").write_text(json.dumps(document))
    database.forget()
    found = content("list")["entries"]
    states = {item["sizes"]["m"]: (item["state"], item["reason"]) for item in found}
    assert states[40] == ("current", "") and states[666] == ("current", "")
    assert states[999] == states[555] == ("stale", "the kernel has changed since")
    assert states[777][0] == "stale" and "0.1-old" in states[777][1]
    assert states[888][0] == "unknown"
    assert all(item["source"] == "user" and item["time_ms"] == 1.25 for item in found)
    (bogo,) = content("list", "--algorithm", "bogo")["entries"]
    assert bogo["sizes"]["m"] == 888
    assert content("list", "--operation", "sort")["entries"] == []
    _, out, _ = oclab("list", "-v")
    assert "Elsewhere" in out and '"TILE": 8' in out.replace("\n", "")
    assert "666 x 6 by 6 x 6 matrices" in out and "layout" not in out

    assert content("clear", "--yes", "--stale")["entries"] == 3
    assert len(content("list")["entries"]) == 3


# --------------------------------------------------------------------- show


def test_show_tells_what_a_problem_gets_and_why(device, content, oclab):
    default = dict(TILED.default_config(PROBLEM, device))
    (row,) = (r for r in content("show", "gemm", "--size", 40)["results"] if "tiled" in r.values())
    assert row["origin"] == "built-in default" and row["config"] == default
    store(device)
    rows = {r["algorithm"]: r for r in content("show", "gemm", "--size", 42)["results"]}
    assert rows["tiled"]["origin"] == "user" and rows["tiled"]["config"] == dict(other(device))
    assert rows["tiled"]["why"] == "this device and size"
    assert rows["naive"]["origin"] == "built-in default"
    _, out, _ = oclab("show", "gemm", "--size", 90)
    assert "tiled: user (this device, nearest size), tuned with" in out and "1.25 ms" in out


# ------------------------------------------------------------ export, import


def test_overlays_go_from_one_user_to_another(device, content, oclab, tmp_path, monkeypatch):
    file = tmp_path / "mine.json"
    assert refused(oclab("export", file), "nothing to export") and not file.exists()
    store(device)
    assert content("export", file)["entries"] == 1
    monkeypatch.setenv("OCLAB_DATA_DIR", str(tmp_path / "another"))
    assert TILED.configure(PROBLEM, device) != other(device)
    found = content("import", file)
    assert found["entries"] == 1 and found["current"] == 1 and found["stale"] == 0
    assert TILED.configure(PROBLEM, device) == other(device)
    older = tmp_path / "older.json"
    text = json.loads(file.read_text())
    text["entries"][0].update(timestamp="2001-01-01", time_ms=0.5)
    older.write_text(json.dumps(text))
    assert content("import", older)["taken"] == 0
    assert content("list")["entries"][0]["time_ms"] != 0.5
    assert refused(oclab("export", file, "--operation", "sort"), "nothing to export")

    storage.SHIPPED.mkdir()
    file.rename(storage.SHIPPED / "gemm.json")
    assert "1 entry deleted" in oclab("clear", "--yes")[1]
    assert [item["source"] for item in content("list")["entries"]] == ["shipped"]
    assert refused(oclab("export", file), "nothing to export")


def test_runs_are_exported_as_t4(device, content, oclab, tmp_path):
    file = tmp_path / "run.json"
    t4 = ("--format", "t4")
    assert refused(oclab("export", file, *t4), "no run to export")
    _, (right, failed) = journal(device)
    assert content("export", file, *t4)["evaluations"] == 2
    found = json.loads(file.read_text())
    ours = found["metadata"]["opencl_lab"]
    assert found["schema_version"] == "1.0.0" and found["metadata"]["timeunit"] == "milliseconds"
    assert ours["problem"] == PROBLEM.as_dict() and ours["problem_size"] == [40, 40, 40, 1]
    assert (ours["device"], ours["device_name"]) == (device.key, device.name)
    assert ours["tune_params"] == {p.name: list(p.values) for p in TILED.space.parameters}
    first, second = found["results"]
    assert first["configuration"] == dict(right.config) and first["invalidity"] == "correct"
    assert first["measurements"] == [{"name": "time", "value": 2.0, "unit": "ms"}]
    assert first["times"] == {
        "compilation_time": 5.5, "runtimes": [2.0, 1.0, 3.0], "framework": 0.0,
        "search_algorithm": 0.0, "validation": 0.5,
    }  # fmt: skip
    assert second["configuration"] == dict(failed.config) and second["measurements"] == []
    assert (second["invalidity"], second["correctness"]) == ("compile", 0)
    assert second["oclab_reason"] == "no"

    assert refused(oclab("export", file, *t4, "--algorithm", "naive"), "no run")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "cannot import"),
        ('{"schema": "oclab-tuning/2", "entries": [1]}', "cannot import"),
        ('{"schema": "oclab-tuning/7", "entries": []}', "update opencl_lab"),
        ('{"schema_version": "1.0.0", "results": []}', "cannot import"),
        (b"\xff\xfe", "cannot read"),
    ],
)
def test_files_that_cannot_be_imported(oclab, tmp_path, text, words):
    file = tmp_path / "bad.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert refused(oclab("import", file), words)
    assert database.entries() == []


def test_bad_usage_is_one_sentence(device, oclab, tmp_path):
    store(device)
    assert refused(oclab("import", tmp_path / "missing.json"), "missing.json")
    assert refused(oclab("export", tmp_path / "no" / "x.json"), "does not exist")
    assert refused(oclab("export", tmp_path), "cannot write")
    for option, known in (("operation", "gemm"), ("algorithm", "tiled")):
        for command in (["list"], ["export", tmp_path / "x"], ["clear"]):
            refusal = f"there is no {option} 'bogus'; there are: "
            assert refused(oclab(*command, f"--{option}", "bogus"), refusal, known)
    status, _, err = oclab("show", "bogus")
    assert status == 2 and "There is no oclab tuning show 'bogus'; there are: " in err


def test_one_device_may_be_asked_for(device, content):
    store(device)
    store(replace(device, name="Planted P1", kind="accelerator"))
    here = content("list", "--device", device.spec)
    assert [entry["device"]["key"] for entry in here["entries"]] == [device.key]
    assert content("clear", "--yes", "--device", device.spec)["entries"] == 1
    assert [e["device"]["name"] for e in content("list")["entries"]] == ["Planted P1"]


# -------------------------------------------------------------------- clear


def test_clear_deletes_what_was_asked_for(device, content, oclab):
    store(device)
    journal(device)
    assert content("clear", "--yes", "--operation", "sort", "--runs") == content(
        "clear", "--yes", "--stale"
    )
    assert content("clear", "--yes", "--algorithm", "tiled")["entries"] == 1
    assert TILED.configure(PROBLEM, device) != other(device) and len(runs()) == 1
    found = content("clear", "--yes", "--runs")
    assert found["entries"] == 0 and found["runs"] == 1 and runs() == []
    assert "0 entries deleted" in oclab("clear", "--yes")[1]


def test_clear_asks_before_it_deletes(device, oclab, monkeypatch):
    store(device)
    for arguments in ([], ["--json"]):
        assert refused(oclab("clear", *arguments), "whether to delete 1 entry: give --yes")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, deleted in (("n", "nothing was deleted"), ("y", "1 entry and 0 journals deleted")):
        assert TILED.configure(PROBLEM, device) == other(device)
        monkeypatch.setattr("click.termui.visible_prompt_func", lambda _, answer=answer: answer)
        status, out, _ = oclab("clear", "--runs")
        assert (status, out) == (0, f"{deleted}\n")
    assert TILED.configure(PROBLEM, device) != other(device)
    assert oclab("clear")[0] == 0  # where nothing is there, nothing is asked
