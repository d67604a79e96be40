"""The algorithm `fft`: fast transforms of every length."""

from __future__ import annotations

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_type
from opencl_lab.core.plan import Plan
from opencl_lab.core.space import Config, SearchSpace
from opencl_lab.ops.fft.passes.bluestein import any_length
from opencl_lab.ops.fft.passes.builder import PlanBuilder
from opencl_lab.ops.fft.passes.forms import (
    LOCAL_MEMORY_PARAMETERS,
    SPACE,
    TEMPLATES,
    VECTOR_PARAMETERS,
    default_config,
    planner_of,
)
from opencl_lab.ops.fft.passes.fusion import can_fuse
from opencl_lab.ops.fft.passes.layout import BatchedLayout
from opencl_lab.ops.fft.passes.planner import How
from opencl_lab.ops.fft.passes.real_transforms import RealRows
from opencl_lab.ops.fft.passes.row_passes import MOST_ROWS
from opencl_lab.ops.fft.problem import DftProblem, builder_of
from opencl_lab.ops.solver import Algorithm


class FftAlgorithm(Algorithm[DftProblem]):
    """Stockham passes of small radices and primes; four-step for long lengths; else Bluestein."""

    name = "fft"
    templates = TEMPLATES
    space = SPACE

    def supports(self, problem: DftProblem, device: Device) -> str | None:
        """Need double precision for complex128."""
        return lacks_type(device, problem.dtype)

    def default_config(self, problem: DftProblem, device: Device) -> Config:
        """Return vectors for CPUs, groups with local memory for other devices."""
        packed = problem.kind != "c2c" and problem.n % 2 == 0  # two reals are one complex number
        n = problem.n // 2 if packed else problem.n
        few = problem.inner == 1 and problem.count <= MOST_ROWS
        return default_config(n, problem.real, device, columns=problem.inner > 1, few=few)

    def search_space(self, problem: DftProblem, device: Device) -> SearchSpace:
        """Return the parameters that matter, of the form for the kind of device."""
        default = self.default_config(problem, device)
        vector = default["FORM"] == "vector"
        idle = {"FORM", "LOCAL_LIMIT", *(LOCAL_MEMORY_PARAMETERS if vector else VECTOR_PARAMETERS)}
        if not vector:
            launches = self.plan(problem, default, device).launches
            steps = [step for launch in launches for step in launch.params.get("STEPS", ())]
            alone = not any(step.step_twiddle_bits for step in steps)
            idle |= {"LAST_TRANSFORMS"} if alone else {"WG_SIZE"}
            pairs = len(steps) in (2, 4)  # a transform, or a convolution's there and back
            idle |= set() if pairs and can_fuse(device) and not alone else {"FUSED"}
            idle |= {"TRANSFORMS"} if alone and problem.inner == 1 else set()
        elif problem.inner > 1:
            idle.add("SPLIT")
        return self.space.narrowed({name: default[name] for name in idle})

    def plan(self, problem: DftProblem, config: Config, device: Device) -> Plan:
        """Plan the launches of a transform, and of the conversion before it."""
        builder = builder_of(problem)
        if problem.n * problem.count:
            self.add(builder, problem, "signal", "spectrum", config, device)
        return builder.finish()

    def add(
        self,
        builder: PlanBuilder,
        problem: DftProblem,
        source: str,
        target: str,
        config: Config,
        device: Device,
    ) -> None:
        """Add the launches of a transform that is not empty, from one buffer to another."""
        planner = planner_of(config, device)
        n, batch, inner = problem.n, problem.batch, problem.inner
        if problem.kind != "c2c":
            rows = RealRows(planner, builder, n, batch)
            (rows.r2c if problem.kind == "r2c" else rows.c2r)(source, target, problem.scale)
            return
        if inner == 1:
            layout = BatchedLayout.rows(n, batch, source, target)
        else:
            layout = BatchedLayout.columns(n, batch, inner, source, target)
        any_length(planner, builder, layout, How(problem.inverse, problem.scale))


FFT = FftAlgorithm()
