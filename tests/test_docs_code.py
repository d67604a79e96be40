"""Every block of code in the documents runs; `docs_code` says how each kind of it does."""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from unittest import mock

import click
import pytest
from docs_code import SESSION, Block, DocumentError, blocks, commands, compare, inline, listed

from opencl_lab.lab.cli.main import main

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
LONGEST = 120  # seconds that a document may take
MEASURING = 0.1  # seconds that benchmarks take for the rows of a problem
TUNING = 1  # and searches
READER_LEFT = 141  # as of `sort | head`


@pytest.fixture
def parse(monkeypatch, capsys):
    """Return what parses a command of oclab as far as to the function that would run."""
    monkeypatch.setattr(click.Command, "invoke", lambda self, ctx: 0)

    def parsed(arguments):
        bare = all(not word.startswith("-") for word in arguments)
        with mock.patch.dict(os.environ):  # of which --pretend sets one
            status = main([*arguments, "--help"] if bare else arguments)
        return status, capsys.readouterr().err

    return parsed


def check_command(words, parse):
    """Check one command without running it.

    Raises
    ------
    DocumentError
        If its program would refuse it.
    """
    if words[0] == "oclab":
        status, said = parse(words[1:])
        if status:
            raise DocumentError(f"{' '.join(words)}: {said}")
    elif words[0] == "pip":
        known = ConfigParser()
        known.read(ROOT / "setup.cfg")
        for extras in re.findall(r"(?:^|\s)(?:opencl_lab|\.)\[([\w,]+)\]", " ".join(words)):
            for extra in extras.split(","):
                if extra not in known["options.extras_require"]:
                    raise DocumentError(f"{' '.join(words)}: there is no extra {extra!r}")
    elif words[1:] and words[1].endswith(".py"):
        if not (ROOT / words[1]).is_file():
            raise DocumentError(f"there is no {words[1]}")
        script = (ROOT / words[1]).read_text(encoding="utf-8")
        for word in words[2:]:
            name = word.partition("=")[0]
            if name.startswith("--") and f'"{name}"' not in script:
                raise DocumentError(f"{words[1]} has no option {name}")


def is_run_as_session(block):
    return block.is_session and block.runs


def check_lists(text, parse):
    """Check all commands of a document that are listed and not run."""
    for block in blocks(text):
        if block.word == "text" and any(re.match(r"\$ |oclab ", line) for line in block.lines):
            raise DocumentError(f"line {block.first}: a command in a block that is called text")
        if block.word in SESSION and block.comment != "ci" and not is_run_as_session(block):
            for line, words in listed(block):
                _at(line, check_command, words, parse)
    for line, words in inline(text):
        _at(line, check_command, words, parse)


def _at(line, function, *arguments):
    try:
        function(*arguments)
    except DocumentError as error:
        raise DocumentError(f"line {line}: {error}") from error


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_listed_commands_are_accepted(path, parse):
    check_lists(path.read_text(encoding="utf-8"), parse)


def environment(folder):
    """Return the environment of commands in a document: `oclab` and `python` are those of now.

    Benchmarks, whose times nobody compares, and tuning end soon.
    """
    programs = folder / ".bin"
    programs.mkdir()
    soon = f"""case "$1 $2" in
bench*) set -- "$@" --time-limit {MEASURING} ;;
tune* | *.py\\ tune) set -- "$@" --budget {TUNING} ;;
esac"""
    for name, words in (("python", ""), ("oclab", " -m opencl_lab")):
        file = programs / name
        file.write_text(f'#!/bin/sh\n{soon}\nexec "{sys.executable}"{words} "$@"\n')
        file.chmod(0o755)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "160"}


def run(command, folder, around):
    """Run a command of a document in a folder."""
    return subprocess.run(
        command, cwd=folder, env=around, capture_output=True, text=True, timeout=LONGEST,
        check=False,
    )  # fmt: skip


def run_sessions(text, folder):
    """Run the sessions of a document in a folder.

    Raises
    ------
    DocumentError
        If a command fails, or prints something else than the document shows.
    """
    around = environment(folder)
    (folder / "docs").symlink_to(ROOT / "docs")  # of whose examples commands speak
    for block in blocks(text):
        for command in commands(block) if block.is_session and block.runs else ():
            done = run(["bash", "-euo", "pipefail", "-c", command.text], folder, around)
            if done.returncode not in (0, READER_LEFT):
                what = f"status {done.returncode}\n{done.stderr}"
                raise DocumentError(f"line {command.line}: {command.text}: {what}")
            if not block.varies:
                _at(command.line, compare, command.shown, done.stdout)


