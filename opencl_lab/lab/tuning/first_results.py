"""Results of the first configuration of a kernel in a file, as reference where none is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.errors import BuildError, LaunchError, OclabError
from opencl_lab.core.wording import counted
from opencl_lab.lab.measuring.poison import POISON
from opencl_lab.lab.reference.descriptor import Arrays
from opencl_lab.lab.tuning.custom import KernelOperation, place_text
from opencl_lab.lab.tuning.kernel_arguments import BoundArguments
from opencl_lab.lab.tuning.stage import Stage, WrongResult
from opencl_lab.lab.tuning.task import TuningTask

OTHER_POISON = 0x3C  # positive and not NaN in any type, so that additions to it show


def first_results(
    operation: KernelOperation[Any],
    bound: BoundArguments,
    device: Device,
    say: Callable[[str], None],
) -> Arrays:
    """Run the first configuration twice, on different contents of its outputs; return its results.

    BuildError or LaunchError is raised if it does not run, writes out of bounds, leaves elements
    unwritten, or gives different results. Each phase is reported before it begins.
    """
    task = TuningTask(operation, operation.algorithms[0].name, operation.problem(), device)
    config = task.built_in
    stage = Stage(task, task.problem, config, device.queue(profiling=True))
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

    # An element that keeps both patterns was not written; one that differs depends on what was
    # there before.
    first, second = results(POISON), results(OTHER_POISON)
    for name in first:
        if name in bound.inout:
            continue
        result, other = bound.counted(name, first[name]), bound.counted(name, second[name])
        missed = _holds(result, POISON) & _holds(other, OTHER_POISON)
        if missed.any():
            place = place_text(name, np.flatnonzero(missed)[0], result.shape)
            raise LaunchError(
                f"{what} leaves {counted(int(missed.sum()), 'element')} unwritten, the first "
                f"of them {place}; if the array is only read, declare it const or give its "
                f"data; {_in_place(name)}"
            )
    difference = operation.compare(task.problem, bound.data, first, second)
    if not difference.ok:
        unknown = [name for name in first if name not in bound.inout]
        advice = _in_place(*unknown) if unknown else "a larger tolerance may allow that"
        raise LaunchError(f"{what} gives different results each time ({difference}); {advice}")
    return first


def _in_place(*names: str) -> str:
    """Return advice for a kernel that reads arrays that it writes."""
    options = " ".join(f"--arg {name}=inout:..." for name in names)
    return (
        f"if the kernel adds to what is there, pass inout={list(names)}, or {options}: "
        "before each run it then finds what you give"
    )


def _holds(result: np.ndarray[Any, Any], pattern: int) -> np.ndarray[Any, Any]:
    """Return which elements still hold the poison."""
    values = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
    return np.asarray(np.all(values.reshape(-1, result.dtype.itemsize) == pattern, axis=1))
