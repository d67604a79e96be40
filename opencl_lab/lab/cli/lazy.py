"""A group of commands that imports only the command that is run.

So `oclab --version` does not wait for OpenCL.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from opencl_lab.core.interrupt import exit_at_interrupt

WHOLE = 1000
"""Length limit of a summary in a list of commands, so that it is wrapped but never cut."""


class LazyGroup(click.Group):
    """A group with a command for each of `places` and for each operation of the registry.

    Places are written ``"module:attribute"``. `operation_place` names a function that makes the
    command of an `Operation`.
    """

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str] | None = None,
        operation_place: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self._places = dict(places or {})
        self._operation_place = operation_place

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        named = [*super().list_commands(ctx), *self._places]
        if self._operation_place:
            with exit_at_interrupt():
                from opencl_lab.lab.registry import OPERATIONS

                named.extend(OPERATIONS)
        return sorted(named)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the operations, and then the commands for all of them."""
        names = self.list_commands(ctx)
        own = [name for name in names if name in self._places or name in self.commands]
        operations = [name for name in names if name not in own]
        for title, listed in (("Operations", operations), ("Commands", own)):
            commands = [(name, self.get_command(ctx, name)) for name in listed]
            rows = [(name, found.get_short_help_str(WHOLE)) for name, found in commands if found]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        with exit_at_interrupt():
            import numpy.random  # noqa: F401 - else at its first use, where Ctrl-C could get lost

            if cmd_name in self._places:
                command: click.Command = _attribute(self._places[cmd_name])
                return command
            if self._operation_place is not None:
                from opencl_lab.lab.registry import OPERATIONS, get_operation

                if cmd_name in OPERATIONS:
                    operation = get_operation(cmd_name)
                    made: click.Command = _attribute(self._operation_place)(operation)
                    return made
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown name, list all commands."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            names = ", ".join(self.list_commands(ctx))
            ctx.fail(f"There is no {ctx.command_path} {name!r}; there are: {names}")
        return super().resolve_command(ctx, args)


def _attribute(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
