"""Which devices there are, and how their drivers are found, repaired and cached."""
