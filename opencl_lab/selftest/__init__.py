"""The self-test: whether a device that nobody here has seen computes what it should.

Where a call first needs a family of kernels on a device and driver, a child process runs it on
small problems whose results are known. `trust` is what a call asks; `examination` knows what was
tested, or tests it; `child` tries what may crash or hang (the doctor's probes, too) and gives a
verdict; `basics` are kernels that all others depend on, built and run by `kernels`; `verdicts` has
families. The trials of an operation are in its package of `ops`, and
`ops/selftest.py` runs them in the child.

```text
 ol.sort(x) -> Solver.choose -> trust.fault(device, sort/radix)
                                  |  shipped as good, or kept by an earlier process: at once
                                  v
                                Examination.verdict
                                  |                   ^
                                  v                   | ok, broken (wrong, crashed, hung), unknown
                                child process: ops/selftest.py, trials of sort by radix
```
"""
