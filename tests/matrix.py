"""The cases of every operation; a new operation joins the matrix with one row of `ROWS`.

`test_matrix.py` crosses each row with the algorithms of the operation, with the
devices under test and with configurations: the default one, corners of the
space, and a seeded sample. Sizes around the parameters of the default
configuration (tile - 1, tile, tile + 1) are added there, for every operation.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opencl_lab.errors import InvalidConfig
from opencl_lab.operations.sort import KEY_TYPES, ORDERS, SortProblem
from opencl_lab.plan import check_plan

MAX_CORNERS = 32
SAMPLE = 8
TRIES = 2000


@dataclass(frozen=True)
class Case:
    """One problem with its data.

    Parameters
    ----------
    name : str
    options : mapping
        Options of the operation, those about the data included.
    arrays : callable, optional
        ``arrays(rng)`` gives a user's arrays, for `Operation.problem_of`; without
        it `Operation.generate` makes the inputs.
    build : callable, optional
        ``build(rng)`` gives a problem that options cannot describe, its inputs
        and its expected outputs; those must be met exactly.
    sweep : bool
        Also run with the corners and the sample of configurations.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    arrays: Callable[[np.random.Generator], dict[str, np.ndarray]] | None = None
    build: Callable[[np.random.Generator], tuple[Any, dict, dict]] | None = None
    sweep: bool = False

    def make(self, operation, seed=7):
        """Return the problem, its inputs, and the expected outputs."""
        rng = np.random.default_rng(seed)
        if self.build is not None:
            return self.build(rng)
        if self.arrays is not None:
            problem, inputs = operation.problem_of(self.arrays(rng), **self.options)
        else:
            problem = operation.problem(**self.options)
            inputs = operation.generate(problem, seed, **self.options)
        return problem, inputs, operation.expected(problem, inputs)


def around_parameters(operation, algorithm, device):
    """Return cases of the sizes at which the default configuration changes its ways."""
    config = algorithm.default_config(operation.problem(), device)
    values = {value for value in config.values() if type(value) is int and 2 <= value <= 20_000}
    sizes = {value + step for value in values for step in (-1, 0, 1)}
    return [Case(f"edge-{size}", {operation.size_option: size}) for size in sorted(sizes)]


def feasible(algorithm, problem, config, device):
    """Return whether the space, the plan and the device allow a configuration."""
    if algorithm.space.violation(config) is not None:
        return False
    try:
        check_plan(algorithm.plan(problem, config, device), device)
    except InvalidConfig:
        return False
    return True


def corners(algorithm, problem, device):
    """Return feasible points whose parameters all have their first or their last value."""
    names = algorithm.space.names
    ends = [
        tuple(dict.fromkeys((parameter.values[0], parameter.values[-1])))
        for parameter in algorithm.space.parameters
    ]
    default = algorithm.default_config(problem, device)
    points = list(itertools.islice(itertools.product(*ends), 1 << 16))
    random.Random(1).shuffle(points)
    found = (default.replace(**dict(zip(names, point, strict=True))) for point in points[:TRIES])
    allowed = (config for config in found if feasible(algorithm, problem, config, device))
    return list(itertools.islice(allowed, MAX_CORNERS))


def sample(algorithm, problem, device, seed=2):
    """Return feasible points drawn from the whole space."""
    source = random.Random(seed)
    default = algorithm.default_config(problem, device)
    found = {}
    for _ in range(TRIES):
        point = {item.name: source.choice(item.values) for item in algorithm.space.parameters}
        config = default.replace(**point)
        if len(found) < SAMPLE and feasible(algorithm, problem, config, device):
            found[config] = None
    return list(found)


def _floats(rng):
    """Numbers among NaN, infinities, both zeros and subnormals."""
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.0]
    keys = rng.standard_normal(6_001)
    places = rng.random(keys.size) < 0.5
    keys[places] = rng.choice(special, np.count_nonzero(places))
    return keys


def _argsort(rng):
    keys = rng.integers(0, 40, (2, 3_001)).astype(np.float32)
    keys[rng.random(keys.shape) < 0.1] = np.nan
    problem = SortProblem(3_001, keys.dtype, rows=2, indices=True)
    order = np.argsort(keys, axis=-1, kind="stable")
    return problem, {"keys": keys}, {"sorted_values": order}


def _pairs(rng):
    keys = rng.integers(0, 40, (1, 5_003)).astype(np.int16)
    values = rng.integers(0, 256, (1, 5_003 * 8), np.uint8).view("V8")
    problem = SortProblem(5_003, keys.dtype, descending=True, value_bytes=8)
    order = np.argsort(-keys, axis=-1, kind="stable")
    expected = {
        "sorted": np.take_along_axis(keys, order, -1),
        "sorted_values": np.take_along_axis(values, order, -1),
    }
    return problem, {"keys": keys, "values": values}, expected


SIZES = (0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 8_191, 8_192, 8_193, 50_000, 1_000_003)

ROWS: dict[str, list[Case]] = {
    "sort": [
        *(Case(f"n-{n}", {"n": n}) for n in SIZES),
        *(Case(f"order-{order}", {"n": 50_000, "order": order}) for order in ORDERS),
        *(Case(f"type-{name}", {"n": 5_001, "dtype": name}) for name in KEY_TYPES),
        *(
            Case(f"down-{name}", {"n": 5_001, "dtype": name, "descending": True})
            for name in ("uint8", "int32", "float32")
        ),
        Case("rows", arrays=lambda rng: {"keys": rng.integers(0, 99, (5, 7, 257), np.int32)}),
        Case("special-float32", arrays=lambda rng: {"keys": _floats(rng).astype(np.float32)}),
        Case("special-float64", {"descending": True}, arrays=lambda rng: {"keys": _floats(rng)}),
        Case("sweep", {"n": 5_003, "order": "few-unique"}, sweep=True),
        Case("argsort", build=_argsort, sweep=True),
        Case("pairs", build=_pairs),
    ],
}
