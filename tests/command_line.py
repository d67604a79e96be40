"""The command line as tests call it."""

import os
import subprocess
import sys
from pathlib import Path

QUICK = ("--repeats", "1", "--against", "none")


def command(*arguments):
    script = Path(sys.executable).with_name("oclab")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "opencl_lab"]
    return [*start, *map(str, arguments)]


def oclab(*arguments, **environment):
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
