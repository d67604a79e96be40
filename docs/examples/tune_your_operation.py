"""Tune an operation of your own, in the full form: a moving mean of any radius and length.

Run it as a script, with the number of seconds to spend:

    python docs/examples/tune_your_operation.py 20

The same sandbox, correctness gate, journal and database serve it as serve the
operations of the package.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import opencl_lab as ol
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Buffer, Launch, Plan, Work, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.lab.tuning.custom import KernelOperation
from opencl_lab.ops.solver import Problem

TEMPLATE = str(Path(__file__).resolve().with_name("blur.cl.mako"))
FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class BlurProblem(Problem):
    """1. The problem: its sizes, whatever else changes the tuning, and the work it takes."""

    sizes = ("n",)
    layout = ("radius",)

    n: int = 1 << 20
    radius: int = 8

    def __post_init__(self):
        if self.n < 1 or self.radius < 0:
            raise InvalidProblem(f"n must be positive and radius not negative: {self}")

    @property
    def work(self):
        """The least arithmetic and memory traffic; rates and the check of times need it."""
        return Work(flops=3.0 * self.n, bytes=8.0 * self.n)


# 2. What may be varied, and what rules a combination out.
SPACE = SearchSpace(
    (
        Parameter("WG_SIZE", (1, 4, 16, 64, 256), "items in a work-group"),
        Parameter("WORK_PER_ITEM", (1, 4, 16, 64, 256, 1024), "means of one item"),
    ),
    (
        Constraint(
            lambda c: c.integer("WG_SIZE") * c.integer("WORK_PER_ITEM") <= 65536,
            "more than 65536 elements a work-group leave processors idle",
        ),
    ),
)


def plan(problem, config, device):
    """3. What to launch, as plain data: nothing here calls OpenCL."""
    span = config.integer("WG_SIZE") * config.integer("WORK_PER_ITEM")
    groups = round_up(problem.n, span) // span
    return Plan(
        buffers=(
            Buffer("source", "in", (problem.n,), FLOAT),
            Buffer("blurred", "out", (problem.n,), FLOAT),
        ),
        launches=(
            Launch(
                template=TEMPLATE,
                kernel="blur",
                params={**config, "RADIUS": problem.radius},
                global_size=(groups * config.integer("WG_SIZE"),),
                local_size=(config.integer("WG_SIZE"),),
                arguments={"source": "source", "blurred": "blurred", "n": np.int32(problem.n)},
            ),
        ),
    )


def inputs(problem, rng):
    """4. Random inputs."""
    return {"source": rng.standard_normal(problem.n, dtype=np.float32)}


def reference(problem, arrays):
    """5. The right result, by other means."""
    width = 2 * problem.radius + 1
    padded = np.pad(arrays["source"].astype(np.float64), problem.radius)
    sums = np.convolve(padded, np.ones(width), mode="valid")
    return {"blurred": (sums / width).astype(np.float32)}


# 6. All of it together.
BLUR = KernelOperation(
    "example-blur",
    problem=BlurProblem,
    template=TEMPLATE,
    space=SPACE,
    default=Config(WG_SIZE=64, WORK_PER_ITEM=1),
    plan=plan,
    inputs=inputs,
    reference=reference,
    check_cases={"n": 10_007},
    tolerance=1e-4,
)


def main(seconds):
    """Tune, and use what was found."""
    result = ol.tune(BLUR, time_limit=seconds, n=1 << 20)
    print(f"{len(result.evaluations)} configurations, failed: {result.failures or 'none'}")
    print(f"best: {result.best.config}, {result.best.time_ms:.3f} ms")
    print(f"{result.speedup:.2f} times as fast as the default")

    # From now on `run` takes this configuration by itself.
    problem = BLUR.problem(n=1 << 20)
    arrays = BLUR.generate(problem, seed=1)
    blurred = BLUR.run(problem, arrays).outputs["blurred"]
    print(
        "right:", BLUR.compare(problem, arrays, reference(problem, arrays), {"blurred": blurred}).ok
    )


# Needed: the process that tries the configurations imports this file, too.
if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
