"""A group of commands that imports only the one that is asked for.

`oclab --version` then does not wait for OpenCL.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from opencl_lab.lab.interrupt import exit_at_interrupt

WHOLE = 1000
"""Letters of a summary in a list of commands: it is wrapped, and never cut."""


class LazyGroup(click.Group):
    """A group with a command for each of `homes` and for each operation of the registry.

    Places are written ``"module:attribute"``. That in `operation_home` is a function that makes the
    command of an `Operation`.
    """

    def __init__(
        self,
        *args: Any,
        homes: Mapping[str, str] | None = None,
        operation_home: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self._homes = dict(homes or {})
        self._operation_home = operation_home

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        named = [*super().list_commands(ctx), *self._homes]
        if self._operation_home:
            with exit_at_interrupt():
                from opencl_lab.lab.registry import operations

                named.extend(operations())
        return sorted(named)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the operations, and then the commands for all of them."""
        names = self.list_commands(ctx)
        own = [name for name in names if name in self._homes or name in self.commands]
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
            if cmd_name in self._homes:
                command: click.Command = _attribute(self._homes[cmd_name])
                return command
            if self._operation_home is not None:
                from opencl_lab.lab.registry import operations

                available = operations()
                if cmd_name in available:
                    made: click.Command = _attribute(self._operation_home)(available[cmd_name])
                    return made
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for; for another name, list those that there are."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            names = ", ".join(self.list_commands(ctx))
            ctx.fail(f"There is no {ctx.command_path} {name!r}; there are: {names}")
        return super().resolve_command(ctx, args)


def _attribute(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
