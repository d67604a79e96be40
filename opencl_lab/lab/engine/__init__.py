"""The engine of all measurements: `bench`, `crossover`, `calls`, `study`, `tune`.

```text
 generator      yields points and is sent the result of each: `grid`, a bisection, or a strategy of
    |  ^        the tuner
 point | row
    v  |
 explore        takes results from the journal, or measures and records them; ends with the
    |  ^        generator, the budget, the time limit, or at Ctrl-C
 point | row
    v  |
 runner         runs the `implementations` of a `request`: `ours` and `references`; checks the first
    |           result of each, takes samples in turns (`measuring.rounds`), and checks the last
    v           result
 row            a `Measurement`: kernel and total times, and a status with its reason
    |
    v
 journal        lines of JSON, written at once; `stored` reads documents back
```

A `sweep` measures many points of one operation; its `timeout_predictor` leaves out slow
references. `crossings` finds where one row overtakes another, `speedups` has ratios of rows,
`calls` the cost of a public call.
"""
