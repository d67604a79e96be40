"""The texts that seeded faults replace are there, so that a change of words is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import mutation_check  # noqa: E402


@pytest.mark.parametrize("fault", mutation_check.FAULTS, ids=lambda fault: fault.name)
def test_faults_can_be_seeded(fault):
    found = mutation_check.places_of(fault, ROOT)
    assert all(text.replace(fault.old, fault.new) != text for text in found.values())


def test_what_is_not_there_is_refused():
    fault = mutation_check.Fault("none", "clkernels/sort", "no such text at all", "", "")
    with pytest.raises(mutation_check.CannotSeed, match="occurs 0 times"):
        mutation_check.places_of(fault, ROOT)
