"""CuPy's own parts, as far as they are used."""
