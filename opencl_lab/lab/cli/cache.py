"""`oclab cache`: the cache on disk."""

from __future__ import annotations

import click

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.paths import cache_dir
from opencl_lab.core.wording import counted, size_text
from opencl_lab.drivers.caches import remove_section, section_files, sections
from opencl_lab.lab.cli.common import answer, global_options, settings
from opencl_lab.lab.cli.lazy import LazyGroup


@click.group("cache", cls=LazyGroup)
@global_options
def cache_command() -> None:
    """Show or clear the cache on disk. It is filled again when needed."""


def _sections() -> list[tuple[str, int, int]]:
    """Return name, number of files and bytes of each section of the cache."""
    found = []
    for name in sections():
        sizes = [file.stat().st_size for file in section_files(name)]
        found.append((name, len(sizes), sum(sizes)))
    return found


@cache_command.command("info")
@global_options
def info_command() -> None:
    """Show the folder and the contents of the cache."""
    found = _sections()
    content = [{"name": n, "files": files, "bytes": size} for n, files, size in found]
    answer("cache info", path=str(cache_dir()), sections=content)
    settings().say(str(cache_dir()))
    for name, files, size in found:
        settings().say(f"  {name}: {counted(files, 'file')}, {size_text(size)}")
    if not found:
        settings().say("  empty")


@cache_command.command("clear")
@global_options
def clear_command() -> None:
    """Delete the files that opencl_lab has written to the cache."""
    found = _sections()
    try:
        for name, _, _ in found:
            remove_section(name)
    except OSError as error:
        raise InvalidProblem(f"cannot clear {cache_dir()}: {error.strerror or error}") from error
    freed = sum(size for _, _, size in found)
    answer("cache clear", path=str(cache_dir()), bytes=freed)
    settings().say(f"cleared {cache_dir()}: {size_text(freed)}")
