"""sort in the lab."""
