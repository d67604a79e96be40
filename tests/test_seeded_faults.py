"""The tool that seeds faults tells which suite notices one, and leaves the tree as it was."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import seeded_faults as tool


@pytest.fixture
def tree(tmp_path):
    """A tree of one module, with a test of its number and a full one of its name."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["full"]\n')
    (tmp_path / "module.py").write_text('NUMBER, NAME, REST = 1, "one", 0\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_module.py").write_text(
        "import module, pytest\n\n"
        "def test_number():\n    assert module.NUMBER == 1\n\n"
        "@pytest.mark.full\ndef test_name():\n    assert module.NAME == 'one'\n"
    )
    return tmp_path


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "keyword", "suite", "said"),
    [
        ("= 1,", "= 2,", "", "default", "test_module.py::test_number"),
        ('"one"', '"two"', "", "full", "test_module.py::test_name"),
        ("0", "3", "", tool.NOT_NOTICED, ""),
        ("4", "5", "", tool.DOES_NOT_APPLY, "'4' occurs 0 times in module.py"),
        ("0", "3", " -k none", tool.DOES_NOT_APPLY, "test_module.py -k none runs no test"),
    ],
)
def test_who_notices_is_told(old, new, keyword, suite, said, tree):
    fault = tool.Fault("wrong", "module.py", f"test_module.py{keyword}", "1", old, new)
    assert tool.outcome(fault, tree) == (suite, said)
    assert (tree / "module.py").read_text() == 'NUMBER, NAME, REST = 1, "one", 0\n'
