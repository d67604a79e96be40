"""An operation of its own, whole: the transpose of a matrix, with two algorithms.

docs/adding_an_operation.md explains it part by part. As a script it is `oclab` with one more
operation, in all that the command line can do:

    python docs/examples/transpose.py transpose --size 2000
    python docs/examples/transpose.py tune transpose --size 2000 --time-limit 20
    python docs/examples/transpose.py bench transpose --sizes 500,1000,2000 --out results
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.plan import Buffer, Launch, Plan, Work, round_up
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.lab import registry
from opencl_lab.lab.cli.main import main
from opencl_lab.lab.files import convert
from opencl_lab.lab.operation import UNLIKE, Difference, Operation, Option
from opencl_lab.lab.reference.descriptor import CReference, HostReference
from opencl_lab.lab.reference.peers import Calls, OurCall
from opencl_lab.ops.solver import Algorithm, Problem, Solver
from opencl_lab.ops.trial import Task, Trial, Trials
from opencl_lab.runtime.arrays import as_array, assign, contiguous, direct_target
from opencl_lab.runtime.replay import replayed

FLOAT = np.dtype(np.float32)
FOLDER = Path(__file__).resolve().parent
WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}  # of a size in bytes, in OpenCL C
DTYPES = ("float32", "float64", "int32", "int64", "complex64")


# problem.py
@dataclass(frozen=True)
class TransposeProblem(Problem):
    """Transpose a matrix of `rows` and `columns`."""

    sizes = ("rows", "columns")
    layout = ("dtype",)

    rows: int = 1024
    columns: int = 1024
    dtype: np.dtype = FLOAT

    def __post_init__(self):
        if self.rows < 0 or self.columns < 0:
            raise InvalidProblem(f"a matrix cannot have {self.rows} x {self.columns} elements")
        if self.dtype.itemsize not in WORDS:
            raise InvalidProblem(f"elements of {self.dtype} cannot be transposed")

    @property
    def work(self):
        """Every element is read once and written once."""
        return Work(flops=0.0, bytes=2.0 * self.rows * self.columns * self.dtype.itemsize)


# algorithms.py
class OneLaunch(Algorithm[TransposeProblem]):
    """What both algorithms share: one launch over tiles of the matrix."""

    def _plan(self, problem, params, tile, group):
        buffers = (
            Buffer("a", "in", (problem.rows, problem.columns), problem.dtype),
            Buffer("transposed", "out", (problem.columns, problem.rows), problem.dtype),
        )
        if not problem.rows * problem.columns:
            return Plan(buffers, ())
        launch = Launch(
            template=self.templates[0],
            kernel="transpose",
            params={**params, "ELEMENT_T": WORDS[problem.dtype.itemsize]},
            global_size=(
                round_up(problem.columns, tile) // tile * group[0],
                round_up(problem.rows, tile) // tile * group[1],
            ),
            local_size=group,
            arguments={
                "a": "a",
                "transposed": "transposed",
                "rows": np.uint32(problem.rows),
                "columns": np.uint32(problem.columns),
            },
        )
        return Plan(buffers, (launch,))


class Tiled(OneLaunch):
    """Tiles in local memory, which groups share."""

    name = "tiled"
    templates = (str(FOLDER / "transpose.cl.mako"),)
    space = SearchSpace(
        (
            Parameter("TILE", (8, 16, 32, 64), "rows and columns of a tile"),
            Parameter("WG_ROWS", (1, 2, 4, 8, 16), "items of a group in dimension 1"),
            Parameter("LOCAL_PAD", (0, 1), "elements between the rows of a tile"),
        ),
        (
            Constraint(
                lambda c: c.integer("TILE") % c.integer("WG_ROWS") == 0, "WG_ROWS must divide TILE"
            ),
        ),
    )

    def default_config(self, problem, device):
        """Return what serves most GPUs."""
        return Config(TILE=32, WG_ROWS=8, LOCAL_PAD=1)

    def plan(self, problem, config, device):
        """Return one launch with a group for each tile."""
        tile = config.integer("TILE")
        return self._plan(problem, config, tile, (tile, config.integer("WG_ROWS")))


class Plain(OneLaunch):
    """Blocks that stay in a cache, without local memory."""

    name = "plain"
    templates = (str(FOLDER / "transpose_plain.cl.mako"),)
    space = SearchSpace((Parameter("BLOCK", (4, 8, 16, 32, 64), "rows and columns of one"),), ())

    def default_config(self, problem, device):
        """Return blocks whose rows are a cache line of 64 bytes."""
        return Config(BLOCK=max(8, 64 // problem.dtype.itemsize))

    def plan(self, problem, config, device):
        """Return one launch with a group of one item for each block."""
        return self._plan(problem, config, config.integer("BLOCK"), (1, 1))


# solver.py
class TransposeSolver(Solver[TransposeProblem]):
    """The transpose of a matrix."""

    name = "transpose"
    registry = {"tiled": Tiled(), "plain": Plain()}  # noqa: RUF012

    def ranked(self, problem, device, group="auto"):
        """Return the algorithms, those that are probably faster first."""
        return ("plain", "tiled") if device.kind == "cpu" else ("tiled", "plain")


SOLVER = TransposeSolver()


# functions.py
@replayed()
def transpose(call, a, *, algorithm="auto", config=None, out=None, queue=None, device=None):
    """Return the transpose of a matrix, contiguous, on the side where it is."""
    a = as_array(a)
    call.use(a, queue, device)
    if a.ndim != 2:
        raise InvalidProblem(f"a matrix has two dimensions, not {a.ndim}")
    problem = TransposeProblem(*a.shape, a.dtype)
    target = direct_target(out, (problem.columns, problem.rows), problem.dtype, (a,))
    run = SOLVER.run(
        problem,
        {"a": contiguous(a, call)},
        algorithm=algorithm,
        config=config,
        call=call,
        out={} if target is None else {"transposed": target},
    )
    transposed = run.outputs["transposed"]
    if out is None or target is not None:
        return transposed
    assign(out, transposed, call)
    return out


# trials.py
def transposed(dtype, rows, columns, rng):
    """Return a call and its right result."""
    a = (100 * rng.standard_normal((rows, columns))).astype(dtype)
    return Task(transpose, (a,), (np.ascontiguousarray(a.T),))


def trial(dtype, rows, columns):
    """Return a trial whose result must be exact."""
    task = partial(transposed, dtype, rows, columns)
    return Trial(f"{rows} x {columns} numbers of {dtype}", task, dtype, exact=True)


def draw(d):
    """Return a random trial."""
    return trial(d.dtype(DTYPES), d.size(300), d.size(300))


TRIALS = (Trials(SOLVER, (trial("float32", 211, 283),), (TransposeProblem(),), draw=draw),)


# references.py
def ours(problem, arrays, algorithm):
    """Return our call."""
    return OurCall(transpose, (arrays["a"],), {"algorithm": algorithm})


def theirs(problem, module, arrays):
    """Return the call of NumPy or CuPy, whose `T` alone would copy nothing."""
    return module.ascontiguousarray(arrays["a"].T)


def numpy_transpose(problem, inputs, threads):
    """Transpose a matrix by NumPy."""
    return {"transposed": np.ascontiguousarray(inputs["a"].T)}


# operation.py
class Transpose(Operation[TransposeProblem]):
    """What the command line, comparisons and the tuner need."""

    solver = SOLVER
    calls = Calls(ours, dict.fromkeys(("numpy", "cupy"), theirs), ("a",))
    summary = "Transpose a matrix."
    options = (
        Option("size", int, 1024, "rows and columns of a square matrix"),
        Option("rows", int, None, "rows", default_text="size"),
        Option("columns", int, None, "columns", default_text="size"),
        Option("dtype", str, "float32", "type of the elements", DTYPES),
    )
    size_option = "size"
    check_cases = ({"rows": 211, "columns": 283},)
    inputs = ("a",)
    output = "transposed"
    references = (
        CReference(
            "c:seq",
            str(FOLDER / "transpose.c"),
            "transpose_seq",
            defines=lambda problem: {"ELEMENT_T": f"uint{8 * problem.dtype.itemsize}_t"},
            arguments=lambda problem, inputs, outputs: (
                inputs["a"],
                outputs["transposed"],
                problem.rows,
                problem.columns,
            ),
        ),
        HostReference("numpy", numpy_transpose),
    )

    def problem(self, **options):
        """Return the problem that the options describe."""
        chosen = self.with_defaults(options)
        size = chosen.pop("size")
        for name in ("rows", "columns"):
            chosen[name] = size if chosen[name] is None else chosen[name]
        return TransposeProblem(**{**chosen, "dtype": np.dtype(chosen["dtype"])})

    def problem_of(self, arrays, **options):
        """Return the problem of a user's matrix, in `dtype` if that is given."""
        a = np.atleast_2d(arrays["a"])
        if "dtype" in options:
            a = convert(a, options["dtype"])
        if a.ndim != 2:
            raise InvalidProblem(f"a matrix has two dimensions, not {a.ndim}")
        return TransposeProblem(*a.shape, a.dtype), {"a": np.ascontiguousarray(a)}

    def generate(self, problem, seed, **options):
        """Return a matrix of random numbers."""
        numbers = np.random.default_rng(seed).standard_normal((problem.rows, problem.columns))
        return {"a": (100 * numbers).astype(problem.dtype)}

    def expected(self, problem, inputs):
        """Return the right result, by other means."""
        return {"transposed": np.ascontiguousarray(inputs["a"].T)}

    def compare(self, problem, inputs, expected, actual):
        """Compare exactly: nothing is computed."""
        right, given = expected["transposed"], actual["transposed"]
        if given.shape != right.shape or given.dtype != right.dtype:
            return UNLIKE
        same = right.tobytes() == given.tobytes()
        error = 0.0 if same else float(np.abs(right - given).max())
        return Difference.exact(error, error, same)


TRANSPOSE = Transpose()

if __name__ == "__main__":
    # Within the package this is a line of the dictionary in opencl_lab/lab/registry.py.
    registry.OPERATIONS["transpose"] = TRANSPOSE
    sys.exit(main())
