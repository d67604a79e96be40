"""Records of whole search spaces, on which strategies are replayed.

A file has the parameters with their values, and a row for each configuration: the indices of its
values, the time in milliseconds, null if it failed, and its traits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from opencl_lab.core.space import Config, Parameter, SearchSpace, Value
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points

__all__ = ["Recorded"]

SIGNIFICANT = 5


@dataclass(frozen=True)
class Recorded:
    """The evaluations of all configurations of a space; the built-in one comes first.

    Parameters
    ----------
    about : mapping
        What was tuned, and on which device.
    values : mapping
        Each parameter's values.
    evaluations : list of Evaluation
    traits : mapping, optional
        Of each configuration; see `opencl_lab.lab.tuning.prune`.
    """

    about: Mapping[str, Any]
    values: Mapping[str, tuple[Value, ...]]
    evaluations: list[Evaluation]
    traits: Mapping[Config, tuple[float, ...]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the record; times with five digits."""
        named = {name: list(values) for name, values in self.values.items()}
        for item in self.evaluations:  # the built-in one may have values of its own
            for name, value in item.config.items():
                if value not in named[name]:
                    named[name].append(value)
        rows = [
            [
                [named[name].index(item.config[name]) for name in named],
                _short(item.time_ms),
                [round(trait, 2) for trait in self.traits.get(item.config, ())],
            ]
            for item in self.evaluations
        ]
        head = {"about": dict(self.about), "values": named}
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        text = json.dumps(head)[:-1] + ', "rows": [\n' + lines + "\n]}\n"
        path.write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Return what `write` wrote."""
        content = json.loads(path.read_text(encoding="utf-8"))
        values = {name: tuple(listed) for name, listed in content["values"].items()}
        evaluations = []
        found: dict[Config, tuple[float, ...]] = {}
        for places, milliseconds, traits in content["rows"]:
            config = Config(
                {name: values[name][place] for name, place in zip(values, places, strict=True)}
            )
            found[config] = tuple(traits)
            evaluations.append(
                Evaluation(config, "runtime", "it failed")
                if milliseconds is None
                else Evaluation(config, "correct", times_ms=(milliseconds,))
            )
        return cls(content["about"], values, evaluations, found)

    def points(self) -> Points:
        """Return the recorded configurations as the points of a space, from the built-in one."""
        known = {item.config for item in self.evaluations}
        space = SearchSpace(
            tuple(Parameter(name, values, name) for name, values in self.values.items())
        )

        def refusal(config: Config) -> str | None:
            return None if config in known else "not in the record"

        starts = (self.evaluations[0].config,)
        return Points(space, starts, refusal, traits=lambda config: self.traits.get(config, ()))

    def found(self, strategy: Any, seed: int, questions: int, enough: float = 0.0) -> list[float]:
        """Return the best time so far after each of so many questions of a strategy.

        Parameters
        ----------
        strategy : Strategy
        seed : int
        questions : int
            Configurations asked for, each counted once.
        enough : float
            A time in milliseconds that ends it.
        """
        answers = {item.config: item for item in self.evaluations}
        best: dict[Config, float] = {}
        for config in islice(
            _asked(strategy(self.points(), Random(seed)), answers), 50 * questions
        ):
            if len(best) >= questions and config not in best:
                break
            lowest = min(answers[config].time_ms, *best.values(), math.inf)
            best.setdefault(config, lowest)
            if lowest <= enough:
                break
        return list(best.values())


def _asked(questions: Any, answers: Mapping[Config, Evaluation]) -> Any:
    """Yield what a strategy asks for, first choices alone, and answer it."""
    try:
        asked = next(questions)
        while True:
            config = asked if isinstance(asked, Config) else asked[0]
            yield config
            asked = questions.send(answers[config])
    except StopIteration:
        return
    finally:
        questions.close()


def _short(milliseconds: float) -> float | None:
    return float(f"{milliseconds:.{SIGNIFICANT}g}") if math.isfinite(milliseconds) else None
