"""The operations: a package each, which `opencl_lab.registry` lists."""
