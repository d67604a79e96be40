"""Products of host arrays: tile by tile, or by the host's own BLAS."""
