"""Strict rendering of Mako templates into OpenCL C."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mako.exceptions import MakoException, text_error_template
from mako.lookup import TemplateLookup
from mako.template import Template

from opencl_lab.errors import BuildError

__all__ = ["Source", "render"]


@dataclass(frozen=True)
class Source:
    """Rendered OpenCL C, the template it came from and the digest that names it in caches."""

    template: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def _lookup() -> TemplateLookup:
    # Undefined names must not render as text into a kernel.
    return TemplateLookup([str(files("clkernels"))], strict_undefined=True)


def _template(name: str) -> Template:
    path = Path(name)
    if not path.is_absolute():
        return _lookup().get_template(f"/{name}")
    return Template(filename=name, lookup=_lookup(), strict_undefined=True)


def _declared(template: Template) -> tuple[set[str], set[str]]:
    """Return the names that `<%page args>` declares: all, and those without a default."""
    parameters = inspect.signature(template.module.render_body).parameters.values()
    named = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "context"]
    return {p.name for p in named}, {p.name for p in named if p.default is p.empty}


def render(template: str, params: Mapping[str, Any]) -> Source:
    """Render a template with exactly the arguments that it declares.

    Parameters
    ----------
    template : str
        Path below ``clkernels/``, or an absolute path for a template of the user's own.
    params : mapping
        Value of every name in the template's ``<%page args="..."/>``.

    Raises
    ------
    BuildError
        If the template is missing or malformed, an argument is missing, unknown,
        or a name in the body is not declared.
    """
    try:
        compiled = _template(template)
        known, required = _declared(compiled)
        missing, unknown = sorted(required - set(params)), sorted(set(params) - known)
        if missing or unknown:
            problems = [f"missing {', '.join(missing)}"] if missing else []
            problems += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise BuildError(f"template {template}: arguments {' and '.join(problems)}")
        return Source(template, compiled.render_unicode(**params))
    except BuildError:
        raise
    except (MakoException, OSError, NameError) as error:
        raise BuildError(f"template {template} did not render: {error}") from error
    except Exception as error:
        log = text_error_template().render_unicode()
        raise BuildError(f"template {template} failed: {error!r}", log=log) from error
