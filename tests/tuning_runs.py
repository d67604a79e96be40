"""Recorded runs of the tuner."""

from opencl_lab.core.device import Capabilities, Device
from opencl_lab.lab.tuning.evaluation import Evaluation
from opencl_lab.lab.tuning.prune import Points
from opencl_lab.lab.tuning.runner import Replay
from opencl_lab.lab.tuning.tuner import run_tuning

GPU = Device(
    "made up", "gpu", capabilities=Capabilities(fp64=True, max_work_group=256, local_memory=32768)
)


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


def replay(task, time_of=tile_time, **options):
    runner = Replay(record(task, time_of))
    return run_tuning(task, runner=runner, **{"budget": 1000, **options}), runner
