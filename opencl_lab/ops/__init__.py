"""The operations: a package each, which `opencl_lab.lab.registry` lists."""
