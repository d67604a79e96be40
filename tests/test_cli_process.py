"""What the command does on its way: interrupts, terminals, sweeps, the cache."""

import csv
import json
import logging
import os
import shutil
import signal
import subprocess
import sys

import click
import pytest
from command_line import QUICK, command, oclab, oclab_process, one_sentence
from sort_checks import taken

from opencl_lab.lab.cli import main
from opencl_lab.lab.cli.common import Settings, settings
from opencl_lab.lab.engine.row import COLUMNS
from opencl_lab.lab.measuring.difference import Difference


@pytest.mark.full
def test_without_a_compiler_the_c_rows_say_why(tmp_path):
    (tmp_path / "ld").symlink_to(shutil.which("ld"))  # PoCL needs it
    nowhere = {"CC": "/nonexistent/cc", "PATH": str(tmp_path), "OCLAB_CACHE_DIR": str(tmp_path)}
    result = oclab_process("sort", "--n", 1000, "--repeats", 1, "--json", **nowhere)
    assert result.returncode == 0, result.stderr
    rows = {row["implementation"]: row for row in json.loads(result.stdout)["results"]}
    assert rows["c:seq"]["status"] == "unavailable" and "compiler" in rows["c:seq"]["reason"]
    assert rows[taken(1000)]["ok"] and rows["numpy"]["ok"]
    assert rows["numpy"]["speedup"] is None
    result = oclab_process("sort", "--n", 1000, "--against", "c:seq", **nowhere)
    assert result.returncode == 3 and one_sentence(result)


STARTED = """
import atexit, hashlib, os, signal, sys, threading, time
from pathlib import Path
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)  # nohup has them ignored
from opencl_lab.__main__ import main
from opencl_lab.core.interrupt import held, scratch_folder
from opencl_lab.core.paths import write_target
from opencl_lab.lab.cli.devices import devices_command
from opencl_lab.lab.engine.explore import Exploration, grid
from opencl_lab.lab.files.source import standard_input

def say():
    begun.acquire()
    print("now", flush=True)

def now(how):
    if how == "python":
        print("now", flush=True)
        time.sleep(100)
    begun.acquire()
    threading.Thread(target=say, daemon=True).start()
    sys.setswitchinterval(1000)  # so that it speaks when C code runs, which no signal interrupts
    begun.release()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)

def run(**given):
    with scratch_folder("oclab-") as folder, write_target(Path("result.txt")):
        (folder / "content").write_text("x")
        standard_input()
        if how == "unkept":
            Exploration(lambda number: number and now("C")).run(grid([0, 1]))
        elif how == "end":
            atexit.register(now, "python")
        elif how == "held":
            with held():
                print("now", flush=True)
                time.sleep(1)  # longer than other work is waited for
                Path("whole.txt").touch()
        elif how == "fork":
            child = os.fork()
            if not child:
                signal.raise_signal(signal.SIGTERM)
                os._exit(0)
            print("now", flush=True)
            time.sleep(1)
            print(os.WTERMSIG(os.waitpid(child, 0)[1]))
        else:
            now(how)
    return 0

begun = threading.Lock()
how = sys.argv.pop(1)
devices_command.callback = run
sys.exit(main())
"""


