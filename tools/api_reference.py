"""Generate the reference of the public names from their docstrings, as HTML pages.

    pip install '.[docs]' && python tools/api_reference.py build/api

They are made with pdoc, which inspects live objects, so that names imported at first use need no
special treatment, supports NumPy's docstrings, and needs no further files. The pages are not kept
in the repository, where they would soon be outdated. Errors are: any warning, a public name
without a docstring, and a docstring whose parameters differ from those of its function.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

EXPORTED = ("opencl_lab.fft", "opencl_lab.scipy_backend", "opencl_lab.signal")  # by the package
MODULES = (
    "opencl_lab",
    "opencl_lab.core.errors",
    "opencl_lab.lab.operation",
    "opencl_lab.core.plan",
    "opencl_lab.ops.solver",
    "opencl_lab.core.space",
    "opencl_lab.core.template",
)
OTHERS = "The other parameters"  # "... are those of `sort`."
SECTION = re.compile(r"^Parameters\n-{3,}\n(.*?)(?=^\w[\w ]*\n-{3,}$|\Z)", re.DOTALL | re.MULTILINE)


def complaints(module: ModuleType) -> Iterator[str]:
    """Return what is wrong with the docstrings of a module's public names, each as a sentence."""
    if not module.__doc__:
        yield f"{module.__name__} has no docstring"
    for name in module.__all__:
        value = getattr(module, name)
        where = f"{module.__name__}.{name}"
        if inspect.ismodule(value) or not callable(value):
            continue
        if not inspect.getdoc(value):
            yield f"{where} has no docstring"
        yield from (f"{where}: {text}" for text in _parameters(value))
        if inspect.isclass(value):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_") and function.__module__.startswith("opencl_lab"):
                    yield from (f"{where}.{method}: {text}" for text in _parameters(function))


def _parameters(function: object) -> Iterator[str]:
    """Return how the parameters in a docstring differ from those of its function."""
    section = SECTION.search(inspect.getdoc(function) or "")
    if section is None:
        return
    heads = re.findall(r"^(\*{0,2}\w.*?)(?: : .*)?$", section[1], re.MULTILINE)
    told = {name.strip(" *") for head in heads for name in head.split(",")}
    try:
        there = set(inspect.signature(function).parameters) - {"self"}  # type: ignore[arg-type]
    except ValueError:  # a class of C
        return
    yield from (f"it has no parameter {name!r}" for name in sorted(told - there))
    if OTHERS not in (inspect.getdoc(function) or ""):
        yield from (f"the parameter {name!r} is not told" for name in sorted(there - told))


def main(folder: Path) -> int:
    """Write the pages into a folder; return 1 if a docstring is wrong."""
    import pdoc

    warnings.simplefilter("error")
    # A checkout in the working folder hides nothing: the package is imported already.
    warnings.filterwarnings("ignore", ".*may refer to either", RuntimeWarning)
    wrong = [text for name in (*MODULES, *EXPORTED) for text in complaints(import_module(name))]
    pdoc.render.configure(docformat="numpy", show_source=False)
    pdoc.pdoc(*MODULES, output_directory=folder)
    print("\n".join(wrong) or f"{folder}: pages of {len(MODULES) + len(EXPORTED)} modules")
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/api"))
    sys.exit(main(parser.parse_args().folder))