def _having(wanted):
    found = [
        pytest.param(path, id=name)
        for path, name in zip(DOCUMENTS, NAMES, strict=True)
        if any(block.runs and wanted(block) for block in blocks(path.read_text(encoding="utf-8")))
    ]
    assert found
    return found


@pytest.mark.full
@pytest.mark.parametrize("path", _having(is_run_as_session))
def test_sessions_print_what_is_shown(path, tmp_path):
    run_sessions(path.read_text(encoding="utf-8"), tmp_path)


def run_python(path, folder):
    """Run the Python of a document in a process of its own, in a folder; return the process."""
    command = [sys.executable, str(Path(__file__).with_name("docs_code.py")), str(path)]
    return run(command, folder, environment(folder))


@pytest.mark.full
@pytest.mark.parametrize("path", _having(lambda block: block.word.startswith("py")))
def test_python_runs(path, tmp_path):
    done = run_python(path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


# What the above must notice.


@pytest.mark.parametrize(
    "text",
    [
        "```\noclab sort --no-such-option 3\n```\n",
        "```sh\noclab sart\n```\n",
        "    oclab bench sort --size 3 --out x\n",
        "see `oclab dft --sices 3`\n",
        "see `oclab sart`\n",
        "```\nOCLAB_DEVICE=cpu oclab gemm --size many\n```\n",
        "```\noclab devices && oclab sort --n\n```\n",
        "```\npip install '.[no_such_extra]'\n```\n",
        "```\npython tools/no_such_tool.py\n```\n",
        "```\npython tools/tune_shipped.py --no-such-option\n```\n",
        "```text\noclab sort\n```\n",
        "<!-- code: not run: slow -->\n```\n$ oclab sart\n```\n",
        "```python\nwithout an end\n",
        "```unknown\nx\n```\n",
        "<!-- code: not run: -->\n```python\nx\n```\n",
    ],
)
def test_mistakes_in_lists_are_noticed(text, parse):
    with pytest.raises(DocumentError):
        check_lists(text, parse)


def test_what_is_right_in_lists_passes(parse):
    check_lists(
        "```\noclab sort --n 1000     a remark, --that says things\n"
        "cd docs && OCLAB_DEVICE=cpu .venv/bin/oclab gemm --size 3 | head -1\n"
        "oclab tune gemm --size 3 \\\n  --budget 2\n"
        "pip install '.[pocl,test]'\npython tools/tune_shipped.py --only sort\n```\n"
        "`oclab tuning`, `oclab cache info|clear`, `oclab sort INPUT`, `oclab bench gemm\n--help`",
        parse,
    )


@pytest.mark.parametrize(
    "text",
    [
        "```\n$ false\n```\n",
        "```console\n$ echo 1.5\n1.6\n```\n",
        "```console\n$ echo one; echo two\none\n```\n",
        "```console\n$ echo one; echo two; echo three\none\n...\nfour\n```\n",
        "<!-- code: output varies: times -->\n```console\n$ oclab sart | cat\nx\n```\n",
    ],
)
def test_mistakes_in_sessions_are_noticed(text, tmp_path):
    with pytest.raises(DocumentError):
        run_sessions(text, tmp_path)


def test_sessions_that_are_right_pass(tmp_path):
    run_sessions(
        "```console\n$ echo 'a\nb' > file\n$ cat file; echo 1,000.5 1e-9\na\nb\n1,000.4 0\n```\n"
        "<!-- code: output varies: it says the time -->\n```\n$ date +%s\n12\n```\n"
        "<!-- code: not run: it fails -->\n```\n$ false\n```\n"
        "```console\n$ seq 5\n1\n...\n5\n```\n",
        tmp_path,
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("```python\n1 / 0\n```\n", 2),
        ("```python\nx = 3\n```\n\n```pycon\n>>> x\n3\n>>> x + 1\n3\n```\n", 8),
    ],
)
def test_mistakes_in_python_are_noticed(text, line, tmp_path):
    """In one process, so that blocks share their names."""
    file = tmp_path / "document.md"
    file.write_text(text)
    done = run_python(file, tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode and f"line {line}" in said, said


def test_the_block_of_the_commands_is_run_by_ci():
    texts = {
        name: path.read_text(encoding="utf-8") for name, path in zip(NAMES, DOCUMENTS, strict=True)
    }
    marked = [name for name, text in texts.items() for b in blocks(text) if b.comment == "ci"]
    assert marked == ["README.md"]
    if (ROOT / ".ci/run").is_file() and shutil.which("git"):
        assert "<!-- ci -->" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_a_block_is_a_session_only_with_a_prompt():
    assert Block("", ("$ oclab devices",), 1).is_session
    assert not Block("", ("oclab devices",), 1).is_session
