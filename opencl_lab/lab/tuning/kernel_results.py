"""The results of a kernel in a file: comparing them, and those of the first configuration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opencl_lab.core.errors import BuildError, LaunchError, OclabError
from opencl_lab.lab.measuring.difference import Difference, errors_of, shares_of_bound
from opencl_lab.lab.measuring.poison import POISON
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.tuning.stage import Stage, WrongResult
from opencl_lab.lab.tuning.task import TuningTask

OTHER_POISON = 0x3C  # positive and not NaN in any type, so that additions to it show


def compare_outputs(expected: Arrays, actual: Arrays, tolerance: float) -> Difference:
    """Compare every output; NaN equals NaN.

    `tolerance` is relative to the largest magnitude in the expected output; 0 demands equality,
    and integers must always be equal.
    """
    max_abs = max_rel = worst = 0.0
    first_wrong = ""
    for name, right in expected.items():
        given = actual[name]
        exact = not tolerance or given.dtype.kind not in "fc"
        error, relative = errors_of(right.astype(np.complex128), given.astype(np.complex128))
        magnitude = np.abs(right[np.isfinite(right)]).max(initial=0)
        # Large integers differ where their nearest floating-point numbers do not.
        equal = (right == given) | ((right != right) & (given != given))
        far = np.where(equal, 0.0, np.inf) if exact else error
        shares = shares_of_bound(far, tolerance * magnitude)
        worst = max(worst, float(shares.max(initial=0)))
        if not first_wrong and (shares > 1).any():
            place = np.flatnonzero(shares > 1)[0]
            indices = ", ".join(map(str, np.unravel_index(place, right.shape)))
            values = str(given.flat[place]), str(right.flat[place])  # as short as their type
            first_wrong = f"{name}[{indices}] is {values[0]}, not {values[1]}"
        max_abs = max(max_abs, float(error.max(initial=0)))
        max_rel = max(max_rel, float(relative.max(initial=0)))
    return Difference(max_abs, max_rel, error_over_bound=worst, first_wrong=first_wrong)


def first_results(task: TuningTask, say: Callable[[str], None]) -> Arrays:
    """Run the first configuration twice, on different contents of its outputs; return its results.

    BuildError or LaunchError is raised if it does not run, writes out of bounds, or gives different
    results, as it does if it leaves elements unwritten. Each phase is reported before it begins.
    """
    operation, config = task.operation, task.built_in
    stage = Stage(task, task.problem, config, task.device.queue(profiling=True))
    what = f"the first configuration {config}, with which all others are compared,"

    def results(pattern: int) -> Arrays:
        stage.poison(pattern)
        say("launching")
        try:
            stage.run(stage.build(config))
        except BuildError as error:
            reason = f"{operation.name}: {what} did not build{error.first_error}"
            raise BuildError(reason, **vars(error)) from error
        except OclabError as error:
            raise type(error)(f"{what} does not run: {error.sentence}") from error
        say("checking")
        try:
            stage.check(compared=False)
        except WrongResult as error:
            raise LaunchError(f"{what} {str(error).removeprefix('it ')}") from error
        return stage.results()

    first, second = results(POISON), results(OTHER_POISON)
    difference = operation.compare(task.problem, stage.inputs, first, second)
    if not difference.ok:
        raise LaunchError(
            f"{what} gives different results each time ({difference}): does it leave elements "
            "unwritten, or depend on what was there? Declare arrays const that it only reads, and "
            "pass those that it adds to as inout=[NAME], or --arg NAME=inout:...: before each run "
            "it then finds what you give"
        )
    return first
