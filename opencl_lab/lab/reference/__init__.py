"""Independent implementations that every OpenCL result is checked against and compared with."""
