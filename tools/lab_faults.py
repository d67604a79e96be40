"""Faults in what measures, judges and compares; see `fault.py`."""

from __future__ import annotations

from fault import Fault

__all__ = ["LAB_FAULTS"]

LAB_FAULTS = (
    # ------------------------------------------------------------------ measuring
    Fault(
        "rounds: the order of turns stays the same",
        "opencl_lab/lab/measuring/rounds.py", "order.sample(participants, len(participants))",
        "list(participants)",
        "test_measuring*.py test_tuning_tuner*.py",
    ),
    Fault(
        "rounds: whoever is steady leaves the one beside it that is not",
        "opencl_lab/lab/measuring/rounds.py",
        "if any(_overlap(intervals[index], intervals[other]) ",
        "if any(index == other ",
        "test_measuring*.py",
    ),
    Fault(
        "rounds: a slow one uses up the time of the others",
        "opencl_lab/lab/measuring/rounds.py", " or self._spent[index] + last <= own", "",
        "test_measuring*.py",
    ),
    Fault(
        "timing sanity: events may claim more than the host saw",
        "opencl_lab/lab/measuring/timing_sanity.py", "kernel_ms <= CLOCK_SLACK * host_ms",
        "kernel_ms <= CLOCK_SLACK * host_ms + 1e9",
        "test_measuring*.py test_resident_calls*.py",
    ),
    Fault(
        "rounds: nobody asks whether the budget is over",
        "opencl_lab/lab/measuring/rounds.py", "if self._budget is None:", "if True:",
        "test_measuring*.py",
    ),
    Fault(
        "rounds: an interval twice as wide is steady",
        "opencl_lab/lab/measuring/rounds.py", "<= 2 * STEADY * median", "<= 4 * STEADY * median",
        "test_measuring*.py",
    ),
    Fault(
        "timing sanity: time that events do not account for is accepted",
        "opencl_lab/lab/measuring/timing_sanity.py", "> MOST_UNACCOUNTED * kernel_ms",
        "> 1e9 * kernel_ms",
        "test_measuring*.py test_resident_calls*.py",
    ),
    Fault(
        "environment: what this process does itself makes the machine busy",
        "opencl_lab/lab/measuring/load.py", " - (now.own - before.own)", "",
        "test_environment*.py -k others",
    ),
    Fault(
        "environment: a quota leaves a container all processors",
        "opencl_lab/lab/measuring/load.py", "(1 - SHARE) * granted", "(1 - SHARE) * processors",
        "test_environment*.py -k quota",
    ),
    # ----------------------------------------------------- errors over their bounds
    Fault(
        "bounds: what is NaN has no error",
        "opencl_lab/lab/measuring/difference.py", "shares[np.isnan(shares)] = np.inf",
        "shares[np.isnan(shares)] = 0",
        "test_tolerances*.py",
    ),
    Fault(
        "bounds: gemm, the last rows of a result count alone",
        "opencl_lab/lab/ops/gemm/expected.py",
        "over_blocks(_blocks(problem, chunk), of_block)",
        "over_blocks(list(_blocks(problem, chunk))[-1:], of_block)",
        "test_tolerances*.py",
    ),
    Fault(
        "Freivalds: only the last product of a stack counts",
        "opencl_lab/lab/ops/gemm/freivalds.py",
        "worst = max(worst, _worst_row(problem, inputs, given, index, signs))",
        "worst = _worst_row(problem, inputs, given, index, signs)",
        "test_gemm_freivalds.py -k pass",
    ),
    Fault(
        "Freivalds: the bound grows with the length of sums, not with its root",
        "opencl_lab/lab/ops/gemm/freivalds.py",
        "growth = math.sqrt(terms) * unit", "growth = terms * unit",
        "test_gemm_freivalds.py -k pass",
    ),
    Fault(
        "builders: what the compiler refuses is left to whoever measures",
        "opencl_lab/lab/tuning/ahead.py", "if answer.refusal is not None and not whole", "if False",
        "test_tuning_ahead.py -k verdict",
    ),
    Fault(
        "builders: a driver that keeps nothing goes unnoticed",
        "opencl_lab/lab/tuning/ahead.py",
        "median(self._ratios) > SAVED", "median(self._ratios) > 10",
        "test_tuning_ahead.py -k noticed",
    ),
    Fault(
        "own kernels: what they add to is restored before the first timed run only",
        "opencl_lab/lab/tuning/trial.py", "        self._timed.restore()\n", "",
        "test_tuning_kernel_file.py -k adds",
    ),
    Fault(
        "own kernels: what hung is tried again at every resume",
        "opencl_lab/lab/tuning/tuner.py", "or item.build_ms >= options.least_timeout_ms", "",
        "test_tuning_journal.py -k hung",
    ),
    Fault(
        "bounds: conv2d, the first part of a result that differs is the worst",
        "opencl_lab/lab/ops/conv2d/tolerance.py",
        "np.nonzero(shares > known)", "np.nonzero(shares > known + 1e9)",
        "test_tolerances*.py",
    ),
    Fault(
        "bounds: dft, the tolerance counts twice",
        "opencl_lab/lab/ops/dft/tolerance.py", "tolerance * size)", "2 * tolerance * size)",
        "test_tolerances*.py",
    ),
    Fault(
        "bounds: own operations, only the last output is judged",
        "opencl_lab/lab/tuning/custom.py",
        "worst = max(worst, float(shares.max(initial=0)))", "worst = float(shares.max(initial=0))",
        "test_tolerances*.py",
    ),
    Fault(
        "topk: places of other libraries may be the same twice",
        "opencl_lab/lab/ops/select/topk.py",
        "(ordered[:, 1:] != ordered[:, :-1]).all()", "True", "test_select_operations*.py",
    ),
    Fault(
        "topk: the values at the places of other libraries are not looked at",
        "opencl_lab/lab/ops/select/topk.py",
        'np.take_along_axis(inputs["keys"], places, axis=-1)', 'expected["values"]',
        "test_select_operations*.py",
    ),
    Fault(
        "unique: counts are not compared",
        "opencl_lab/lab/ops/select/unique.py",
        'names = ("values", "counts") if problem.counts else ("values",)', 'names = ("values",)',
        "test_select_operations*.py",
    ),
    Fault(
        "searchsorted: places are compared with themselves",
        "opencl_lab/lab/ops/select/searchsorted.py",
        'exact(expected["places"], actual["places"])', 'exact(actual["places"], actual["places"])',
        "test_select_operations*.py",
    ),
    # ------------------------------------------------------- sweeps and their comparison
    Fault(
        "journals: records of another run in the same file are taken over",
        "opencl_lab/lab/engine/journal.py", 'item.pop("of", self._mark) == self._mark', "True",
        "test_engine*.py",
    ),
    Fault(
        "journals: a record without a mark is taken over whatever the head",
        "opencl_lab/lab/engine/journal.py", "mine if head == self._head else []", "mine",
        "test_engine*.py",
    ),
    Fault(
        "exploring: a budget does not count what was known before",
        "opencl_lab/lab/engine/explore.py", "allow(len(self.seen))", "allow(len(self.measured))",
        "test_engine*.py",
    ),
    Fault(
        "sweeps: other options of the problem are the same sweep",
        "opencl_lab/lab/engine/sweep.py", '"options": dict(self.options),', "",
        "test_sweep_resume*.py",
    ),
    Fault(
        "sweeps: finished sizes of other kernel parameters are taken over",
        "opencl_lab/lab/engine/sweep.py",
        'found.configs != json.loads(json.dumps(configs))', "False",
        "test_sweep_resume*.py",
    ),
    Fault(
        "timeout predictor: a time does not grow with the size",
        "opencl_lab/lab/engine/timeout_predictor.py", "return cost(new) / max(cost(old), 1)",
        "return 1.0",
        "test_sweep_timeouts*.py",
    ),
    Fault(
        "timeout predictor: a guess over a wide gap is believed",
        "opencl_lab/lab/engine/timeout_predictor.py",
        "if uncertain and growth > WIDE_GROWTH:", "if False:",
        "test_sweep_timeouts*.py",
    ),
    Fault(
        "crossovers: bisected from the first size on, not from the last before",
        "opencl_lab/lab/engine/bisection.py",
        "_between(before[-1], above)", "_between(before[0], above)",
        "test_crossover_search*.py",
    ),
    Fault(
        "crossovers: the greatest size is not looked at",
        "opencl_lab/lab/engine/bisection.py",
        "return greatest if above is not None else", "return None if above is not None else",
        "test_crossover_search*.py",
    ),
    Fault(
        "compared runs: rows of ours that are missing are no regression",
        "opencl_lab/lab/presentation/changes.py",
        "return bool(self.missing) or any(",
        "return any(",
        "test_changes*.py",
    ),
    Fault(
        "compared runs: a size that lost all of its rows is not missing",
        "opencl_lab/lab/presentation/changes.py", " or _lists(new, row))", ")",
        "test_changes*.py",
    ),
    Fault(
        "compared runs: three runs and three tell the slower one",
        "opencl_lab/lab/presentation/changes.py", " > CHANCE:", " > 0.2:",
        "test_changes*.py",
    ),
    # ------------------------------------------------------------------ tuner
    Fault(
        "tuner: the problem that no tile divides is not checked",
        "opencl_lab/lab/tuning/trial.py", "_check_case.check()", "_check_case.load()",
        "test_tuning_sandbox*.py test_tuning_tuner*.py",
    ),
    Fault(
        "tuner: what is written outside of outputs is not seen",
        "opencl_lab/lab/tuning/stage.py", "if damage is not None:", "if False:",
        "test_tuning_sandbox*.py test_tuning_tuner*.py",
    ),
    Fault(
        "tuner: a wrong result is right",
        "opencl_lab/lab/tuning/stage.py", "if not difference.ok:", "if False:",
        "test_tuning_sandbox*.py test_tuning_tuner*.py",
    ),
)  # fmt: skip
