"""What the default suite leaves to the full one: none of the values of a parameter."""

from __future__ import annotations

from types import SimpleNamespace

import suites

TYPES, SIZES = ("int8", "float32", "float64"), (1, 7, 100, 1000)


def test_few_cases_have_each_value():
    cases = [{"dtype": dtype, "n": n} for dtype in TYPES for n in SIZES]
    chosen = [cases[index] for index in suites.few(cases)]
    assert len(chosen) == len(SIZES)
    assert {case["dtype"] for case in chosen} == set(TYPES)
    assert {case["n"] for case in chosen} == set(SIZES)


def test_options_and_tuples_have_values_of_their_own():
    cases = [
        {"options": {"a": 1, "b": 1}, "shape": (3, 5)},
        {"options": {"a": 1, "b": 2}, "shape": (3, 7)},
        {"options": {"a": 2, "b": 2}, "shape": (4, 7)},
    ]
    assert suites.few(cases) == [0, 2]


def test_at_most_so_many_are_spread_evenly():
    cases = [{"n": n} for n in range(9)]
    assert suites.few(cases) == suites.few(cases, 9) == list(range(9))
    assert suites.few(cases, 3) == [1, 4, 7]
    assert suites.few(cases, 1) == [4]


def test_true_is_not_one():
    assert len(suites.few([{"value": 1}, {"value": True}, {"value": 1}])) == 2


class Item:
    def __init__(self, nodeid, *markers):
        self.nodeid, self.markers = nodeid, markers

    def get_closest_marker(self, name):
        return name in self.markers


def test_one_in_so_many_cases_is_left():
    gone = []
    hook = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    config = SimpleNamespace(option=SimpleNamespace(every=3), hook=hook)
    items = [Item(f"many[{number}]", "full") for number in range(7)]
    items += [Item("alone", "full"), *(Item(f"always[{number}]") for number in range(2))]
    items += [
        Item("few[0]", "few"),
        *(Item(f"few[{number}]", "few", "full") for number in (1, 2, 3)),
    ]
    before = list(items)
    suites.thin_out(config, items)
    names = [item.nodeid for item in items]
    assert names[:3] == ["many[0]", "many[3]", "many[6]"]
    assert names[3:] == ["alone", "always[0]", "always[1]", "few[0]", "few[3]"]
    assert {*gone, *items} == {*before} and len(gone) + len(items) == len(before)
