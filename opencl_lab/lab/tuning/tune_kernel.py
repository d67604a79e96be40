"""Tuning of a user's kernel in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from opencl_lab.core.device import Device
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.core.options import checked
from opencl_lab.core.space import Value
from opencl_lab.lab.tuning.kernel_file import kernel_file
from opencl_lab.lab.tuning.kernel_text import KernelText
from opencl_lab.lab.tuning.result import TuneResult, TuningProgress
from opencl_lab.lab.tuning.strategies import DEFAULT_STRATEGY
from opencl_lab.lab.tuning.tuner import tune


@checked
def tune_kernel(
    file: str | Path,
    params: Mapping[str, Sequence[Value]],
    arguments: Mapping[str, object],
    global_size: str | int | Sequence[str | int],
    *,
    local_size: str | int | Sequence[str | int] | None = None,
    kernel: str | None = None,
    fixed: Mapping[str, Value] | None = None,
    restrictions: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    inout: Sequence[str] = (),
    expected: Any = None,
    tolerance: float | None = None,
    options: Sequence[str] = (),
    device: str | int | Device | None = None,
    strategy: str = DEFAULT_STRATEGY,
    budget: int | None = None,
    time_limit: float | None = None,
    timeout: float | None = None,
    builders: int | None = None,
    seed: int = 0,
    fresh: bool = False,
    progress: Callable[[TuningProgress], None] | None = None,
) -> TuneResult:
    """Find the fastest parameters of a kernel of your own, in a file.

    Configurations are built, checked and timed in a worker process, as by `tune`. Launch sizes are
    expressions of parameters and numeric arguments, with ``+ - * // %``, `min`, `max`,
    ``ceil_div(a, b)`` and ``round_up(a, multiple)``. Results are checked at the sizes that are
    timed: choose sizes that no tile divides, or a missing bounds check goes unnoticed.

    Parameters
    ----------
    file : str or Path
        A Mako template, ``*.mako``, or OpenCL C, which gets its parameters as macros.
    params : mapping
        The values to try for each parameter. The first values are the baseline.
    arguments : mapping
        A value for each argument of the kernel, by name: arrays of any shape, of which only shape
        and type matter for outputs; numbers; for ``__local`` pointers the number of elements, which
        may be an expression. An expression in place of an array in global memory, such as
        ``"GROUPS"``, is the size of working memory, which is neither filled nor compared. Vectors
        of length 3 are arrays of shape ``(..., 4)``, as OpenCL stores them.
    global_size, local_size : str, int or sequence of these
        Number of work-items, in all and per work-group, in one to three dimensions. The global
        size is rounded up to a multiple of the local one, whose default is
        ``reqd_work_group_size``.
    kernel : str, optional
        Name of the kernel; needed if the file has several.
    fixed : mapping, optional
        Parameters with a fixed value.
    restrictions : sequence of str
        Conditions on parameters, such as ``"WG_SIZE * WORK <= 4096"``.
    outputs : sequence of str, optional
        The arrays of which the kernel writes every element, without reading any; by default those
        whose pointer is not ``const``.
    inout : sequence of str
        The arrays that the kernel both reads and writes, such as counts that it adds to. They are
        restored to the contents in `arguments` before each run, outside the timing.
    expected : array or mapping of arrays, optional
        The expected output, or outputs by name. Without it, all configurations are compared with
        the first one, which must run.
    tolerance : float, optional
        Largest error, relative to the largest magnitude in the expected result; by default the
        square root of the type's machine epsilon. Integers must be equal.
    options : sequence of str
        Build options.
    device, strategy, budget, time_limit, timeout, builders, seed, fresh, progress
        As for `tune`.

    Returns
    -------
    TuneResult

    Raises
    ------
    InvalidProblem
        If the arguments are not those of the kernel.
    OclabError
        Of the class for the failure.
    KeyboardInterrupt
        After the results so far were stored.

    Examples
    --------
    >>> result = tune_kernel(
    ...     "scale.cl",
    ...     {"WG": (16, 64, 256)},
    ...     {"x": x, "y": np.empty_like(x), "n": x.size},
    ...     "n",
    ...     local_size="WG",
    ... )  # doctest: +SKIP
    """
    text = KernelText(
        Path(file).resolve(),
        kernel,
        {name: tuple(values) for name, values in params.items()},
        dict(fixed or {}),
        tuple(options),
    )
    operation = kernel_file(
        text,
        arguments,
        _expression("global_size", global_size),
        local_size=None if local_size is None else _expression("local_size", local_size),
        restrictions=restrictions,
        outputs=outputs,
        inout=inout,
        expected=expected,
        tolerance=tolerance,
        device=device,
    )
    return tune(
        operation,
        device=device,
        strategy=strategy,
        budget=budget,
        time_limit=time_limit,
        timeout=timeout,
        builders=builders,
        seed=seed,
        fresh=fresh,
        progress=progress,
    )


def _expression(name: str, sizes: str | int | Sequence[str | int]) -> str:
    """Return sizes as one expression; InvalidProblem for other types, such as a function."""
    several = sizes if isinstance(sizes, Sequence) and not isinstance(sizes, str) else (sizes,)
    for size in several:
        if not isinstance(size, (str, Integral)):
            raise InvalidProblem(
                f"{name} takes numbers and expressions of parameters and arguments as text, such "
                f'as "ceil_div(n, WORK)", not {size!r}'
            )
    return ", ".join(map(str, several))
