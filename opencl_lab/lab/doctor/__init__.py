"""What the chosen device and the tools around it can really do, found by trying.

Each probe compiles and runs a small kernel in a child process, so that a driver
that crashes or hangs is a finding and not an end. What is found is stored for
each device and driver; `opencl_lab.drivers.discovery` reads it back as `Capabilities`, and
`opencl_lab.lab.measuring.roofline` as the `Peaks` that results are held against.
"""
