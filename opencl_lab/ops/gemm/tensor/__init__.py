"""Products by the matrix units of NVIDIA's GPUs."""
