"""Shared by all commands: the global options, and output as text, JSON and files."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from opencl_lab._version import __version__
from opencl_lab.core.errors import OclabError
from opencl_lab.core.wording import visible
from opencl_lab.drivers.pretend import LIMITS, VARIABLE
from opencl_lab.lab.cli.tables import fit, markdown
from opencl_lab.lab.measuring.load import sample

if TYPE_CHECKING:  # imported where they are used: see `opencl_lab.lab.cli.lazy`
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from opencl_lab.drivers.discovery import Selection
    from opencl_lab.lab.measuring.environment import Start

FALLBACK_WIDTH = 140  # of tables, if standard output is not a terminal

F = TypeVar("F", bound=Callable[..., Any])


class Settings:
    """The global options, given before or after the name of the command."""

    def __init__(self) -> None:
        self.device: str | None = None
        self.pretend: str | None = None
        self.json = False
        self.markdown = False
        self.quiet = False
        self.verbose = 0
        self.arguments: tuple[str, ...] = ()
        self.errors = sys.stderr  # as it was before `main` put `Visible` in its place
        self._selection: Selection | None = None
        self._left_out: list[str] = []
        self._earlier = sample()
        self._start: Start | None = None

    def select(self) -> Selection:
        """Choose the device once per command."""
        if self._selection is None:
            from opencl_lab.drivers.discovery import choose_device

            self._selection = choose_device(self.device)
        return self._selection

    def begin(self) -> Selection:
        """Choose the device of a command that measures, and record the state of the machine."""
        selection = self.select()
        if self._start is None:
            from opencl_lab.lab.measuring.environment import begin

            self._start = begin(selection.device, self._earlier)
        return selection

    def environment(self) -> dict[str, Any] | None:
        """Return where and when the command measured; None if it does not measure."""
        if self._start is None:
            return None
        from opencl_lab.lab.measuring.environment import record
        from opencl_lab.lab.reference.compiler import known

        return record(self._start, known())

    def say_device(self) -> None:
        """Print which device is measured, and whether other processes use the machine."""
        self.say(f"device: {self.begin()}")
        self.say_busy()

    def say_busy(self) -> None:
        """Print whether other processes used the machine when the command began."""
        if self._start is not None and self._start.busy:
            self.say(self._start.busy)

    @property
    def console(self) -> Console:
        """Standard output for text; silent with --json or --quiet."""
        from opencl_lab.lab.presentation.screen import Screen

        width = None if sys.stdout.isatty() else FALLBACK_WIDTH
        quiet = self.quiet or self.json
        return Screen(quiet=quiet, width=width)

    def show(self, table: Table, optional: Sequence[str] = ()) -> None:
        """Print a table, on a narrow terminal without the `optional` columns, in this order.

        Omitted columns are named once for all tables that omit the same.
        """
        console = self.console
        left_out = [] if self.markdown else fit(table, console, optional)
        self.print(table)
        if left_out and left_out != self._left_out:
            names = ", ".join(left_out)
            self.say(f"{console.width} characters have no room for {names}; --markdown shows all")
        self._left_out = left_out

    def print(self, *parts: Table | Text) -> None:
        """Print tables and sentences, as Markdown with --markdown."""
        from rich.table import Table

        console = self.console
        for part in parts:
            if self.markdown and isinstance(part, Table):
                console.print(markdown(part), soft_wrap=True)
            else:
                console.print(part)

    def say(self, *lines: str) -> None:
        """Print lines, which are wrapped on terminals between words, but not within paths.

        Each stays a line, whatever a name in it contains.
        """
        console = self.console
        text = "\n".join(map(visible, lines))
        if sys.stdout.isatty():
            text = _filled(text, console.width)
        console.print(text, soft_wrap=True)


class Visible:
    """A text stream that shows control characters, but for the ends of lines and tabs.

    It has no `buffer`, in which others would write around it.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(visible(text, "\n\t"))


