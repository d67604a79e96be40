"""What every command shares: the global options, output, progress."""

from __future__ import annotations

import itertools
import json
import math
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opencl_lab._version import __version__
from opencl_lab.errors import InvalidProblem, OclabError

if TYPE_CHECKING:  # imported where they are used: see `opencl_lab.cli.lazy`
    from rich.console import Console
    from rich.table import Column, Table

    from opencl_lab.comparison.runner import StepReport as Report
    from opencl_lab.discovery import Selection

__all__ = [
    "Settings",
    "WholeNumber",
    "document",
    "fit",
    "global_options",
    "parameter_values",
    "print_json",
    "progress_bar",
    "settings",
    "whole_numbers",
    "write_files",
]

BAR_DELAY = 1.0  # seconds; what is quicker needs no bar
LINE_INTERVAL = 10.0  # seconds between lines where there is no terminal for a bar
FALLBACK_WIDTH = 140  # of tables that do not go to a terminal

F = TypeVar("F", bound=Callable[..., Any])


class Settings:
    """The global options, given before or after the name of the command."""

    def __init__(self) -> None:
        self.device: str | None = None
        self.json = False
        self.quiet = False
        self.verbose = 0
        self.arguments: tuple[str, ...] = ()
        self._selection: Selection | None = None

    def select(self) -> Selection:
        """Choose the device once a command."""
        if self._selection is None:
            from opencl_lab.discovery import choose_device

            self._selection = choose_device(self.device)
        return self._selection

    @property
    def console(self) -> Console:
        """Standard output for people; silent where a JSON document or nothing is wanted."""
        from rich.console import Console

        width = None if sys.stdout.isatty() else FALLBACK_WIDTH
        return Console(quiet=self.quiet or self.json, width=width, highlight=False)

    def show(self, table: Table, optional: Sequence[str] = ()) -> None:
        """Print a table, on a narrow terminal without the `optional` columns, in this order."""
        console = self.console
        fit(table, console, optional)
        console.print(table)

    def say(self, text: str) -> None:
        """Print a line for people; a terminal breaks it between words, and paths never."""
        console = self.console
        if sys.stdout.isatty():
            text = _filled(text, console.width)
        console.print(text, markup=False, soft_wrap=True)


