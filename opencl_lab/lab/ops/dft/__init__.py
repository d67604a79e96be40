"""dft in the lab."""
