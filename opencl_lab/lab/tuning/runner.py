"""What a tuner needs of whatever evaluates configurations, a sandbox or a recorded run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from opencl_lab.core.space import Config
from opencl_lab.lab.tuning.evaluation import Evaluation

__all__ = ["Replay", "Runner"]


class Runner(Protocol):
    """Something that evaluates configurations."""

    @property
    def built_ahead(self) -> int:
        """How many configurations were built before they were asked for."""
        ...

    @property
    def trouble(self) -> str:
        """Why nothing is built ahead any more; empty if all is well."""
        ...

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each phase has taken, all configurations together."""
        ...

    def want(self, configs: Sequence[Config]) -> None:
        """Begin to make these ready, and nothing else."""
        ...

    def complete(self, config: Config) -> bool:
        """Return whether a configuration is ready to be proved; if not, it is made so soon."""
        ...

    def choose(self, configs: Sequence[Config], seconds: float, whole: bool = False) -> Config:
        """Return which of these to evaluate now, and make the others ready meanwhile.

        Parameters
        ----------
        configs : sequence of Config
            The most wanted first.
        seconds : float
            Time left to the tuner.
        whole : bool
            Whether to prove it, not just to evaluate it.
        """
        ...

    def evaluate(self, config: Config, best_ms: float, seconds: float) -> Evaluation | None:
        """Check and time a configuration.

        Parameters
        ----------
        config : Config
        best_ms : float
            Time of the best so far; what is clearly slower needs no more than one run.
        seconds : float
            Time left to the tuner.

        Returns
        -------
        Evaluation or None
            None if time ran out before there was a result.
        """
        ...

    def prove(self, config: Config, seconds: float) -> Evaluation | None:
        """Evaluate a configuration with all check cases, so that it may win."""
        ...

    def again(self, config: Config, seconds: float) -> Evaluation | None:
        """Time a configuration a few times more, for the finals."""
        ...

    def refused(self) -> list[Evaluation]:
        """Return what is known not to build, whether it was asked for or not."""
        ...

    def close(self) -> None:
        """Free what was taken."""
        ...


class Replay:
    """Answers from a recorded run, so that strategies and tuner can be tried with no device.

    Parameters
    ----------
    evaluations : iterable of Evaluation
        What to answer. Anything else counts as not allowed.
    """

    def __init__(self, evaluations: list[Evaluation]):
        self._recorded = {evaluation.config: evaluation for evaluation in evaluations}
        self.asked: list[Config] = []

    built_ahead, trouble = 0, ""
    seconds: Mapping[str, float] = MappingProxyType({})

    def want(self, configs: Sequence[Config]) -> None:
        """Nothing is to be made ready."""

    def complete(self, config: Config) -> bool:
        """Return that it is."""
        return True

    def choose(self, configs: Sequence[Config], seconds: float, whole: bool = False) -> Config:
        """Return the first."""
        return configs[0]

    def evaluate(self, config: Config, best_ms: float, seconds: float) -> Evaluation | None:
        """Return what was recorded."""
        self.asked.append(config)
        unknown = Evaluation(config, "constraints", "not in the recorded run")
        return self._recorded.get(config, unknown)

    def prove(self, config: Config, seconds: float) -> Evaluation | None:
        """Return what was recorded."""
        return self._recorded[config]

    def again(self, config: Config, seconds: float) -> Evaluation | None:
        """Return what was recorded."""
        return self._recorded[config]

    def refused(self) -> list[Evaluation]:
        """Nothing is known before it is asked for."""
        return []

    def close(self) -> None:
        """Nothing was taken."""
