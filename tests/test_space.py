"""Configurations and search spaces."""

from __future__ import annotations

import pickle

import pytest

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace

SPACE = SearchSpace(
    (
        Parameter("SIZE", (1, 2, 4), "a size"),
        Parameter("WIDE", (False, True), "a switch"),
        Parameter("MODE", ("a", "b"), "a word"),
    ),
    (
        Constraint(lambda c: c.integer("SIZE") > 0, "SIZE must be positive"),
        Constraint(lambda c: not c["WIDE"] or c.integer("SIZE") >= 2, "WIDE needs a SIZE of 2"),
    ),
)
DEFAULT = Config(SIZE=1, WIDE=False, MODE="a")


def test_points_of_a_space():
    points = list(SPACE.all_points())
    assert len(points) == len(set(points)) == 12
    allowed = list(SPACE)
    assert len(allowed) == 10
    assert all(SPACE.violation(config) is None for config in allowed)
    assert {config["WIDE"] for config in allowed if config["SIZE"] == 1} == {False}
    assert SPACE.names == ("SIZE", "WIDE", "MODE")


def test_check_completes_by_the_default():
    assert SPACE.check({}, DEFAULT) == DEFAULT
    assert SPACE.check({"SIZE": 2, "WIDE": True}, DEFAULT) == Config(SIZE=2, WIDE=True, MODE="a")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"SIZ": 1, "MOD": 2}, "unknown parameter MOD, SIZ; this algorithm has: SIZE, WIDE, MODE"),
        ({"SIZE": 1.0}, "SIZE must be int, not 1.0"),
        ({"SIZE": True}, "SIZE must be int, not True"),
        ({"WIDE": 1}, "WIDE must be bool, not 1"),
        ({"MODE": None}, "MODE must be str, not None"),
        ({"WIDE": True}, "is not a valid configuration: WIDE needs a SIZE of 2"),
        ({"SIZE": 0}, "SIZE must be positive"),
    ],
)
def test_check_refuses(values, message):
    with pytest.raises(InvalidConfig, match=message):
        SPACE.check(values, DEFAULT)


def test_a_config_leaves_its_hash_behind_when_it_goes_to_another_process():
    config = Config(FORM="lanes", WIDTH=8)
    before = pickle.dumps(config)
    assert hash(config) == hash(Config(WIDTH=8, FORM="lanes"))
    assert pickle.dumps(config) == before  # hashes of text are salted in every process
    assert pickle.loads(before) == config
