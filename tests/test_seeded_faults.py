"""The texts that seeded faults replace are there, so that a change of words is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import seeded_faults  # noqa: E402


@pytest.mark.parametrize("fault", seeded_faults.FAULTS, ids=lambda fault: fault.name)
def test_faults_can_be_seeded(fault):
    found = seeded_faults.places_of(fault, ROOT)
    assert all(text.replace(fault.old, fault.new) != text for text in found.values())


def test_what_is_not_there_is_refused():
    fault = seeded_faults.Fault("none", "clkernels/sort", "no such text at all", "", "")
    with pytest.raises(seeded_faults.DoesNotApply, match="occurs 0 times"):
        seeded_faults.places_of(fault, ROOT)


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
        ("0", "3", "", seeded_faults.NOT_NOTICED, ""),
        ("4", "5", "", seeded_faults.DOES_NOT_APPLY, "'4' occurs 0 times in module.py, not 1"),
        ("0", "3", " -k none", seeded_faults.DOES_NOT_APPLY, "test_module.py -k none runs no test"),
    ],
)
def test_who_notices_is_told(old, new, keyword, suite, said, tree):
    fault = seeded_faults.Fault("wrong", "module.py", old, new, f"test_module.py{keyword}")
    outcome = seeded_faults.outcome_of(fault, tree)
    assert (outcome.suite, outcome.said) == (suite, said)
    assert (tree / "module.py").read_text() == 'NUMBER, NAME, REST = 1, "one", 0\n'
