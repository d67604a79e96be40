"""Which tests the default suite leaves to the full one, whose tests are marked `full`.

A test marked `full` is one of corners, of every combination, of processes of its own, or of a long
search. Of a test marked ``few`` the default suite runs cases that together have each value of each
parameter, and of one marked ``few(most)`` at most so many of these; the other cases are marked
`full` here. With ``--every N`` one in N of a test's cases marked `full` is run, beginning with the
first one, or after N if the default suite has few cases of the test.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

import pytest


def values_of(name, value):
    """Yield the values of a case with where they stand; those of options, and of tuples, apart."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield name, key, repr(item)
    elif isinstance(value, tuple | list):
        for place, item in enumerate(value):
            yield name, place, repr(item)
    else:
        yield name, None, repr(value)


def few(cases, most=None):
    """Return the indices of few cases that have all values.

    Parameters
    ----------
    cases : list of dict
        The parameters of each case, by their names.
    most : int, optional
        The largest number of cases: so many of these, evenly spread.
    """
    having = [
        {item for name, value in case.items() for item in values_of(name, value)} for case in cases
    ]
    missing, chosen = set().union(*having), []
    while missing:
        best = max(range(len(cases)), key=lambda index: len(having[index] & missing))
        chosen.append(best)
        missing -= having[best]
    if most is None or most >= len(chosen):
        return chosen
    return [chosen[(2 * number + 1) * len(chosen) // (2 * most)] for number in range(most)]


def test_of(item):
    """Return the name of the test of which an item is a case."""
    return item.nodeid.partition("[")[0]


def mark_others(items):
    """Mark the cases of tests with few of them in the default suite, but for those few."""
    marked = [item for item in items if item.get_closest_marker("few")]
    for _, group in itertools.groupby(marked, key=test_of):
        tests = list(group)
        marker = tests[0].get_closest_marker("few")
        chosen = few([item.callspec.params for item in tests], *marker.args)
        for index, item in enumerate(tests):
            if index not in chosen:
                item.add_marker(pytest.mark.full)


def thin_out(config, items):
    """Leave out all but one in so many of each test's cases that are marked `full`.

    The few cases that the default suite has of a test stand for the first one.
    """
    full = {item for item in items if item.get_closest_marker("full")}
    few_of_default = (item for item in items if item.get_closest_marker("few") and item not in full)
    left_out, seen = [], Counter({test_of(item): 1 for item in few_of_default})
    for item in items:
        if item in full:
            if seen[test_of(item)] % config.option.every:
                left_out.append(item)
            seen[test_of(item)] += 1
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=left_out)


def select(config, items):
    """Leave out what is marked `full`, unless marks are chosen by ``-m``, or a test by its name."""
    mark_others(items)
    if config.option.every > 1:
        thin_out(config, items)
    if config.option.markexpr or any("::" in name for name in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    items[:] = [item for item in items if not item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
