"""The command line: tables, documents, and files of rows and plots."""

import csv
import json

import pytest
from click.shell_completion import ShellComplete
from command_line import QUICK, oclab, oclab_process
from sort_checks import taken

from opencl_lab.lab.cli.main import cli
from opencl_lab.lab.engine.row import COLUMNS

ROW_KEYS = {
    "implementation", "kind", "algorithm", "config", "threads", "workers", "status", "reason",
    "kernel_ms", "kernel_times", "transfer_ms", "total_ms", "build_ms", "gflops", "gbps",
    "peak_fraction", "peak_note", "data", "calls", "note",
    "speedup", "baseline", "efficiency", "max_abs_diff", "max_rel_diff", "rel_l2_diff",
    "error_over_bound", "ok", "over_ranks",
}  # fmt: skip


def test_version_and_help():
    assert oclab_process("--version").stdout.startswith("oclab, version ")
    text = oclab("--help").stdout
    assert all(name in text for name in ("devices", "doctor", "sort", "bench", "cache"))
    assert "--order" in oclab("sort", "--help").stdout
    for group in ([], ["tuning"], ["bench"], ["tune"], ["source"], ["cache"]):
        assert "..." not in oclab(*group, "--help").stdout.split("-h, --help", 1)[1]


def test_sort_prints_a_table_with_every_reference():
    result = oclab("sort", "--n", 5000, "--repeats", 2)
    assert result.returncode == 0, result.stderr
    for name in (taken(5000), "c:seq", "c:omp", "c:qsort", "numpy", "device:"):
        assert name in result.stdout
    assert "sort: 5,000 int32 keys" in result.stdout


def test_every_launch_is_shown_if_asked_for():
    shown = oclab("sort", "--n", 20_000, "--algorithm", "odd-even-merge", "-v", *QUICK).stdout
    assert sum("ms  merge_pass" in line for line in shown.splitlines()) > 1


@pytest.mark.few(1)
@pytest.mark.parametrize("position", ["before", "after"])
def test_json_is_one_document_and_nothing_else(position):
    arguments = ["sort", "--n", 3000, "--dtype", "float32", "--descending", "--repeats", 2]
    arguments = ["--json", *arguments] if position == "before" else [*arguments, "--json"]
    result = oclab(*arguments)
    content = json.loads(result.stdout)
    assert content["schema"] == "oclab/1" and content["command"] == "sort"
    assert content["options"]["order"] == "random" and content["options"]["seed"] == 0
    assert content["problem"]["n"] == 3000 and content["problem"]["dtype"] == "float32"
    assert content["device"]["kind"] == "cpu" and content["device"]["reason"]
    rows = {row["implementation"]: row for row in content["results"]}
    assert all(set(row) == ROW_KEYS for row in rows.values())
    ours = rows[taken(3000)]
    assert ours["ok"] and ours["status"] == "correct" and ours["max_abs_diff"] == 0, ours
    assert ours["total_ms"]["runs"] == 2 and ours["total_ms"]["min"] <= ours["total_ms"]["median"]
    assert ours["kernel_ms"] > 0 and ours["transfer_ms"] == 0 and ours["build_ms"] >= 0
    assert ours["speedup"] == pytest.approx(
        rows["c:seq"]["total_ms"]["median"] / ours["total_ms"]["median"]
    )
    assert ours["efficiency"] == pytest.approx(ours["speedup"] / ours["workers"])
    assert rows["c:omp"]["threads"] >= 1 and rows["c:seq"]["kernel_ms"] is None


def test_csv_and_plot(tmp_path):
    table, plot = tmp_path / "rows.csv", tmp_path / "rows.png"
    result = oclab("sort", "--n", 2000, "--repeats", 1, "--csv", table, "--plot", plot, "--quiet")
    assert result.returncode == 0 and result.stdout == ""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0])[-len(COLUMNS) :] == COLUMNS
    assert rows[0]["implementation"] == taken(2000)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_baseline_is_named_or_chosen(tmp_path):
    command = ["sort", "--n", 300, "--repeats", 1, "--against", "c:omp,numpy"]
    file = tmp_path / "rows.csv"
    shown = oclab(*command, "--csv", file).stdout
    assert "over c:omp" in shown
    with file.open(newline="") as rows:
        first = next(csv.DictReader(rows))
    assert (first["n"], first["dtype"], first["order"]) == ("300", "int32", "random")
    rows = json.loads(oclab(*command, "--json").stdout)["results"]
    assert {row["speedup"] for row in rows} == {None}
    rows = json.loads(oclab(*command, "--json", "--baseline", "numpy").stdout)["results"]
    assert all(row["speedup"] and row["baseline"] == "numpy" for row in rows)
    refused = oclab(*command, "--baseline", "c:seq")
    assert refused.returncode == 2
    assert f"there are: {taken(300)}, c:omp, numpy" in refused.stderr
    assert oclab(*command, "--baseline", "numpy", "--quiet").returncode == 0


def test_tables_in_markdown_have_all_columns(tmp_path):
    result = oclab("sort", "--n", 2000, "--markdown", *QUICK)
    lines = result.stdout.splitlines()
    at = lines.index("**sort: 2,000 int32 keys**")
    heads, ends, row = (line.strip("| ").split(" | ") for line in lines[at + 2 : at + 5])
    assert heads[:2] == ["implementation", "kernel ms"] and heads[-2:] == ["error/bound", "result"]
    assert ends == ["---", *["---:"] * (len(heads) - 2), "---"] and len(row) == len(heads)
    assert row[0].startswith("opencl:") and row[-1].startswith("ok")
    assert lines[at + 1] == lines[at + 5] == "" and "\u2502" not in result.stdout
    for command in (["devices"], ["tuning", "list"], ["study", "list"]):
        printed = oclab(*command, "--markdown").stdout
        assert "\n| --- | --- |" in printed and "\u2502" not in printed
    refused = oclab("--markdown", "devices", "--json")
    assert refused.returncode == 2 and "take --json or --markdown" in refused.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("sort --dtype float", ["float16", "float32", "float64"]),
        ("bench sort --order r", ["random", "reversed"]),
        ("conv2d --weights w", ["file:w"]),
        ("gemm A.n", ["file:A.n"]),
        ("bench sort --out r", ["file:r"]),
        ("tune my.c", ["file:my.c"]),
        ("tune so", ["sort"]),
    ],
)
def test_shells_complete_words_and_files(words, found):
    *before, begun = words.split()
    complete = ShellComplete(cli, {}, "oclab", "_OCLAB_COMPLETE").get_completions(before, begun)
    kinds = {"plain": "", "file": "file:"}
    assert [kinds[item.type] + item.value for item in complete] == found
