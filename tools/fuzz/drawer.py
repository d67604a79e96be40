"""Calls, and neighbours that differ from them in one thing, drawn by a random generator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.calls import PAIRS, Call, Data, Layout
from fuzz.makers import KEYS, MAKERS, SIZES
from fuzz.world import Outcome, World, on_device

ALIASES = ("same", "view", "shifted", "turned")


# ---------------------------------------------------------------------- drawing calls


class Drawer:
    """Draws calls by a random generator."""

    def __init__(self, world: World, rng: np.random.Generator):
        self.world = world
        self.rng = rng
        self.double = world.device.capabilities.fp64

    def chance(self, share: float) -> bool:
        """Return True in such a share of all cases."""
        return bool(self.rng.random() < share)

    def pick(self, items: Any) -> Any:
        """Return one of the items."""
        return items[int(self.rng.integers(len(items)))]

    def layout(self, ndim: int) -> Layout:
        """Draw how an array lies in memory; every second one as most arrays do."""
        order = tuple(range(ndim))
        if self.chance(0.5):
            return Layout(order, (1,) * ndim, queue=self.queue())
        if self.chance(0.5):
            order = order[::-1] if self.chance(0.6) else tuple(self.rng.permutation(ndim).tolist())
        steps = [1] * ndim
        if self.chance(0.5):
            steps = [int(self.pick((1, 1, 1, 2, 3, -1, -2))) for _ in range(ndim)]
        return Layout(
            order,
            tuple(steps),
            odd_ones=self.chance(0.2),
            offset=int(self.pick((0, 0, 1, 4))),
            shift=int(self.pick((0, 0, 0, 1))),
            swapped=self.chance(0.1),
            locked=self.chance(0.1),
            queue=self.queue(),
            pooled=self.chance(0.1),
        )

    def queue(self) -> int | None:
        """Draw the queue of a device array."""
        return self.pick((0, 0, 0, 0, 0, 1, None))

    def data(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        resident: bool,
        before: tuple[Data, ...] = (),
        share: float = 0.25,
        out: bool = False,
    ) -> Data:
        """Draw an array; a share of them lies in the memory of one of those `before`."""
        layout = self.layout(len(shape))
        if resident or out:
            steps = tuple((abs(step) if resident else step) or 1 for step in layout.steps)
            layout = replace(layout, steps=steps)
        elif self.chance(0.05) and shape:  # one element stands for many
            layout = replace(layout, steps=(0, *layout.steps[1:]))
        if resident:
            layout = replace(layout, swapped=False, locked=False, shift=0)
        alias = None
        if before and self.chance(share):
            alias = (self.pick(before).name, self.pick(ALIASES))
        wrapped = "list" if not resident and not out and self.chance(0.03) else ""
        return Data(name, shape, dtype, layout, resident, alias, wrapped)

    def shape(self, least: int = 1, most: int = 3) -> tuple[int, ...]:
        """Draw a shape of so many dimensions."""
        ndim = int(self.rng.integers(least, most + 1))
        sizes = tuple(int(self.pick(SIZES)) for _ in range(ndim))
        if ndim and self.chance(0.03):
            sizes = (*sizes[:-1], 0)
        return sizes

    def axis(self, ndim: int) -> int:
        """Draw an axis."""
        return int(self.rng.integers(-ndim, ndim)) if ndim else 0

    def dtype(self, names: Any) -> str:
        """Draw a dtype that the device can transform."""
        chosen = str(self.pick(names))
        if not self.double and chosen in ("f8", "c16", "i4", "u1", "bool", "i2"):
            chosen = "f4"
        return chosen

    def options(self, **choices: Any) -> dict[str, Any]:
        """Return some of the options, each drawn by its function."""
        return {name: draw() for name, draw in choices.items() if self.chance(0.5)}

    def call(self) -> Call:
        """Draw a call, which may be wrong."""
        maker, names = self.pick(MAKERS)
        resident = self.chance(0.6)
        call: Call = maker(self, self.pick(names), resident)
        options = dict(call.options)
        queueless = any(item.resident and item.layout.queue is None for item in call.data)
        if queueless or self.chance(0.2):
            options["queue"] = self.pick((0, 0, 1, None))
        if self.chance(0.04):
            options[self.pick(("axis", "norm", "no_such", "axes", "n"))] = self.pick((9, "x", -7))
        by_name, followed = self.chance(0.3), self.chance(0.3)
        return replace(call, options=options, by_name=by_name, followed=followed)

    def with_out(self, call: Call, right: Outcome) -> Call:
        """Return the call with an out that fits the results of a call without one, or nearly."""
        made: list[Data] = []
        several = call.function in PAIRS
        results = right.results if several else right.results[-1:]
        for place, result in enumerate(results):
            shape, dtype = tuple(result.shape), result.dtype.str[1:]
            resident = on_device(result)
            if self.chance(0.03):
                shape = (*shape, 2)
            if self.chance(0.03):
                dtype = "i2"
            if self.chance(0.02):
                resident = not resident
            name = ("out_keys", "out_values")[place] if several else "out"
            before = tuple(item for item in (*call.data, *made) if item.resident == resident)
            made.append(self.data(name, shape, dtype, resident, before, 0.4, out=True))
        return replace(call, out=tuple(made))

    def neighbour(self, call: Call) -> Call:
        """Return a call that differs in one thing."""
        data = list(call.data)
        place = int(self.rng.integers(len(data)))
        item = data[place]
        kind = self.pick(("layout", "alias", "alias", "option", "queue", "dtype", "out", "out"))
        if len(data) > 1 and self.chance(0.4):
            kind, place = "alias", len(data) - 1
            item = data[place]
        if kind == "alias" and place:
            how = None if item.alias else (data[0].name, self.pick(ALIASES))
            data[place] = replace(item, alias=how)
        elif kind == "option":
            maker = next(make for make, names in MAKERS if call.function in names)
            other = maker(self, call.function, item.resident)
            options = dict(call.options)
            for name in other.options:
                if self.chance(0.5):
                    options[name] = other.options[name]
            return replace(call, options=options)
        elif kind == "queue":
            data[place] = replace(item, layout=replace(item.layout, queue=self.queue()))
        elif kind == "dtype":
            same = [
                name for name in KEYS if np.dtype(name).itemsize == np.dtype(item.dtype).itemsize
            ]
            if same:
                data[place] = replace(item, dtype=str(self.pick(same)))
        elif kind == "out" and call.out:
            outs = list(call.out)
            chosen = int(self.rng.integers(len(outs)))
            one = outs[chosen]
            outs[chosen] = self.data(
                one.name, one.shape, one.dtype, one.resident, call.data, 0.6, out=True
            )
            return replace(call, out=tuple(outs))
        else:
            data[place] = self.data(item.name, item.shape, item.dtype, item.resident)
        return replace(call, data=tuple(data))