def _filled(text: str, width: int) -> str:
    """Return lines wrapped between words, with the indentation of each kept."""
    filled = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        wrapper = textwrap.TextWrapper(
            width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        filled.append(wrapper.fill(line))
    return "\n".join(filled)


def complain(text: str) -> None:
    """Print a line on standard error."""
    click.echo(f"oclab: {visible(text)}", err=True)


def settings() -> Settings:
    """Return the settings of the running command."""
    found = click.get_current_context().find_root().ensure_object(Settings)
    assert isinstance(found, Settings)
    return found


def device_of_jobs() -> str | None:
    """Return the device that the user named, for jobs over ranks.

    Of a list such as ``0:0,0:1``, which only ranks take, this process takes the first one.
    """
    named = settings().device
    asked = str(named or os.environ.get("OCLAB_DEVICE", ""))
    if "," not in asked:
        return named
    settings().device = asked.partition(",")[0].strip()
    return asked


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    target = context.find_root().ensure_object(Settings)
    if value and parameter.name is not None:
        given = getattr(target, parameter.name) + value if parameter.name == "verbose" else value
        setattr(target, parameter.name, given)
        if target.pretend:  # before discovery, and for child processes
            os.environ[VARIABLE] = target.pretend
        if target.json and target.markdown:
            raise click.UsageError("take --json or --markdown, not both")
    return value


def option(flags: str, text: str, *, to: str | None = None, **how: Any) -> Callable[[Any], Any]:
    """Return a `click.option`; `flags` end with what stands for the value, such as ``--seed N``.

    `text` is its help, and `to` the name of the parameter, by default that of the flag. A default
    is shown.
    """
    words = flags.split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    shown = how.get("default") is not None
    names += [] if to is None else [to]
    return click.option(*names, metavar=metavar, help=text, show_default=shown, **how)


def add_options(command: Any, options: Sequence[Callable[[Any], Any]]) -> Any:
    """Add the `click.option` decorators to a command; `--help` lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


_STORED: dict[str, Any] = {"expose_value": False, "callback": _store, "is_eager": True}
GLOBAL_OPTIONS = (
    option(
        "--device SPEC",
        "The device: gpu, cpu, accelerator, serial, an index of `oclab devices`, "
        "platform:device, or a part of its name.",
        **_STORED,
    ),
    option(
        "--pretend",
        "Run on PoCL with the limits of such a GPU.",
        type=click.Choice(list(LIMITS)),
        **_STORED,
    ),
    option("--json", "Print one JSON document and nothing else.", is_flag=True, **_STORED),
    option("--markdown", "Print tables in Markdown, with all columns.", is_flag=True, **_STORED),
    option("--quiet", "Print only errors.", is_flag=True, **_STORED),
    option("-v --verbose", "Print more; twice: with tracebacks.", count=True, **_STORED),
)


def global_options(command: F) -> F:
    """Add the global options to a command or group; they end up in `settings()`."""
    added: F = add_options(command, GLOBAL_OPTIONS)
    return added


def document(command: str, **content: Any) -> dict[str, Any]:
    """Return a JSON document of the schema ``oclab/1`` of the running command.

    For a command that measures it has the `opencl_lab.lab.measuring.environment.record`.
    """
    made: dict[str, Any] = {"schema": "oclab/1", "command": command, "version": __version__}
    made["arguments"] = list(settings().arguments)
    where = settings().environment()
    return {**made, **({} if where is None else {"environment": where}), **content}


def print_json(content: Callable[[], Mapping[str, Any]]) -> None:
    """Print the one JSON document of a command, if --json asks for it; texts are silent then."""
    if settings().json:
        click.echo(json_text(content()))


def answer(command: str, **content: Any) -> None:
    """Print the `document` of a command, if --json asks for it."""
    print_json(lambda: document(command, **content))


def json_text(content: Mapping[str, Any]) -> str:
    """Return a JSON document; JSON has no infinity, no NaN and no complex numbers."""
    return json.dumps(_json_values(content), indent=1, allow_nan=False)


def _json_values(value: Any) -> Any:
    """Return values with None for numbers that are not finite, and text for complex ones."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, complex):
        return repr(value)
    if isinstance(value, Mapping):
        return {name: _json_values(item) for name, item in value.items()}
    return [_json_values(item) for item in value] if isinstance(value, (list, tuple)) else value


def output_path(text: str | None, check: Callable[[Path], None]) -> Path | None:
    """Return an output path, checked before any work is done."""
    if text is None:
        return None
    path = Path(text)
    check(path)
    return path


def write_files(*writers: Callable[[], None]) -> int:
    """Write output files, print those that failed, and return an exit status.

    Call this after results were printed, so that they are not lost if a file fails.
    """
    status = 0
    for write in writers:
        try:
            write()
        except OclabError as error:
            complain(error.sentence)
            status = error.exit_status
    return status


def say_written(paths: Sequence[Path | None]) -> None:
    """Print which files were written, except None and standard output."""
    names = " ".join(str(path) for path in paths if path is not None and not _is_output(path))
    if names:
        settings().say(f"written: {names}")


def _is_output(path: Path) -> bool:
    """Return whether a path leads to this process's standard output."""
    try:
        return os.path.samestat(path.stat(), os.fstat(1))
    except OSError:
        return False
