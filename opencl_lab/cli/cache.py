"""`oclab cache`: what is stored on disk, and how to clear it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from opencl_lab.cli.common import document, global_options, print_json, settings
from opencl_lab.errors import InvalidProblem
from opencl_lab.paths import cache_dir
from opencl_lab.plan import size_text
from opencl_lab.words import counted

__all__ = ["cache_command"]


@click.group("cache")
@global_options
def cache_command() -> None:
    """Show or clear what opencl_lab stores on disk; all of it can be made again."""


def _sections() -> list[tuple[str, int, int]]:
    """Return name, files and bytes of every part of the cache."""
    root = cache_dir()
    if not root.is_dir():
        return []
    return [(part.name, *_measure(part)) for part in sorted(root.iterdir()) if part.is_dir()]


def _measure(folder: Path) -> tuple[int, int]:
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return len(sizes), sum(sizes)


@cache_command.command("info")
@global_options
def info_command() -> None:
    """Show where the cache is and what it holds."""
    sections = _sections()
    if settings().json:
        content = [{"name": n, "files": files, "bytes": size} for n, files, size in sections]
        print_json(document("cache info", path=str(cache_dir()), sections=content))
        return
    settings().say(str(cache_dir()))
    for name, files, size in sections:
        settings().say(f"  {name}: {counted(files, 'file')}, {size_text(size)}")
    if not sections:
        settings().say("  empty")


@cache_command.command("clear")
@global_options
def clear_command() -> None:
    """Delete everything in the cache."""
    sections = _sections()
    try:
        for name, _, _ in sections:
            shutil.rmtree(cache_dir(name))
    except FileNotFoundError:
        pass  # another process clears it too
    except OSError as error:
        raise InvalidProblem(f"cannot clear {cache_dir()}: {error.strerror or error}") from error
    freed = sum(size for _, _, size in sections)
    if settings().json:
        print_json(document("cache clear", path=str(cache_dir()), bytes=freed))
        return
    settings().say(f"cleared {cache_dir()}: {size_text(freed)}")
