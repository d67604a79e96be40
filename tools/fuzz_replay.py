"""Random calls of all public functions: replayed calls must equal unrecorded ones, bit by bit.

    python tools/fuzz_replay.py --seconds 600 --seed 1
    python tools/fuzz_replay.py --seed 1 --case 4711

Each case is a call and a neighbour that differs in one thing: an option, a layout, or which arrays
share memory. Both are made in turns, each time with different data, so that all but the first ones
may be replayed, and a call key that is too coarse would replay the neighbour's recorded call.
Then each is made again with the same data and nothing recorded. Types, dtypes, shapes, strides,
queues, all bytes of results and of the memory around them, inputs, which must not change, whether
`out` is returned, and errors, with their messages, are compared.

The device is that of ``OCLAB_DEVICE``. The exit status is 1 if there is a difference.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
from fuzz.command_line import run_cases
from fuzz.drawer import Drawer
from fuzz.world import Outcome, World, differences, function_of

from opencl_lab.runtime import replay

RECIPE: Any = getattr(replay, "Recipe", None) or replay._Recipe


def takes_out(name: str) -> bool:
    """Return whether a function has a parameter ``out``."""
    return "out" in inspect.signature(function_of(name)).parameters


def check(world: World, seed: int, case: int) -> list[str]:
    """Make the calls of one case; return what is wrong."""
    rng = np.random.default_rng([seed, case])
    drawer = Drawer(world, rng)
    call = drawer.call()
    if takes_out(call.function) and drawer.chance(0.5):
        replay.forget()
        plain = world.perform(call, [seed, case, 99])
        if plain.error is None:
            call = drawer.with_out(call, plain)
    other = drawer.neighbour(call)
    world.counts[call.function] += 1
    sequence = [other, call, other, call, call]
    replay.forget()
    recipes = []
    run = RECIPE.run

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        recipes.append(self)
        return run(self, *args, **kwargs)

    RECIPE.run = counting
    try:
        outcomes: list[Outcome | None] = []
        for place, one in enumerate(sequence):
            outcomes.append(world.perform(one, [seed, case, place]))
            if place == 2 and drawer.chance(0.5):
                outcomes[2] = None  # the next call may use its memory
    finally:
        RECIPE.run = run
    world.replayed[call.function] += bool(recipes)
    last = outcomes[-1]
    world.errors[call.function] += last is not None and last.error is not None
    found = []
    for place, (one, got) in enumerate(zip(sequence, outcomes, strict=True)):
        if got is None:
            continue
        late = tuple(world.content(array) for array in got.results)
        if late != got.kept[: len(late)]:
            found.append(f"call {place}: its result was changed by later calls\n{one}")
        replay.forget()
        right = world.perform(one, [seed, case, place])
        texts = "; ".join(dict.fromkeys(differences(one, got, right)))
        if texts:
            found.append(f"call {place}: {texts}\n{one}")
    return found


if __name__ == "__main__":
    sys.exit(run_cases(str(__doc__), check))
