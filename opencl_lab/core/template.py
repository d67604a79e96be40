"""Strict rendering of Mako templates into OpenCL C, and digests of templates.

The package's own templates are read once per process. A user's templates may change at any time,
while a kernel is being written: anything made from one is discarded once its text, or that of a
file which it includes, changes.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from mako.exceptions import MakoException, text_error_template
from mako.lookup import TemplateLookup
from mako.template import Template

from opencl_lab.core.errors import BuildError

__all__ = ["Source", "declared", "digest_now", "is_watched", "kernel_digest", "render"]


ROOT = Path(str(files("clkernels")))
DIGEST_LENGTH = 16
UNREAD = re.compile(r"<%(doc|text)\b[^>]*>.*?</%\1>|^\s*##[^\n]*$", re.DOTALL | re.MULTILINE)
TAG = re.compile(r"""<%(?:include|namespace|inherit)\b((?:"[^"]*"|'[^']*'|[^>"'])*)>""")
FILE = re.compile(r"""(\w+)\s*=\s*("[^"]*"|'[^']*')""")

_Stamp: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class Source:
    """Rendered OpenCL C, its template, and the digest that identifies it in caches."""

    template: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class _Content:
    """The digest of templates, and the state of their files by which to detect changes."""

    digest: str
    stamps: Mapping[Path, _Stamp]
    own: bool
    """Whether all of them are the package's own."""

    @property
    def current(self) -> bool:
        try:
            return all(_stamp(path) == stamp for path, stamp in self.stamps.items())
        except OSError:
            return False


_contents: dict[tuple[str, ...], _Content] = {}


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _folders(template: str) -> tuple[Path, ...]:
    """Return the folders of files that a template includes: its own, then the package's."""
    path = Path(template)
    return (path.parent, ROOT) if path.is_absolute() else (ROOT,)


def _included(path: Path, text: str) -> list[str]:
    """Return the names of the files that a template includes."""
    tags = (dict(FILE.findall(tag)) for tag in TAG.findall(UNREAD.sub("", text)))
    names = [tag["file"][1:-1] for tag in tags if "file" in tag]
    for name in names:
        if "${" in name:  # includes must be known before rendering
            raise BuildError(f"template {path} includes {name}: name the file, without ${{}}")
    return names


def _read(templates: tuple[str, ...]) -> _Content:
    digest, stamps = hashlib.sha256(), dict[Path, _Stamp]()
    waiting = [(ROOT / name, _folders(name)) for name in templates]  # joining keeps absolute paths
    while waiting:
        path, folders = waiting.pop(0)
        if path in stamps:
            continue
        try:
            stamps[path] = _stamp(path)  # before reading, so that a change in between is detected
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BuildError(f"template {path} cannot be read: {error}") from error
        digest.update(f"{len(text)}\n{text}".encode())
        for included in _included(path, text) if path.suffix == ".mako" else ():
            places = folders if included.startswith("/") else (path.parent, *folders)
            paths = [place / included.lstrip("/") for place in places]
            found = next((item for item in paths if item.is_file()), paths[-1])
            waiting.append((found, folders))
    own = all(path.is_relative_to(ROOT) for path in stamps)
    return _Content(digest.hexdigest()[:DIGEST_LENGTH], stamps, own)


def _content(templates: tuple[str, ...]) -> _Content:
    known = _contents.get(templates)
    if known is None or not (known.own or known.current):
        known = _contents[templates] = _read(templates)
    return known


def kernel_digest(templates: tuple[str, ...]) -> str:
    """Return a digest of template files, and of all that they include, as this process uses them.

    Parameters
    ----------
    templates : tuple of str
        As `render` takes them.

    Raises
    ------
    BuildError
        If a template cannot be read.
    """
    return _content(templates).digest


def digest_now(templates: tuple[str, ...]) -> str:
    """Return the digest of template files as they are now."""
    return _read(templates).digest


def is_watched(templates: tuple[str, ...]) -> bool:
    """Return whether templates may change, as a user's, and are checked before each use."""
    return not _content(templates).own


@lru_cache(maxsize=256)
def _compiled(name: str, digest: str) -> Template:
    """Return a compiled template; `digest` distinguishes versions of it and of its includes."""
    # Undefined names must not render as text into a kernel.
    folders = [str(folder) for folder in _folders(name)]
    lookup = TemplateLookup(folders, strict_undefined=True, filesystem_checks=False)
    return lookup.get_template(f"/{Path(name).name if Path(name).is_absolute() else name}")


def _declared(template: Template) -> tuple[set[str], set[str]]:
    """Return the names that `<%page args>` declares: all, and those without a default."""
    parameters = inspect.signature(template.module.render_body).parameters.values()
    named = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "context"]
    return {p.name for p in named}, {p.name for p in named if p.default is p.empty}


@contextmanager
def _build_errors(template: str) -> Iterator[None]:
    """Convert exceptions of Mako to errors that name the template."""
    try:
        yield
    except BuildError:
        raise
    except NameError as error:
        hint = "the line <%page args=...> declares what a template takes"
        raise BuildError(f"template {template} did not render: {error}; {hint}") from error
    except (MakoException, OSError) as error:
        raise BuildError(f"template {template} did not render: {error}") from error
    except Exception as error:
        log = text_error_template().render_unicode()
        raise BuildError(f"template {template} failed: {error!r}", log=log) from error


def declared(template: str) -> tuple[set[str], set[str]]:
    """Return the names that ``<%page args>`` declares: all, and those without a default.

    Raises
    ------
    BuildError
        If the template is missing or malformed.
    """
    with _build_errors(template):
        return _declared(_compiled(template, kernel_digest((template,))))


def render(template: str, params: Mapping[str, Any]) -> Source:
    """Render a template with exactly the arguments that it declares.

    Parameters
    ----------
    template : str
        Path below ``clkernels/``, or an absolute path for a user's file, which is not
        rendered if its name does not end in ``.mako``.
    params : mapping
        Value of every name in the template's ``<%page args="..."/>``.

    Raises
    ------
    BuildError
        If the template is missing or malformed, an argument is missing, unknown,
        or a name in the body is not declared.
    """
    with _build_errors(template):
        path = Path(template)
        if path.is_absolute() and path.suffix != ".mako":
            return Source(template, path.read_text(encoding="utf-8"))
        compiled = _compiled(template, kernel_digest((template,)))
        known, required = _declared(compiled)
        missing, unknown = sorted(required - set(params)), sorted(set(params) - known)
        if missing or unknown:
            problems = [f"missing {', '.join(missing)}"] if missing else []
            problems += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise BuildError(f"template {template}: arguments {' and '.join(problems)}")
        return Source(template, compiled.render_unicode(**params))
