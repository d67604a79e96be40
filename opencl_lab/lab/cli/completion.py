"""Shell completion of option values: words, algorithms, references, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:  # imported where it is used: see `opencl_lab.lab.cli.lazy`
    from opencl_lab.lab.operation import Operation

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Any]]


def one_of(words: Sequence[str]) -> Complete:
    """Return a completion of one of `words`."""
    return lambda context, parameter, begun: [word for word in words if word.startswith(begun)]


def algorithms(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Complete the last algorithm of a list, for the operation of the command."""
    chosen = _operation(context)
    names = [*(item.name for item in chosen.algorithms), *chosen.choices] if chosen else []
    return _last([*names, "auto", "all"], begun)


def references(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Complete the last reference of a list, for the operation of the command."""
    chosen = _operation(context)
    names = [item.name for item in chosen.references] if chosen else []
    return _last([*names, "all", "none"], begun)


def _operation(context: click.Context) -> Operation[Any] | None:
    from opencl_lab.lab.registry import operations  # a slow import, which most commands do not need

    return operations().get(context.command.name or "")


def _last(words: Sequence[str], begun: str) -> list[Any]:
    """Return completions of the text after the last comma."""
    before, comma, last = begun.rpartition(",")
    return [before + comma + word for word in words if word.startswith(last)]


def files(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Let the shell complete the name of a file."""
    return [CompletionItem(begun, type="file")]


def folders(context: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
    """Let the shell complete the name of a folder."""
    return [CompletionItem(begun, type="dir")]
