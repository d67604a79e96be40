"""Crossovers by bisection, with a measure that knows the times: no device."""

from dataclasses import replace

import pytest
from comparison_rows import row

from opencl_lab.lab.engine.crossings import CLOSE, CrossoverSearch
from opencl_lab.lab.engine.explore import Exploration
from opencl_lab.lab.measuring.samples import Times

OURS = "opencl:x"


def searched(measure, least, greatest):
    found = CrossoverSearch(least, greatest)
    assert Exploration(measure).run(found.points()) == "complete"
    return found


class KnownTimes:
    """Times as functions of the size, with a spread around each; notes what it was asked."""

    def __init__(self, spread=1.0, **times):
        self.spread, self.times = spread, {name.replace("_", ":"): t for name, t in times.items()}
        self.asked = []

    def __call__(self, look):
        size, references = look
        self.asked.append((size, references))
        names = list(self.times) if references is None else [OURS, *references]
        return [self.row(name, self.times[name](size)) for name in names]

    def row(self, name, took):
        if took is None:
            return replace(row(name, status="unavailable"), algorithm=name, total_ms=None)
        times = Times(took, took / self.spread, took * self.spread, 5)
        return replace(row(name), algorithm=name, total_ms=times)

    def search(self, least=4, greatest=2**20):
        return searched(self, least, greatest)

    @property
    def sizes(self):
        return [size for size, _ in self.asked]


def ours(size):
    return 10 + size / 100


def test_a_crossover_is_found_to_within_five_per_cent_and_without_a_grid():
    machine = KnownTimes(opencl_x=ours, c_seq=lambda n: n / 10)  # equal at 111.1
    found = machine.search()
    (pair,) = found.pairs
    assert pair.crossover().size == pytest.approx(1000 / 9, rel=CLOSE - 1)
    assert len(machine.asked) < 12 and len(set(machine.sizes)) == len(machine.sizes)
    assert max(machine.sizes) == 2**20  # where it was looked at again
    assert [size for size, _ in found.series] == sorted(machine.sizes)


def test_what_is_within_noise_is_said_and_its_end_is_found():
    machine = KnownTimes(1.2, opencl_x=lambda n: 100.0, c_seq=lambda n: float(n))
    (pair,) = machine.search(1, 10_000).pairs
    found = pair.crossover()
    assert found.size == pytest.approx(144, rel=0.05) and found.size in machine.sizes
    assert max(found.level) < found.size <= max(found.level) * CLOSE + 1


def test_a_reference_that_nobody_waits_for_is_not_tried_at_larger_sizes():
    machine = KnownTimes(opencl_x=ours, c_seq=lambda n: n / 10 if n < 1000 else None)
    (pair,) = machine.search().pairs
    assert pair.crossover().size == pytest.approx(1000 / 9, rel=0.05)
    assert sum(size >= 1000 for size in machine.sizes) == 1 and pair.ended
    machine = KnownTimes(opencl_x=ours, c_seq=lambda n: n / 10 if n < 50 else None)
    (pair,) = machine.search().pairs
    assert pair.crossover().size is None and max(pair.rows) < 50


def test_what_fails_at_a_size_between_is_not_tried_again():
    """Such as an algorithm that does not support all sizes."""
    gap = range(60, 200)
    machine = KnownTimes(opencl_x=lambda n: None if n in gap else ours(n), c_seq=lambda n: n / 10)
    (pair,) = machine.search().pairs
    assert pair.ended and len(set(machine.sizes)) == len(machine.sizes) < 12
    assert not set(pair.rows) & set(gap)


def test_what_is_missing_and_other_sides_make_no_pair():
    machine = KnownTimes(opencl_x=ours, c_seq=lambda n: None)
    assert machine.search().pairs == [] and machine.asked == [(4, None)]

    def measure(look):
        return [row(OURS), replace(row("cupy@device"), data="device")]

    found = searched(measure, 4, 8)
    assert found.pairs == [] and len(found.series) == 1
