"""An operation with planted faults, for the tests of the tuner; the worker imports it, too."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencl_lab.core import memory
from opencl_lab.core.plan import Buffer, Launch, Plan, Work, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.lab.operation import Operation, Option
from opencl_lab.lab.tuning.kernel_results import compare_outputs
from opencl_lab.ops.solver import Algorithm, Problem, Solver

TEMPLATE = str(Path(__file__).parent / "kernels" / "planted.cl.mako")
FAULTS = (
    "none", "wrong", "lazy", "syntax", "missing", "crash", "hang",
    "before", "after", "far", "input", "spoil", "spoil-large", "later", "slow",
)  # fmt: skip
FLOAT = np.dtype(np.float32)
TOO_LARGE = 1 << 20


@dataclass(frozen=True)
class PlantedProblem(Problem):
    sizes = ("n",)
    layout = ()

    n: int = 5000

    @property
    def work(self):
        return Work(flops=float(self.n), bytes=8.0 * self.n)


def plan(problem, config, device):
    wg_size = config.integer("WG_SIZE")
    params = {**config}
    if config["FAULT"] == "missing":
        del params["FAULT"]
    return Plan(
        (
            Buffer("source", "in", (problem.n,), FLOAT),
            Buffer("doubled", "out", (problem.n,), FLOAT),
        ),
        (
            Launch(
                template=TEMPLATE,
                kernel="planted",
                params=params,
                global_size=(round_up(problem.n, wg_size),),
                local_size=(wg_size,),
                arguments={"source": "source", "doubled": "doubled", "n": np.int32(problem.n)},
            ),
        ),
    )


class PlantedAlgorithm(Algorithm):
    name = "planted"
    replanned = True

    def __init__(self, faults):
        self.templates = (TEMPLATE,)
        self.space = SearchSpace(
            (
                Parameter("FAULT", faults, "how it fails"),
                Parameter("WG_SIZE", (1, 4, 16, 64, TOO_LARGE), "items in a work-group"),
            ),
            (
                Constraint(
                    lambda c: c["FAULT"] == "none" or c.integer("WG_SIZE") == 16,
                    "faults need no more than one work-group size",
                ),
            ),
        )
        self._plan = plan

    def default_config(self, problem, device):
        return Config(FAULT="none", WG_SIZE=16)

    def plan(self, problem, config, device):
        return self._plan(problem, config, device)


class PlantedSolver(Solver):
    def __init__(self, name, faults):
        super().__init__()
        self.name, self.registry = name, {"planted": PlantedAlgorithm(faults)}


class PlantedOperation(Operation):
    """Doubles numbers; its worker finds it by its name in capitals in this module."""

    summary = "Double numbers."
    options = (Option("n", int, 5000, "numbers"),)
    size_option = "n"
    inputs = references = ()
    check_cases = ({"n": 1009},)

    def __init__(self, name, faults):
        self.solver = PlantedSolver(name, faults)

    def __reduce__(self):
        return self.name.upper()

    def problem(self, **options):
        return PlantedProblem(**options)

    def problem_of(self, arrays, **options):
        raise NotImplementedError

    def generate(self, problem, seed, **options):
        numbers = np.random.default_rng(seed).standard_normal(problem.n, dtype=np.float32)
        return {"source": numbers}

    def expected(self, problem, inputs):
        return {"doubled": 2 * inputs["source"]}

    def compare(self, problem, inputs, expected, actual):
        return compare_outputs(expected, actual, 0.0)


def make(faults, name="planted"):
    """Return the operation with these faults in its space."""
    return PlantedOperation(name, faults)


PLANTED = make(FAULTS)
HARMLESS = make(("none", "wrong", "syntax"), "harmless")


def config(fault="none", wg_size=16):
    return Config(FAULT=fault, WG_SIZE=wg_size)


def limited_group(monkeypatch, folder, limit, used=0, cached=0):
    """Put this process into a control group of the second version, within one without a limit."""
    inner = folder / "job" / "step"
    inner.mkdir(parents=True)
    (folder / "memory.max").write_text("max\n")
    (inner.parent / "memory.max").write_text(f"{limit}\n")
    (inner.parent / "memory.current").write_text(f"{used}\n")
    stat = f"anon {used - cached}\ninactive_file {cached}\n"
    (inner.parent / "memory.stat").write_text(stat)
    (inner / "memory.max").write_text("max\n")
    (folder / "groups").write_text("4:memory:/elsewhere\n0::/job/step\n")
    (folder / "meminfo").write_text("MemTotal: 9 kB\nSwapFree: 0 kB\n")
    monkeypatch.setattr(memory, "GROUPS", folder / "groups")
    monkeypatch.setattr(memory, "MEMORY", folder / "meminfo")
    files = folder / "memory.max", folder / "v1" / "memory.limit_in_bytes"
    monkeypatch.setattr(memory, "GROUP_LIMITS", files)
    monkeypatch.setattr(memory, "group_limits", memory.group_limits.__wrapped__)
