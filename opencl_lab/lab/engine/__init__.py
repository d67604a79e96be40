"""One engine for all that is measured: `tune`, `bench`, `crossover`, `shapes` and `study`.

```text
 strategy          asks for points, one after the other, and is sent what became of each:
    |  ^           a grid, a bisection, or the strategies of `tuning/`
 point |
    v  |
 explore           `explore`: takes over what the journal has, measures the rest, keeps it there
    |  |           stops: at the strategy's end, the budget, the time limit, Ctrl-C
 point row
    v  |
 runner            builds or starts, checks the first result, times in turns (`measuring.rounds`),
    |  |           checks the last one: `comparison` here, the tuner's sandbox in a worker
    v  |
 row               `Measurement`: kernel and total times apart, a status with its reason
    |
 journal           `journal`: append-only lines of JSON with an identity
```

Points differ: a size of a sweep, a shape, a point of a study, a configuration. What is the same for
all is here.
"""
