"""Arrays of the host: tile by tile, or by the host's own BLAS."""
