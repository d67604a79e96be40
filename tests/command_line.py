"""The command line as tests call it: in this process, and where that matters, in one of its own."""

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from opencl_lab.lab.cli import main

QUICK = ("--repeats", "1", "--against", "none")


@dataclass(frozen=True)
class CommandResult:
    """How a command ended in this process, as `subprocess.run` tells it of one of its own."""

    returncode: int
    stdout: str
    stderr: str


def oclab(*arguments, **environment):
    """Run a command in this process, which saves the imports and the start of OpenCL."""
    out, err = io.StringIO(), io.StringIO()
    changed = mock.patch.dict(os.environ, environment)
    with changed, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return CommandResult(status, out.getvalue(), err.getvalue())


def command(*arguments):
    """Return the command line of a process of its own."""
    script = Path(sys.executable).with_name("oclab")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "opencl_lab"]
    return [*start, *map(str, arguments)]


def oclab_process(*arguments, **environment):
    """Run a command as users do: for its entry point, its environment, and how it ends."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def one_sentence(result):
    """A failure prints one line for people and no traceback."""
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return "Traceback" not in result.stderr and len(lines) == 1 and result.stdout == ""
