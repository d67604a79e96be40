"""Docstrings of public names tell the parameters that are there; the tool notices others."""

import runpy
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[1] / "tools/api_reference.py"))


@pytest.mark.parametrize("name", [*TOOL["MODULES"], *TOOL["EXPORTED"]])
def test_docstrings_are_complete(name):
    assert list(TOOL["complaints"](import_module(name))) == []


def module_with(docstring):
    def function(one, *, two=2):
        pass

    function.__doc__ = docstring
    module = ModuleType("planted", "A module.")
    module.__all__ = ["function"]
    module.function = function
    return module


@pytest.mark.parametrize(
    ("docstring", "said"),
    [
        (None, "no docstring"),
        ("Do.\n\nParameters\n----------\none : int\n", "'two' is not told"),
        (
            "Do.\n\nParameters\n----------\none, two, three : int\n\nReturns\n-------\nx\n",
            "'three'",
        ),
    ],
)
def test_wrong_docstrings_are_noticed(docstring, said):
    (sentence,) = TOOL["complaints"](module_with(docstring))
    assert said in sentence
