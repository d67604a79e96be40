"""Few configurations that together have the values of a space, and every two of its ends.

A covering array of strength two over the first and the last value of each parameter, and of
strength one over those two and two between. Most faults show themselves by one value or by two
(D. R. Kuhn, D. R. Wallace, A. M. Gallo, "Software fault interactions and implications for software
testing", IEEE TSE 30(6), 2004). What may be combined is known by constraints and by plans alone,
so it is greedy over points that the device can run: each that is chosen has the most of what was
missing.
"""

from __future__ import annotations

import itertools
import random

from opencl_lab.core.errors import InvalidConfig
from opencl_lab.core.plan import check_plan

CORNERS = 1000
ANYWHERE = 300
SPREAD = 4
"""Values of a parameter that must occur, where it has more."""


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


def spread(values):
    """Return the first value, the last, and some between."""
    if len(values) <= SPREAD:
        return values
    return tuple(values[round(i * (len(values) - 1) / (SPREAD - 1))] for i in range(SPREAD))


def goals_of(config, parameters, strength):
    """Return what a configuration covers: values, and pairs of ends."""
    each = [((item.name, config[item.name]), item.values) for item in parameters]
    goals = {pair for pair, values in each if pair[1] in spread(values)}
    if strength > 1:
        ends = [pair for pair, values in each if pair[1] in (values[0], values[-1])]
        goals |= {*itertools.combinations(ends, 2)}
    return goals


def covering(algorithm, problem, device, strength=2):
    """Return few configurations that cover all that can be covered, without the default one.

    Parameters
    ----------
    strength : int
        Whether each value must occur, or every two ends as well.
    """
    parameters = algorithm.space.parameters
    default = algorithm.default_config(problem, device)
    pool = {
        config: goals_of(config, parameters, strength)
        for config in dict.fromkeys(candidates(algorithm, problem, device))
        if config != default and feasible(algorithm, problem, config, device)
    }
    missing = set().union(*pool.values()) - goals_of(default, parameters, strength)
    chosen = []
    while missing:
        best = max(pool, key=lambda config: len(pool[config] & missing))
        chosen.append(best)
        missing -= pool[best]
    return chosen


def dealt(algorithm, problems, device, strength=2):
    """Return pairs of a case and a configuration: all cases in turns, all configurations.

    Parameters
    ----------
    problems : dict
        A problem for each case. A case that no configuration is left for gets None, which stands
        for the default one.
    """
    waiting = list(problems)
    pairs = []
    for config in covering(algorithm, next(iter(problems.values())), device, strength):
        able = [case for case in waiting if feasible(algorithm, problems[case], config, device)]
        case = able[0] if able else next(iter(problems))
        waiting = [other for other in waiting if other != case] or list(problems)
        pairs.append((case, config))
    had = {case for case, _ in pairs}
    return pairs + [(case, None) for case in problems if case not in had]