@pytest.fixture
def started(tmp_path):
    """Start a command that waits in some way, in a folder and with temporary files of its own."""
    (tmp_path / "work").mkdir()
    (tmp_path / "oclab").write_text(STARTED)

    def start(how):
        process = subprocess.Popen(
            [sys.executable, tmp_path / "oclab", how, "devices"],
            cwd=tmp_path / "work",
            env={
                **os.environ,
                "TMPDIR": str(tmp_path / "work"),
                "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        process.stdin.write("1\n2\n")
        process.stdin.close()
        process.stdin = None
        assert process.stdout.readline() == "now\n"
        return process

    return start


@pytest.mark.parametrize(
    ("how", "number"),
    [
        ("python", signal.SIGINT),
        ("python", signal.SIGTERM),
        ("python", signal.SIGHUP),
        ("C", signal.SIGINT),
        ("C", signal.SIGTERM),
    ],
)
def test_a_signal_ends_a_command_wherever_it_is_and_leaves_nothing(started, tmp_path, how, number):
    process = started(how)
    process.send_signal(number)
    assert process.communicate(timeout=30) == ("", "oclab: interrupted\n")
    assert process.returncode == 130 and not list((tmp_path / "work").iterdir())


def test_results_that_are_only_in_memory_wait_for_a_running_call(started, tmp_path):
    process = started("unkept")
    process.send_signal(signal.SIGINT)
    assert "a running call must end" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "oclab: interrupted\n")
    assert process.returncode == 130 and not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize(
    ("how", "said", "status", "left"),
    [
        ("held", "oclab: interrupted\n", 130, "whole.txt"),  # work that must be completed is
        ("end", "", 0, "result.txt"),  # at its end, a signal changes nothing
    ],
)
def test_a_signal_where_it_must_wait_or_is_too_late(started, tmp_path, how, said, status, left):
    process = started(how)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("", said) and process.returncode == status
    assert [path.name for path in (tmp_path / "work").iterdir()] == [left]


def test_a_signal_for_a_fork_ends_the_fork_alone(started, tmp_path):
    process = started("fork")
    output, _ = process.communicate(timeout=30)
    assert (output, process.returncode) == (f"{signal.SIGTERM}\n", 0)


@pytest.mark.parametrize("module", ["typing", "click", "pyopencl", "rich"])
def test_ctrl_c_during_an_import_that_swallows_it(tmp_path, module):
    (tmp_path / f"{module}.py").write_text(
        "import os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    pass\n"
        "raise ImportError('the interrupt was lost')\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    result = subprocess.run(
        [sys.executable, "-m", "opencl_lab", "devices"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert (result.returncode, result.stderr) == (130, "oclab: interrupted\n")


def test_devices():
    result = oclab("devices")
    assert result.returncode == 0 and "chosen:" in result.stdout
    content = json.loads(oclab("devices", "--json").stdout)
    assert content["devices"] and content["device"]["key"] in {d["key"] for d in content["devices"]}
    assert content["reason"]


def test_sentences_are_broken_between_words_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("opencl_lab.lab.cli.common.FALLBACK_WIDTH", 40)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/path/that/is/longer-than-the/terminal/is-wide.json"
    with click.Context(click.Command("x"), obj=Settings()):
        settings().say("  two spaces before this sentence, and it goes on", f"to {path}: all")
    assert capsys.readouterr().out.splitlines() == [
        "  two spaces before this sentence, and",
        "  it goes on",
        "to",
        path + ":",
        "all",
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("arguments", [["devices"], ["cache", "info", "--json"], ["--help"]])
def test_output_that_nobody_takes(arguments):
    full = 'exec "$@" > /dev/full'
    closed = 'exec "$@" >&-'
    for script, words in ((full, "No space left"), (closed, "standard output is closed")):
        result = subprocess.run(
            ["sh", "-c", script, "sh", *command(*arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 2 and one_sentence(result) and words in result.stderr
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        command(*arguments), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_bench_writes_everything(tmp_path):
    out = tmp_path / "new" / "folder"
    result = oclab(
        "bench", "sort", "--sizes", "2000,200,1000,200", "--out", out, "--repeats", 1,
        "--against", "c:seq,numpy", "--seed", 7, "--order", "equal",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    with (out / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == (
        *("n", "rows", "dtype", "order", "descending", "seed"),
        *COLUMNS,
    )
    assert len(rows) == 9 and rows[0]["order"] == "equal" and rows[0]["seed"] == "7"
    assert [row["n"] for row in rows[::3]] == ["200", "1000", "2000"]
    content = json.loads((out / "results.json").read_text())
    assert len(content["results"]) == 9 and len(content["crossovers"]) == 2
    assert content["options"] == {
        "rows": 1, "dtype": "int32", "order": "equal", "descending": False, "seed": 7,
    }  # fmt: skip
    assert "n=2000" in (out / "table.txt").read_text()
    for name in ("time.png", "speedup.png", "throughput.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sizes", "ten"],
        ["--sizes", "10,-5"],
        ["--sizes", "10,1e13"],  # more than the device has
        ["--sizes", "10", "--against", "bogus"],
        ["--sizes", "10", "--algorithm", ","],
    ],
)
def test_bench_that_cannot_be_leaves_nothing(tmp_path, capsys, arguments):
    assert main(["bench", "sort", "--out", str(tmp_path / "new"), *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_no_right_result_is_nothing_to_write(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "opencl_lab.lab.ops.sort.operation.Sort.compare",
        lambda *args: Difference(1.0, 1.0, error_over_bound=9.0),
    )
    target = tmp_path / "out.npy"
    assert main(["sort", "--n", "9", "-o", str(target), *QUICK]) == 1
    assert "out.npy is not written" in capsys.readouterr().err and not target.exists()


def test_cache_info_and_clear(tmp_path):
    cache, environment = tmp_path / "cache", {"OCLAB_CACHE_DIR": str(tmp_path / "cache")}
    assert "empty" in oclab("cache", "info", **environment).stdout
    (cache / "c").mkdir(parents=True)
    (cache / "c" / f"x-{20 * '0'}-{20 * '1'}.so").write_bytes(b"12345")
    (cache / "c" / "mine.so").write_bytes(b"a user's own")
    (cache / "notes").mkdir()
    assert "c: 1 file, 5 bytes" in oclab("cache", "info", **environment).stdout
    content = json.loads(oclab("cache", "info", "--json", **environment).stdout)
    assert content["sections"] == [{"name": "c", "files": 1, "bytes": 5}]
    assert oclab("cache", "clear", **environment).returncode == 0
    assert [path.name for path in (cache / "c").iterdir()] == ["mine.so"]
    assert (cache / "notes").is_dir()


def test_warnings_of_the_library_are_lines_of_the_command(monkeypatch, capsys):
    def warn():
        logging.getLogger("opencl_lab.drivers.caches").warning("not kept in %s", "here")
        return []

    monkeypatch.setattr("opencl_lab.lab.cli.cache.sections", warn)
    for _ in range(2):
        assert main(["cache", "info"]) == 0
        assert capsys.readouterr().err == "oclab: not kept in here\n"
    assert not logging.getLogger("opencl_lab").handlers
