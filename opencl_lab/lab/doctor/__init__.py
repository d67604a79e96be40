"""Probes of what the chosen device and its tools really support.

Each probe compiles and runs small kernels in a worker process, so that a driver that crashes or
hangs is a finding. Findings are stored for each device and driver;
`opencl_lab.drivers.verdicts` reads them back as `Capabilities`, and
`opencl_lab.lab.measuring.roofline` as the `Peaks` that results are compared with.
"""
