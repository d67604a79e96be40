"""Products on CPU devices: panels that caches hold, and a block of sums in registers."""