def _filled(text: str, width: int) -> str:
    """Return lines broken between words, those that go on indented as they began."""
    filled = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        wrapper = textwrap.TextWrapper(
            width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        filled.append(wrapper.fill(line))
    return "\n".join(filled)


def fit(table: Table, console: Console, optional: Sequence[str]) -> None:
    """Remove `optional` columns, the first ones first, until no word has to be cut.

    The widths of those that stay are set here: rich levels wide columns without regard to
    their words, and crops the table where its columns are too wide together.
    """
    for name in optional:
        if sum(map(_least_width, table.columns)) <= _room(table, console):
            break
        table.columns = [column for column in table.columns if column.header != name]
    room = _room(table, console)
    whole = list(map(_whole_width, table.columns))
    least = list(map(_least_width, table.columns))
    if sum(whole) <= room:
        return
    if sum(least) > room:  # not even the words fit: they are cut, the longest ones first
        whole, least = least, [1] * len(least)
    for column, width in zip(table.columns, _levelled(whole, least, room), strict=True):
        column.width = width


def _room(table: Table, console: Console) -> int:
    """Return the width that is left for the content of columns: each has two spaces and a line."""
    return console.width - 1 - 3 * len(table.columns)


def _levelled(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths that fill `room`: the widest are levelled, and none is below `least`."""

    def widths(level: int) -> list[int]:
        return [max(low, min(high, level)) for low, high in zip(least, whole, strict=True)]

    level = next((n for n in range(max(whole), 0, -1) if sum(widths(n)) <= room), 1)
    found = widths(level)
    for index, width in enumerate(whole):  # what levelling leaves over
        if found[index] == level < width and sum(found) < room:
            found[index] += 1
    return found


def _texts(column: Column) -> list[str]:
    return [str(cell) for cell in (column.header, *column.cells)]


def _whole_width(column: Column) -> int:
    """Return the width of a column's longest line."""
    lines = (line for text in _texts(column) for line in text.split("\n"))
    return max(column.min_width or 0, *map(len, lines), 0)


def _least_width(column: Column) -> int:
    """Return the width of a column's longest word, or line where it must not wrap."""
    if column.min_width is not None:
        return column.min_width
    if column.no_wrap:
        return _whole_width(column)
    return max((len(word) for text in _texts(column) for word in text.split()), default=0)


def settings() -> Settings:
    """Return the settings of the running command."""
    found = click.get_current_context().find_root().ensure_object(Settings)
    assert isinstance(found, Settings)
    return found


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    target = context.find_root().ensure_object(Settings)
    if value and parameter.name is not None:
        given = getattr(target, parameter.name) + value if parameter.name == "verbose" else value
        setattr(target, parameter.name, given)
    return value


def global_options(command: F) -> F:
    """Add the global options to a command or group; they end up in `settings()`."""
    keep: dict[str, Any] = {"expose_value": False, "callback": _store, "is_eager": True}
    for option in (
        click.option(
            "-v", "--verbose", count=True, help="Say more; twice: with tracebacks.", **keep
        ),
        click.option("--quiet", is_flag=True, help="Print nothing but errors.", **keep),
        click.option(
            "--json", is_flag=True, help="Print one JSON document and nothing else.", **keep
        ),
        click.option(
            "--device",
            metavar="SPEC",
            help="gpu, cpu, accelerator, an index of `oclab devices`, platform:device, "
            "or a part of the name.",
            **keep,
        ),
    ):
        command = option(command)
    return command


def document(command: str, **content: Any) -> dict[str, Any]:
    """Return a JSON document of the schema ``oclab/1``, with what `oclab` was called with."""
    arguments = list(settings().arguments)
    made = {"schema": "oclab/1", "command": command, "version": __version__}
    return {**made, "arguments": arguments, **content}


def print_json(content: Mapping[str, Any]) -> None:
    """Print the one JSON document of a command; JSON has no infinity and no NaN."""
    click.echo(json.dumps(_finite(content), indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return JSON-able values with None for the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def whole_numbers(text: str) -> list[int]:
    """Return the integers of a comma-separated list.

    Raises
    ------
    InvalidProblem
        If there are none, or one is no whole number.
    """
    try:
        numbers = [_whole(part) for part in _parts(text)]
    except (ValueError, OverflowError) as error:
        raise InvalidProblem(f"not a list of whole numbers: {text!r}") from error
    if not numbers:
        raise InvalidProblem("the list of sizes is empty")
    return numbers


def _whole(text: str) -> int:
    """Return the whole number that `text` writes, such as ``1000`` or ``1e3``."""
    if "e" not in text.lower():
        return int(text)
    number = float(text)
    if number != int(number):
        raise ValueError(text)
    return int(number)


class WholeNumber(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options that take ``1000`` or ``1e3``."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number, or end with Click's usual message."""
        try:
            return value if isinstance(value, int) else _whole(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a valid integer.", param, ctx)


def variants(texts: Sequence[str]) -> dict[str, dict[str, int | str | bool]]:
    """Return every combination of ``NAME=A,B,C``, by a name for its rows.

    Raises
    ------
    InvalidProblem
        If a text has no name or no values.
    """
    axes = []
    for text in texts:
        name, _, values = text.partition("=")
        if not name.strip() or not _parts(values):
            raise InvalidProblem(f"--vary takes NAME=A,B,C, not {text!r}")
        axes.append([(name.strip(), value) for value in _parts(values)])
    return {
        ",".join(f"{name}={value}" for name, value in point): {
            name: _parameter(value) for name, value in point
        }
        for point in itertools.product(*axes)
    }


def _parameter(text: str) -> int | str | bool:
    """Return the value of a kernel parameter: a flag, a whole number, or a word."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


def parameter_values(text: str) -> tuple[int | str | bool, ...]:
    """Return the values of a kernel parameter in a list with commas."""
    return tuple(map(_parameter, _parts(text)))


def _parts(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Yield a progress report that draws a bar on standard error after a second.

    Where that is no terminal, a line from time to time says what is going on. With ``--quiet``
    or ``--json`` nothing is shown.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if settings().quiet or settings().json:
        yield lambda done, total, label: None
        return
    if not console.is_terminal:
        with _progress_lines(title) as report:
            yield report
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(title, total=None)
    timer = threading.Timer(BAR_DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total, label: bar.update(
            task, completed=done, total=total, description=f"{title}: {label}"
        )
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


@contextmanager
def _progress_lines(title: str) -> Iterator[Report]:
    """Yield a progress report that prints a line every `LINE_INTERVAL` on standard error."""
    begin = time.monotonic()
    over = threading.Event()
    latest = (0, 0, "starting")

    def report(done: int, total: int, label: str) -> None:
        nonlocal latest
        latest = done, total, label

    def tell() -> None:
        while not over.wait(LINE_INTERVAL):
            done, total, label = latest
            seconds = time.monotonic() - begin
            click.echo(f"oclab: {title}: {label} ({done}/{total}, {seconds:.0f} s)", err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield report
    finally:
        over.set()
        teller.join()


def output_path(text: str | None, check: Callable[[Path], None]) -> Path | None:
    """Return an output path, checked before any work is done."""
    if text is None:
        return None
    path = Path(text)
    check(path)
    return path


def write_files(*writers: Callable[[], None]) -> int:
    """Run what writes output files, each of them, and say what failed.

    Called after the results were printed, so that these are not lost with a file.

    Returns
    -------
    int
        An exit status, 0 if all were written.
    """
    status = 0
    for write in writers:
        try:
            write()
        except OclabError as error:
            click.echo(f"oclab: {error.sentence}", err=True)
            status = error.exit_status
    return status
