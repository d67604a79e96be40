"""Products on CPU devices: panels, and a tile in registers."""
