"""One engine for all that is measured: `bench`, `crossover`, `shapes`, `calls`, `study`, `tune`.

```text
 strategy       asks for points, one after the other, and is sent what became of each: `grid`,
    |  ^        a bisection, or those of the tuner
 point | row
    v  |
 explore        what the journal knows is taken over, the rest measured and kept; ends with the
    |  ^        strategy, the budget, the time, or at Ctrl-C
 point | row
    v  |
 runner         `request` says what takes part: `ours` and `references`, both `implementations`; the
    |           first result of each is checked, all are timed in turns (`measuring.rounds`), the
    v           last is checked again
 row            a `Measurement`: kernel and total times apart, a status with its reason
    |
    v
 journal        lines of JSON, on the disk at once; `stored` reads documents back
```

A `sweep` is many points of one operation, with `patience` for references that are too slow.
`crossings` says where one row overtakes another, `calls` what a public call costs.
"""
