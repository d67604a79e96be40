"""Recorded runs of the tuner."""

from pathlib import Path

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.engine.journal import read_journal
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.journal import evaluations_of, journal_of
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.tuner import SearchOptions, run_tuning

GPU = Device(
    "made up", "gpu", capabilities=Capabilities(fp64=True, max_work_group=256, local_memory=32768)
)


class Replay:
    """Answers from a recorded run, in the place of a `Sandbox`."""

    built = restarts = 0
    trouble = ""

    def __init__(self, evaluations):
        self._recorded = {evaluation.config: evaluation for evaluation in evaluations}
        self.asked = []
        self.ahead = self  # nothing is built

    def want(self, configs):
        pass

    def complete(self, config):
        return True

    def choose(self, configs, seconds, whole=False):
        return configs[0]

    def evaluate(self, config, best_ms, seconds):
        self.asked.append(config)
        unknown = Evaluation(config, "constraints", "not in the recorded run")
        return self._recorded.get(config, unknown)

    def prove(self, config, seconds):
        return self._recorded[config]

    def again(self, config, seconds):
        return self._recorded[config]

    def refused(self):
        return []

    def close(self):
        pass


def record(task, time_of, reason=""):
    """Return an evaluation of every configuration that the device can run."""
    algorithm, problem = task.algorithm, task.problem
    default = algorithm.default_config(problem, GPU)
    evaluations = []
    for config in (default, *Points(algorithm.space, (default,))):
        time = time_of(config)
        if time is None:
            evaluations.append(Evaluation(config, "runtime", reason))
        else:
            evaluations.append(Evaluation(config, "correct", times_ms=(time, time, 1.5 * time)))
    return evaluations


def tile_time(config):
    return 1.0 + abs(config.integer("TILE") - 16) + abs(config.integer("UNROLL") - 4) / 10


def tuned_by(sandbox, task, progress=None, **options):
    """Tune with what answers in the place of a sandbox."""
    return run_tuning(task, SearchOptions(**options), progress, sandbox)


def replay(task, time_of=tile_time, **options):
    runner = Replay(record(task, time_of))
    return tuned_by(runner, task, **{"budget": 1000, **options}), runner


def in_journal(task):
    """Return the evaluations in the journal of a task, or in that with this path."""
    records = read_journal(task)[1] if isinstance(task, Path) else journal_of(task).records
    return evaluations_of(records)


def written(task, *evaluations):
    """Return the journal of a task with these added."""
    journal = journal_of(task)
    for evaluation in evaluations:
        journal.add({"evaluation": evaluation.as_dict()})
    return journal
