"""The self-test: whether a device that nobody here has seen computes what it should.

At the first use of a device and driver, a child process runs each kernel family on small problems
whose results are known. `trust` is what a call asks, `examination` runs the child, `verdicts` keeps
what was found, `symptoms` has checks of the device alone. The trials of an operation are in its
package of `ops`, and `ops/selftest.py` runs them in the child.

```text
 ol.sort(x) -> Solver.choose -> trust.fault(device, sort/radix)
                                  |  shipped as good, or kept by an earlier process: at once
                                  v
                                Examination: waits for this family alone;  the others follow
                                  |  thread           ^
                                  v                   | right, wrong, crashed, hung
                                child process: ops/selftest.py, trials of sort by radix
```
"""
