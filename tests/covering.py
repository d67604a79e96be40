"""Few configurations that together have every value of a space, and every two of its ends.

A covering array of strength two over the first and the last value of each parameter, and of
strength one over all values. Most faults show themselves by one value or by two (D. R. Kuhn,
D. R. Wallace, A. M. Gallo, "Software fault interactions and implications for software testing",
IEEE TSE 30(6), 2004). What may be combined is known by constraints and by plans alone, so it is
greedy over points that the device can run: each that is chosen has the most of what was missing.
"""

from __future__ import annotations

import itertools
import random

from opencl_lab.errors import InvalidConfig
from opencl_lab.plan import check_plan

CORNERS = 1000
ANYWHERE = 300


def feasible(algorithm, problem, config, device):
    """Return whether the space, the plan and the device allow a configuration."""
    if algorithm.space.violation(config) is not None:
        return False
    try:
        check_plan(algorithm.plan(problem, config, device), device)
    except InvalidConfig:
        return False
    return True


def candidates(algorithm, problem, device, seed=1):
    """Yield points of the space: near the default one, corners, and any."""
    default = algorithm.default_config(problem, device)
    parameters = algorithm.space.parameters
    source = random.Random(seed)
    for parameter in parameters:
        for value in parameter.values:
            yield default.replace(**{parameter.name: value})
    ends = [(item.values[0], item.values[-1]) for item in parameters]
    values = [item.values for item in parameters]
    for choices, count in ((ends, CORNERS), (values, ANYWHERE)):
        for _ in range(count):
            point = (source.choice(each) for each in choices)
            yield default.replace(**dict(zip(algorithm.space.names, point, strict=True)))


def goals_of(case, config, parameters):
    """Return what a case and a configuration cover: values, pairs of ends, and ends of the case."""
    values = [(item.name, config[item.name]) for item in parameters]
    ends = [
        pair
        for pair, item in zip(values, parameters, strict=True)
        if pair[1] in (item.values[0], item.values[-1])
    ]
    return {*values, *itertools.combinations([("case", case), *ends], 2)}


def covering(algorithm, problems, device):
    """Return few pairs of a case and a configuration that cover all that can be covered.

    Parameters
    ----------
    problems : dict
        A problem for each case. The default configurations of all of them are left out, and
        count as covered.
    """
    parameters, pool, covered = algorithm.space.parameters, {}, set()
    for case, problem in problems.items():
        default = algorithm.default_config(problem, device)
        covered |= goals_of(case, default, parameters)
        for config in dict.fromkeys(candidates(algorithm, problem, device)):
            if config != default and feasible(algorithm, problem, config, device):
                pool[case, config] = goals_of(case, config, parameters)
    missing = set().union(*pool.values()) - covered
    chosen = []
    while missing:
        best = max(pool, key=lambda point: len(pool[point] & missing))
        chosen.append(best)
        missing -= pool[best]
    return chosen
